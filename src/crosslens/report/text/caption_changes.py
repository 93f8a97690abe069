"""Captions before and after a perturbation, the changed characters marked; and the list of perturbations."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from crosslens.core import PAGE_WIDTH, Entry, Grid, printable_line, two_columns
from crosslens.perturbations import GROUPS, IMAGE_PERTURBATIONS, IMAGES, Perturbed, options_of, ordered_perturbations

_RED, _GREEN, _DIM, _BOLD, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"


class DiffSpan(NamedTuple):
    """A stretch of a caption; where ``before`` and ``after`` are the same it was left alone."""

    before: str
    after: str


@dataclass(frozen=True)
class CaptionChanges:
    """Some captions, by id, under one perturbation; ``counts`` are those of all captions."""

    name: str
    summary: str
    captions: Mapping[str, Perturbed]
    counts: Mapping[str, Any]

    def first(self, most: int) -> CaptionChanges:
        """The first captions alone."""
        return replace(self, captions=dict(islice(self.captions.items(), most)))

    def changed_first(self, most: int) -> CaptionChanges:
        """Changed captions first; where there are too few, unchanged ones with their reasons."""
        order = set(sorted(self.captions, key=lambda id: not self.captions[id].applied)[:most])
        return replace(self, captions={id: perturbed for id, perturbed in self.captions.items() if id in order})

    def as_dict(self) -> list[dict[str, Any]]:
        """The captions for programs."""
        return [
            {"caption": id, **perturbed._asdict(), "edits": [edit._asdict() for edit in perturbed.edits]}
            for id, perturbed in self.captions.items()
        ]


def diff_spans(perturbed: Perturbed) -> Iterator[DiffSpan]:
    """The caption from left to right: what stayed, what was changed, what stayed, …"""
    position = 0
    for edit in perturbed.edits:
        if edit.start > position:
            kept = perturbed.original[position : edit.start]
            yield DiffSpan(kept, kept)
        yield DiffSpan(edit.before, edit.after)
        position = edit.end
    if position < len(perturbed.original):
        rest = perturbed.original[position:]
        yield DiffSpan(rest, rest)


def changed_share(counts: Mapping[str, Any]) -> str:
    """``24,812 of 25,000 captions changed (99.2%)``, and why not the others."""
    text = f"{counts['applied']:,} of {counts['captions']:,} captions changed ({counts['applied_share']:.1%})"
    reasons = "; ".join(f"{reason} ({number:,})" for reason, number in counts["reasons"].items())
    return f"{text}; the others: {reasons}" if reasons else text


def counts_grid(facts: Mapping[str, Mapping[str, Any]]) -> Grid:
    """How many captions (or pictures) each perturbation changed, and the main reason why not all."""
    rows = []
    for name, counts in facts.items():
        if counts.get("kind") == "image":
            rows.append((name, f"{counts['images']:,} pictures", "", ""))
            continue
        reason = next(iter(counts["reasons"]), "")
        rows.append((name, f"{counts['applied']:,}", f"{counts['applied_share']:.1%}", reason))
    return Grid(("perturbation", "changed", "share", "if not, mostly"), tuple(rows), "lrrl")


def changes_text(changes: CaptionChanges, width: int | None = None, *, colour: bool = False) -> str:
    """Two lines per caption, as it was and as it is; changed characters in colour, or else in brackets.

    Captions are not wrapped, so that they can be copied, and the two lines compared. Every part is made printable
    before it is coloured: a caption must not move the cursor.
    """
    wrapped = partial(textwrap.wrap, width=width or PAGE_WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    name = printable_line(changes.name)
    head = "\n".join(wrapped(f"{name}: {printable_line(changes.summary)}"))
    if colour:
        head = head.replace(name, f"{_BOLD}{name}{_PLAIN}", 1)
    lines = [head, *wrapped(printable_line(changed_share(changes.counts)), initial_indent="  ")]
    for perturbed in changes.captions.values():
        lines.append("")
        if not perturbed.applied:
            lines += [
                f"    {printable_line(perturbed.original)}",
                _toned(f"    unchanged: {printable_line(perturbed.reason)}", _DIM, colour),
            ]
            continue
        lines += diff_lines(perturbed, colour=colour)
    return "\n".join(lines)


def diff_lines(perturbed: Perturbed, *, colour: bool = False) -> tuple[str, str]:
    """The caption as it was and as it is; changed characters in colour, or else in brackets."""
    parts = list(diff_spans(perturbed))
    before = "".join(_marked(part.before, part, _RED, colour) for part in parts)
    return f"  - {before}", "  + " + "".join(_marked(part.after, part, _GREEN, colour) for part in parts)


def _marked(text: str, part: DiffSpan, tone: str, colour: bool) -> str:
    shown = printable_line(text)
    if part.before == part.after or not text:
        return shown
    return _toned(shown, tone, colour) if colour else f"[{shown}]"


def _toned(text: str, tone: str, colour: bool) -> str:
    return f"{tone}{text}{_PLAIN}" if colour else text


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
