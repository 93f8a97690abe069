"""What every encoder is: images or texts in, vectors out, and a name that says exactly which model made them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from crosslens.core.errors import UnknownNameError, UsageError
from crosslens.core.registry import Registry

Array = np.ndarray[Any, Any]
Tell = Callable[[str], None]

IMAGES, TEXTS = "images", "texts"
PRECISIONS = ("fp32", "fp16", "bf16")


@runtime_checkable
class Encoder(Protocol):
    """A model that turns images, texts or both into vectors.

    ``revision`` is derived from the weights: another revision, other vectors. Empty means unknown, and then nothing is
    ever taken from a cache. ``preprocessing`` says what is done to an item before the model sees it. ``abilities``
    holds ``"images"``, ``"texts"`` or both; ``dimension`` is None where only encoding tells; ``logit_scale`` is the
    factor the model was trained with, None where it has none.
    """

    name: str
    revision: str
    preprocessing: str
    abilities: frozenset[str]
    dimension: int | None
    logit_scale: float | None

    def encode_images(self, images: Sequence[Any]) -> Array:
        """n images (pictures, or paths of them) → n×d, or n×k×d where a model has k vectors per image."""

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """n texts → n×d."""


def to_stderr(text: str) -> None:
    """Tell the person at the terminal."""
    print(text, file=sys.stderr)


@dataclass(frozen=True)
class Settings:
    """How a model is loaded: where it computes, how precisely, and whether the network may be used."""

    device: str | None = None
    precision: str = "fp32"
    offline: bool = False
    tell: Tell = to_stderr

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UnknownNameError("precision", self.precision, PRECISIONS)


ENCODERS: Registry[Callable[[str, Settings], Encoder]] = Registry("encoder", "encoders")
"""Kinds of encoders. An encoder is asked for as ``kind:source``: the source is a hub name or a path, by kind."""


def load_encoder(
    model: str | Encoder,
    *,
    device: str | None = None,
    precision: str = "fp32",
    offline: bool = False,
    tell: Tell = to_stderr,
) -> Encoder:
    """The encoder that a name such as ``clip:openai/clip-vit-base-patch32`` or ``sentence:path/to/model`` stands for.

    ``device`` is one of torch's names (default: a GPU if there is one); ``precision`` is fp32, fp16 or bf16;
    ``offline`` forbids the network: the model must then be a path, or stand in the hub's local cache. Something that is
    an encoder already, or has ``encode_images`` or ``encode_texts``, is taken as it is.
    """
    if not isinstance(model, str):
        from crosslens.encode.own import OwnEncoder

        return model if isinstance(model, Encoder) else OwnEncoder(model)
    kind, source = split_model(model)
    return ENCODERS[kind].value(source, Settings(device, precision, offline, tell))


def split_model(model: str, kinds: Registry[Any] = ENCODERS) -> tuple[str, str]:
    """``clip:openai/clip`` → ``clip`` and ``openai/clip``; the kind must be known."""
    kind, mark, source = model.partition(":")
    details = kinds[kind].details
    if details.get("needs_source", True) and not source:
        raise UsageError(
            f"the model {model!r} has no {'source' if mark else ':'}",
            fix=f"say which: for example {kind}:{details.get('example', 'path/to/model')}",
        )
    return kind, source


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
    """The same model with the path in its name changed; a name that holds no path (seen from ``base``) stays."""
    kind, mark, source = model.partition(":")
    before, after = "", ""
    if kind == "callable":
        source, colon, attribute = source.rpartition(":")
        after = colon + attribute
    elif kind == "openclip":
        architecture, slash, source = source.partition("/")
        before = architecture + slash
    there = bool(source) and (base / Path(source).expanduser()).exists()
    return f"{kind}{mark}{before}{change(source) if there else source}{after}"


def demand(encoder: Encoder, ability: str) -> None:
    """Raise unless the encoder takes this kind of items."""
    if ability not in encoder.abilities:
        can = " and ".join(sorted(encoder.abilities)) or "nothing"
        raise UsageError(
            f"{encoder.name} encodes {can}, not {ability}",
            fix="use an encoder of both, or evaluate a text encoder with --image-text (text-only retrieval)",
        )
