"""Annotation sheets: every candidate caption in a table for each person, and its way back.

A verdict is ``good``, ``bad``, ``unsure`` or ``generic`` (it fits many other images, too); an empty one means that
nobody has judged the caption yet. A good caption may be corrected: ``change`` says what was wrong with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.build.sheets import read_columns
from crosslens.core import InputError, fingerprint, reading
from crosslens.data import RowName, check_known, check_unique, existing_file

GOOD, BAD, UNSURE, GENERIC = "good", "bad", "unsure", "generic"
VERDICTS = (GOOD, BAD, UNSURE, GENERIC)
CHANGES = ("colour", "number", "object", "person", "location", "other")
"""What a correction is about, as in the paper: the wrong colour, number or object, a person's name that becomes
``<person>``, a location that becomes a more general one.
"""
COLUMNS = ("image", "file", "caption", "source", "text", "verdict", "correction", "change")
NEEDED = ("image", "caption", "text", "verdict")
_FILL_IN = f"verdict: {', '.join(VERDICTS)}, or nothing"


@dataclass(frozen=True)
class Verdict:
    """What a person says about a caption; an empty ``verdict``: nothing yet."""

    verdict: str = ""
    correction: str = ""
    change: str = ""

    def __bool__(self) -> bool:
        return bool(self.verdict)


@dataclass(frozen=True, eq=False)
class AnnotationSheet:
    """The verdicts of a sheet, by caption."""

    verdicts: Mapping[str, Verdict]

    @property
    def judged(self) -> int:
        """How many captions have a verdict."""
        return sum(map(bool, self.verdicts.values()))

    @property
    def complete(self) -> bool:
        return self.judged == len(self.verdicts)

    @property
    def counts(self) -> dict[str, int]:
        """How often each verdict was given."""
        counts = Counter(verdict.verdict for verdict in self.verdicts.values())
        return {verdict: counts[verdict] for verdict in VERDICTS}

    @property
    def key(self) -> str:
        """A hash of all verdicts."""
        rows = [[caption, *vars(verdict).values()] for caption, verdict in sorted(self.verdicts.items()) if verdict]
        return fingerprint("annotations", {"rows": rows})

    def keeps(self, other: AnnotationSheet) -> bool:
        """Whether every verdict of ``other`` is here, too."""
        return all(self.verdicts.get(caption) == verdict for caption, verdict in other.verdicts.items() if verdict)


def read_annotations(path: str | Path, candidates: pl.DataFrame) -> AnnotationSheet:
    """A filled-in sheet (.csv, .tsv or .jsonl) on these candidates: each of them once, and nothing else."""
    path = existing_file(path)
    with reading(path):
        columns, row_name = read_columns(path, COLUMNS, NEEDED, "annotate-1.csv")
        check_rows(columns, row_name, candidates)
        _check_complete(columns["caption"], candidates)
        return parse_verdicts(columns, row_name)


def annotation_table(candidates: pl.DataFrame, files: Mapping[str, str | None], given: AnnotationSheet) -> pl.DataFrame:
    """The sheet of these candidates with the verdicts that are given already."""
    rows = [
        (image, files.get(image), *about, *_cells(given.verdicts.get(about[0], Verdict())))
        for image, *about in candidates.select("image", *COLUMNS[2:5]).iter_rows()
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def parse_verdicts(columns: Mapping[str, Sequence[str]], row_name: RowName) -> AnnotationSheet:
    """The verdicts in these columns; a row that makes no sense raises with its name."""
    fields = zip(*(columns[name] for name in ("caption", "verdict", "correction", "change")), strict=True)
    return AnnotationSheet(
        {caption: as_verdict(row_name(index), caption, *texts) for index, (caption, *texts) in enumerate(fields)}
    )


def check_rows(columns: Mapping[str, Sequence[str]], row_name: RowName, candidates: pl.DataFrame) -> None:
    """Raise unless every row is one of the candidates: none twice, its image and text unchanged."""
    known = {
        caption: (image, text) for caption, image, text in candidates.select("caption", "image", "text").iter_rows()
    }
    captions = columns["caption"]
    check_unique(captions, "caption", row_name)
    check_known(captions, known, "caption", row_name)
    for index, caption in enumerate(captions):
        image, text = known[caption]
        if columns["image"][index] != image:
            raise InputError(
                f"caption {caption!r} belongs to image {image!r}", row=row_name(index), fix="restore the row"
            )
        if columns["text"][index].strip() != text.strip():
            fix = "restore it, and write the new text into the column correction"
            raise InputError(f"the text of caption {caption!r} was changed", row=row_name(index), fix=fix)


def _check_complete(captions: Sequence[str], candidates: pl.DataFrame) -> None:
    """Raise where rows of the sheet are missing."""
    lost = list(dict.fromkeys(candidates["caption"]).keys() - set(captions))
    if lost:
        problem = f"{len(lost):,} captions are missing, such as {min(lost)!r}"
        fix = "restore the rows; an empty verdict is one not given yet"
        raise InputError(problem, expected=f"all {candidates.height:,} captions", fix=fix)


def as_verdict(where: Any, caption: str, verdict: str, correction: str, change: str) -> Verdict:
    """The verdict of a row, if it makes sense; a correction alone says that the caption is good, corrected."""

    def wrong(problem: str, fix: str) -> InputError:
        return InputError(problem, row=where, expected=_FILL_IN, fix=fix)

    verdict, correction = verdict.strip().casefold(), correction.strip()
    change = change.strip().casefold()
    verdict = verdict or (GOOD if correction else "")
    if verdict and verdict not in VERDICTS:
        raise wrong(f"the verdict of caption {caption!r} is {verdict!r:.60}", "correct the verdict")
    if correction and verdict != GOOD:
        raise wrong(f"the verdict of caption {caption!r} is {verdict}, and there is a correction", "keep one of them")
    if change and change not in CHANGES:
        raise wrong(f"the change of caption {caption!r} is {change!r:.60}", f"use one of: {', '.join(CHANGES)}")
    if change and not correction:
        raise wrong(f"caption {caption!r} has a change and no correction", "write the corrected text")
    return Verdict(verdict, correction, change)


def _cells(verdict: Verdict) -> tuple[str | None, ...]:
    return tuple(value or None for value in (verdict.verdict, verdict.correction, verdict.change))
