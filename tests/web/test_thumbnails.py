"""The folder of thumbnails: limited, the oldest removed, never half a file."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from crosslens.web.pictures import ThumbnailCache


def key(number: int) -> str:
    return f"{number:04x}" * 4


def age(folder: Path, number: int, seconds: float) -> None:
    file = folder / key(number)[:2] / f"{key(number)}.jpg"
    os.utime(file, (time.time() - seconds,) * 2)


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_the_oldest_go_first_and_what_is_used_stays(tmp_path: Path) -> None:
    cache = ThumbnailCache(tmp_path, 1_000)
    for number in range(10):
        cache.put(key(number), bytes(100))
        age(tmp_path, number, 100_000 - 1_000 * number)
    assert size(tmp_path) == 1_000
    assert cache.get(key(0)) == bytes(100)  # used just now: the others are older
    cache.put(key(10), bytes(100))
    assert size(tmp_path) <= 800
    assert [number for number in range(11) if cache.get(key(number)) is None] == [1, 2, 3]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 400)), max_size=25))
def test_never_more_than_allowed(tmp_path_factory: pytest.TempPathFactory, puts: list[tuple[int, int]]) -> None:
    """Against a list of what was put: whatever is read is what was put last, and the sum stays within the limit."""
    folder = tmp_path_factory.mktemp("thumbnails")
    cache, put = ThumbnailCache(folder, 1_500), OrderedDict[int, bytes]()
    for number, length in puts:
        put[number] = bytes([number]) * length
        cache.put(key(number), put[number])
        assert size(folder) <= 1_500
    for number, content in put.items():
        assert cache.get(key(number)) in (content, None)
    if sum(map(len, put.values())) <= 750:  # replaced files are counted until the folder is looked through
        assert all(cache.get(key(number)) is not None for number in put)


def test_a_folder_that_is_too_full_already(tmp_path: Path) -> None:
    """Another server, with a higher limit, left it."""
    large = ThumbnailCache(tmp_path, 10_000)
    for number in range(20):
        large.put(key(number), bytes(100))
    ThumbnailCache(tmp_path, 500).put(key(20), bytes(100))
    assert size(tmp_path) <= 500


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.jpg").write_bytes(bytes(5_000))
    (tmp_path / "README").write_text("mine")
    cache = ThumbnailCache(tmp_path, 100)
    for number in range(5):
        cache.put(key(number), bytes(60))
    assert (tmp_path / "notes" / "mine.jpg").exists()
    assert (tmp_path / "README").exists()


def test_half_a_file_is_never_read(tmp_path: Path) -> None:
    """Readers and writers at once, in a folder that is too small: all or nothing."""
    cache, wrong = ThumbnailCache(tmp_path, 20_000), []
    whole = {number: bytes([number]) * 5_000 for number in range(8)}

    def work(seed: int) -> None:
        for step in range(40):
            number = (seed * 7 + step * 3) % 8
            cache.put(key(number), whole[number])
            content = cache.get(key((number + 1) % 8))
            if content not in (None, whole[(number + 1) % 8]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix != ".jpg"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = ThumbnailCache(tmp_path / "file", 100)
    cache.put(key(1), b"x")
    assert cache.get(key(1)) is None
