"""From the verdicts of several people to one: where they differ, or are unsure, they agree on it in a second stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.build.imp.people.annotation import (
    BAD,
    COLUMNS,
    GENERIC,
    GOOD,
    NEEDED,
    UNSURE,
    VERDICTS,
    AnnotationSheet,
    Verdict,
    check_rows,
    parse_verdicts,
)
from crosslens.build.sheets import read_columns
from crosslens.core import InputError, fingerprint, reading
from crosslens.data import existing_file
from crosslens.statistics import cohen_kappa

_REJECTED = (BAD, GENERIC)


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


def open_captions(sheets: Sequence[AnnotationSheet]) -> list[str]:
    """The captions that need the agreement stage: the verdicts or the corrected texts differ, or somebody is unsure."""
    return [
        caption for caption in sheets[0].verdicts if _settled([sheet.verdicts[caption] for sheet in sheets]) is None
    ]


def final_verdicts(sheets: Sequence[AnnotationSheet], agreed: AnnotationSheet) -> dict[str, Verdict]:
    """One verdict for every caption: that of all, or that of the agreement stage."""
    settled = {caption: _settled([sheet.verdicts[caption] for sheet in sheets]) for caption in sheets[0].verdicts}
    return {caption: verdict or agreed.verdicts[caption] for caption, verdict in settled.items()}


def measure_agreement(sheets: Sequence[AnnotationSheet]) -> AnnotatorAgreement:
    """Of complete sheets."""
    captions = list(sheets[0].verdicts)
    codes = np.array(
        [[VERDICTS.index(sheet.verdicts[caption].verdict) for sheet in sheets] for caption in captions], np.float64
    )
    good = (codes == VERDICTS.index(GOOD)).astype(np.float64)
    same = float((codes == codes[:, :1]).all(axis=1).mean())
    several = len(sheets) > 1
    kappas = [_kappa(judges) if several else None for judges in (codes, good)]
    share = same if several else None
    return AnnotatorAgreement(len(captions), kappas[0], kappas[1], share, len(open_captions(sheets)))


def _kappa(judges: np.ndarray[Any, Any]) -> float | None:
    """None where all say the same thing about everything; rounded, as chance agreement is 0 and not −1e-16."""
    kappa = cohen_kappa(judges)
    return round(kappa, 9) + 0.0 if np.isfinite(kappa) else None


def agreement_table(
    candidates: pl.DataFrame,
    files: Mapping[str, str | None],
    sheets: Sequence[AnnotationSheet],
    agreed: AnnotationSheet,
) -> pl.DataFrame:
    """The sheet of the agreement stage: what each person said, and columns for what they agree on."""
    undecided = set(open_captions(sheets))
    numbers = range(1, len(sheets) + 1)
    said = [f"{name}_{number}" for number in numbers for name in ("verdict", "correction")]
    header = (*COLUMNS[:5], *said, *COLUMNS[5:])
    rows = []
    for image, caption, *about in candidates.select("image", *COLUMNS[2:5]).iter_rows():
        if caption in undecided:
            given = [sheet.verdicts[caption] for sheet in sheets]
            cells = [cell for verdict in given for cell in (verdict.verdict, verdict.correction)]
            cells += [*vars(agreed.verdicts.get(caption, Verdict())).values()]
            rows.append((image, files.get(image), caption, *about, *(cell or None for cell in cells)))
    return pl.DataFrame(rows, schema=dict.fromkeys(header, pl.String), orient="row")


def read_agreement(path: str | Path, candidates: pl.DataFrame, sheets: Sequence[AnnotationSheet]) -> AnnotationSheet:
    """A filled-in sheet of the agreement stage; a caption that all agree on already raises."""
    path = existing_file(path)
    undecided = set(open_captions(sheets))
    with reading(path):
        columns, row_name = read_columns(path, COLUMNS, NEEDED, "agree.csv")
        check_rows(columns, row_name, candidates)
        for index, caption in enumerate(columns["caption"]):
            if caption not in undecided:
                problem = f"all annotators agree on caption {caption!r} already: {sheets[0].verdicts[caption].verdict}"
                fix = "remove the row, or change the annotators' sheets"
                raise InputError(problem, row=row_name(index), expected="captions that are not agreed on", fix=fix)
        return parse_verdicts(columns, row_name)


def is_agreement_sheet(path: str | Path) -> bool:
    """Whether a sheet is one of the agreement stage: it says what each person said."""
    path = existing_file(path)
    with reading(path):
        columns, _ = read_columns(path, ("verdict_1",), (), "agree.csv")
        return any(columns["verdict_1"])


def verdicts_key(sheets: Sequence[AnnotationSheet], agreed: AnnotationSheet) -> str:
    """A hash of everything that people said."""
    return fingerprint("verdicts", {"sheets": [sheet.key for sheet in sheets], "agreed": agreed.key})


def _settled(verdicts: Sequence[Verdict]) -> Verdict | None:
    """What all say; None where they have to agree first."""
    first = verdicts[0]
    if any(verdict.verdict == UNSURE for verdict in verdicts):
        return None
    if all(verdict.verdict in _REJECTED for verdict in verdicts):
        return first if all(verdict.verdict == first.verdict for verdict in verdicts) else Verdict(BAD)
    same = all((verdict.verdict, verdict.correction) == (first.verdict, first.correction) for verdict in verdicts)
    return first if same else None
