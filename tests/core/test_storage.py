"""Files and folders that are written completely or not at all; random streams and content as JSON."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crosslens.core import (
    PARTIAL,
    ConflictError,
    InputError,
    atomic_file,
    atomic_folder,
    cache_folder,
    derive_seed,
    json_form,
    random_stream,
    read_folder,
    refuse_foreign_files,
    remove_partial_files,
    write_folder,
    write_text,
)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    write_text(tmp_path / "f", "old")

    def fail() -> None:
        with atomic_file(tmp_path / "f") as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "f").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


def test_a_folder_appears_whole_and_replaces_whole(tmp_path: Path) -> None:
    for content in ("first", "second"):
        with atomic_folder(tmp_path / "d") as partial:
            (partial / content).write_text(content)
            assert not (tmp_path / "d" / content).exists()
        assert [file.name for file in (tmp_path / "d").iterdir()] == [content]
    assert [file.name for file in tmp_path.iterdir()] == ["d"]


def test_a_killed_write_leaves_only_partial_files(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from crosslens.core import atomic_file\n"
        "with atomic_file(sys.argv[1]) as partial:\n"
        "    partial.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    write_text(tmp_path / "f", "old")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "f")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "f").read_text() == "old"
    assert any(name.startswith(PARTIAL) for name in os.listdir(tmp_path))
    (tmp_path / f"{PARTIAL}folder").mkdir()
    remove_partial_files(tmp_path)
    assert os.listdir(tmp_path) == ["f"]


def test_foreign_files_are_not_lost(tmp_path: Path) -> None:
    for name in ("run.json", "ranking-i2t", f"{PARTIAL}x"):
        (tmp_path / name).write_text("")
    refuse_foreign_files(tmp_path, ("run.json", "ranking-*"))
    for name in ("a", "b", "c", "d"):
        (tmp_path / name).write_text("")
    with pytest.raises(ConflictError, match="also holds a, b, c and more, which would be lost"):
        refuse_foreign_files(tmp_path, ("run.json", "ranking-*"))


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    stored = read_folder(write_folder(tmp_path / "v", "soup", arrays={"salt": np.zeros(2), "pepper": None}), "soup")
    assert stored.arrays["salt"].tolist() == [0, 0]
    assert stored.arrays.get("pepper") is None
    with pytest.raises(InputError, match=r"v: pepper\.npy is missing\n  fix: write the folder again"):
        stored.arrays["pepper"]
    with pytest.raises(InputError, match=r"bowl\.parquet is missing"):
        stored.tables["bowl"]
    with pytest.raises(InputError, match=r"'spoon' in header\.json is missing"):
        stored.header["spoon"]


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    assert cache_folder("here") == Path("here")
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("CROSSLENS_CACHE")
    assert cache_folder() == Path.home() / ".cache" / "crosslens"


def test_streams_depend_on_their_purpose_only() -> None:
    numbers, again, other = (random_stream(7, "a", key).random(3) for key in (1, 1, 2))
    np.testing.assert_array_equal(numbers, again)
    assert not np.array_equal(numbers, other)
    assert derive_seed(7, "ab", "c") != derive_seed(7, "a", "bc")
    assert derive_seed(0, "x") == 9511765210964949906  # pinned: published results depend on it


def test_json_has_no_nan() -> None:
    content = json_form({1: (1.5, math.nan, np.float64("inf")), "text": "text", "more": {"none": None, "yes": True}})
    assert content == {"1": [1.5, None, None], "text": "text", "more": {"none": None, "yes": True}}
    assert json.dumps(content, allow_nan=False)
