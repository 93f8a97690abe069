"""The card of a trained model for people: what it was trained on, how, and what it reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crosslens.metrics import format_figure
from crosslens.train.losses.protocol import LOSSES

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
    sections = [
        f"# {card['recipe']}",
        f"A retrieval model ({card['identity']['model']}, {card['parameters']:,} parameters), trained by "
        "`crosslens train`.",
        _table(("", ""), _facts(card)),
        "## Test split",
        _table(("metric", "value"), [(name, format_figure(name, value)) for name, value in card["test"].items()]),
        "The checkpoint that is best on validation, measured once.",
        "## Validation",
        _table(("epoch", "step", "loss", metric), _history(card, metric)),
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
    losses = [", ".join([entry["kind"], *_written(entry, "kind")]) for entry in identity["losses"]]
    rows = [
        ("data", f"{training['dataset']}: {training['images']:,} images, {training['captions']:,} captions ({share})"),
        ("model", ", ".join([identity["model"], *_written(identity["model_settings"])])),
        ("loss", " + ".join(losses)),
        (
            "training",
            ", ".join(
                _written({name: settings[name] for name in _SETTINGS if name in settings}, *_unlimited(settings))
            ),
        ),
        ("steps", f"{card['steps']:,}, best at {card['best_step']:,}"),
    ]
    if any(LOSSES[entry["kind"]].details.get("phi") for entry in identity["losses"]):
        rows.append(("similarity of captions (φ)", str(identity["phi"])))
    if identity.get("text_model"):
        rows.append(("text encoder", str(identity["text_model"])))
    rows += [("note", note) for note in card.get("notes", ())]
    features = card.get("features") or {}
    return [*rows, *([("features", ", ".join(_feature_facts(features)))] if features else [])]


def _feature_facts(features: Mapping[str, Any]) -> list[str]:
    options = {key: value for key, value in features["options"].items() if isinstance(value, str | int | float)}
    made = [f"made by {features['encoder']}"] if features.get("encoder") else []
    return [str(features["layout"]), *_written(options), *made]


def _written(settings: Mapping[str, Any], *without: str) -> list[str]:
    return [f"{name} {value}" for name, value in settings.items() if name not in without]


def _unlimited(settings: Mapping[str, Any]) -> list[str]:
    """Limits that a training does without."""
    return [name for name in ("max_steps", "patience") if not settings.get(name)]


def _history(card: Mapping[str, Any], metric: str) -> list[tuple[str, ...]]:
    rows = card["history"]
    best = [row["step"] == card["best_step"] for row in rows]
    step = -(-len(rows) // _MOST_ROWS)
    shown = [n for n in range(len(rows)) if n % step == 0 or best[n] or n == len(rows) - 1]
    return [
        (
            f"{rows[n]['epoch']:g}", f"{rows[n]['step']:,}", f"{rows[n]['loss']:.4f}",
            format_figure(metric, rows[n]["value"]) + (" (best)" if best[n] else ""),
        )
        for n in shown
    ]  # fmt: skip


def _images(card: Mapping[str, Any]) -> str:
    features, shape = card.get("features") or {}, card["shape"]
    if not (shape["vector"] or shape["regions"]):
        return "Images are read as pictures."
    if features.get("layout") == "embeddings":
        return "Images are read as pictures, through the encoder that made the features."
    known = " The folder it was trained from is found by itself while both stay where they are." if features else ""
    return "Images are looked up by their ids in a folder of features: `path:FOLDER?features=FEATURES`." + known


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
