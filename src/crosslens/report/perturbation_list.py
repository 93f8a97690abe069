"""The perturbations there are, by kind, and the groups that stand for several."""

from __future__ import annotations

from typing import Any

from crosslens.core.grid import PAGE_WIDTH, two_columns
from crosslens.core.registry import Entry
from crosslens.perturb.choice import GROUPS, IMAGES
from crosslens.perturb.images import IMAGE_PERTURBATIONS
from crosslens.perturb.perturbation import PERTURBATIONS, Perturbation
from crosslens.perturb.perturbing import options_of

_LEVELS = {
    "word": "Words",
    "sentence": "Sentences",
    "adversarial": "Adversarial: one telling word",
    "beyond": "Beyond",
}


def perturbations_text(width: int | None = None) -> str:
    """Names with what they do, under their kinds."""
    found = in_order()
    parts = []
    for level in dict.fromkeys(one.details["level"] for one in found):
        rows = [(one.name, plain_summary(one)) for one in found if one.details["level"] == level]
        parts.append(f"{_LEVELS.get(level, level)}\n{two_columns(rows, width or PAGE_WIDTH, 2)}")
    pictures = [(one.name, plain_summary(one)) for one in IMAGE_PERTURBATIONS]
    head = "Pictures (severity 1 to 5: blur@1 … blur@5; blur alone is blur@3)"
    parts.append(f"{head}\n{two_columns(pictures, width or PAGE_WIDTH, 2)}")
    return "\n\n".join([*parts, "Groups: all (words and sentences), adversarial, beyond, everything, images"])


def perturbations_as_dict() -> dict[str, Any]:
    """The same for programs, with the options and their defaults."""
    rows: list[dict[str, Any]] = [
        {
            "name": one.name,
            "kind": one.details["level"],
            "summary": one.summary,
            "options": {key: option.default for key, option in options_of(one).items()},
        }
        for one in in_order()
    ]
    rows += [{"name": one.name, "kind": "image", "summary": one.summary} for one in IMAGE_PERTURBATIONS]
    return {"perturbations": rows, "groups": {**GROUPS, IMAGES: [one.name for one in IMAGE_PERTURBATIONS]}}


def in_order() -> list[Entry[Perturbation]]:
    """The perturbations of captions: ours as the groups have them, then those of plugins by name."""
    order = {name: place for place, name in enumerate(GROUPS["everything"])}
    return sorted(PERTURBATIONS, key=lambda one: (order.get(one.name, len(order)), one.name))


def plain_summary(entry: Entry[Any]) -> str:
    """What a perturbation does, without the marks of the documentation."""
    return entry.summary.replace("*", "").replace("`", "")
