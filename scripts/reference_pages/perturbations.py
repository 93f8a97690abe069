"""The page of text perturbations: what each does, its level and its options."""

from __future__ import annotations

from typing import Any

from crosslens.core import Entry
from crosslens.perturbations import GROUPS, ordered_perturbations
from crosslens.perturbations.perturbing import options_of
from reference_pages.markdown import cell, cleaned
from reference_pages.registries import split_parameters

INTRO = """# Perturbations of captions

`--name NAMES` of `crosslens perturb`, `--perturbations NAMES` of `crosslens robustness`, in Python
`crosslens.perturb(NAME, captions)`. Options go through `--option key=value` or are keyword arguments.
`crosslens perturb --list` prints this list.
[How to use them](../how-to/perturb.md#captions). An installed package adds its own through the entry-point group
`crosslens.perturbations`."""
LEVELS = {"word": "words", "sentence": "sentences", "adversarial": "one telling word", "beyond": "beyond the paper"}


def perturbations() -> str:
    """The groups, then one section per perturbation, in the order of the groups."""
    groups = "\n".join(f"| `{name}` | {', '.join(f'`{each}`' for each in names)} |" for name, names in GROUPS.items())
    sections = map(_perturbation, ordered_perturbations())
    return "\n\n".join([INTRO, f"| group | |\n|---|---|\n{groups}", *sections]) + "\n"


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
