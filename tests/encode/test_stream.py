"""Items through an encoder: order, batch sizes, memory, unreadable images."""

from __future__ import annotations

import gc
import tarfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.encode import Cache, encode_dataset, encode_images, encode_texts
from crosslens.encode.batches import Batches
from tests.encode.conftest import Counting

TEXTS = ["a", "banana", "a", "pear and apple", "", "kiwi"]


def test_rows_are_in_the_order_of_the_texts(counting: Counting) -> None:
    encoded = encode_texts(counting, TEXTS, batch_size=2)
    np.testing.assert_array_equal(encoded.rows, Counting().encode_texts(TEXTS))
    assert sorted(counting.seen) == sorted(set(TEXTS)), "equal texts are encoded once"
    assert max(map(len, counting.batches)) == 2


@pytest.mark.parametrize("size", [1, 3, 100, None])
def test_the_batch_size_changes_nothing(counting: Counting, size: int | None) -> None:
    np.testing.assert_array_equal(encode_texts(counting, TEXTS, batch_size=size).rows, Counting().encode_texts(TEXTS))


def test_a_batch_size_of_none_at_all() -> None:
    with pytest.raises(UsageError, match="batch_size"):
        encode_texts(Counting(), TEXTS, batch_size=0)


class Small(Counting):
    """Has memory for three items only."""

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        if len(texts) > 3:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        return super().encode_texts(texts)


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often memory was given back: to look through all objects of a test session takes a second each time."""
    times = list[int]()
    monkeypatch.setattr(gc, "collect", lambda: times.append(1))
    return times


def test_too_little_memory_makes_batches_smaller(collected: list[int]) -> None:
    small, texts = Small(), [f"text {number}" for number in range(40)]
    np.testing.assert_array_equal(encode_texts(small, texts).rows, Counting().encode_texts(texts))
    assert max(map(len, small.batches)) <= 3
    assert collected, "before a smaller batch is tried"


def test_no_memory_at_all_is_said(collected: list[int]) -> None:
    class None_(Counting):
        def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
            raise MemoryError

    with pytest.raises(CrosslensError, match="one item alone"):
        encode_texts(None_(), TEXTS)


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    class Broken(Counting):
        def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
            raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        encode_texts(Broken(), TEXTS)


class Entangled(Counting):
    """Gives vectors whose last bits depend on the batch they were computed in, as real models do."""

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        vectors = super().encode_texts(texts)
        return vectors + np.float32(1e-3) * vectors.sum() / len(texts)


def test_vectors_do_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"text {number}" * (1 + number % 7) for number in range(500)]
    expected = encode_texts(Entangled(), texts).rows
    ticks = iter(range(10**9))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)) ** 2)
    np.testing.assert_array_equal(encode_texts(Entangled(), texts).rows, expected)


def test_vectors_do_not_depend_on_the_order_of_the_texts() -> None:
    texts = [f"text {number}" * (1 + number % 7) for number in range(300)]
    expected = encode_texts(Entangled(), texts).rows
    np.testing.assert_array_equal(encode_texts(Entangled(), texts[::-1]).rows[::-1], expected)


@pytest.mark.parametrize("batch_size", [None, 7])
def test_an_interrupted_run_resumes_with_the_same_batches(tmp_path: Path, batch_size: int | None) -> None:
    texts = [f"text {number}" * (1 + number % 7) for number in range(300)]

    class Interrupted(Entangled):
        def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
            if sum(map(len, self.batches)) > 150:
                raise KeyboardInterrupt
            return super().encode_texts(texts)

    cache = Cache(tmp_path, shard_items=100)
    with pytest.raises(KeyboardInterrupt):
        encode_texts(Interrupted(), texts, cache=cache, batch_size=batch_size)
    resumed = Entangled()
    vectors = encode_texts(resumed, texts, cache=cache, batch_size=batch_size).rows
    assert 0 < len(resumed.seen) < len(texts)
    np.testing.assert_array_equal(vectors, encode_texts(Entangled(), texts, batch_size=batch_size).rows)


class Parallel(Entangled):
    """Encodes three batches at once."""

    at_once = 3

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self.threads = {*getattr(self, "threads", ()), threading.current_thread().name}
        if "broken" in texts:
            raise RuntimeError("shapes do not match")
        return super().encode_texts(texts)


def test_batches_at_once_are_the_same_batches(tmp_path: Path) -> None:
    torch, parallel = pytest.importorskip("torch"), Parallel()
    texts, before = [f"text {number}" * (1 + number % 7) for number in range(900)], torch.get_num_threads()
    expected = encode_texts(Entangled(), texts).rows
    np.testing.assert_array_equal(encode_texts(parallel, texts, cache=Cache(tmp_path)).rows, expected)
    assert threading.current_thread().name not in parallel.threads
    np.testing.assert_array_equal(
        encode_texts(Parallel(), [*texts, *texts], cache=Cache(tmp_path)).rows[900:], expected
    )
    with pytest.raises(RuntimeError, match="shapes"):
        encode_texts(Parallel(), [*texts, "broken"])
    assert torch.get_num_threads() == before


class Tokens(Entangled):
    """Counts a text's words."""

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def test_texts_of_a_batch_have_the_same_number_of_tokens(tmp_path: Path) -> None:
    texts = [" ".join(f"{number % 10}" for _ in range(1 + number % 40)) + f" {number}" for number in range(2000)]
    encoder = Tokens()
    vectors = encode_texts(encoder, texts, cache=Cache(tmp_path)).rows
    counts = [set(encoder.token_counts(batch)) for batch in encoder.batches]
    assert all(len(count) == 1 for count in counts), "no text is padded"
    lengths = [count.pop() for count in counts]
    assert lengths == sorted(lengths, reverse=True)
    assert max(len(batch) * length for batch, length in zip(encoder.batches, lengths, strict=True)) <= 1024
    assert len(encoder.batches) == sum(-(-50 // (1024 // length)) for length in range(2, 42)), "nor cut too early"
    np.testing.assert_array_equal(encode_texts(Tokens(), texts[::-1]).rows[::-1], vectors)
    few = Tokens()
    encode_texts(few, texts[:100], batch_size=2)
    assert max(map(len, few.batches)) == 2
    again = Tokens()
    np.testing.assert_array_equal(encode_texts(again, texts, cache=Cache(tmp_path)).rows, vectors)
    assert again.batches == []


def test_a_gpu_gets_larger_batches() -> None:
    assert Batches("texts", SimpleNamespace(device="cuda:0")).size > Batches("texts", SimpleNamespace()).size


def test_infinite_numbers_are_named(tmp_path: Path) -> None:
    class Overflowing(Counting):
        def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
            vectors = super().encode_texts(texts)
            vectors[[text == "banana" for text in texts]] = np.inf
            return vectors

    with pytest.raises(InputError, match="infinity") as raised:
        encode_texts(Overflowing(), TEXTS, cache=Cache(tmp_path))
    assert "banana" in str(raised.value)
    assert "fp32" in str(raised.value.fix)


def test_a_wrong_number_of_rows_is_said() -> None:
    class Short(Counting):
        def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
            return super().encode_texts(texts)[:1]

    with pytest.raises(CrosslensError, match="shape"):
        encode_texts(Short(), TEXTS)


# Images


def test_images_and_captions_of_a_dataset(photos: cl.Dataset, tmp_path: Path, counting: Counting) -> None:
    encoded = encode_dataset(photos, counting, image_folder=tmp_path / "photos", cache=Cache(), batch_size=4)
    assert encoded.images is not None
    assert encoded.captions is not None
    assert encoded.images.ids == photos.image_ids
    assert encoded.captions.ids == photos.caption_ids
    assert encoded.images.model == "counting@1"
    assert encoded.content
    again = Counting()
    second = encode_dataset(photos, again, image_folder=tmp_path / "photos", cache=Cache())
    assert again.seen == []
    assert second.images is not None
    assert second.images.fingerprint == encoded.images.fingerprint


def test_a_renamed_image_is_still_known(photos: cl.Dataset, tmp_path: Path, counting: Counting) -> None:
    files = [tmp_path / "photos" / f"{number}.png" for number in range(6)]
    encode_images(counting, files, cache=Cache())
    files[0].rename(tmp_path / "photos" / "other.png")
    again = Counting()
    encode_images(again, [tmp_path / "photos" / "other.png", *files[1:]], cache=Cache())
    assert again.seen == []


def test_a_missing_file_is_named_before_anything_is_encoded(photos: cl.Dataset, counting: Counting) -> None:
    with pytest.raises(InputError, match="6 of 6 image files are not there") as raised:
        encode_dataset(photos, counting)
    assert "image_folder=" in str(raised.value.fix)
    assert counting.seen == []


def test_one_missing_file_is_counted_where_the_others_are(
    photos: cl.Dataset, tmp_path: Path, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "photos" / "2.png").unlink()
    homely = replace(photos, home=tmp_path / "photos")
    with pytest.raises(InputError, match="1 of 6 image files is not there, that of image 'p2'") as raised:
        encode_dataset(homely, counting)
    assert raised.value.file == str(tmp_path / "photos" / "2.png")
    assert "skip_bad=True" in str(raised.value.fix)
    monkeypatch.chdir(tmp_path / "photos")
    (tmp_path / "photos" / "2.png").write_bytes((tmp_path / "photos" / "1.png").read_bytes())
    (tmp_path / "home").mkdir()
    (tmp_path / "photos" / "0.png").rename(tmp_path / "home" / "0.png")
    with pytest.raises(InputError, match="1 of 6 image files is not there, that of image 'p0'"):
        encode_dataset(replace(photos, home=tmp_path / "home"), counting)
    assert counting.seen == []


def test_missing_files_are_left_out_if_asked(photos: cl.Dataset, tmp_path: Path, counting: Counting) -> None:
    for number in (2, 5):
        (tmp_path / "photos" / f"{number}.png").unlink()
    encoded = encode_dataset(replace(photos, home=tmp_path / "photos"), counting, skip_bad=True)
    assert encoded.skipped == {"p2": "missing", "p5": "missing"}
    assert encoded.images is not None
    assert encoded.images.ids == encoded.dataset.image_ids == ("p0", "p1", "p3", "p4")
    files = [tmp_path / "photos" / f"{number}.png" for number in (0, 1, 3, 4)]
    np.testing.assert_array_equal(encoded.images.vectors, encode_images(Counting(), files).rows)


def test_a_folder_without_any_of_the_files_is_wrong(photos: cl.Dataset, tmp_path: Path, counting: Counting) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="6 of 6 image files are not there") as raised:
        encode_dataset(photos, counting, image_folder=tmp_path / "empty", skip_bad=True)
    assert "check image_folder=" in str(raised.value.fix)


@pytest.mark.parametrize("content", [b"", b"not a picture", None])
def test_an_unreadable_image_is_named(
    photos: cl.Dataset, tmp_path: Path, counting: Counting, content: bytes | None
) -> None:
    victim = tmp_path / "photos" / "2.png"
    victim.write_bytes(victim.read_bytes()[:90] if content is None else content)
    with pytest.raises(InputError, match="p2") as raised:
        encode_dataset(photos, counting, image_folder=tmp_path / "photos")
    assert "2.png" in str(raised.value)
    assert "skip_bad=True" in str(raised.value)
    encoded = encode_dataset(photos, counting, image_folder=tmp_path / "photos", skip_bad=True)
    assert list(encoded.skipped) == ["p2"]
    assert encoded.images is not None
    assert encoded.captions is not None
    assert encoded.images.ids == encoded.dataset.image_ids == ("p0", "p1", "p3", "p4", "p5")
    assert len(encoded.captions.ids) == 10
    assert not (encoded.images.vectors == 0).all(axis=1).any()


def test_nothing_but_unreadable_images(photos: cl.Dataset, tmp_path: Path, counting: Counting) -> None:
    for file in (tmp_path / "photos").iterdir():
        file.write_bytes(b"no")
    with pytest.raises(InputError, match="no image could be read"):
        encode_dataset(photos, counting, image_folder=tmp_path / "photos", skip_bad=True)


def test_images_inside_a_tar(photos: cl.Dataset, tmp_path: Path, counting: Counting) -> None:
    with tarfile.open(tmp_path / "shard.tar", "w") as tar:
        for number in range(6):
            tar.add(tmp_path / "photos" / f"{number}.png", f"{number}.png")
    packed = encode_images(counting, [f"{tmp_path}/shard.tar::{number}.png" for number in range(6)])
    plain = encode_images(counting, [tmp_path / "photos" / f"{number}.png" for number in range(6)])
    np.testing.assert_array_equal(packed.rows, plain.rows)


def test_an_encoder_of_texts_does_not_look_for_images(photos: cl.Dataset, counting: Counting) -> None:
    counting.abilities = frozenset(("texts",))
    encoded = encode_dataset(photos, counting)
    assert encoded.images is None
    assert encoded.captions is not None
    with pytest.raises(UsageError, match="encodes texts, not images"):
        encode_images(counting, ["one.png"])


def test_a_damaged_cache_file_of_images(photos: cl.Dataset, tmp_path: Path, counting: Counting) -> None:
    files = [tmp_path / "photos" / f"{number}.png" for number in range(6)]
    expected = encode_images(counting, files, cache=Cache(shard_items=2), batch_size=2).rows
    shard = sorted(Cache().folder.rglob("*.npz"))[0]
    content = bytearray(shard.read_bytes())
    content[-180] ^= 1
    shard.write_bytes(bytes(content))
    again = Counting()
    messages: list[str] = []
    np.testing.assert_array_equal(encode_images(again, files, cache=Cache(notify=messages.append)).rows, expected)
    assert len(again.seen) == 2
    assert messages
