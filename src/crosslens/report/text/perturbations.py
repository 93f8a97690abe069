"""The list of perturbations, by kind, and their groups."""

from __future__ import annotations

from typing import Any

from crosslens.core import PAGE_WIDTH, Entry, two_columns
from crosslens.perturbations import GROUPS, IMAGE_PERTURBATIONS, IMAGES, options_of, ordered_perturbations

_LEVELS = {
    "word": "Words",
    "sentence": "Sentences",
    "adversarial": "Adversarial: one decisive word",
    "beyond": "Beyond",
}


def perturbations_text(width: int | None = None) -> str:
    """Names with what they do, under their kinds."""
    entries = ordered_perturbations()
    parts = []
    for level in dict.fromkeys(entry.details["level"] for entry in entries):
        rows = [(entry.name, plain_summary(entry)) for entry in entries if entry.details["level"] == level]
        parts.append(f"{_LEVELS.get(level, level)}\n{two_columns(rows, width or PAGE_WIDTH, 2)}")
    pictures = [(entry.name, plain_summary(entry)) for entry in IMAGE_PERTURBATIONS]
    head = "Images (severity 1 to 5: blur@1 … blur@5; blur alone is blur@3)"
    parts.append(f"{head}\n{two_columns(pictures, width or PAGE_WIDTH, 2)}")
    return "\n\n".join([*parts, "Groups: all (words and sentences), adversarial, beyond, everything, images"])


def perturbations_as_dict() -> dict[str, Any]:
    """The same for programs, with the options and their defaults."""
    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "kind": entry.details["level"],
            "summary": entry.summary,
            "options": {key: option.default for key, option in options_of(entry).items()},
        }
        for entry in ordered_perturbations()
    ]
    rows += [{"name": entry.name, "kind": "image", "summary": entry.summary} for entry in IMAGE_PERTURBATIONS]
    return {"perturbations": rows, "groups": {**GROUPS, IMAGES: [entry.name for entry in IMAGE_PERTURBATIONS]}}


def plain_summary(entry: Entry[Any]) -> str:
    """What a perturbation does, without the marks of the documentation."""
    return entry.summary.replace("*", "").replace("`", "")
