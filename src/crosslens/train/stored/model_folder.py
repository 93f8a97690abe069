"""A trained model on disk: weights, vocabulary, and a card that says how it was made; written, and rebuilt from there.

Nothing in the folder is executed, and nothing of it is trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from crosslens.core import CrosslensError, InputError, markdown_text
from crosslens.metrics import format_figure
from crosslens.storage import (
    FORMAT_VERSION,
    HEADER_FILE,
    Layout,
    ResumableFolder,
    fingerprint,
    read_header,
    read_manifest,
    read_whole,
    regular_bytes,
    remove,
    require_entries,
    write_header,
)
from crosslens.train.captions import CaptionVocabulary
from crosslens.train.losses import LOSSES
from crosslens.train.models.protocol import InputShape, build_model
from crosslens.train.processes import require_torch
from crosslens.train.stored.checkpoint import load_trained_state
from crosslens.values import RUN_FILE, RUN_LAYOUT, Run

_MOST_ROWS = 20
"""Validations that the table shows; of more, the best and evenly spread ones."""
_SETTINGS = (
    "seed",
    "epochs",
    "max_steps",
    "batch_size",
    "optimizer",
    "learning_rate",
    "schedule",
    "precision",
    "patience",
)


def card_text(card: Mapping[str, Any]) -> str:
    """The card as Markdown, from the header of the model's folder."""
    metric = str(card["identity"]["settings"]["metric"])
    rows = card["history"]
    best = [row["step"] == card["best_step"] for row in rows]
    step = -(-len(rows) // _MOST_ROWS)
    numbers = [n for n in range(len(rows)) if n % step == 0 or best[n] or n == len(rows) - 1]
    history = [
        (
            f"{rows[n]['epoch']:g}", f"{rows[n]['step']:,}", f"{rows[n]['loss']:.4f}",
            format_figure(metric, rows[n]["value"]) + (" (best)" if best[n] else ""),
        )
        for n in numbers
    ]  # fmt: skip
    sections = [
        f"# {markdown_text(str(card['recipe']))}",
        f"A retrieval model ({markdown_text(card['identity']['model'])}, {card['parameters']:,} parameters), trained "
        "by `crosslens train`.",
        _table(("", ""), _facts(card)),
        "## Test split",
        _table(("metric", "value"), [(name, format_figure(name, value)) for name, value in card["test"].items()]),
        "The checkpoint that is best on validation, measured once.",
        "## Validation",
        _table(("epoch", "step", "loss", metric), history),
        "## Use",
        "```bash\ncrosslens evaluate --model path:FOLDER --dataset … -o runs/x\n```",
        '```python\nfrom crosslens.encode import load_encoder\n\nencoder = load_encoder("path:FOLDER")\n```',
        "`FOLDER` is the folder of this file. " + _images(card),
    ]
    return "\n\n".join(sections) + "\n"


def _facts(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    identity, training = card["identity"], card["training"]
    settings = identity["settings"]
    share = f"{100 * settings['fraction']:g} % of the training images"
    unlimited = [name for name in ("max_steps", "patience") if not settings.get(name)]
    losses = [", ".join([entry["kind"], *_written(entry, "kind")]) for entry in identity["losses"]]
    rows = [
        ("data", f"{training['dataset']}: {training['images']:,} images, {training['captions']:,} captions ({share})"),
        ("model", ", ".join([identity["model"], *_written(identity["model_settings"])])),
        ("loss", " + ".join(losses)),
        ("training", ", ".join(_written({name: settings[name] for name in _SETTINGS if name in settings}, *unlimited))),
        ("steps", f"{card['steps']:,}, best at {card['best_step']:,}"),
    ]
    if any(LOSSES[entry["kind"]].details.get("phi") for entry in identity["losses"]):
        rows.append(("similarity of captions (φ)", str(identity["phi"])))
    if identity.get("text_model"):
        rows.append(("text encoder", str(identity["text_model"])))
    rows += [("note", note) for note in card.get("notes", ())]
    if features := card.get("features"):
        options = {key: value for key, value in features["options"].items() if isinstance(value, str | int | float)}
        maker = [f"made by {features['encoder']}"] if features.get("encoder") else []
        rows.append(("features", ", ".join([str(features["layout"]), *_written(options), *maker])))
    return rows


def _written(settings: Mapping[str, Any], *without: str) -> list[str]:
    return [f"{name} {value}" for name, value in settings.items() if name not in without]


def _images(card: Mapping[str, Any]) -> str:
    features, shape = card.get("features") or {}, card["shape"]
    if not (shape["vector"] or shape["regions"]):
        return "Images are read as pictures."
    if features.get("layout") == "embeddings":
        return "Images are read as pictures, through the encoder that made the features."
    hint = " The folder it was trained from is found by itself while both stay where they are." if features else ""
    return "Images are looked up by their ids in a folder of features: `path:FOLDER?features=FEATURES`." + hint


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head, *body = ([markdown_text(cell) for cell in line] for line in (header, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(header), *body))


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
    require_torch("a trained model")
    from safetensors.torch import load

    folder = Path(folder)

    def read() -> tuple[dict[str, Any], bytes]:
        card, manifest = read_manifest(folder / HEADER_FILE, KIND)
        manifest.check_folder()
        return card, regular_bytes(folder / WEIGHTS)

    card, content = read_whole(folder, folder / HEADER_FILE, read=read)
    try:
        return StoredModel(card, load(content), content)
    except Exception as error:  # safetensors has an exception of its own
        expected = "a file that crosslens train wrote"
        raise InputError(f"damaged weights: {error}", file=folder / WEIGHTS, expected=expected, fix=_AGAIN) from error


def finished_card(folder: Path, key: str, overwrite: bool) -> Mapping[str, Any] | None:
    """The card of a model of this key; raises where the folder holds something else that must not be replaced."""

    def read(path: Path) -> dict[str, Any]:
        return read_header(path / HEADER_FILE, KIND)

    return ResumableFolder(MODEL_LAYOUT, folder, key, overwrite).finished(lambda path: read(path).get("key"), read)


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
    for name in _REQUIRED:
        if name not in card:
            raise InputError(f"no {name!r} in the card", file=file, expected="a trained model", fix=_AGAIN)
    require_entries(card, _ENTRIES, file)
    require_entries(card.get("features", {}), _FEATURES, file, "features")
    identity = card["identity"]
    require_entries(identity, {"model": str, "model_settings": dict, "text_model": str}, file, "identity")
    for name in ("model", "model_settings"):
        if name not in identity:
            raise InputError(f"no {name!r} in the stored recipe", file=file, fix=_AGAIN)
    kind, settings = identity["model"], dict(identity["model_settings"])
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
        reason = " ".join((str(error).strip() or type(error).__name__).splitlines()[:2])
        problem = f"the weights do not fit the model {kind!r} that {HEADER_FILE} describes: {reason}"
        raise InputError(problem, file=folder / WEIGHTS, fix=_AGAIN) from error
    model.eval()
    # Only of what decides about the outputs: a model that is trained again with the same result keeps its cache.
    revision = fingerprint("trained model", {
        "model": kind, "settings": repr(sorted(settings.items())), "shape": repr(card["shape"]),
        "vocabulary": tuple(words), "prepared": fingerprint("prepared", {"values": repr(card.get("prepared", {}))}),
        "weights": hashlib.sha256(stored.content).hexdigest(),
    })  # fmt: skip
    return LoadedModel(model, card, shape, CaptionVocabulary(tuple(words)), revision)


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
