"""Items through an encoder: what the cache holds is taken from there, the rest goes through the model in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from crosslens.core.embeddings import check_vectors
from crosslens.core.errors import CrosslensError, InputError
from crosslens.core.progress import Progress, Silent, stage
from crosslens.data.inside import read_address
from crosslens.encode.batches import BatchSize, batches, within_memory
from crosslens.encode.cache import Cache, Shelf, about_shelf, key_of
from crosslens.encode.encoder import IMAGES, TEXTS, Array, Encoder, demand
from crosslens.encode.pictures import decode_image, read_ahead


class Item(NamedTuple):
    """One item on its way: where it belongs, its key, and what the model takes; ``bad`` says why there is none."""

    position: int
    key: bytes
    content: Any = None
    work: float = 1.0
    bad: str = ""


class Source(Protocol):
    """Items that can be read in any selection, in the order that suits the model best."""

    def __len__(self) -> int: ...

    def name(self, position: int) -> str:
        """What the item is called in messages."""

    def read(self, positions: Iterable[int], known: Callable[[bytes], bool]) -> Iterator[Item]:
        """The items; the content of known ones may be left out."""


class Vectors(NamedTuple):
    """What came out: rows in the items' order, the items' keys, and which items could not be read, and why.

    The row of an unreadable item is zero.
    """

    rows: Array
    keys: tuple[bytes, ...]
    bad: dict[int, str]


def encode_texts(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    cache: Cache | None = None,
    batch_size: int | None = None,
    precision: str = "fp32",
    progress: Progress | None = None,
) -> Vectors:
    """One vector per text, in order. Equal texts are encoded once."""
    demand(encoder, TEXTS)
    shelf = _shelf(cache, encoder, TEXTS, precision)
    return _encode(_Texts(texts), encoder.encode_texts, shelf, BatchSize(batch_size), progress or Silent(), "texts")


def encode_images(
    encoder: Encoder,
    files: Sequence[str | Path],
    *,
    names: Sequence[str] | None = None,
    cache: Cache | None = None,
    batch_size: int | None = None,
    precision: str = "fp32",
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Vectors:
    """One vector (or, by the model, several) per image file, in order.

    A file that is not there or no readable image raises with its name; with ``skip_bad`` its row is zero and it is in
    ``bad``. ``names`` are what the images are called in messages.
    """
    demand(encoder, IMAGES)
    shelf = _shelf(cache, encoder, IMAGES, precision)
    source = _Images(files, names, skip_bad)
    return _encode(source, encoder.encode_images, shelf, BatchSize(batch_size), progress or Silent(), "images")


def _shelf(cache: Cache | None, encoder: Encoder, kind: str, precision: str) -> Shelf | None:
    # Without a revision nobody knows whether the vectors are this model's.
    return None if cache is None or not encoder.revision else cache.shelf(about_shelf(encoder, kind, precision))


class _Texts:
    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def name(self, position: int) -> str:
        return f"the text {self.texts[position]!r:.60}"

    def read(self, positions: Iterable[int], known: Callable[[bytes], bool]) -> Iterator[Item]:
        # Longest first: texts of one batch are padded to its longest, and a lack of memory shows at once.
        for position in sorted(positions, key=lambda one: -len(self.texts[one])):
            text = self.texts[position]
            yield Item(position, key_of(text.encode()), text, len(text) + 1.0)


class _Images:
    def __init__(self, files: Sequence[str | Path], names: Sequence[str] | None, skip_bad: bool) -> None:
        self.files, self.names, self.skip_bad = files, names, skip_bad

    def __len__(self) -> int:
        return len(self.files)

    def name(self, position: int) -> str:
        return f"image {self.names[position]!r}" if self.names else f"image {self.files[position]}"

    def read(self, positions: Iterable[int], known: Callable[[bytes], bool]) -> Iterator[Item]:
        def load(position: int) -> Item:
            key = b""
            try:
                content = read_address(self.files[position])
                key = key_of(content)
                return Item(position, key, None if known(key) else decode_image(content))
            except (OSError, InputError) as error:
                return Item(position, key, bad=_problem(error))

        for item in read_ahead(load, positions):
            if item.bad and not self.skip_bad:
                raise InputError(
                    f"{self.name(item.position)} is {item.bad}",
                    file=self.files[item.position],
                    fix="repair or remove the file, or pass --skip-bad to leave such images out",
                )
            yield item


def _problem(error: OSError | InputError) -> str:
    if isinstance(error, InputError):
        return error.problem
    return "not there" if isinstance(error, FileNotFoundError) else f"cannot be opened: {error}"


def _encode(
    source: Source,
    encode: Callable[[Sequence[Any]], Array],
    shelf: Shelf | None,
    size: BatchSize,
    progress: Progress,
    label: str,
) -> Vectors:
    sink = _Sink(source, shelf)
    with stage(progress, f"encoding {label}", len(source)):
        # A second round happens only where a cache file proves to be damaged.
        waiting: list[int] = list(range(len(source)))
        while waiting:
            fresh = sink.sift(source.read(waiting, sink.cached), progress)
            for batch in batches(fresh, size):
                start = time.perf_counter()
                parts = within_memory(encode, [item.content for item in batch], size)
                work = len(batch) * max(item.work for item in batch)
                size.observe(len(batch), work, time.perf_counter() - start)
                progress.advance(sink.put(batch, parts))
            waiting = sink.settle(progress)
    return sink.result()


class _Sink:
    """Where vectors arrive, from the model and from the cache, and find their places."""

    def __init__(self, source: Source, shelf: Shelf | None) -> None:
        self.source, self.shelf = source, shelf
        self.rows: Array | None = None
        self.keys: list[bytes] = [b""] * len(source)
        self.bad: dict[int, str] = {}
        self.places: dict[bytes, list[int]] = {}  # of what the model is to encode, or has encoded
        self.hits: dict[bytes, list[int]] = {}  # of what the cache holds

    def cached(self, key: bytes) -> bool:
        return self.shelf is not None and key in self.shelf

    def sift(self, items: Iterable[Item], progress: Progress) -> Iterator[Item]:
        """Only the items that the model must see; the others are noted."""
        for item in items:
            self.keys[item.position] = item.key
            if item.bad:
                self.bad[item.position] = item.bad
                progress.advance()
            elif item.key in self.places:
                self.places[item.key].append(item.position)
            elif self.cached(item.key):
                self.hits.setdefault(item.key, []).append(item.position)
            else:
                self.places[item.key] = [item.position]
                yield item

    def put(self, batch: Sequence[Item], parts: Sequence[Array]) -> int:
        """Take the vectors of a batch; returns how many items are done by it."""
        vectors = np.concatenate([np.asarray(part, np.float32) for part in parts])
        self._check(batch, vectors)
        if self.shelf is not None:
            self.shelf.add([item.key for item in batch], vectors)
        self._place([item.position for item in batch], vectors)
        return len(batch)

    def settle(self, progress: Progress) -> list[int]:
        """Fill in what the cache holds and what occurs again; returns what must be read once more."""
        if self.shelf is not None:
            self.shelf.flush()
            for keys, vectors in self.shelf.fetch(list(self.hits)):
                for key, vector in zip(keys, vectors, strict=True):
                    positions = self.hits.pop(key)
                    self._place(positions, np.broadcast_to(vector, (len(positions), *vector.shape)))
                    progress.advance(len(positions))
        for positions in self.places.values():
            if len(positions) > 1 and self.rows is not None:
                self.rows[positions[1:]] = self.rows[positions[0]]
                progress.advance(len(positions) - 1)
        lost = [position for positions in self.hits.values() for position in positions]
        self.hits.clear()
        self.places.clear()
        return lost

    def result(self) -> Vectors:
        if self.rows is None:
            if self.bad:
                first = min(self.bad)
                raise InputError(f"no image could be read; {self.source.name(first)} is {self.bad[first]}")
            raise InputError("nothing to encode", expected="at least one item")
        return Vectors(self.rows, tuple(self.keys), dict(sorted(self.bad.items())))

    def _place(self, positions: Sequence[int], vectors: Array) -> None:
        if self.rows is None:
            self.rows = np.zeros((len(self.source), *vectors.shape[1:]), np.float32)
        if vectors.shape[1:] != self.rows.shape[1:]:
            raise CrosslensError(
                f"vectors of shape {vectors.shape[1:]} after vectors of shape {self.rows.shape[1:]}",
                fix="an encoder must give vectors of one shape; if it changed without its revision, pass --no-cache",
            )
        self.rows[list(positions)] = vectors

    def _check(self, batch: Sequence[Item], vectors: Array) -> None:
        if vectors.ndim not in (2, 3) or len(vectors) != len(batch):
            raise CrosslensError(
                f"the encoder gave an array of shape {vectors.shape} for {len(batch)} items", fix="one row per item"
            )
        try:
            check_vectors(vectors, "the vector")
        except InputError as error:
            row = error.row if isinstance(error.row, int) else 0
            raise InputError(
                f"{error.problem} of {self.source.name(batch[row].position)}",
                expected="finite numbers",
                fix="half precision may overflow: try --precision fp32 or bf16",
            ) from error
