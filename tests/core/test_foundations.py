"""Errors, registry, seeds and atomic writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from crosslens.core.atomic import PARTIAL, atomic_file, atomic_folder, sweep, write_text
from crosslens.core.errors import CrosslensError, InputError, MissingExtraError, UnknownNameError, reading
from crosslens.core.registry import Registry
from crosslens.core.seeds import derive_seed, stream


def test_an_input_error_names_place_expectation_and_fix():
    error = InputError("no text", file="captions.json", row=17, expected="a string", fix="write one")
    assert str(error) == "captions.json, row 17: no text\n  expected: a string\n  fix: write one"
    assert str(InputError("no text", row="line 3")) == "line 3: no text"


def test_reading_adds_the_file_once():
    with pytest.raises(InputError, match=r"^inner\.json: bad"), reading("outer.json"), reading("inner.json"):
        raise InputError("bad")


def test_a_missing_extra_carries_the_command():
    assert "pip install 'crosslens[torch]'" in str(MissingExtraError("the torch backend", "torch", "torch"))


def test_unknown_names_suggest_near_ones():
    assert "did you mean Hit?" in str(UnknownNameError("metric", "hit", ["Hit", "MRR"]))
    assert "known: a, b" in str(UnknownNameError("metric", "zzz", ["b", "a"]))


def test_a_registry_takes_each_name_once_and_only_with_words():
    registry: Registry[object] = Registry("thing", "things")

    @registry.register("one", colour="red")
    def one():
        """The first."""

    assert registry["one"].summary == "The first."
    assert registry["one"].details == {"colour": "red"}
    assert [entry.name for entry in registry] == ["one"]
    with pytest.raises(CrosslensError, match="two things are registered as 'one'"):
        registry.register("one")(one)
    with pytest.raises(CrosslensError, match="has no docstring"):
        registry.register("two")(lambda: None)
    with pytest.raises(UnknownNameError, match="did you mean one"):
        registry["ones"]


def test_plugins_arrive_by_entry_point(monkeypatch):
    registry: Registry[object] = Registry("thing", "things")

    def added():
        """From elsewhere."""

    class Point:
        def load(self):
            registry.register("added")(added)

    asked = []
    monkeypatch.setattr("crosslens.core.registry.entry_points", lambda group: asked.append(group) or [Point()])
    assert registry["added"].value is added
    assert "added" in registry
    assert asked == ["crosslens.things"]


def test_streams_depend_on_their_purpose_only():
    one, again, other = stream(7, "a", 1).random(3), stream(7, "a", 1).random(3), stream(7, "a", 2).random(3)
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    assert derive_seed(7, "ab", "c") != derive_seed(7, "a", "bc")
    assert derive_seed(0, "x") == 9511765210964949906  # pinned: published results depend on it


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write_text(tmp_path / "f", "old")

    def fail():
        with atomic_file(tmp_path / "f") as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "f").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


def test_a_folder_appears_whole_and_replaces_whole(tmp_path):
    for content in ("one", "two"):
        with atomic_folder(tmp_path / "d") as partial:
            (partial / content).write_text(content)
            assert not (tmp_path / "d" / content).exists()
        assert [file.name for file in (tmp_path / "d").iterdir()] == [content]
    assert [file.name for file in tmp_path.iterdir()] == ["d"]


def test_a_killed_write_leaves_only_what_sweep_removes(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from crosslens.core.atomic import atomic_file\n"
        "with atomic_file(sys.argv[1]) as partial:\n"
        "    partial.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    write_text(tmp_path / "f", "old")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "f")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "f").read_text() == "old"
    assert any(name.startswith(PARTIAL) for name in os.listdir(tmp_path))
    sweep(tmp_path)
    assert os.listdir(tmp_path) == ["f"]
