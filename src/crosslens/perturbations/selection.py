"""Which perturbations a list such as ``all,antonym`` stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crosslens.core import (
    Cell,
    Diffs,
    Entry,
    FactList,
    Figure,
    Presented,
    Section,
    Table,
    Text,
    TextDiff,
    UnknownNameError,
    UsageError,
)
from crosslens.perturbations.caption import Perturbed, diff_spans
from crosslens.perturbations.images.changes import DEFAULT_SEVERITY, IMAGE_PERTURBATIONS, parse_image_perturbation
from crosslens.perturbations.perturbing import PERTURBATIONS, options_of, ordered_perturbations, perturbations_with
from crosslens.values import Dataset

BRIT_PERTURBATIONS = perturbations_with("brit")
"""The thirteen perturbations of BRIT, in the order of the paper's table."""


def _at_level(level: str) -> tuple[str, ...]:
    """Those of a level, without variants in brackets: a group has each change once."""
    entries = (entry for entry in ordered_perturbations() if entry.details["order"] and "[" not in entry.name)
    return tuple(entry.name for entry in entries if entry.details["level"] == level)


ADVERSARIAL = _at_level("adversarial")

GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": BRIT_PERTURBATIONS,
    "adversarial": ADVERSARIAL,
    "beyond": _at_level("beyond"),
    "everything": (*BRIT_PERTURBATIONS, *ADVERSARIAL, *_at_level("beyond")),
}
"""Names that stand for several: ``all`` is the paper's thirteen."""

IMAGES = "images"
"""The group of all perturbations of images."""

GROUP_NAMES = (*GROUPS, IMAGES)


def chosen_perturbations(names: str | Iterable[str]) -> tuple[str, ...]:
    """The perturbations that a list of names and groups stands for, each once, in the order of the list.

    Perturbations of images are spelled ``blur@3``; without a severity, as in ``blur``, they get the default one. The
    group ``images`` is all of them, ``images@5`` all of them at severity 5.
    """
    listed = names.split(",") if isinstance(names, str) else names
    selected: dict[str, None] = {}
    for name in (item.strip() for item in listed):
        stem, at, severity = name.partition("@")
        if name.lower() in GROUPS:
            selected |= dict.fromkeys(GROUPS[name.lower()])
        elif name in PERTURBATIONS:
            selected[PERTURBATIONS[name].name] = None
        elif stem.lower() == IMAGES:
            names = (f"{entry.name}{at}{severity}" for entry in IMAGE_PERTURBATIONS)
            selected |= dict.fromkeys(str(parse_image_perturbation(image)) for image in names)
        elif stem in IMAGE_PERTURBATIONS:
            selected[str(parse_image_perturbation(name))] = None
        else:
            registered = [entry.name for registry in (PERTURBATIONS, IMAGE_PERTURBATIONS) for entry in registry]
            raise UnknownNameError("perturbation", name, [*registered, *GROUP_NAMES])
    if not selected:
        raise UsageError("no perturbation is named", fix=f"name some, or a group: {', '.join(GROUP_NAMES)}")
    return tuple(selected)


def is_image_perturbation(name: str) -> bool:
    """Whether a name stands for a change of images, not of captions."""
    return name.partition("@")[0] in IMAGE_PERTURBATIONS


def phrase_of(name: str) -> str:
    """A perturbation as titles and sentences call it: ``swapped letters``; lists of others may have any name."""
    stem, _, severity = name.partition("@")
    if stem in IMAGE_PERTURBATIONS:
        return f"{IMAGE_PERTURBATIONS[stem].details['phrase'] or stem} (severity {severity or DEFAULT_SEVERITY})"
    phrase = PERTURBATIONS[name].details["phrase"] if name in PERTURBATIONS else ""
    return phrase or name.replace("_", " ")


_LEVELS = {
    "word": "Words",
    "sentence": "Sentences",
    "adversarial": "Adversarial: one decisive word",
    "beyond": "Beyond",
}


@dataclass(frozen=True, eq=False)
class PerturbedCaptions(Presented):
    """How many captions each perturbation changed (``counts``), and some of them by their ids (``captions``).

    A terminal and JSON have the first ``shown`` of each.
    """

    dataset: str
    counts: Mapping[str, Mapping[str, Any]]
    captions: Mapping[str, Mapping[str, Perturbed]] = field(default_factory=dict)
    shown: int = 3

    @property
    def title(self) -> str:
        return f"{self.dataset}: perturbed captions"

    def sections(self) -> Iterator[Section]:
        """A table of counts, which a terminal shows where it shows no captions; then the captions by perturbation."""
        rows: list[tuple[Cell, ...]] = []
        for name, counts in self.counts.items():
            if counts.get("kind") == "image":
                rows.append((name, f"{counts['images']:,} pictures", "", ""))
            else:
                share = Figure.percent(counts["applied_share"], unit="%")
                rows.append((name, counts["applied"], share, next(iter(counts["reasons"]), "")))
        folded = bool(self.captions and self.shown)
        header = ("perturbation", "changed", "share", "if not, mostly")
        table = Table(header, tuple(rows), "lrrl", title="How many were changed" if folded else "", folded=folded)
        yield Section("", (table,) if rows else ())
        for name, captions in self.captions.items():
            diffs = []
            for caption, perturbed in captions.items():
                reason = () if perturbed.applied else (f"unchanged: {perturbed.reason}",)
                diffs.append(TextDiff(caption, diff_spans(perturbed.original, perturbed.edits), facts=reason))
            title = f"{name}: {plain_summary(PERTURBATIONS[name])}"
            yield Section("", (Diffs(tuple(diffs), title, changed_share(self.counts[name]), self.shown),))

    def as_dict(self) -> dict[str, Any]:
        examples = {
            name: [
                {"caption": id, **perturbed._asdict(), "edits": [edit._asdict() for edit in perturbed.edits]}
                for id, perturbed in list(captions.items())[: self.shown]
            ]
            for name, captions in self.captions.items()
        }
        return {"perturbations": self.counts, **({"shown": examples} if examples and self.shown else {})}


def changed_first(dataset: Dataset, results: Sequence[Perturbed], most: int) -> dict[str, Perturbed]:
    """So many captions by their ids: changed ones; where these are too few, others with their reasons."""
    rows = sorted(range(len(results)), key=lambda row: not results[row].applied)[:most]
    return {dataset.caption_ids[row]: results[row] for row in rows}


def changed_share(counts: Mapping[str, Any]) -> str:
    """``24,812 of 25,000 captions changed (99.2%)``, and why not the others."""
    text = f"{counts['applied']:,} of {counts['captions']:,} captions changed ({counts['applied_share']:.1%})"
    reasons = "; ".join(f"{reason} ({number:,})" for reason, number in counts["reasons"].items())
    return f"{text}; the others: {reasons}" if reasons else text


class ListedPerturbations(Presented):
    """All perturbations, with what they do, under their kinds."""

    title = "Perturbations"

    def sections(self) -> Iterator[Section]:
        entries = ordered_perturbations()
        parts: list[FactList] = []
        for level in dict.fromkeys(entry.details["level"] for entry in entries):
            rows = ((entry.name, plain_summary(entry)) for entry in entries if entry.details["level"] == level)
            parts.append(FactList(tuple(rows), _LEVELS.get(level, level)))
        pictures = tuple((entry.name, plain_summary(entry)) for entry in IMAGE_PERTURBATIONS)
        parts.append(FactList(pictures, "Images (severity 1 to 5: blur@1 … blur@5; blur alone is blur@3)"))
        groups = Text.of("Groups: all (words and sentences), adversarial, beyond, everything, images")
        yield Section("", (*parts, groups))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: every perturbation with its options and their defaults."""
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
