"""Items through an encoder: what the cache holds is taken from there, the rest goes through the model in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import (
    CrosslensError,
    Engine,
    InputError,
    Progress,
    SilentProgress,
    argument,
    check_vectors,
    current_engine,
    stage,
    zero_vectors,
)
from crosslens.data import REPAIR_IMAGE, PixelBudget, read_image_bytes
from crosslens.encode.batches import Batches
from crosslens.encode.cache import Cache, EmbeddingStore, key_of, open_store
from crosslens.encode.encoder import IMAGES, METHODS, TEXTS, Array, Encoder, require_modality
from crosslens.encode.images import decode_image, pixels_of, read_ahead
from crosslens.encode.tasks import facts_of_files, run_batches, unreadable


class Item(NamedTuple):
    """One item to encode: its position, its key, and what the model takes; ``bad`` says why there is none.

    ``amount`` is how large it is: the pixels of a decoded picture, the tokens of a text if the encoder counts them.
    """

    position: int
    key: bytes
    content: Any = None
    bad: str = ""
    amount: int = 0


class Vectors(NamedTuple):
    """The result: rows in the items' order, the items' keys, and which items could not be read, and why.

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
    source = _Texts(texts, getattr(encoder, "token_counts", None))
    return _encode(source, encoder, cache, batch_size, precision, progress or SilentProgress())


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

    A missing or unreadable file raises with its name; with ``skip_bad`` its row is zero and it is in ``bad``.
    ``names`` are what the images are called in messages.
    """
    source = _Images(files, names, skip_bad)
    return _encode(source, encoder, cache, batch_size, precision, progress or SilentProgress())


def encode_features(
    encoder: Encoder,
    features: Sequence[tuple[Array, ...]],
    *,
    names: Sequence[str] | None = None,
    cache: Cache | None = None,
    batch_size: int | None = None,
    precision: str = "fp32",
    progress: Progress | None = None,
) -> Vectors:
    """One vector per image from its stored features, in order."""
    return _encode(_Features(features, names), encoder, cache, batch_size, precision, progress or SilentProgress())


class _Texts:
    modality = TEXTS

    def __init__(self, texts: Sequence[str], count: Callable[[Sequence[str]], Sequence[int]] | None) -> None:
        self.texts, self._count = texts, count

    def __len__(self) -> int:
        return len(self.texts)

    def name(self, position: int) -> str:
        """What the item is called in messages."""
        return f"the text {self.texts[position]!r:.60}"

    def read(self, positions: Iterable[int], cached: Callable[[bytes], bool]) -> Iterator[Item]:
        """The items, in the order that suits the model best; the content of cached ones may be left out."""
        items = []
        for position in positions:
            item = Item(position, key_of(self.texts[position].encode()), self.texts[position])
            if cached(item.key):
                yield item
            else:
                items.append(item)
        if self._count is not None and items:
            amounts = self._count([item.content for item in items])
            items = [item._replace(amount=amount) for item, amount in zip(items, amounts, strict=True)]
        # Longest first: texts of one batch are padded to its longest, and a lack of memory shows at once. The text
        # itself decides among equals, so that the batches do not depend on the order of the input.
        yield from sorted(items, key=lambda item: (-item.amount, -len(item.content), item.content))


class _Features:
    modality = IMAGES

    def __init__(self, features: Sequence[tuple[Array, ...]], names: Sequence[str] | None) -> None:
        self.features, self.names = features, names

    def __len__(self) -> int:
        return len(self.features)

    def name(self, position: int) -> str:
        return f"image {self.names[position]!r}" if self.names else f"image {position}"

    def read(self, positions: Iterable[int], cached: Callable[[bytes], bool]) -> Iterator[Item]:
        for position in positions:
            yield Item(position, feature_key(self.features[position]), self.features[position])


def feature_key(features: Sequence[Array]) -> bytes:
    """A hash of an image's features. Their shapes are the model's, and so need not be in it."""
    return key_of(b"".join(np.ascontiguousarray(array).tobytes() for array in features))


class _Images:
    modality = IMAGES

    def __init__(self, files: Sequence[str | Path], names: Sequence[str] | None, skip_bad: bool) -> None:
        self.files, self.names, self.skip_bad = files, names, skip_bad

    def __len__(self) -> int:
        return len(self.files)

    def name(self, position: int) -> str:
        return f"image {self.names[position]!r}" if self.names else f"image {self.files[position]}"

    def read(self, positions: Iterable[int], cached: Callable[[bytes], bool]) -> Iterator[Item]:
        budget = PixelBudget()

        def load(numbered: tuple[int, int]) -> Item:
            turn, position = numbered
            key, pixels, content = b"", 0, b""
            try:
                content = read_image_bytes(self.files[position])
                key = key_of(content)
                pixels = 0 if cached(key) else pixels_of(content)
            except (OSError, InputError) as error:
                return Item(position, key, bad=unreadable(error))
            finally:
                budget.take(turn, pixels)
            try:
                return Item(position, key, decode_image(content) if pixels else None, amount=pixels)
            except InputError as error:
                return Item(position, key, bad=unreadable(error), amount=pixels)

        ahead = read_ahead(load, enumerate(positions))
        try:
            for item in ahead:
                budget.give_back(item.amount)
                yield self.readable(item)
        finally:
            budget.close()  # first: closing the other waits for threads that may be waiting for room
            ahead.close()

    def read_keys(self, engine: Engine, positions: Sequence[int], cached: Callable[[bytes], bool]) -> Iterator[Item]:
        """The items as tasks of an engine see them, with paths in place of pictures."""
        files = [self.files[position] for position in positions]
        for position, file, facts in zip(positions, files, facts_of_files(engine, files), strict=True):
            if facts.key and cached(facts.key):
                yield Item(position, facts.key)
            else:
                yield self.readable(Item(position, facts.key, os.path.abspath(file), facts.bad, facts.pixels))

    def readable(self, item: Item) -> Item:
        """The item; raises for an unreadable one, unless those are skipped."""
        if item.bad and not self.skip_bad:
            problem = f"{self.name(item.position)} is {item.bad}"
            raise InputError(problem, file=self.files[item.position], fix=REPAIR_IMAGE)
        return item


def _encode(
    source: _Texts | _Images | _Features,
    encoder: Encoder,
    cache: Cache | None,
    batch_size: int | None,
    precision: str,
    progress: Progress,
) -> Vectors:
    require_modality(encoder, source.modality)
    rows = _Rows(source, open_store(cache, encoder, source.modality, precision))
    batches = Batches(source.modality, encoder, batch_size)
    engine = current_engine()
    with stage(progress, f"encoding {source.modality}", len(source)):
        # A second round happens only where a cache file proves to be damaged.
        remaining = list(range(len(source)))
        while remaining:
            if engine.distributed:
                _encode_in_tasks(engine, source, encoder, remaining, rows, batches, progress)
            else:
                encode = getattr(encoder, METHODS[source.modality])
                items = rows.uncached(source.read(remaining, rows.is_cached), progress)
                for batch, parts in batches.encoded(encode, items, attrgetter("content"), attrgetter("amount")):
                    rows.add(batch, parts)
                    progress.advance(len(batch))
            remaining = rows.complete(progress)
    return rows.result()


def _encode_in_tasks(
    engine: Engine, source: _Texts | _Images | _Features, encoder: Encoder, positions: Sequence[int], rows: _Rows,
    batches: Batches, progress: Progress,
) -> None:  # fmt: skip
    """Encode what is not cached; the batches begin anew behind an image that proves to be unreadable."""
    if isinstance(source, _Images):
        items = source.read_keys(engine, positions, rows.is_cached)
    else:
        items = source.read(positions, rows.is_cached)
    are_files = isinstance(source, _Images)
    remaining = list(rows.uncached(items, progress))
    while remaining:
        done, bad = 0, dict[int, str]()
        planned = list(batches.of(remaining, attrgetter("amount")))
        encoded = run_batches(engine, encoder, source.modality, planned, attrgetter("content"), are_files=are_files)
        for batch, result in zip(planned, encoded, strict=False):
            if result.bad:
                bad = {done + number: reason for number, reason in result.bad.items()}
                break
            rows.add(batch, result.parts)
            progress.advance(len(batch))
            done += len(batch)
        for number, reason in bad.items():
            assert isinstance(source, _Images)
            rows.refuse(source.readable(remaining[number]._replace(bad=reason)), progress)
        remaining = [item for number, item in enumerate(remaining) if number >= done and number not in bad]


class _Rows:
    """Collects vectors, from the model and from the cache, into the rows they belong to."""

    def __init__(self, source: _Texts | _Images | _Features, store: EmbeddingStore | None) -> None:
        self.source, self.store = source, store
        self.rows: Array | None = None
        self.keys: list[bytes] = [b""] * len(source)
        self.bad: dict[int, str] = {}
        self.encoded: dict[bytes, list[int]] = {}  # positions of what the model encodes
        self.cached: dict[bytes, list[int]] = {}  # positions of what the cache holds

    def is_cached(self, key: bytes) -> bool:
        return self.store is not None and key in self.store

    def uncached(self, items: Iterable[Item], progress: Progress) -> Iterator[Item]:
        """Only the items that the model must see; the positions of the others are noted."""
        for item in items:
            self.keys[item.position] = item.key
            if item.bad:
                self.bad[item.position] = item.bad
                progress.advance()
            elif item.key in self.encoded:
                self.encoded[item.key].append(item.position)
            elif self.is_cached(item.key):
                self.cached.setdefault(item.key, []).append(item.position)
            else:
                self.encoded[item.key] = [item.position]
                yield item

    def refuse(self, item: Item, progress: Progress) -> None:
        """Note an item that proved to be unreadable, and all others of the same content."""
        positions = self.encoded.pop(item.key)
        self.bad |= dict.fromkeys(positions, item.bad)
        progress.advance(len(positions))

    def add(self, batch: Sequence[Item], parts: Sequence[Array]) -> None:
        """Take the vectors of a batch."""
        vectors = np.concatenate([np.asarray(part, np.float32) for part in parts])
        self._check(batch, vectors)
        if self.store is not None:
            self.store.add([item.key for item in batch], vectors)
        self._set([item.position for item in batch], vectors)

    def complete(self, progress: Progress) -> list[int]:
        """Fill in what the cache holds and what occurs again; returns what must be read once more."""
        if self.store is not None:
            self.store.flush()
            for keys, vectors in self.store.fetch(list(self.cached)):
                positions_of = [self.cached.pop(key) for key in keys]
                positions = [position for same in positions_of for position in same]
                self._set(positions, np.repeat(vectors, [len(same) for same in positions_of], axis=0))
                progress.advance(len(positions))
        for positions in self.encoded.values():
            if len(positions) > 1 and self.rows is not None:
                self.rows[positions[1:]] = self.rows[positions[0]]
                progress.advance(len(positions) - 1)
        lost = [position for positions in self.cached.values() for position in positions]
        self.cached.clear()
        self.encoded.clear()
        return lost

    def result(self) -> Vectors:
        if self.rows is None:
            if self.bad:
                first = min(self.bad)
                raise InputError(f"no image could be read; {self.source.name(first)} is {self.bad[first]}")
            raise InputError("nothing to encode", expected="at least one item")
        return Vectors(self.rows, tuple(self.keys), dict(sorted(self.bad.items())))

    def _set(self, positions: Sequence[int], vectors: Array) -> None:
        if self.rows is None:
            self.rows = zero_vectors((len(self.source), *vectors.shape[1:]))
        if vectors.shape[1:] != self.rows.shape[1:]:
            raise CrosslensError(
                f"vectors of shape {vectors.shape[1:]} after vectors of shape {self.rows.shape[1:]}",
                fix="an encoder must give vectors of one shape; if it changed without its revision, pass "
                f"{argument('cache', False)}",
            )
        self.rows[list(positions)] = vectors

    def _check(self, batch: Sequence[Item], vectors: Array) -> None:
        if vectors.ndim not in (2, 3) or len(vectors) != len(batch):
            raise CrosslensError(
                f"the encoder gave an array of shape {vectors.shape} for {len(batch)} items",
                fix="return one row per item",
            )
        try:
            check_vectors(vectors, "the vector")
        except InputError as error:
            row = error.row if isinstance(error.row, int) else 0
            raise InputError(
                f"{error.problem} of {self.source.name(batch[row].position)}",
                expected="finite numbers",
                fix=f"half precision may overflow: try {argument('precision', 'fp32')} or bf16",
            ) from error
