"""Registries: entries by decorator, from modules, packages and plug-ins, once, whichever thread looks first."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crosslens.core import CrosslensError, Registry, UnknownNameError
from crosslens.data import is_dataset_name, known_dataset
from crosslens.encode import split_model
from crosslens.perturbations import PERTURBATIONS, chosen_perturbations
from crosslens.similarity import load_similarity
from tests.tables import each_row

SHAPES: Registry[object] = Registry("shape", "shapes")
"""What the modules written by the tests register into."""

REGISTER = '''
from tests.core.test_registry import SHAPES

@SHAPES.register("{0}")
def {0}():
    """A {0}."""
'''


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path, whose modules may register; forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    SHAPES._entries.clear()
    SHAPES._loaded = False
    SHAPES._modules = ()
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("made_"):
            del sys.modules[name]


def test_names_are_registered_once_and_with_a_docstring() -> None:
    registry: Registry[object] = Registry("shape", "shapes")

    @registry.register("square", colour="red")
    def square() -> None:
        """Four sides."""

    assert registry["square"].summary == "Four sides."
    assert registry["square"].details == {"colour": "red"}
    assert [entry.name for entry in registry] == ["square"]
    with pytest.raises(CrosslensError, match="two shapes are registered as 'square'"):
        registry.register("square")(square)
    with pytest.raises(CrosslensError, match="shape 'circle' has no docstring"):
        registry.register("circle")(lambda: None)
    with pytest.raises(UnknownNameError, match="did you mean square"):
        registry["squares"]
    assert "circle" not in registry


def test_names_are_sorted() -> None:
    registry: Registry[object] = Registry("shape", "shapes")
    for name in ("b", "c", "a"):
        registry.register(name)(SimpleNamespace(__doc__="A shape."))
    assert registry.names() == ("a", "b", "c")


def test_a_module_and_every_module_of_a_package(shapes: Path) -> None:
    (shapes / "made_module.py").write_text(REGISTER.format("line"))
    (shapes / "made_package").mkdir()
    (shapes / "made_package" / "__init__.py").write_text("")
    for name in ("oval", "ring"):
        (shapes / "made_package" / f"{name}.py").write_text(REGISTER.format(name))
    SHAPES._modules = ("made_module", "made_package")
    assert "made_module" not in sys.modules
    assert SHAPES.names() == ("line", "oval", "ring")
    assert SHAPES["ring"].value.__module__ == "made_package.ring"


def test_plug_ins_by_entry_point(shapes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shapes / "made_plugin.py").write_text(REGISTER.format("star"))
    groups = []

    def points(group: str) -> list[SimpleNamespace]:
        groups.append(group)
        return [SimpleNamespace(module="made_plugin")]

    monkeypatch.setattr("crosslens.core.registry.entry_points", points)
    assert SHAPES["star"].summary == "A star."
    assert "star" in SHAPES
    assert groups == ["crosslens.shapes"]  # looked for once


def test_a_module_may_look_up_while_it_is_imported(shapes: Path) -> None:
    text = REGISTER.format("arc") + '\nassert "arc" in SHAPES\n'
    (shapes / "made_reentrant.py").write_text(text)
    SHAPES._modules = ("made_reentrant",)
    assert SHAPES.names() == ("arc",)


def test_a_failed_import_is_reported_every_time(shapes: Path) -> None:
    SHAPES._modules = ("made_missing",)
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="made_missing"):
            SHAPES.names()
    (shapes / "made_missing.py").write_text(REGISTER.format("late"))
    __import__("importlib").invalidate_caches()
    assert SHAPES.names() == ("late",)


def test_other_threads_wait_until_all_entries_are_there(shapes: Path) -> None:
    (shapes / "made_slow.py").write_text("import time\ntime.sleep(0.2)\n" + REGISTER.format("slow"))
    (shapes / "made_last.py").write_text(REGISTER.format("last"))
    SHAPES._modules = ("made_slow", "made_last")
    names_read: list[tuple[str, ...]] = []
    threads = [threading.Thread(target=lambda: names_read.append(SHAPES.names())) for _ in range(4)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    assert names_read == [("last", "slow")] * 4


REGISTRIES = (
    *("crosslens.metrics:METRICS", "crosslens.perturbations:PERTURBATIONS", "crosslens.rank:SCORES"),
    *("crosslens.perturbations:IMAGE_PERTURBATIONS", "crosslens.similarity:SIMILARITIES", "crosslens.data:READERS"),
    *("crosslens.data:WRITERS", "crosslens.encode:ENCODERS", "crosslens.encode:PAIR_SCORERS"),
    *("crosslens.pipeline:PROTOCOLS", "crosslens.report:EXPORTS"),
)


@each_row("place", REGISTRIES)
def test_case_alone_is_no_error_in_any_registry(place: str) -> None:
    module, _, name = place.partition(":")
    registry = getattr(importlib.import_module(module), name)
    folded = [entry.name.casefold() for entry in registry]
    assert len(set(folded)) == len(folded), "two names that differ by their case alone: list them here"
    for entry in registry:
        for written in (entry.name.lower(), entry.name.upper(), entry.name.swapcase()):
            assert registry[written].name == entry.name
            assert written in registry
            assert registry.canonical(f"{written}:Some/Source") == f"{entry.name}:Some/Source"
        assert f"{entry.name}x" not in registry
        assert registry.canonical(f"{entry.name}X") == f"{entry.name}X"


def test_names_that_differ_by_case_alone_must_be_written_as_they_are() -> None:
    registry: Registry[Any] = Registry("thing", "things")
    for name in ("Hit", "HIT"):
        registry.register(name)(SimpleNamespace(__doc__="A thing."))
    assert [registry[name].name for name in ("Hit", "HIT")] == ["Hit", "HIT"]
    assert "hit" not in registry
    assert registry.canonical("hit") == "hit"
    with pytest.raises(UnknownNameError, match="did you mean H"):
        registry["hit"]


def test_names_in_another_case_are_kept_as_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = PERTURBATIONS.names()[0]
    assert chosen_perturbations(f"{first.upper()}, Blur@2, NOISE") == chosen_perturbations(f"{first}, blur@2, noise")
    assert chosen_perturbations(["ALL", "Images@1"]) == chosen_perturbations(["all", "images@1"])
    assert split_model("CLIP:OpenAI/Clip") == ("clip", "OpenAI/Clip")
    assert load_similarity("CIDEr").name == load_similarity("cider").name
    assert known_dataset("Flickr30K").name == "flickr30k"
    monkeypatch.chdir(tmp_path)
    assert is_dataset_name("COCO")
    (tmp_path / "COCO").mkdir()
    assert not is_dataset_name("COCO")  # a folder of that very name is meant before a reader in another case
    assert is_dataset_name("coco")
