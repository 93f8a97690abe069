"""The page of text perturbations: what each does, its level and its options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from crosslens.core import Entry
from crosslens.perturbations import GROUPS, ordered_perturbations
from crosslens.perturbations.perturbing import options_of
from reference_pages.markdown import cell, cleaned, shared_rows
from reference_pages.registries import split_parameters

INTRO = """# Perturbations of captions

`--name NAMES` of `crosslens perturb`, `--perturbations NAMES` of `crosslens robustness`, in Python
`crosslens.perturb(NAME, captions)`. Options go through `--option key=value` or are keyword arguments.
`crosslens perturb --list` prints this list.
[How to use them](../how-to/perturb.md#captions). [Add your own](../how-to/extend.md)."""
LEVELS = {"word": "words", "sentence": "sentences", "adversarial": "one telling word", "beyond": "beyond the paper"}


def perturbations() -> str:
    """The groups, then one section per perturbation, in the order of the groups."""
    smaller = dict[str, tuple[str, ...]]()
    for name, names in GROUPS.items():  # a group that holds others names these
        held = [other for other, inside in smaller.items() if set(inside) <= set(names)]
        smaller[name] = (*held, *(each for each in names if all(each not in smaller[other] for other in held)))
    groups = "\n".join(f"| `{name}` | {', '.join(f'`{each}`' for each in names)} |" for name, names in smaller.items())
    entries = list(ordered_perturbations())
    shared = shared_rows(map(_rows, entries))
    sections = (_perturbation(entry, shared) for entry in entries)
    common = f"Options of several perturbations:\n\n{_table(shared.values())}"
    return "\n\n".join([INTRO, f"| group | |\n|---|---|\n{groups}", common, *sections]) + "\n"


def _perturbation(entry: Entry[Any], shared: Mapping[str, str]) -> str:
    rows = _rows(entry)
    facts = f"Level: {LEVELS[entry.details['level']]}." + (" Needs tags." if entry.details["tags"] else "")
    names = [f"`{name}`" for name, row in rows.items() if shared.get(name) == row]
    table = _table(row for name, row in rows.items() if shared.get(name) != row)
    facts += f" Option, as above: {', '.join(names)}." if names else ""
    text = cleaned(split_parameters(entry.value)[0])
    return "\n\n".join(part for part in (f"## {entry.name}", text, facts, table) if part)


def _rows(entry: Entry[Any]) -> dict[str, str]:
    described = split_parameters(entry.value)[1]
    return {
        name: f"| `{name}` | `{option.default!r}` | {cell(described.get(name, ''))} |"
        for name, option in options_of(entry).items()
        if option.default is not option.empty
    }


def _table(rows: Iterable[str]) -> str:
    listed = list(rows)
    return "\n".join(["| option | default | |", "|---|---|---|", *listed]) if listed else ""
