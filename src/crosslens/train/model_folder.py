"""A trained model on disk: weights, vocabulary, and a card that says how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import (
    FORMAT_VERSION,
    HEADER_FILE,
    ConflictError,
    Layout,
    argument,
    read_header,
    read_manifest,
    write_header,
)

KIND = "trained-model"
WEIGHTS = "weights.safetensors"
MODEL_LAYOUT = Layout("a trained model", HEADER_FILE, (WEIGHTS,))


@dataclass(frozen=True)
class StoredModel:
    """What a model folder holds."""

    card: Mapping[str, Any]
    weights: Mapping[str, Any]


def write_model(folder: Path, card: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
    """Write the folder; the caller puts it in place."""
    from safetensors.torch import save

    folder.mkdir(exist_ok=True)
    # Not save_file, whose files only their owner may read.
    stored = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in weights.items()}
    (folder / WEIGHTS).write_bytes(save(stored))
    write_header(folder / HEADER_FILE, {"format": f"crosslens/{KIND}", "version": FORMAT_VERSION, **card}, (WEIGHTS,))


def read_model(folder: str | Path) -> StoredModel:
    """Read a model folder; a changed file raises."""
    from safetensors.torch import load_file

    folder = Path(folder)
    card, manifest = read_manifest(folder / HEADER_FILE, KIND)
    manifest.check_folder()
    return StoredModel(card, load_file(folder / WEIGHTS))


def finished_card(folder: Path, key: str, overwrite: bool) -> Mapping[str, Any] | None:
    """The card of a model of this key; raises where the folder holds something else that must not be replaced."""
    if not MODEL_LAYOUT.holds(folder):
        return None
    card = read_header(folder / HEADER_FILE, KIND)
    if card.get("key") == key:
        return card
    if not overwrite:
        raise ConflictError(
            f"{folder}: already contains a different model",
            fix=f"choose another output folder, or pass {argument('overwrite', True)}",
        )
    MODEL_LAYOUT.refuse_foreign_files(folder)
    return None
