"""A trained model on disk: weights, vocabulary, and a card that says how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import (
    FORMAT_VERSION,
    HEADER_FILE,
    RUN_FILE,
    RUN_LAYOUT,
    ConflictError,
    InputError,
    Layout,
    MissingExtraError,
    Run,
    argument,
    read_header,
    read_manifest,
    read_whole,
    regular_bytes,
    remove,
    write_header,
)
from crosslens.train.stored.model_card import card_text

KIND = "trained-model"
WEIGHTS, README, CURVES = "weights.safetensors", "README.md", "curves.html"
TEST_RUN = "test"
"""The folder of the run on the test split."""
MODEL_LAYOUT = Layout("a trained model", HEADER_FILE, (WEIGHTS, README, CURVES, *RUN_LAYOUT.within(TEST_RUN)))


@dataclass(frozen=True)
class StoredModel:
    """What a model folder holds."""

    card: Mapping[str, Any]
    weights: Mapping[str, Any]
    content: bytes
    """Of the file of the weights."""


def write_model(
    folder: Path, card: Mapping[str, Any], weights: Mapping[str, Any], test: Run | None = None, page: str = ""
) -> None:
    """Write the folder, with the run on the test split and the page of the curves; the caller puts it in place."""
    from safetensors.torch import save

    remove(folder)  # what a process killed while it wrote has left
    folder.mkdir()
    # Not save_file, whose files only their owner may read.
    stored = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in weights.items()}
    (folder / WEIGHTS).write_bytes(save(stored))
    # Not among the hashed files: whoever adds a sentence to it does not damage the model.
    (folder / README).write_text(card_text(card), encoding="utf-8")
    files = [WEIGHTS]
    if page:
        (folder / CURVES).write_text(page, encoding="utf-8")
        files.append(CURVES)
    if test is not None:
        (folder / TEST_RUN).mkdir()
        test.write_into(folder / TEST_RUN)
        files.append(f"{TEST_RUN}/{RUN_FILE}")
    write_header(folder / HEADER_FILE, {"format": f"crosslens/{KIND}", "version": FORMAT_VERSION, **card}, files)


def read_model(folder: str | Path) -> StoredModel:
    """Read a model folder; a changed file raises."""
    try:
        from safetensors.torch import load
    except ImportError as error:
        package = "safetensors" if str(error.name).startswith("safetensors") else "torch"
        raise MissingExtraError("a trained model", package, "train") from error
    folder = Path(folder)

    def read() -> tuple[dict[str, Any], bytes]:
        card, manifest = read_manifest(folder / HEADER_FILE, KIND)
        manifest.check_folder()
        return card, regular_bytes(folder / WEIGHTS)

    card, content = read_whole(folder, folder / HEADER_FILE, read=read)
    try:
        return StoredModel(card, load(content), content)
    except Exception as error:  # safetensors has an exception of its own
        raise InputError(
            f"damaged weights: {error}", file=folder / WEIGHTS, expected="a file that crosslens train wrote",
            fix="train the model again, or restore the folder from a copy",
        ) from error  # fmt: skip


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
