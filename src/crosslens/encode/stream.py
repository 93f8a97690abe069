"""Items through an encoder: what the cache holds is taken from there, the rest goes through the model in batches.

The embeddings of a dataset are made of them, or given and brought into its order; they are saved as one folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias, Unpack

import numpy as np

from crosslens.core import ConflictError, CrosslensError, InputError, UsageError, argument
from crosslens.data import REPAIR_IMAGE, PixelBudget, image_files, outer_file, read_image_bytes
from crosslens.encode.batches import (
    Batches,
    ModelToLoad,
    decode_image,
    encode_batches,
    in_groups,
    pixels_of,
    read_ahead,
    read_facts_of,
    unreadable,
    uses_gpu,
)
from crosslens.encode.cache import Cache, EmbeddingStore, key_of
from crosslens.encode.encoder import IMAGES, METHODS, TEXTS, Encoder, FeatureReader, label, open_store, require_modality
from crosslens.encode.options import StreamKeywords
from crosslens.engine import Engine, Progress, current_engine, missing_on_node, shown_progress, stage
from crosslens.storage import HEADER_FILE, Array, Layout, atomic_folder, fingerprint, tidy_output
from crosslens.values import (
    DATASET_LAYOUT,
    EMBEDDINGS_LAYOUT,
    Dataset,
    Embeddings,
    align_embeddings,
    check_vectors,
    zero_vectors,
)

_FILES_AT_ONCE = 256
"""Files whose keys a task reads."""


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


def encode_texts(encoder: Encoder, texts: Sequence[str], **how: Unpack[StreamKeywords]) -> Vectors:
    """One vector per text, in order. Equal texts are encoded once."""
    return _encode(_Texts(texts, getattr(encoder, "token_counts", None)), encoder, **how)


def encode_images(
    encoder: Encoder,
    files: Sequence[str | Path],
    *,
    names: Sequence[str] | None = None,
    skip_bad: bool = False,
    **how: Unpack[StreamKeywords],
) -> Vectors:
    """One vector (or, by the model, several) per image file, in order.

    A missing or unreadable file raises with its name; with ``skip_bad`` its row is zero and it is in ``bad``.
    ``names`` are what the images are called in messages.
    """
    return _encode(_Images(files, names, skip_bad), encoder, **how)


class _Texts:
    modality = TEXTS

    def __init__(self, texts: Sequence[str], count: Callable[[Sequence[str]], Sequence[int]] | None) -> None:
        self.items, self._count = texts, count

    def name(self, position: int) -> str:
        return f"the text {self.items[position]!r:.60}"

    def read(self, positions: Iterable[int], cached: Callable[[bytes], bool]) -> Iterator[Item]:
        """The items, in the order that suits the model best; the content of cached ones may be left out."""
        items = []
        for position in positions:
            item = Item(position, key_of(self.items[position].encode()), self.items[position])
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


def feature_key(features: Sequence[Array]) -> bytes:
    """A hash of an image's features. Their shapes are the model's, and so need not be in it."""
    return key_of(b"".join(np.ascontiguousarray(array).tobytes() for array in features))


class _Features:
    modality = IMAGES

    def __init__(self, items: Sequence[Any], names: Sequence[str] | None, skip_bad: bool = False) -> None:
        self.items, self.names, self.skip_bad = items, names, skip_bad

    def name(self, position: int) -> str:
        return f"image {self.names[position]!r}" if self.names else f"image {self.items[position]}"

    def read(self, positions: Iterable[int], cached: Callable[[bytes], bool]) -> Iterator[Item]:
        for position in positions:
            yield Item(position, feature_key(self.items[position]), self.items[position])


class _Images(_Features):
    """Image files."""

    def read(self, positions: Iterable[int], cached: Callable[[bytes], bool]) -> Iterator[Item]:
        budget = PixelBudget()

        def load(numbered: tuple[int, int]) -> Item:
            turn, position = numbered
            key, pixels, content = b"", 0, b""
            try:
                content = read_image_bytes(self.items[position])
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
        """The items as tasks of an engine see them, with paths in place of pictures; a file that this process can read
        and a worker cannot raises.
        """
        paths = [os.path.abspath(self.items[position]) for position in positions]
        parts = (paths[start : start + _FILES_AT_ONCE] for start in range(0, len(paths), _FILES_AT_ONCE))
        facts_of = chain.from_iterable(engine.run(read_facts_of, None, parts))
        for position, path, facts in zip(positions, paths, facts_of, strict=True):
            if facts.bad == "missing" and outer_file(path).exists():
                raise missing_on_node(f"{path} does not exist")
            if facts.key and cached(facts.key):
                yield Item(position, facts.key)
            else:
                yield self.readable(Item(position, facts.key, path, facts.bad, facts.pixels))

    def readable(self, item: Item) -> Item:
        """The item; raises for an unreadable one, unless those are skipped."""
        if item.bad and not self.skip_bad:
            problem = f"{self.name(item.position)} is {item.bad}"
            raise InputError(problem, file=self.items[item.position], fix=REPAIR_IMAGE)
        return item


_Source: TypeAlias = _Texts | _Features


def _encode(
    source: _Source,
    encoder: Encoder,
    *,
    cache: Cache | None = None,
    batch_size: int | None = None,
    precision: str = "fp32",
    progress: Progress | None = None,
) -> Vectors:
    progress = shown_progress(progress)
    require_modality(encoder, source.modality)
    rows = _Rows(source, open_store(cache, encoder, source.modality, precision))
    batches = Batches(source.modality, encoder, batch_size)
    engine = current_engine()
    with stage(progress, f"encoding {source.modality}", len(source.items)):
        # A second round happens only where a cache file proves to be damaged.
        remaining = list(range(len(source.items)))
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
    engine: Engine, source: _Source, encoder: Encoder, positions: Sequence[int], rows: _Rows, batches: Batches,
    progress: Progress,
) -> None:  # fmt: skip
    """Encode what is not cached; the batches begin anew behind an image that proves to be unreadable."""
    are_files = isinstance(source, _Images)
    read = partial(source.read_keys, engine) if isinstance(source, _Images) else source.read
    remaining = list(rows.uncached(read(positions, rows.is_cached), progress))
    while remaining:
        count, bad = 0, dict[int, str]()
        planned = list(batches.of(remaining, attrgetter("amount")))
        groups = ([[item.content for item in batch] for batch in group] for group in in_groups(planned, engine))
        requests = ((source.modality, are_files, group) for group in groups)
        encoded = engine.run(encode_batches, ModelToLoad.of(encoder), requests, gpu=uses_gpu(encoder))
        for batch, result in zip(planned, chain.from_iterable(encoded), strict=False):
            if result.bad:
                bad = {count + number: reason for number, reason in result.bad.items()}
                break
            rows.add(batch, result.parts)
            progress.advance(len(batch))
            count += len(batch)
        for number, reason in bad.items():
            assert isinstance(source, _Images)
            rows.refuse(source.readable(remaining[number]._replace(bad=reason)), progress)
        remaining = [item for number, item in enumerate(remaining) if number >= count and number not in bad]


class _Rows:
    """Collects vectors, from the model and from the cache, into the rows they belong to."""

    def __init__(self, source: _Source, store: EmbeddingStore | None) -> None:
        self.source, self.store = source, store
        self.rows: Array | None = None
        self.keys: list[bytes] = [b""] * len(source.items)
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
        vectors = np.concatenate([np.asarray(part, np.float32) for part in parts])
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
            self.rows = zero_vectors((len(self.source.items), *vectors.shape[1:]))
        if vectors.shape[1:] != self.rows.shape[1:]:
            raise CrosslensError(
                f"vectors of shape {vectors.shape[1:]} after vectors of shape {self.rows.shape[1:]}",
                fix="an encoder must give vectors of one shape; if it changed without its revision, pass "
                f"{argument('cache', False)}",
            )
        self.rows[list(positions)] = vectors


class StoredEmbeddings(Encoder):
    """Vectors by id. Nothing can be encoded; :func:`crosslens.encode.encode_dataset` looks its items up."""

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder).expanduser()
        parts = {IMAGES: folder / "images", TEXTS: folder / "captions"}
        self.stored = {modality: Embeddings.load(part, mmap=True) for modality, part in parts.items() if part.is_dir()}
        if not self.stored:
            raise InputError(
                "contains no embeddings",
                file=folder,
                expected="sub-folders images and captions",
                fix="write them with crosslens encode -o FOLDER",
            )
        self.abilities = frozenset(self.stored)
        first = next(iter(self.stored.values()))
        self.dimension = first.dimension
        self.name = first.model or f"file:{folder}"
        self.revision = "+".join(embeddings.fingerprint for embeddings in self.stored.values())

    def encode_images(self, images: Sequence[Any]) -> NoReturn:
        raise UsageError(f"{self.name} holds vectors, not a model", fix="name the model that made them")

    def encode_texts(self, texts: Sequence[str]) -> NoReturn:
        self.encode_images(texts)


@dataclass(frozen=True)
class Encoded:
    """What encoding a dataset gives.

    ``dataset`` is the dataset without the images that could not be read, which are in ``skipped`` with the reason.
    ``images`` or ``captions`` is None where the encoder does not take that kind. ``content`` is a hash of the files
    and texts that went in.
    """

    dataset: Dataset
    images: Embeddings | None
    captions: Embeddings | None
    skipped: dict[str, str]
    content: str = ""


def encode_dataset(
    dataset: Dataset,
    encoder: Encoder,
    *,
    image_folder: str | Path | None = None,
    skip_bad: bool = False,
    **how: Unpack[StreamKeywords],
) -> Encoded:
    """Encode the images, the captions, or both: whatever the encoder takes.

    Image files are looked for under their ``file`` (or id) below ``image_folder``; an encoder of stored features finds
    images by their ids. With ``skip_bad`` an image that is not there or unreadable is left out together with its
    captions; without it, it raises.
    """
    if isinstance(encoder, StoredEmbeddings):
        images, captions = (
            align_embeddings(encoder.stored[kind], ids, what) if kind in encoder.stored else None
            for kind, ids, what in ((IMAGES, dataset.image_ids, "image"), (TEXTS, dataset.caption_ids, "caption"))
        )
        return Encoded(dataset, images, captions, {}, encoder.revision)
    if not encoder.abilities:
        require_modality(encoder, IMAGES)
    skipped: dict[str, str] = {}
    images = captions = None
    encoded: list[Vectors] = []
    if IMAGES in encoder.abilities:
        if isinstance(encoder, FeatureReader):
            vectors = _encode(_Features(encoder.features_of(dataset.image_ids), dataset.image_ids), encoder, **how)
        else:
            files = image_files(dataset, image_folder, skip_bad=skip_bad)
            vectors = encode_images(encoder, files, names=dataset.image_ids, skip_bad=skip_bad, **how)
        rows = vectors.rows
        if vectors.bad:
            skipped = {dataset.image_ids[row]: problem for row, problem in vectors.bad.items()}
            readable = [row for row in range(len(rows)) if row not in vectors.bad]
            dataset, rows = dataset.select(dataset.image_ids[row] for row in readable), rows[readable]
        images = Embeddings(dataset.image_ids, rows, model=label(encoder))
        encoded.append(vectors)
    if TEXTS in encoder.abilities and dataset.caption_ids:
        vectors = encode_texts(encoder, dataset.texts, **how)
        captions = Embeddings(dataset.caption_ids, vectors.rows, model=label(encoder))
        encoded.append(vectors)
    if not encoded:
        raise UsageError(f"{encoder.name} has nothing to encode here", fix="check that the dataset has captions")
    keys = (np.frombuffer(b"".join(vectors.keys), np.uint8) for vectors in encoded)
    return Encoded(dataset, images, captions, skipped, "+".join(fingerprint("items", {"keys": key}) for key in keys))


def encode_captions(dataset: Dataset, encoder: Encoder, **how: Unpack[StreamKeywords]) -> Embeddings:
    """The embeddings of the captions: encoded as :func:`encode_texts` does, or looked up where they are stored."""
    if not dataset.caption_ids:
        return Embeddings((), np.zeros((0, encoder.dimension or 1), np.float32), model=label(encoder))
    if isinstance(encoder, StoredEmbeddings):
        return align_embeddings(encoder.stored[TEXTS], dataset.caption_ids, "caption")
    return Embeddings(dataset.caption_ids, encode_texts(encoder, dataset.texts, **how).rows, model=label(encoder))


def caption_rows(dataset: Dataset) -> list[list[int]]:
    """For each image the rows of its captions."""
    rows: list[list[int]] = [[] for _ in dataset.image_ids]
    for row, image in enumerate(dataset.caption_image):
        rows[image].append(row)
    return rows


_EMBEDDINGS = ("images", "captions")
_DATASET = "dataset"
_LAYOUT = Layout(
    "a folder of embeddings",
    f"*/{HEADER_FILE}",
    (*(file for part in _EMBEDDINGS for file in EMBEDDINGS_LAYOUT.within(part)), *DATASET_LAYOUT.within(_DATASET)),
)


def save_encoded(encoded: Encoded, output: str | Path, *, overwrite: bool = False) -> dict[str, Path]:
    """Write ``images/`` and ``captions/``; returns their paths. Other embeddings are replaced only with ``overwrite``.

    Where images were skipped there is also ``dataset/``, without them: embeddings of a part of a dataset can be
    evaluated only with that part.
    """
    output = Path(output)
    embeddings = zip(_EMBEDDINGS, (encoded.images, encoded.captions), strict=True)
    parts: dict[str, Embeddings | Dataset] = {name: part for name, part in embeddings if part is not None}
    if encoded.skipped:
        parts[_DATASET] = encoded.dataset
    paths = {name: output / name for name in parts}
    if _LAYOUT.holds(output) and not overwrite:
        same = False
        if sorted(path.name for path in output.iterdir() if path.is_dir()) == sorted(parts):
            with suppress(CrosslensError):
                same = all(
                    (Dataset.load(path) if name == _DATASET else Embeddings.load(path, mmap=True)).fingerprint
                    == parts[name].fingerprint
                    for name, path in paths.items()
                )
        if not same:
            fix = f"choose another output, or pass {argument('overwrite', True)}"
            raise ConflictError(f"{output} already contains other embeddings", fix=fix)
        tidy_output(output)
        return paths
    with atomic_folder(output, _LAYOUT) as folder:
        for name, part in parts.items():
            part.save(folder / name)
    return paths
