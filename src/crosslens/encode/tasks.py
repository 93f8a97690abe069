"""Encoding in tasks of an engine: the same batches as without one, each through the model of whoever runs the task.

Batches depend on which items are cached, unreadable or equal, which their content decides. So files are hashed first,
in tasks as well; then batches of paths travel, and pictures are decoded where they are encoded.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from crosslens.core import CrosslensError, Engine, InputError, missing_on_node
from crosslens.data import outer_file, read_image_bytes
from crosslens.encode.batches import Batches
from crosslens.encode.cache import key_of
from crosslens.encode.encoder import METHODS, Array, Encoder, load_encoder, loaded_as, map_path
from crosslens.encode.images import decode_image, pixels_of
from crosslens.encode.options import EncodeOptions

T = TypeVar("T")

_FILES_AT_ONCE = 256
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
    return [_facts(file) for file in files]


def _facts(file: str) -> FileFacts:
    key = b""
    try:
        content = read_image_bytes(file)
        key = key_of(content)
        return FileFacts(key, pixels_of(content), "")
    except (OSError, InputError) as error:
        return FileFacts(key, 0, unreadable(error))


def unreadable(error: OSError | InputError) -> str:
    """Why an image cannot be used."""
    if isinstance(error, InputError):
        return error.problem
    return "missing" if isinstance(error, FileNotFoundError) else f"cannot be opened: {error}"


def facts_of_files(engine: Engine, files: Sequence[str | Path]) -> Iterator[FileFacts]:
    """Key and size of each file, in order; one that this process can read and a worker cannot raises."""
    paths = [os.path.abspath(file) for file in files]
    parts = [paths[start : start + _FILES_AT_ONCE] for start in range(0, len(paths), _FILES_AT_ONCE)]
    for part, facts in zip(parts, engine.run(read_facts_of, None, parts), strict=True):
        for path, known in zip(part, facts, strict=True):
            if known.bad == "missing" and outer_file(path).exists():
                raise missing_on_node(f"{path} does not exist")
            yield known


class EncodedBatch(NamedTuple):
    """The vectors of a batch; or, in ``bad``, which of its items cannot be decoded, and why."""

    parts: list[Array]
    bad: dict[int, str]


class EncodeRequest(NamedTuple):
    """Batches for one task: texts, features, or the paths of pictures."""

    modality: str
    are_files: bool
    batches: list[list[Any]]


def encode_batches(model: ModelToLoad, request: EncodeRequest) -> list[EncodedBatch]:
    """The vectors of each batch, up to the first with an item that cannot be decoded."""
    encoder = model.load()
    encode = getattr(encoder, METHODS[request.modality])
    encoded = []
    for contents in request.batches:
        bad: dict[int, str] = {}
        if request.are_files:
            contents, bad = _decoded(contents)
        parts = [] if bad else Batches(request.modality, encoder, len(contents)).run(encode, contents)
        encoded.append(EncodedBatch(parts, bad))
        if bad:
            break
    return encoded


def _decoded(files: Sequence[str]) -> tuple[list[Any], dict[int, str]]:
    pictures, bad = [], {}
    for number, file in enumerate(files):
        try:
            pictures.append(decode_image(read_image_bytes(file)))
        except (OSError, InputError) as error:
            bad[number] = unreadable(error)
    return pictures, bad


def run_batches(
    engine: Engine, encoder: Encoder, modality: str, batches: Sequence[Sequence[Any]], content: Callable[[Any], Any],
    *, are_files: bool,
) -> Iterator[EncodedBatch]:  # fmt: skip
    """The batches encoded, in order, up to the first with an item that cannot be decoded."""
    groups = in_groups(batches, engine)
    requests = (EncodeRequest(modality, are_files, [[content(item) for item in batch] for batch in group])
                for group in groups)  # fmt: skip
    for encoded in engine.run(encode_batches, ModelToLoad.of(encoder), requests, gpu=uses_gpu(encoder)):
        yield from encoded
        if encoded[-1].bad:
            return


def in_groups(batches: Sequence[T], engine: Engine) -> list[Sequence[T]]:
    """The batches of each task: several, where all cores have enough to do all the same."""
    several = max(1, min(_MOST_BATCHES, len(batches) // (_TASKS_PER_SLOT * engine.slots())))
    return [batches[start : start + several] for start in range(0, len(batches), several)]


def uses_gpu(model: Any) -> bool:
    """Whether this process runs the model on a GPU: then each task needs one."""
    return "cuda" in str(getattr(model, "device", ""))
