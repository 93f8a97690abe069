"""How items go through a model: pictures decoded, items in batches, and batches in tasks of an engine.

The size of a batch never depends on measured time or on what the machine is doing: the last bits of a vector depend on
the batch it was computed in, and equal inputs and settings have to give equal bits. In tasks the batches are those that
are formed without them: they depend on which items are cached, unreadable or equal, which their content decides. So
files are hashed first, in tasks as well; then batches of paths travel, and pictures are decoded where they are encoded.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from crosslens.core import CrosslensError, InputError, UsageError, argument
from crosslens.data import REPAIR_IMAGE, read_image_bytes, readable_picture
from crosslens.encode.cache import key_of
from crosslens.encode.encoder import IMAGES, METHODS, TEXTS, load_encoder, loaded_as, map_path
from crosslens.encode.options import EncodeOptions
from crosslens.engine import Engine
from crosslens.storage import PIXELS_IN_FLIGHT, Array

T = TypeVar("T")
R = TypeVar("R")

_THREADS, _AHEAD = 4, 64


def decode_image(content: bytes) -> Any:
    """The picture in an image file's bytes, as RGB; whatever is wrong with it raises an ``InputError``."""
    with readable_picture(content) as picture:
        return picture.convert("RGB")


def pixels_of(content: bytes) -> int:
    """How many pixels the picture in an image file's bytes has, which are not decoded."""
    with readable_picture(content) as picture:
        width, height = picture.size
        return int(width * height)


def as_picture(image: Any) -> Any:
    """A picture from a picture, or from the path of one."""
    if not isinstance(image, str | Path):
        return image if getattr(image, "mode", "RGB") == "RGB" else image.convert("RGB")
    try:
        return decode_image(read_image_bytes(image))
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror or error}", file=image, fix="check the path") from error
    except InputError as error:
        error.file = str(image)
        raise


def as_pictures(images: Sequence[Any]) -> list[Any]:
    """Pictures from pictures or paths; a path that occurs again is read once."""
    paths = dict.fromkeys(image for image in images if isinstance(image, str | Path))
    pictures = {str(path): as_picture(path) for path in paths}
    return [pictures[str(image)] if isinstance(image, str | Path) else as_picture(image) for image in images]


def file_key(file: str | Path) -> bytes:
    """The key of an image file's bytes; one that cannot be opened raises an ``InputError``."""
    try:
        return key_of(read_image_bytes(file))
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror or error}", file=file, fix=REPAIR_IMAGE) from error


def read_ahead(
    work: Callable[[T], R], items: Iterable[T], threads: int = _THREADS, most: int = _AHEAD
) -> Generator[R, None, None]:
    """The results of ``work`` in order, worked out by a few threads a little ahead of their use."""
    with ThreadPoolExecutor(threads) as pool:
        futures: deque[Future[R]] = deque()
        try:
            for item in items:
                futures.append(pool.submit(work, item))
                if len(futures) > most:
                    yield futures.popleft().result()
            while futures:
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()


PAIRS = "pairs"
_SIZES = {IMAGES: 32, TEXTS: 64, PAIRS: 16}
_ON_GPU = 8
"""A GPU is kept busy by batches so many times larger."""
_TOKENS = 16
"""Tokens of a usual text."""


class Batches:
    """Splits items into batches of one size, and a batch into parts where memory does not suffice for all of it."""

    def __init__(self, modality: str, model: Any, size: int | None = None) -> None:
        if size is not None and size < 1:
            raise UsageError(
                f"{argument('batch_size', size)}", fix="use 1 or more, or leave it out", option="batch_size"
            )
        self._modality, self._model, self._asked = modality, model, size
        self._fits: int | None = None

    @cached_property
    def size(self) -> int:
        """Asked for when there is an item: some models have a device only once they are loaded."""
        on_gpu = "cuda" in str(getattr(self._model, "device", ""))
        return self._asked or _SIZES[self._modality] * (_ON_GPU if on_gpu else 1)

    def of(self, items: Iterable[T], amount: Callable[[T], int] = lambda item: 0) -> Iterator[list[T]]:
        """Lists of as many items as the size says, or of fewer where their pictures are very large.

        ``amount``: the pixels of a picture, the tokens of a text, 0 where nobody counts them. Texts of a batch have the
        same number of tokens, so that none is padded, and are as many as have the tokens of usual texts together.
        """
        total, batch = 0, list[T]()
        for item in items:
            by_tokens = self._modality == TEXTS and amount(item) > 0
            most = self.size * _TOKENS if by_tokens else PIXELS_IN_FLIGHT.value
            full = len(batch) == self.size and (self._asked or not by_tokens)
            if batch and (full or total + amount(item) > most or (by_tokens and amount(item) != amount(batch[0]))):
                yield batch
                total, batch = 0, []
            batch.append(item)
            total += amount(item)
        if batch:
            yield batch

    def encoded(
        self, encode: Callable[[Sequence[Any]], Array], items: Iterable[T], content: Callable[[T], Any],
        amount: Callable[[T], int],
    ) -> Iterator[tuple[list[T], list[Array]]]:  # fmt: skip
        """Batches with their vectors, in order.

        ``at_once`` of a model is how many it encodes at once: small models use cores better with a batch on each.
        """

        def work(batch: list[T]) -> tuple[list[T], list[Array]]:
            return batch, self.run(encode, [content(item) for item in batch])

        batches = self.of(items, amount)
        for batch in batches:
            threads = getattr(self._model, "at_once", 1)  # asked now: some models are loaded for their first batch
            if threads == 1:
                yield work(batch)
            else:
                with _one_core_each():
                    yield from read_ahead(work, chain([batch], batches), threads, 2 * threads)

    def run(self, encode: Callable[[Sequence[Any]], Array], items: Sequence[Any]) -> list[Array]:
        """Encode one batch, in smaller and smaller parts if memory does not suffice; later batches start smaller."""
        size = min(self._fits or len(items), len(items))
        try:
            return [encode(items[start : start + size]) for start in range(0, len(items), size)]
        except Exception as error:
            # torch and onnxruntime have no class of their own for it on every device
            text = str(error).lower()
            if not (isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text):
                raise
        if size <= 1:
            raise CrosslensError(
                "one item alone does not fit into memory",
                fix=f"use {argument('precision', 'fp16')}, a smaller model, or {argument('device', 'cpu')}",
                code="out-of-memory",
            )
        self._fits = size // 2
        gc.collect()
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()
        return self.run(encode, items)


@contextmanager
def _one_core_each() -> Iterator[None]:
    """Threads that begin meanwhile compute with one core each, as far as it is torch that computes."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    try:
        if torch:
            torch.set_num_threads(1)
        yield
    finally:
        if torch:
            torch.set_num_threads(before)


_MOST_BATCHES = 8
"""Batches of one task, at most: a batch of short texts takes no longer than sending it."""
_TASKS_PER_SLOT = 4


@dataclass(frozen=True)
class ModelToLoad:
    """How a worker gets the model: by its name, or the model itself where it has none."""

    name: Any
    options: EncodeOptions
    revision: str
    loader: Callable[[str, EncodeOptions], Any] | None = None
    """What loads it; None: :func:`load_encoder`."""

    @staticmethod
    def of(model: Any, loader: Callable[[str, EncodeOptions], Any] | None = None) -> ModelToLoad:
        """The model that this process has loaded: an encoder, or what else ``loader`` loads."""
        origin = loaded_as(model)
        if origin is None:
            return ModelToLoad(model, EncodeOptions(), model.revision)
        name, options = origin
        device = str(getattr(model, "device", "")).partition(":")[0] or options.device  # a worker has one GPU
        plain = EncodeOptions(device=device, precision=options.precision, offline=options.offline)
        return ModelToLoad(map_path(name, Path.cwd(), os.path.abspath), plain, model.revision, loader)

    def load(self) -> Any:
        """The model, once per process."""
        if not isinstance(self.name, str):
            return self.name
        if self not in _LOADED:
            _LOADED.clear()  # one model at a time: two may not fit
            _LOADED[self] = (self.loader or load_encoder)(self.name, self.options)
        model = _LOADED[self]
        if model.revision != self.revision:
            raise CrosslensError(
                f"the model {model.name} of the node {socket.gethostname()} has other weights than here",
                fix="put the model on storage that all nodes share, or the same files on every node",
                code="other-version",
            )
        return model


_LOADED: dict[ModelToLoad, Any] = {}


class FileFacts(NamedTuple):
    """What is known of an image file without decoding it; ``bad`` says why it cannot be used."""

    key: bytes
    pixels: int
    bad: str


def read_facts_of(shared: None, files: Sequence[str]) -> list[FileFacts]:
    """Key and size of each image file."""
    facts = []
    for file in files:
        key = b""
        try:
            content = read_image_bytes(file)
            key = key_of(content)
            facts.append(FileFacts(key, pixels_of(content), ""))
        except (OSError, InputError) as error:
            facts.append(FileFacts(key, 0, unreadable(error)))
    return facts


def unreadable(error: OSError | InputError) -> str:
    """Why an image cannot be used."""
    if isinstance(error, InputError):
        return error.problem
    return "missing" if isinstance(error, FileNotFoundError) else f"cannot be opened: {error}"


class EncodedBatch(NamedTuple):
    """The vectors of a batch; or, in ``bad``, which of its items cannot be decoded, and why."""

    parts: list[Array]
    bad: dict[int, str]


def encode_batches(model: ModelToLoad, request: tuple[str, bool, list[list[Any]]]) -> list[EncodedBatch]:
    """The vectors of each batch (texts, features, or the paths of pictures), up to one that cannot be decoded."""
    modality, are_files, batches = request
    encoder = model.load()
    encode = getattr(encoder, METHODS[modality])
    encoded = []
    for contents in batches:
        bad: dict[int, str] = {}
        if are_files:
            files, contents = contents, []
            for number, file in enumerate(files):
                try:
                    contents.append(decode_image(read_image_bytes(file)))
                except (OSError, InputError) as error:
                    bad[number] = unreadable(error)
        parts = [] if bad else Batches(modality, encoder, len(contents)).run(encode, contents)
        encoded.append(EncodedBatch(parts, bad))
        if bad:
            break
    return encoded


def in_groups(batches: Sequence[T], engine: Engine) -> list[Sequence[T]]:
    """The batches of each task: several, where all cores have enough to do all the same."""
    several = max(1, min(_MOST_BATCHES, len(batches) // (_TASKS_PER_SLOT * engine.slots())))
    return [batches[start : start + several] for start in range(0, len(batches), several)]


def uses_gpu(model: Any) -> bool:
    """Whether this process runs the model on a GPU: then each task needs one."""
    return "cuda" in str(getattr(model, "device", ""))
