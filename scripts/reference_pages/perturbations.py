"""The page of text perturbations: what each does, its level and its options."""

from __future__ import annotations

from typing import Any

from crosslens.core.registry import Entry
from crosslens.perturb import GROUPS, PERTURBATIONS
from crosslens.perturb.perturbing import options_of
from reference_pages.markdown import cell, cleaned
from reference_pages.registries import split_parameters

INTRO = """# Perturbations of captions

`--name NAMES` of `crosslens perturb`, `--perturbations NAMES` of `crosslens robustness`, in Python
`crosslens.perturb(NAME, captions)`. Options go through `--option key=value` or are keyword arguments.
`crosslens perturb --list` prints this list.
[How to use them](../how-to/perturb-captions.md). An installed package adds its own through the entry-point group
`crosslens.perturbations`."""
LEVELS = {"word": "words", "sentence": "sentences", "adversarial": "one telling word", "beyond": "beyond the paper"}


def perturbations() -> str:
    """The groups, then one section per perturbation, in the order of the groups."""
    order = {name: place for place, name in enumerate(GROUPS["everything"])}
    entries = sorted(PERTURBATIONS, key=lambda one: (order.get(one.name, len(order)), one.name))
    groups = "\n".join(f"| `{name}` | {', '.join(f'`{one}`' for one in names)} |" for name, names in GROUPS.items())
    return "\n\n".join([INTRO, f"| group | |\n|---|---|\n{groups}", *map(_perturbation, entries)]) + "\n"


def _perturbation(entry: Entry[Any]) -> str:
    text, described = split_parameters(entry.value)
    facts = f"Level: {LEVELS[entry.details['level']]}." + (" Needs tags." if entry.details["tags"] else "")
    rows = [
        f"| `{name}` | `{option.default!r}` | {cell(described.get(name, ''))} |"
        for name, option in options_of(entry).items()
        if option.default is not option.empty
    ]
    table = "\n".join(["| option | default | |", "|---|---|---|", *rows]) if rows else ""
    return "\n\n".join(part for part in (f"## {entry.name}", cleaned(text), facts, table) if part)
