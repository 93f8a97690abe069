"""Annotation sheets: every candidate caption in a table for each person, and its way back.

A verdict is ``good``, ``bad``, ``unsure`` or ``generic`` (it fits many other images, too); an empty one means that
nobody has judged the caption yet. A good caption may be corrected: ``change`` says what was wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.build.folder import read_columns
from crosslens.core import InputError, UsageError, argument, reading
from crosslens.data import check_known, check_unique, existing_file
from crosslens.statistics import cohen_kappa
from crosslens.storage import fingerprint

ANNOTATE = "annotate"
AGREE = "agree"
DONE = "done"
"""How far a build has come: sheets are to be filled in, disagreements to be resolved, or the benchmark is there."""
GOOD, BAD, UNSURE, GENERIC = "good", "bad", "unsure", "generic"
VERDICTS = (GOOD, BAD, UNSURE, GENERIC)
CHANGES = ("colour", "number", "object", "person", "location", "other")
"""What a correction is about, as in the paper: the wrong colour, number or object, a person's name that becomes
``<person>``, a location that becomes a more general one.
"""
COLUMNS = ("image", "file", "caption", "source", "text", "verdict", "correction", "change")
NEEDED = ("image", "caption", "text", "verdict")
AGREED = "agree.csv"
_SAID = ("caption", "verdict", "correction", "change")
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
        return sum(map(bool, self.verdicts.values()))

    @property
    def complete(self) -> bool:
        return self.judged == len(self.verdicts)

    @property
    def key(self) -> str:
        rows = [[caption, *vars(verdict).values()] for caption, verdict in sorted(self.verdicts.items()) if verdict]
        return fingerprint("annotations", {"rows": rows})


def read_annotations(
    path: str | Path, candidates: pl.DataFrame, sheets: Sequence[AnnotationSheet] = ()
) -> AnnotationSheet:
    """A filled-in sheet (.csv, .tsv or .jsonl) on these candidates: each of them once, unchanged, and nothing else.

    With the ``sheets`` of the annotators it is a sheet of the agreement stage, of captions that they do not agree on.
    """
    path = existing_file(path)
    rows = {caption: cells for caption, *cells in candidates.select("caption", "image", "text").iter_rows()}
    undecided = set(open_captions(sheets)) if sheets else set(rows)
    with reading(path):
        columns, row_name = read_columns(path, COLUMNS, NEEDED, AGREED if sheets else sheet_name(1))
        captions = columns["caption"]
        check_unique(captions, "caption", row_name)
        check_known(captions, rows, "caption", row_name)
        for index, caption in enumerate(captions):
            (image, text), where = rows[caption], row_name(index)
            if columns["image"][index] != image:
                raise InputError(f"caption {caption!r} belongs to image {image!r}", row=where, fix="restore the row")
            if columns["text"][index].strip() != text.strip():
                fix = "restore it, and write the new text into the column correction"
                raise InputError(f"the text of caption {caption!r} was changed", row=where, fix=fix)
            if caption not in undecided:
                raise InputError(
                    f"all annotators agree on caption {caption!r} already: {sheets[0].verdicts[caption].verdict}",
                    row=where,
                    expected="captions that are not agreed on",
                    fix="remove the row, or change the annotators' sheets",
                )
        lost: set[str] = set() if sheets else rows.keys() - set(captions)
        if lost:
            raise InputError(
                f"{len(lost):,} captions are missing, such as {min(lost)!r}",
                expected=f"all {candidates.height:,} captions",
                fix="restore the rows; an empty verdict is one not given yet",
            )
        fields = zip(*(columns[name] for name in _SAID), strict=True)
        return AnnotationSheet(
            {caption: as_verdict(row_name(index), caption, *texts) for index, (caption, *texts) in enumerate(fields)}
        )


def annotation_table(
    candidates: pl.DataFrame,
    files: Mapping[str, str | None],
    sheet_so_far: AnnotationSheet,
    sheets: Sequence[AnnotationSheet] = (),
) -> pl.DataFrame:
    """The sheet of these candidates with the verdicts that are given already.

    With the annotators' ``sheets`` it is that of the agreement stage: those on which they differ, and what each said.
    """
    undecided = set(open_captions(sheets) if sheets else candidates["caption"])
    numbers = range(1, len(sheets) + 1)
    columns = [f"{name}_{number}" for number in numbers for name in ("verdict", "correction")]
    rows = []
    for image, caption, *cells_before in candidates.select("image", *COLUMNS[2:5]).iter_rows():
        if caption in undecided:
            verdicts = [sheet.verdicts[caption] for sheet in sheets]
            cells = [cell for verdict in verdicts for cell in (verdict.verdict, verdict.correction)]
            cells += vars(sheet_so_far.verdicts.get(caption, Verdict())).values()
            rows.append((image, files.get(image), caption, *cells_before, *(cell or None for cell in cells)))
    header = dict.fromkeys((*COLUMNS[:5], *columns, *COLUMNS[5:]), pl.String)
    return pl.DataFrame(rows, schema=header, orient="row")


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


@dataclass(frozen=True)
class AnnotatorAgreement:
    """How far people agree before they talk to each other; None where that is not defined.

    ``kappa``  Cohen's κ of the verdicts; of more than two people, the mean over all pairs of them
    ``kappa_kept``  the same of good against anything else
    ``share``  of the captions on which all say the same
    ``open``   how many captions went to the agreement stage
    """

    captions: int
    kappa: float | None
    kappa_kept: float | None
    share: float | None
    open: int


def verdicts_of_all(sheets: Sequence[AnnotationSheet]) -> dict[str, Verdict | None]:
    """Caption → what all say; None where the verdicts or the corrected texts differ, or somebody is unsure."""
    agreed: dict[str, Verdict | None] = {}
    for caption, first in sheets[0].verdicts.items():
        verdicts = [sheet.verdicts[caption] for sheet in sheets]
        labels = {verdict.verdict for verdict in verdicts}
        if labels <= {BAD, GENERIC}:
            agreed[caption] = first if len(labels) == 1 else Verdict(BAD)
        else:
            same = len(labels) == 1 and len({verdict.correction for verdict in verdicts}) == 1
            agreed[caption] = first if same and UNSURE not in labels else None
    return agreed


def open_captions(sheets: Sequence[AnnotationSheet]) -> list[str]:
    """The captions that need the agreement stage."""
    return [caption for caption, verdict in verdicts_of_all(sheets).items() if verdict is None]


def measure_agreement(sheets: Sequence[AnnotationSheet]) -> AnnotatorAgreement:
    """Of complete sheets."""
    captions = list(sheets[0].verdicts)
    codes = np.array(
        [[VERDICTS.index(sheet.verdicts[caption].verdict) for sheet in sheets] for caption in captions], np.float64
    )
    good = (codes == VERDICTS.index(GOOD)).astype(np.float64)
    same = float((codes == codes[:, :1]).all(axis=1).mean())
    if len(sheets) == 1:
        return AnnotatorAgreement(len(captions), None, None, None, len(open_captions(sheets)))
    # Undefined where all say one thing about everything; rounded, as chance agreement is 0 and not −1e-16.
    kappas = [cohen_kappa(judges) for judges in (codes, good)]
    of_all, of_good = (round(kappa, 9) + 0.0 if np.isfinite(kappa) else None for kappa in kappas)
    return AnnotatorAgreement(len(captions), of_all, of_good, same, len(open_captions(sheets)))


def sheet_name(number: int) -> str:
    """``annotate-1.csv`` for the first annotator."""
    return f"annotate-{number}.csv"


@dataclass(frozen=True, eq=False)
class PeoplesVerdicts:
    """The sheets of the annotators and of the agreement stage, as far as they are filled in."""

    sheets: tuple[AnnotationSheet, ...]
    agreed: AnnotationSheet = field(default_factory=lambda: AnnotationSheet({}))

    @property
    def status(self) -> str:
        """Which stage is next: annotation, agreement, or neither."""
        if not all(sheet.complete for sheet in self.sheets):
            return ANNOTATE
        return DONE if all(self.agreed.verdicts.get(caption) for caption in open_captions(self.sheets)) else AGREE

    @property
    def key(self) -> str | None:
        """A hash of the verdicts that decide what is next; None before the sheets are complete."""
        if self.status == ANNOTATE:
            return None
        agreed = self.agreed if self.status == DONE else AnnotationSheet({})
        return fingerprint("verdicts", {"sheets": [sheet.key for sheet in self.sheets], "agreed": agreed.key})

    @property
    def final(self) -> dict[str, Verdict]:
        """Caption → the verdict of all; only where nothing is open."""
        of_all = verdicts_of_all(self.sheets)
        return {caption: verdict or self.agreed.verdicts[caption] for caption, verdict in of_all.items()}

    @property
    def waiting(self) -> dict[str, tuple[int, int]]:
        """Sheet to fill in → how many verdicts it has, and how many it needs."""
        if self.status == ANNOTATE:
            by_name = {sheet_name(number): sheet for number, sheet in enumerate(self.sheets, start=1)}
            return {name: (sheet.judged, len(sheet.verdicts)) for name, sheet in by_name.items() if not sheet.complete}
        undecided = open_captions(self.sheets) if self.status == AGREE else []
        count = sum(bool(self.agreed.verdicts.get(caption)) for caption in undecided)
        return {AGREED: (count, len(undecided))} if undecided else {}

    def tables(self, candidates: pl.DataFrame, files: Mapping[str, str | None]) -> dict[str, pl.DataFrame]:
        """File name → sheet, with all verdicts so far."""
        tables = {
            sheet_name(number): annotation_table(candidates, files, sheet)
            for number, sheet in enumerate(self.sheets, start=1)
        }
        if self.status != ANNOTATE and open_captions(self.sheets):
            tables[AGREED] = annotation_table(candidates, files, self.agreed, self.sheets)
        return tables

    def entries(self) -> Iterable[dict[str, Any]]:
        """For the log: what each person said about a caption, and what they agreed on."""
        for caption in self.sheets[0].verdicts:
            answers = [list(vars(sheet.verdicts[caption]).values()) for sheet in self.sheets]
            agreed = self.agreed.verdicts.get(caption)
            yield {"caption": caption, "said": answers, "agreed": list(vars(agreed).values()) if agreed else None}

    @staticmethod
    def of_log(entries: Sequence[Mapping[str, Any]], candidates: pl.DataFrame, annotators: int) -> PeoplesVerdicts:
        """What the log of a build says that people said."""
        try:
            verdicts = [
                {entry["caption"]: Verdict(*entry["said"][number]) for entry in entries} for number in range(annotators)
            ]
            agreed = {entry["caption"]: Verdict(*entry["agreed"]) for entry in entries if entry["agreed"]}
        except (KeyError, IndexError, TypeError) as error:
            raise InputError("not the verdicts of a decision log", fix="use the log as it was written") from error
        if not entries:
            return PeoplesVerdicts.none(candidates, annotators)
        return PeoplesVerdicts(tuple(map(AnnotationSheet, verdicts)), AnnotationSheet(agreed))

    @staticmethod
    def none(candidates: pl.DataFrame, annotators: int) -> PeoplesVerdicts:
        empty = AnnotationSheet(dict.fromkeys(candidates["caption"], Verdict()))
        return PeoplesVerdicts((empty,) * annotators)


def read_verdicts(paths: Sequence[str | Path], candidates: pl.DataFrame, annotators: int) -> PeoplesVerdicts:
    """Filled-in sheets: one for each annotator and, if there is one, that of the agreement stage."""
    if not paths:
        return PeoplesVerdicts.none(candidates, annotators)
    agreement: list[Path] = []
    others: list[Path] = []
    for path in map(existing_file, paths):
        with reading(path):
            columns, _ = read_columns(path, ("verdict_1",), (), AGREED)
            (agreement if any(columns["verdict_1"]) else others).append(path)  # it says what each person said
    if len(others) != annotators or len(agreement) > 1:
        raise UsageError(
            f"{len(others)} sheets for {annotators} annotators"
            if len(others) != annotators
            else f"{len(agreement)} sheets of the agreement stage",
            fix=f"pass one sheet for each annotator ({argument('annotators')}), and at most one {AGREED}",
            option="annotations",
        )
    sheets = tuple(read_annotations(path, candidates) for path in others)
    if not agreement:
        return PeoplesVerdicts(sheets)
    unfinished = next((path for path, sheet in zip(others, sheets, strict=True) if not sheet.complete), None)
    if unfinished is not None:
        raise InputError(
            "captions without a verdict", file=unfinished, expected="a complete sheet, as there is an agreement stage",
            fix=f"fill in the sheet, or leave out {agreement[0]}",
        )  # fmt: skip
    return PeoplesVerdicts(sheets, read_annotations(agreement[0], candidates, sheets))


def lost_verdicts(files: Sequence[Path], people: PeoplesVerdicts) -> int:
    """How many verdicts in these files are not among those that are kept."""
    sources = (*people.sheets, people.agreed)
    stored = {(caption, *vars(verdict).values()) for sheet in sources for caption, verdict in sheet.verdicts.items()}
    lost = 0
    for file in files:
        with reading(file):
            columns, _ = read_columns(file, _SAID, _SAID[:2], file.name)
        for caption, verdict, correction, change in zip(*(columns[name] for name in _SAID), strict=True):
            cells = (verdict.strip().casefold(), correction.strip(), change.strip().casefold())
            alone = ("good", *cells[1:]) if correction.strip() and not verdict.strip() else cells
            lost += any(cells) and (caption, *cells) not in stored and (caption, *alone) not in stored
    return lost
