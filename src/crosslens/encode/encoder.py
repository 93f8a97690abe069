"""What every encoder is: images or texts in, vectors out, and a name that says exactly which model made them."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack, runtime_checkable

import numpy as np

from crosslens.core import (
    CrosslensError,
    MissingExtraError,
    Registry,
    UnknownNameError,
    UsageError,
    accepts_options,
    argument,
    call_function,
    needs_extra,
    where_option,
)
from crosslens.encode.cache import Cache, EmbeddingStore
from crosslens.encode.options import EncodeOptions
from crosslens.engine import Progress
from crosslens.rank import unit_rows
from crosslens.storage import Array, offline, read_json_file

if TYPE_CHECKING:
    from crosslens.encode.keywords import EncodeKeywords

IMAGES, TEXTS = "images", "texts"
_LOADED_AS = "_crosslens_loaded_as"
METHODS = {IMAGES: "encode_images", TEXTS: "encode_texts"}


@runtime_checkable
class Encoder(Protocol):
    """A model that turns images, texts or both into vectors.

    ``revision`` is derived from the weights: another revision, other vectors. Empty means unknown, and then nothing is
    ever taken from a cache. ``preprocessing`` says what is done to an item before the model sees it. ``abilities``
    holds ``"images"``, ``"texts"`` or both; ``dimension`` is None where only encoding tells; ``logit_scale`` is the
    factor the model was trained with, None where it has none. A class that derives from this one need not define the
    method of what it does not encode.
    """

    name: str
    revision: str
    preprocessing: str = ""
    abilities: frozenset[str] = frozenset()
    dimension: int | None = None
    logit_scale: float | None = None

    def encode_images(self, images: Sequence[Any]) -> Array:
        """n images (pictures, or paths of them) → n×d, or n×k×d where a model has k vectors per image."""
        raise lacks_modality(self, IMAGES)

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """n texts → n×d."""
        raise lacks_modality(self, TEXTS)


@runtime_checkable
class FeatureReader(Protocol):
    """An encoder, or a scorer, of stored features: it finds images by their ids, and no image file is read."""

    def features_of(self, image_ids: Sequence[str]) -> Sequence[tuple[Array, ...]]:
        """The features of each image: what its ``encode_images`` takes in place of pictures."""


@runtime_checkable
class MatrixScorer(Protocol):
    """A model that compares every image with every text and has no vectors: its ``abilities`` are empty.

    ``pixels`` is the encoder that makes features from pictures; None where the model is a :class:`FeatureReader`.
    """

    name: str
    revision: str
    pixels: Encoder | None

    def score_matrix(self, features: Sequence[Any], texts: Sequence[str], progress: Progress | None = None) -> Array:
        """Features of m images, and n texts → m×n scores."""


@runtime_checkable
class DivisibleScorer(Protocol):
    """A :class:`MatrixScorer` whose scores of some images and texts are those of the whole matrix, to the last bit."""

    def divide(self, features: Sequence[Any], texts: Sequence[str]) -> tuple[list[slice], list[Array]]:
        """Which images, and which texts by their positions: each block of both may be scored alone."""


ENCODERS: Registry[Callable[[str, EncodeOptions], Encoder]] = Registry(
    "encoder", "encoders", ("crosslens.encode.adapters",), declared=("path",)
)
"""Kinds of encoders. An encoder is written ``kind:source``: the source is a hub name or a path, by kind.

Declared with each: ``example`` (a source), ``extra`` (what must be installed), ``needs_source``, ``types`` (model types
of transformers), ``path`` (a pattern whose named groups are the parts of the source that may be paths; default: all),
``names`` (patterns of sources that are written without the kind by mistake, and how they are written with it).
"""


def named_with(kind: str, *words: str) -> dict[str, str]:
    """The ``names`` of a kind whose models have one of the words in their name: itself, unless others are given."""
    return {rf".*(?<![a-z])(?:{'|'.join(words or (kind,))})(?![a-z])[^/]*": rf"{kind}:\g<0>"}


@accepts_options(EncodeOptions)
def load_encoder(
    model: str | Encoder | Any, options: EncodeOptions | None = None, **changes: Unpack[EncodeKeywords]
) -> Encoder:
    """The encoder that a name such as ``clip:openai/clip-vit-base-patch32`` or ``sentence:path/to/model`` stands for.

    ``options`` or single keywords say how it is loaded: ``device`` is one of torch's names (default: a GPU if there is
    one); ``precision`` is fp32, fp16 or bf16; ``offline`` forbids the network: the model must then be a path, or in the
    hub's local cache. An encoder, or any object with ``encode_images`` or ``encode_texts``, is used as it is.
    """
    if not isinstance(model, str):
        return model if isinstance(model, Encoder) else CallableEncoder(model)
    kind, source = split_model(model)
    options = options or EncodeOptions.of(changes)
    with offline(options.offline):
        encoder = ENCODERS[kind].value(source, options)
    note_origin(encoder, model, options)
    return encoder


def note_origin(model: object, name: str, options: EncodeOptions) -> None:
    """Have :func:`loaded_as` know what a model was loaded with."""
    with suppress(AttributeError):  # a class may forbid it
        object.__setattr__(model, _LOADED_AS, (name, options))


def loaded_as(model: object) -> tuple[str, EncodeOptions] | None:
    """The name and options that another process can load the same model with; None for an object of the user."""
    origin: tuple[str, EncodeOptions] | None = getattr(model, _LOADED_AS, None)
    return origin


_ALIKE = {IMAGES: "image|picture|photo|vision|visual|pixel", TEXTS: "text|caption|sentence|query"}
_MOST_ALIKE = 6


def no_encoder(model: object, methods: Iterable[str], fix: str) -> UsageError:
    """The error about an object with none of the methods that are looked for."""
    problem = f"{type(model).__name__} is not an encoder: it has none of the methods {', '.join(methods)}"
    return UsageError(problem + _methods_alike(model, METHODS), fix=fix)


def _methods_alike(model: object, modalities: Iterable[str]) -> str:
    """What an object has instead of a method that is looked for, by the words in the names."""
    words, names = "|".join(_ALIKE[modality] for modality in modalities), []
    for name in dir(model):
        with suppress(Exception):  # of a property of the user
            if not name.startswith("_") and re.search(words, name, re.IGNORECASE) and callable(getattr(model, name)):
                names.append(name)
    return f"; it has {', '.join(names[:_MOST_ALIKE])}" if names else ""


class CallableEncoder(Encoder):
    """Any object with ``encode_images``, ``encode_texts`` or both, seen as an encoder."""

    def __init__(self, model: Any, name: str | None = None) -> None:
        self.abilities = frozenset(
            modality for modality, method in METHODS.items() if callable(getattr(model, method, None))
        )
        if not self.abilities:
            fix = "give it encode_images(pictures) or encode_texts(texts), each returning n×d numbers"
            raise no_encoder(model, METHODS.values(), fix)
        self._model = model
        self.inspected = getattr(model, "inspected", model)
        self.name = name or str(getattr(model, "name", "") or type(model).__name__)
        self.revision = str(getattr(model, "revision", "") or "")
        self.preprocessing = str(getattr(model, "preprocessing", "") or "")
        self.dimension = getattr(model, "dimension", None)
        self.logit_scale = getattr(model, "logit_scale", None)

    def encode_images(self, images: Sequence[Any]) -> Array:
        return as_array(call_function(self._model.encode_images, list(images)))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        return as_array(call_function(self._model.encode_texts, list(texts)))


def as_array(values: Any) -> Array:
    """A numpy array from what a user's model returns: an array, a list, or a torch tensor on any device."""
    return np.asarray(values.detach().float().cpu() if hasattr(values, "detach") else values)


def split_model(model: str, kinds: Registry[Any] = ENCODERS) -> tuple[str, str]:
    """``clip:openai/clip`` → ``clip`` and ``openai/clip``; the kind must be registered."""
    kind, colon, source = model.partition(":")
    if kind not in kinds and (not colon or "/" in kind or "." in kind):  # a name or a path, without its kind
        error = UnknownNameError(kinds.kind, model, kinds.names())
        if (suggestion := _with_kind(model, kinds)) is not None:
            error.fix = f"did you mean {suggestion}?"
        elif not error.suggestions or "/" in model:
            error.fix = f"write KIND:{model}, where KIND says what loads it: {', '.join(kinds.names())}"
        raise error
    entry = kinds[kind]
    kind, details = entry.name, entry.details
    if details.get("needs_source", True) and not source:
        raise UsageError(
            f"the model {model!r} has no {'source' if colon else ':'}",
            fix=f"name its source, for example {kind}:{details.get('example', 'path/to/model')}",
        )
    return kind, source


def _with_kind(model: str, kinds: Registry[Any]) -> str | None:
    """A model's name with the kind that it belongs to, by what a folder says of itself, or by the name."""
    config, model_type = Path(model).expanduser() / "config.json", ""
    with suppress(CrosslensError, AttributeError):  # what else is in such a folder is said when it is loaded
        model_type = read_json_file(config).get("model_type") if config.is_file() else ""
    entries = sorted(kinds, key=lambda entry: -len(entry.name))  # blip2 before blip
    for entry in entries:
        if model_type in entry.details.get("types", ()):
            return f"{entry.name}:{model}"
    for entry in entries:
        for pattern, template in entry.details.get("names", {}).items():
            if match := re.fullmatch(pattern, model, re.IGNORECASE):
                return match.expand(template)
    return None


def require_library(module: str, purpose: str, extra: str = "encoders", package: str = "") -> None:
    """Raise where a library is not installed, without the seconds that importing it takes."""
    if module not in sys.modules and importlib.util.find_spec(module) is None:
        raise MissingExtraError(purpose, package or module, extra)


def import_library(module: str, purpose: str, extra: str = "encoders", package: str = "") -> Any:
    """A library that is not always installed; without it an error that says how to install it."""
    with needs_extra(purpose, package or module, extra):
        return importlib.import_module(module)


def is_local(source: str) -> bool:
    """Whether a model's source is something on this disk."""
    return Path(source).expanduser().exists()


def name_of(kind: str, source: str) -> str:
    """What an encoder is called: of a path only the last two parts, so that a moved folder keeps its name."""
    return f"{kind}:{'/'.join(Path(source).expanduser().resolve().parts[-2:]) if is_local(source) else source}"


def label(encoder: Encoder) -> str:
    """The encoder's name with the beginning of its revision: what embeddings say they were made by."""
    return f"{encoder.name}@{encoder.revision[:12]}" if encoder.revision else encoder.name


def map_path(model: str, base: Path, change: Callable[[str], str]) -> str:
    """A model's name with its paths changed; a name that holds no path (seen from ``base``) stays."""
    kind, _, source = model.partition(":")
    pattern = ENCODERS[kind].details.get("path") if kind in ENCODERS else None
    match = re.fullmatch(pattern or "(?P<path>.*)", source)
    parts = {} if match is None else match.groupdict()
    paths = [name for name, part in parts.items() if part and (base / Path(part).expanduser()).exists()]
    for name in sorted(paths, key=lambda part: -(match.start(part) if match else 0)):  # the last first: positions hold
        assert match is not None
        source = f"{source[: match.start(name)]}{change(parts[name])}{source[match.end(name) :]}"
    return f"{kind}:{source}" if paths else model


def require_modality(encoder: Encoder, modality: str) -> None:
    """Raise unless the encoder takes images, or texts."""
    if modality not in encoder.abilities:
        raise lacks_modality(encoder, modality)


def lacks_modality(encoder: Encoder, modality: str) -> UsageError:
    """The error about an encoder that does not take images, or texts."""
    if isinstance(encoder, MatrixScorer):
        return UsageError(
            f"{encoder.name} scores pairs of an image and a text, and has no vectors",
            fix="use it where scores are enough: in crosslens evaluate, crosslens robustness, or to re-rank",
        )
    text_only = f", or evaluate a text encoder with {argument('image_text')} (text-only retrieval)"
    alike = _methods_alike(encoder.inspected, [modality]) if isinstance(encoder, CallableEncoder) else ""
    return UsageError(
        f"{encoder.name} encodes {' and '.join(sorted(encoder.abilities)) or 'nothing'}, not {modality}{alike}",
        fix="use an encoder of both" + where_option("image_text", text_only),
    )


def open_store(cache: Cache | None, model: Any, kind: str, precision: str) -> EmbeddingStore | None:
    """The store of a model's vectors of one kind of item; none where nobody knows whether they are this model's."""
    if cache is None or not model.revision:
        return None
    return cache.store(
        {
            "encoder": model.name,
            "revision": model.revision,
            "preprocessing": getattr(model, "preprocessing", ""),
            "precision": precision,
            "items": kind,
        },
        getattr(model, "dimension", None) if kind in METHODS else 1,
    )


def word_vectors(
    pieces: Iterable[int | None], offsets: Iterable[tuple[int, int]], text: str, vectors: Array
) -> tuple[list[str], Array]:
    """The words of a text, and for each the sum of the directions of its pieces.

    ``pieces`` says of each piece which word it belongs to, or None for marks that are not in the text.
    """
    spans: dict[int, tuple[int, int]] = {}
    in_text: list[int] = []
    word_of: list[int] = []
    for at, (word, (start, end)) in enumerate(zip(pieces, offsets, strict=True)):
        if word is not None:
            spans[word] = (spans[word][0] if word in spans else start, end)
            in_text.append(at)
            word_of.append(len(spans) - 1)
    sums = np.zeros((len(spans), vectors.shape[1]), np.float32)
    if in_text:
        np.add.at(sums, word_of, unit_rows(np.asarray(vectors, np.float32)[in_text]))
    return [text[start:end] for start, end in spans.values()], sums
