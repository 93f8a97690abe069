"""Lazy names: a package has what its stub states, loads each name when it is first used, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import crosslens.core
from tests.tables import rest_slow

INIT = """\
"A package."
from crosslens.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A made-up package with lazy names."""
    folder = tmp_path / "made_up"
    folder.mkdir()
    (folder / "__init__.py").write_text(INIT)
    (folder / "__init__.pyi").write_text(
        "from made_up.chairs import Chair as Chair\nfrom made_up.tables import Table as Table\n"
        "from . import room as room\n"
    )
    (folder / "chairs.py").write_text("class Chair: ...\n\ndef count(): return 4\n")
    (folder / "room.py").write_text("size = 20\n")
    (folder / "tables.py").write_text("from made_up import Chair\n\nclass Table:\n    seat = Chair\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "made_up"
    for name in [name for name in sys.modules if name.startswith("made_up")]:
        del sys.modules[name]


def test_only_the_module_that_is_used_is_loaded(package: str) -> None:
    module = import_module(package)
    assert "made_up.chairs" not in sys.modules
    assert module.Chair.__name__ == "Chair"
    assert "made_up.chairs" in sys.modules
    assert "made_up.tables" not in sys.modules
    assert vars(module)["Chair"] is module.Chair  # found without __getattr__ from now on


def test_packages_are_loaded_when_they_are_used(package: str) -> None:
    module = import_module(package)
    assert "made_up.room" not in sys.modules
    assert module.room.size == 20


def test_dir_and_all_state_every_name(package: str) -> None:
    module = import_module(package)
    assert module.__all__ == ["Chair", "Table"]
    assert dir(module) == ["Chair", "Table", "room"]


def test_unknown_names(package: str) -> None:
    module = import_module(package)
    with pytest.raises(AttributeError, match="module 'made_up' has no attribute 'Lamp'"):
        _ = module.Lamp
    with pytest.raises(ImportError, match="cannot import name 'Lamp'"):
        exec("from made_up import Lamp")
    assert not hasattr(module, "count")


def test_modules_can_still_be_imported(package: str) -> None:
    namespace: dict[str, object] = {}
    exec("from made_up import chairs", namespace)
    assert namespace["chairs"] is sys.modules["made_up.chairs"]


@pytest.mark.parametrize("order", [("Chair", "Table"), ("Table", "Chair")])
def test_modules_of_the_room_may_use_its_door(package: str, order: tuple[str, str]) -> None:
    module = import_module(package)
    for name in order:
        getattr(module, name)
    assert module.Table.seat is module.Chair


@pytest.mark.parametrize("name", ["core", "rank", "statistics", "metrics"])
def test_every_name_of_a_door_exists(name: str) -> None:
    module = import_module(f"crosslens.{name}")
    assert module.__all__
    for public in module.__all__:
        assert getattr(module, public) is not None
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("order", rest_slow(["statistics rank core", "metrics core", "core metrics rank statistics"]))
def test_rooms_can_be_imported_in_any_order(order: str) -> None:
    code = "\n".join(f"from crosslens.{package} import *" for package in order.split())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_a_room_loads_nothing_heavy() -> None:
    code = "import sys, crosslens.rank, crosslens.metrics; print({'numba', 'polars', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_the_stub_is_the_door_of_core() -> None:
    assert "InputError" in crosslens.core.__all__
    assert "lazy_names" in crosslens.core.__all__
