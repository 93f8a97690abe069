"""All that people said about the candidates: the annotators' sheets, and what they agreed on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.build.imp.people.agreement import (
    agreement_table,
    final_verdicts,
    is_agreement_sheet,
    open_captions,
    read_agreement,
    verdicts_key,
)
from crosslens.build.imp.people.annotation import AnnotationSheet, Verdict, annotation_table, read_annotations
from crosslens.build.imp.sections import AGREE, ANNOTATE, DONE
from crosslens.build.sheets import read_columns
from crosslens.core import InputError, UsageError, argument, reading

AGREED = "agree.csv"
_SAID = ("caption", "verdict", "correction", "change")


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
        return verdicts_key(self.sheets, self.agreed if self.status == DONE else AnnotationSheet({}))

    @property
    def final(self) -> dict[str, Verdict]:
        """Caption → the verdict of all; only where nothing is open."""
        return final_verdicts(self.sheets, self.agreed)

    @property
    def waiting(self) -> dict[str, tuple[int, int]]:
        """Sheet to fill in → how many verdicts it has, and how many it needs."""
        if self.status == ANNOTATE:
            named = {sheet_name(number): sheet for number, sheet in enumerate(self.sheets, start=1)}
            return {name: (sheet.judged, len(sheet.verdicts)) for name, sheet in named.items() if not sheet.complete}
        undecided = open_captions(self.sheets) if self.status == AGREE else []
        judged = sum(bool(self.agreed.verdicts.get(caption)) for caption in undecided)
        return {AGREED: (judged, len(undecided))} if undecided else {}

    def tables(self, candidates: pl.DataFrame, files: Mapping[str, str | None]) -> dict[str, pl.DataFrame]:
        """File name → sheet, with all verdicts so far."""
        tables = {
            sheet_name(number): annotation_table(candidates, files, sheet)
            for number, sheet in enumerate(self.sheets, start=1)
        }
        if self.status != ANNOTATE and open_captions(self.sheets):
            tables[AGREED] = agreement_table(candidates, files, self.sheets, self.agreed)
        return tables

    def entries(self) -> Iterable[dict[str, Any]]:
        """For the log: what each person said about a caption, and what they agreed on."""
        for caption in self.sheets[0].verdicts:
            said = [list(vars(sheet.verdicts[caption]).values()) for sheet in self.sheets]
            agreed = self.agreed.verdicts.get(caption)
            yield {"caption": caption, "said": said, "agreed": list(vars(agreed).values()) if agreed else None}

    @staticmethod
    def of_log(entries: Sequence[Mapping[str, Any]], candidates: pl.DataFrame, annotators: int) -> PeoplesVerdicts:
        """What the log of a build says that people said."""
        try:
            said = [{entry["caption"]: Verdict(*entry["said"][number]) for entry in entries}
                    for number in range(annotators)]  # fmt: skip
            agreed = {entry["caption"]: Verdict(*entry["agreed"]) for entry in entries if entry["agreed"]}
        except (KeyError, IndexError, TypeError) as error:
            raise InputError("not the verdicts of a decision log", fix="use the log as it was written") from error
        if not entries:
            return PeoplesVerdicts.none(candidates, annotators)
        return PeoplesVerdicts(tuple(map(AnnotationSheet, said)), AnnotationSheet(agreed))

    @staticmethod
    def none(candidates: pl.DataFrame, annotators: int) -> PeoplesVerdicts:
        """Nobody has said anything."""
        empty = AnnotationSheet(dict.fromkeys(candidates["caption"], Verdict()))
        return PeoplesVerdicts((empty,) * annotators)


def read_verdicts(paths: Sequence[str | Path], candidates: pl.DataFrame, annotators: int) -> PeoplesVerdicts:
    """Filled-in sheets: one for each annotator and, if there is one, that of the agreement stage."""
    if not paths:
        return PeoplesVerdicts.none(candidates, annotators)
    agreement = [path for path in paths if is_agreement_sheet(path)]
    others = [path for path in paths if path not in agreement]
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
    return PeoplesVerdicts(sheets, read_agreement(agreement[0], candidates, sheets))


def lost_verdicts(files: Sequence[Path], kept: PeoplesVerdicts) -> int:
    """How many verdicts in these files are not among those that are kept."""
    sources = (*kept.sheets, kept.agreed)
    known = {(caption, *vars(verdict).values()) for sheet in sources for caption, verdict in sheet.verdicts.items()}
    lost = 0
    for file in files:
        with reading(file):
            columns, _ = read_columns(file, _SAID, _SAID[:2], file.name)
        for caption, verdict, correction, change in zip(*(columns[name] for name in _SAID), strict=True):
            said = (verdict.strip().casefold(), correction.strip(), change.strip().casefold())
            alone = ("good", *said[1:]) if correction.strip() and not verdict.strip() else said
            lost += any(said) and (caption, *said) not in known and (caption, *alone) not in known
    return lost
