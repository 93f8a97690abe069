"""The cache: found by content, whole or absent, sound or gone, and safe for two at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from crosslens.core import InputError
from crosslens.encode import Cache, encode_texts
from crosslens.encode.cache import key_of
from crosslens.storage import cache_folder, workspace
from tests.encode.conftest import Counting

TEXTS = [f"text number {number}" for number in range(50)]


def cached(folder: Path, encoder: Counting, texts: list[str] = TEXTS, **options: object) -> np.ndarray:
    return encode_texts(encoder, texts, cache=Cache(folder, shard_items=8, **options), batch_size=4).rows  # type: ignore[arg-type]


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("embeddings/*/*.npz"))


def test_a_second_time_nothing_is_encoded(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    vectors, again = cached(tmp_path, first), cached(tmp_path, second)
    np.testing.assert_array_equal(vectors, again)
    assert sorted(first.seen) == sorted(TEXTS)
    assert second.seen == []


def test_only_what_is_new_is_encoded(tmp_path: Path) -> None:
    cached(tmp_path, Counting())
    again = Counting()
    vectors = cached(tmp_path, again, [*TEXTS, "something new", "something new"])
    assert again.seen == ["something new"]
    np.testing.assert_array_equal(vectors, encode_texts(Counting(), [*TEXTS, "something new", "something new"]).rows)


@pytest.mark.parametrize("part", ["revision", "preprocessing", "name"])
def test_another_model_shares_nothing(tmp_path: Path, part: str) -> None:
    cached(tmp_path, Counting())
    changed_model = Counting()
    setattr(changed_model, part, "changed")
    cached(tmp_path, changed_model)
    assert len(changed_model.seen) == len(TEXTS)


def test_precision_and_kind_are_kept_apart(tmp_path: Path) -> None:
    cached(tmp_path, Counting())
    half_precision = Counting()
    encode_texts(half_precision, TEXTS, cache=Cache(tmp_path), precision="fp16")
    assert len(half_precision.seen) == len(TEXTS)


def test_without_a_revision_nothing_is_kept(tmp_path: Path) -> None:
    unknown = Counting()
    unknown.revision = ""
    cached(tmp_path, unknown)
    assert shards(tmp_path) == []


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_a_damaged_shard_is_found_out_and_encoded_again(tmp_path: Path, damage: str) -> None:
    expected = cached(tmp_path, Counting())
    victim = max(shards(tmp_path), key=lambda shard: shard.stat().st_size)
    content = bytearray(victim.read_bytes())
    if damage == "flipped":
        content[-200] ^= 0xFF
    victim.write_bytes(b"" if damage == "emptied" else bytes(content[:-50] if damage == "cut" else content))
    notes: list[str] = []
    again = Counting()
    vectors = cached(tmp_path, again, notify=notes.append)
    np.testing.assert_array_equal(vectors, expected)
    assert len(again.seen) == 8
    assert "damaged" in notes[0]
    assert str(victim) in notes[0]
    whole = Counting()
    cached(tmp_path, whole)
    assert whole.seen == []


def test_a_changed_vector_is_found_out(tmp_path: Path) -> None:
    """A file that is a perfectly good archive, of other numbers."""
    expected = cached(tmp_path, Counting())
    victim = shards(tmp_path)[0]
    with np.load(victim) as content:
        keys, vectors = content["keys"], content["vectors"]
    np.savez(victim, keys=keys, vectors=vectors + 1)
    notes: list[str] = []
    np.testing.assert_array_equal(cached(tmp_path, Counting(), notify=notes.append), expected)
    assert notes


SLOW = """
import sys, time
import numpy as np
from tests.encode.conftest import Counting
from crosslens.encode import Cache, encode_texts
class Slow(Counting):
    def encode_texts(self, texts):
        time.sleep(0.02 * len(texts))
        return super().encode_texts(texts)
texts = [f"text number {number}" for number in range(50)]
encode_texts(Slow(), texts, cache=Cache(sys.argv[1], shard_items=8), batch_size=2)
"""


def test_killed_it_loses_at_most_a_shard(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(tmp_path)], cwd=root)
    try:
        deadline = time.monotonic() + 60
        while len(shards(tmp_path)) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    written = len(shards(tmp_path))
    assert written >= 3
    again = Counting()
    vectors = cached(tmp_path, again)
    np.testing.assert_array_equal(vectors, encode_texts(Counting(), TEXTS).rows)
    assert len(again.seen) == len(TEXTS) - 8 * written


def _fill(folder: Path, start: int) -> None:
    cached(folder, Counting(), TEXTS[start:] + TEXTS[:start])


def test_two_processes_may_fill_it_together(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_fill, args=(tmp_path, start)) for start in (0, 25)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
        assert process.exitcode == 0
    notes: list[str] = []
    after = Counting()
    np.testing.assert_array_equal(cached(tmp_path, after, notify=notes.append), encode_texts(Counting(), TEXTS).rows)
    assert after.seen == []
    assert notes == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    cached(tmp_path, Counting())
    folder = shards(tmp_path)[0].parent
    left = folder / ".left.npz.crosslens-partial"
    left.mkdir()
    for name in ("writer.json", "new.npz"):
        (left / name).write_text("")
    again = Counting()
    with ThreadPoolExecutor(1) as pool, workspace(folder / "writing.npz"):
        pool.submit(cached, tmp_path, again).result()
        assert (folder / ".writing.npz.crosslens-partial").exists()
    assert not left.exists()
    assert again.seen == []


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder("here") == Path("here")
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("CROSSLENS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path.home() / ".cache" / "crosslens"


def test_a_place_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be used as a cache"):
        cached(tmp_path / "file", Counting())


def test_keys_are_of_the_content() -> None:
    assert key_of(b"one") == key_of(b"one") != key_of(b"two")
