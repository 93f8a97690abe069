"""A trained model rebuilt from its folder: nothing in the folder is executed, and nothing of it is trusted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from crosslens.core import HEADER_FILE, CrosslensError, InputError, fingerprint, require_entries
from crosslens.train.inputs.vocabulary import CaptionVocabulary
from crosslens.train.models.protocol import InputShape, build_model
from crosslens.train.stored.model_folder import WEIGHTS, read_model
from crosslens.train.stored.trained_state import load_trained_state

_REQUIRED = {"identity": dict, "shape": dict, "vocabulary": list}
_ENTRIES = {**_REQUIRED, "prepared": dict, "features": dict, "text_revision": str}
_FEATURES = {"layout": str, "folder": str, "options": dict, "encoder": str}
_AGAIN = "train the model again, or restore the folder from a copy"


class LoadedModel(NamedTuple):
    """A model with its best weights, ready to infer, and what its folder says of it."""

    model: Any
    card: Mapping[str, Any]
    shape: InputShape
    vocabulary: CaptionVocabulary
    revision: str
    """A hash of the weights and of all else that decides about what the model computes."""


def load_model(folder: str | Path, *, encoder: str = "") -> LoadedModel:
    """Rebuild a model that :func:`train_model` stored; a folder that is damaged, or something else, raises.

    ``encoder`` says where the pretrained model is that a model on pictures adapts, if it has moved since.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise InputError(
            "no such folder", file=folder, expected="a model that crosslens train wrote", fix="check the path"
        )
    stored = read_model(folder)
    card, file = stored.card, folder / HEADER_FILE
    _check_card(card, file)
    kind, settings = _recipe_model(card["identity"], file)
    shape = _shape(card["shape"], file)
    if encoder and shape.pictures:
        shape = replace(shape, encoder=encoder)
    words = card["vocabulary"]
    if not all(isinstance(word, str) for word in words):
        raise InputError("a vocabulary of other things than words", file=file, expected="a list of texts", fix=_AGAIN)
    try:
        model = build_model(kind, settings, shape, card.get("prepared", {}), str(file))
        load_trained_state(model, stored.weights)
    except CrosslensError:
        raise
    except Exception as error:  # the shape of a tensor, a value out of its range: a kind of error for each
        problem = f"the weights do not fit the model {kind!r} that {HEADER_FILE} describes: {_first_line(error)}"
        raise InputError(problem, file=folder / WEIGHTS, fix=_AGAIN) from error
    model.eval()
    return LoadedModel(model, card, shape, CaptionVocabulary(tuple(words)), _revision(card, stored.content))


def _check_card(card: Mapping[str, Any], file: Path) -> None:
    """Raise unless all that is read of a card is there, and of its type."""
    missing = [name for name in _REQUIRED if name not in card]
    if missing:
        raise InputError(f"no {missing[0]!r} in the card", file=file, expected="a trained model", fix=_AGAIN)
    require_entries(card, _ENTRIES, file)
    require_entries(card.get("features", {}), _FEATURES, file, "features")
    require_entries(card["identity"], {"model": str, "model_settings": dict, "text_model": str}, file, "identity")


def _recipe_model(identity: Mapping[str, Any], file: Path) -> tuple[str, dict[str, Any]]:
    for name in ("model", "model_settings"):
        if name not in identity:
            raise InputError(f"no {name!r} in the stored recipe", file=file, fix=_AGAIN)
    return identity["model"], dict(identity["model_settings"])


def _shape(stored: Mapping[str, Any], file: Path) -> InputShape:
    try:
        shape = InputShape(**{**stored, "text": tuple(stored["text"]), "regions": tuple(stored["regions"])})
        sizes = (shape.vector, shape.words, *shape.text, *shape.regions)
        if not all(type(size) is int and 0 <= size < 1 << 31 for size in sizes):
            raise ValueError("sizes must be whole numbers")
        if not all(isinstance(text, str) for text in (shape.encoder, shape.revision)):
            raise ValueError("the pretrained model must be a text")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the shape of the inputs is {stored!r:.200}", file=file, fix=_AGAIN) from error
    return shape


def _revision(card: Mapping[str, Any], weights: bytes) -> str:
    """Only of what decides about the outputs: a model that is trained again with the same result keeps its cache."""
    identity = card["identity"]
    parts = {"model": identity["model"], "settings": repr(sorted(identity["model_settings"].items()))}
    inputs = {"shape": repr(card["shape"]), "vocabulary": tuple(card["vocabulary"])}
    prepared = fingerprint("prepared", {"values": repr(card.get("prepared", {}))})
    hashed = hashlib.sha256(weights).hexdigest()
    return fingerprint("trained model", {**parts, **inputs, "prepared": prepared, "weights": hashed})


def _first_line(error: Exception) -> str:
    return " ".join((str(error).strip() or type(error).__name__).splitlines()[:2])
