"""From signals to one list to review: how many speak against a label, and how loudly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import polars as pl

from crosslens.analyze.label_quality_copies import Twins
from crosslens.analyze.label_quality_runs import Rival, Standing
from crosslens.analyze.label_quality_words import Agreement
from crosslens.core.dataset import Dataset

WORDS, EMPTY, ANOTHER, FAR = "words", "says nothing", "another image", "far"
COPY, TWIN = "same caption", "same picture"
REASONS: Mapping[str, str] = {
    WORDS: "few of the things that it names are named by anything else about the image",
    EMPTY: "it has hardly a word, or names no thing where the others agree on one",
    ANOTHER: "the same other image stands before its own in every run",
    FAR: "in every run its own image is far down",
    COPY: "another image has this caption too",
    TWIN: "another id has this picture too",
}
"""Why a label is suspect, in the order in which reasons are told."""
VOICES = ((WORDS, EMPTY), (ANOTHER, FAR, COPY))
"""What comes from one voice counts once: that models prefer the other image of a copied caption is no second signal."""

KEEP, REMOVE, ALSO_FITS, MOVE = "keep", "remove", "also-fits", "move"
VERDICTS = (KEEP, REMOVE, ALSO_FITS, MOVE)

REVIEW_COLUMNS: Mapping[str, Any] = {
    "place": pl.Int64,
    "image": pl.String,
    "caption": pl.String,
    "text": pl.String,
    "reason": pl.String,
    "evidence": pl.String,
    "proposal": pl.String,
    "suggested_image": pl.String,
    "suggested_text": pl.String,
    "verdict": pl.String,
    "signals": pl.Int64,
    "severity": pl.Float64,
    "concept_share": pl.Float64,
    "rank": pl.Int64,
    "best_rank": pl.Int64,
    "lead": pl.Float64,
}
"""The columns of the list; ``verdict`` is empty, for the person who reviews it. ``rank`` is the worst of the runs."""

_FITS = 0.5
"""A caption that few of its image's captions bear out belongs to another image that bears out at least this share."""
_OTHER_ORDER, _LONG = 0.9, 12


@dataclass(frozen=True)
class CaptionEvidence:
    """Everything that is known about one caption (row).

    ``agreement``  with what else is said about its image; ``filtered`` whether the keyword filter takes it out,
                   ``pointless`` whether it names nothing although the others agree on something
    ``standing``   one per run; ``rival`` the image before its own in all of them, ``fit`` the agreement with that one
    ``copies``     captions of other images in the same words, and whether in the same order
    """

    caption: int
    words: int
    agreement: Agreement | None = None
    filtered: bool = False
    pointless: bool = False
    standing: Sequence[Standing] = ()
    rival: Rival | None = None
    fit: Agreement | None = None
    copies: tuple[int, ...] = ()
    in_order: bool = True

    def reasons(self, far: float, shortest: int) -> tuple[str, ...]:
        """What speaks against it."""
        found = {
            WORDS: self.filtered,
            EMPTY: self.pointless or self.words < shortest,
            ANOTHER: self.rival is not None,
            FAR: bool(self.standing) and all(one.rank > max(1, far * one.gallery) for one in self.standing),
            COPY: bool(self.copies),
        }
        return tuple(reason for reason in REASONS if found.get(reason))

    def severity(self, shortest: int) -> float:
        """The doubt of words and the graver of models' and copies', each from 0 to 1, added up."""
        return self._word_doubt(shortest) + max(self._model_doubt(), self._copy_doubt())

    def _word_doubt(self, shortest: int) -> float:
        """The mean of what nothing else bears out and of what it leaves out although the others agree on it."""
        if self.words < shortest or self.pointless:
            return 1.0
        if self.agreement is None:
            return 0.0
        known = [one for one in (self.agreement.share, self.agreement.told) if one is not None]
        return 1 - fmean(known) if known else 0.0

    def _model_doubt(self) -> float:
        """How far down its own image is, on average over runs: 0 first, 1 last."""
        return fmean(one.depth for one in self.standing) if self.standing else 0.0

    def _copy_doubt(self) -> float:
        """That two people write the same three words is nothing; twelve are no accident."""
        return min(1.0, self.words / _LONG) * (1 if self.in_order else _OTHER_ORDER) if self.copies else 0.0


def review_table(
    dataset: Dataset, captions: Iterable[CaptionEvidence], twins: Sequence[Twins], *, far: float, shortest: int
) -> pl.DataFrame:
    """One list of captions and of pairs of images: more signals first, then graver doubts, then the dataset's order."""
    first = {int(image): text for text, image in reversed(list(zip(dataset.texts, dataset.caption_image, strict=True)))}
    rows = [
        _caption_row(dataset, first, one, why, one.severity(shortest))
        for one in captions
        if (why := one.reasons(far, shortest))
    ]
    rows += [_twin_row(dataset, first, pair) for pair in twins]
    rows.sort(key=lambda row: (-row["signals"], -row["severity"]))
    for place, row in enumerate(rows, start=1):
        row["place"] = place
    return pl.DataFrame(rows, schema=dict(REVIEW_COLUMNS))


def _caption_row(
    dataset: Dataset, first: Mapping[int, str], one: CaptionEvidence, reasons: tuple[str, ...], severity: float
) -> dict[str, Any]:
    owner = dataset.caption_image
    suggested = int(owner[one.copies[0]]) if COPY in reasons else None if one.rival is None else one.rival.image
    ranks = [standing.rank for standing in one.standing]
    return {
        "image": dataset.image_ids[owner[one.caption]],
        "caption": dataset.caption_ids[one.caption],
        "text": dataset.texts[one.caption],
        "reason": " + ".join(reasons),
        "evidence": "; ".join(_told(dataset, one, reasons)),
        "proposal": _proposal(one, reasons),
        "suggested_image": None if suggested is None else dataset.image_ids[suggested],
        "suggested_text": None if suggested is None else first.get(suggested),
        "signals": sum(any(reason in reasons for reason in voice) for voice in VOICES),
        "severity": severity,
        "concept_share": None if one.agreement is None else one.agreement.share,
        "rank": max(ranks, default=None),
        "best_rank": min(ranks, default=None),
        "lead": None if one.rival is None else one.rival.lead,
    }


def _twin_row(dataset: Dataset, first: Mapping[int, str], pair: Twins) -> dict[str, Any]:
    signals = pair.same_file + (pair.bits is not None) + (pair.cosine is not None)
    return {
        "image": dataset.image_ids[pair.one],
        "text": first.get(pair.one),
        "reason": TWIN,
        "evidence": str(pair),
        "proposal": ALSO_FITS,
        "suggested_image": dataset.image_ids[pair.other],
        "suggested_text": first.get(pair.other),
        "signals": signals,
        "severity": signals * pair.severity,
    }


def _proposal(one: CaptionEvidence, reasons: tuple[str, ...]) -> str:
    if COPY in reasons:
        return REMOVE if WORDS in reasons else ALSO_FITS  # the image that it belongs to has it already
    if WORDS in reasons and one.fit is not None and (one.fit.share or 0) >= _FITS:
        return MOVE
    if WORDS in reasons or EMPTY in reasons:
        return REMOVE
    # That models prefer an image must not make it relevant to them; that it has all the caption names may.
    return ALSO_FITS if one.fit is not None and one.fit.share == 1 else KEEP


def _told(dataset: Dataset, one: CaptionEvidence, reasons: tuple[str, ...]) -> Iterable[str]:
    """The reasons with their facts."""
    if WORDS in reasons and one.agreement is not None:
        yield f"only here: {', '.join(one.agreement.missing)}"
    if (WORDS in reasons or EMPTY in reasons) and one.agreement is not None and one.agreement.silent:
        yield f"the others: {', '.join(one.agreement.silent)}"
    if EMPTY in reasons and not one.pointless:
        yield f"{one.words} word{'' if one.words == 1 else 's'}"
    if COPY in reasons:
        kind = "same words" if one.in_order else "same words in another order"
        named = ", ".join(dataset.caption_ids[row] for row in one.copies[:3])
        yield f"{kind}: {named}{f' and {len(one.copies) - 3} more' if one.copies[3:] else ''}"
    if ANOTHER in reasons and one.rival is not None:
        yield f"{dataset.image_ids[one.rival.image]} at place {_listed(one.rival.places)}"
    if one.standing and (ANOTHER in reasons or FAR in reasons):
        yield f"its own at {_listed([standing.rank for standing in one.standing])} of {one.standing[0].gallery:,}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(f"{one:,}" for one in numbers)
