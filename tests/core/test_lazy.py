"""Doors: a package offers what its stub states, loads each name when it is first used, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import crosslens.core

DOOR = '"""A room."""\nfrom crosslens.core.lazy import offer\n\n__getattr__, __dir__, __all__ = offer(__name__)\n'


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A made-up package with a door."""
    folder = tmp_path / "made_room"
    folder.mkdir()
    (folder / "__init__.py").write_text(DOOR)
    (folder / "__init__.pyi").write_text(
        "from made_room.chairs import Chair as Chair, count as chair_count\n"
        "from made_room.tables import Table as Table\n"
    )
    (folder / "chairs.py").write_text("class Chair: ...\n\ndef count(): return 4\n")
    (folder / "tables.py").write_text("from made_room import Chair\n\nclass Table:\n    seat = Chair\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "made_room"
    for name in [name for name in sys.modules if name.startswith("made_room")]:
        del sys.modules[name]


def test_only_the_module_that_is_used_is_loaded(room: str) -> None:
    door = import_module(room)
    assert "made_room.chairs" not in sys.modules
    assert door.Chair.__name__ == "Chair"
    assert "made_room.chairs" in sys.modules
    assert "made_room.tables" not in sys.modules
    assert vars(door)["Chair"] is door.Chair  # found without __getattr__ from now on


def test_names_may_be_offered_under_another_name(room: str) -> None:
    assert import_module(room).chair_count() == 4


def test_dir_and_all_state_every_name(room: str) -> None:
    door = import_module(room)
    assert dir(door) == door.__all__ == ["Chair", "Table", "chair_count"]


def test_unknown_names(room: str) -> None:
    door = import_module(room)
    with pytest.raises(AttributeError, match="module 'made_room' has no attribute 'Lamp'"):
        _ = door.Lamp
    with pytest.raises(ImportError, match="cannot import name 'Lamp'"):
        exec("from made_room import Lamp")
    assert not hasattr(door, "count")


def test_modules_can_still_be_imported(room: str) -> None:
    namespace: dict[str, object] = {}
    exec("from made_room import chairs", namespace)
    assert namespace["chairs"] is sys.modules["made_room.chairs"]


@pytest.mark.parametrize("order", [("Chair", "Table"), ("Table", "Chair")])
def test_modules_of_the_room_may_use_its_door(room: str, order: tuple[str, str]) -> None:
    door = import_module(room)
    for name in order:
        getattr(door, name)
    assert door.Table.seat is door.Chair


@pytest.mark.parametrize("name", ["core", "rank", "statistics", "metrics"])
def test_every_name_of_a_door_exists(name: str) -> None:
    door = import_module(f"crosslens.{name}")
    assert door.__all__
    for public in door.__all__:
        assert getattr(door, public) is not None
    assert set(door.__all__) <= set(dir(door))


def test_rooms_can_be_imported_in_any_order() -> None:
    for order in (("metrics", "core"), ("statistics", "rank", "core"), ("core", "metrics", "rank", "statistics")):
        code = "\n".join(f"from crosslens.{room} import *" for room in order)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{order}: {done.stderr}"


def test_importing_a_room_loads_nothing_heavy() -> None:
    code = "import sys, crosslens.rank, crosslens.metrics; print({'numba', 'polars', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_the_stub_is_the_door_of_core() -> None:
    assert "InputError" in crosslens.core.__all__
    assert "offer" in crosslens.core.__all__
