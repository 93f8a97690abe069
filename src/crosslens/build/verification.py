"""The verification sheet: every description of a benchmark in a table that people fill in, and its way back.

A sheet holds the whole state of the verification. Rows that were judged stay in the sheets of later builds, also where
their description is no longer used; so the latest sheet is always enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.build.folder import read_columns
from crosslens.core import InputError, reading
from crosslens.data import check_known, check_unique, existing_file
from crosslens.storage import fingerprint
from crosslens.values import Dataset

SHEET = "verify.csv"
OK, BAD, CORRECTION = "ok", "bad", "correction"
VERDICTS = ("", OK, BAD, CORRECTION)
COLUMNS = ("image", "file", "task", "role", "version", "caption", "origin", "description", "verdict", "correction")
_NEEDED = ("image", "caption", "description", "verdict")
_FILL_IN = f"{OK}, {BAD}, {CORRECTION} with the right text in the column correction, or nothing"


@dataclass(frozen=True)
class SheetRow:
    """A description and what people say about it; an empty verdict: nobody has looked yet."""

    image: str
    caption: str
    origin: str
    description: str
    verdict: str = ""
    correction: str = ""

    @property
    def text(self) -> str:
        return self.correction if self.verdict == CORRECTION else self.description


@dataclass(frozen=True)
class VerificationSheet:
    """The rows of a sheet."""

    rows: tuple[SheetRow, ...] = ()

    @cached_property
    def by_caption(self) -> Mapping[str, SheetRow]:
        return {row.caption: row for row in self.rows}

    @cached_property
    def by_image(self) -> Mapping[str, Sequence[SheetRow]]:
        rows: dict[str, list[SheetRow]] = {}
        for row in self.rows:
            rows.setdefault(row.image, []).append(row)
        return rows

    @cached_property
    def judged(self) -> tuple[SheetRow, ...]:
        """The rows with a verdict, in an order that does not depend on the file's."""
        return tuple(sorted((row for row in self.rows if row.verdict), key=lambda row: row.caption))

    @property
    def key(self) -> str | None:
        """A hash of the verdicts; None without any: such a sheet changes nothing."""
        return fingerprint("verdicts", {"rows": [asdict(row) for row in self.judged]}) if self.judged else None

    @staticmethod
    def of_log(entries: Iterable[Mapping[str, Any]]) -> VerificationSheet:
        """The sheet that a build was made with, from the log's entries on it."""
        try:
            rows = [SheetRow(**{name: value for name, value in entry.items() if name != "step"}) for entry in entries]
        except TypeError as error:
            raise InputError("not a verdict of a decision log", fix="use the log as it was written") from error
        return VerificationSheet(tuple(rows))


def read_sheet(path: str | Path, dataset: Dataset) -> VerificationSheet:
    """A filled-in sheet (.csv, .tsv or .jsonl) on descriptions of the images of ``dataset``."""
    path = existing_file(path)
    with reading(path):
        columns, row_name = read_columns(path, COLUMNS, _NEEDED, SHEET)
        rows = [
            SheetRow(image, caption, origin, description.strip(), verdict.strip().casefold(), correction.strip())
            for image, caption, origin, description, verdict, correction in zip(
                *(columns[entry.name] for entry in fields(SheetRow)), strict=True
            )
        ]
        check_unique([row.caption for row in rows], "caption", row_name)
        check_known([row.image for row in rows], dataset.image_ids, "image", row_name)
        table = {caption: cells for caption, *cells in dataset.captions.select("caption", "image", "text").iter_rows()}
        rows = [_checked(row, row_name(index), table.get(row.caption)) for index, row in enumerate(rows)]
    return VerificationSheet(tuple(rows) if any(row.verdict for row in rows) else ())


def sheet_table(versions: Mapping[str, Dataset], sheet: VerificationSheet) -> pl.DataFrame:
    """The sheet of a benchmark: its descriptions in the order of v1, then judged ones that are not in it."""
    images = {row["image"]: row for row in versions["v1"].images.iter_rows(named=True)}
    rows, used = [], set()
    for caption, image, text, origin in (
        versions["v1"].captions.select("caption", "image", "text", "origin").iter_rows()
    ):
        columns, verdict = images[image], sheet.by_caption.get(caption)
        version = "v0" if columns["role"] == "original" else "v1"
        row = verdict or SheetRow(image, caption, origin, text)
        rows.append({**columns, "version": version, **asdict(row)})
        used.add(caption)
    rows += [asdict(row) for row in sheet.judged if row.caption not in used]
    table = [tuple(row.get(column) or None for column in COLUMNS) for row in rows]
    return pl.DataFrame(table, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def unused_verdicts(file: Path, sheet: VerificationSheet) -> int:
    """How many verdicts somebody wrote into this file that are not among those of ``sheet``."""
    if not file.is_file():
        return 0
    with reading(file):
        columns, _ = read_columns(file, COLUMNS, _NEEDED, SHEET)
    verdicts = {(row.caption, row.verdict, row.correction) for row in sheet.judged}
    rows = zip(columns["caption"], columns["verdict"], columns["correction"], strict=True)
    return sum(bool(verdict or correction) and (caption, verdict, correction) not in verdicts
               for caption, verdict, correction in rows)  # fmt: skip


def _checked(row: SheetRow, where: int | str, candidate: Sequence[str] | None) -> SheetRow:
    """The row, if it makes sense; a correction alone is a verdict, too."""

    def wrong(problem: str, fix: str) -> InputError:
        return InputError(problem, row=where, expected=f"verdict: {_FILL_IN}", fix=fix)

    verdict = row.verdict or (CORRECTION if row.correction else "")
    if verdict not in VERDICTS:
        raise wrong(f"the verdict is {row.verdict!r:.60}", "correct the verdict")
    if verdict == CORRECTION and not row.correction:
        raise wrong(f"no corrected text for caption {row.caption!r}", "write it into the column correction")
    if verdict in (OK, BAD) and row.correction:
        raise wrong(f"the verdict is {verdict}, and there is a correction", "keep one of the two")
    if not row.description:
        raise wrong(f"caption {row.caption!r} has no description", "restore the row")
    if candidate is not None and candidate[0] != row.image:
        raise wrong(f"caption {row.caption!r} belongs to image {candidate[0]!r}", "restore the row")
    if candidate is not None and candidate[1].strip() != row.description:
        raise wrong(
            f"the description of caption {row.caption!r} was changed",
            "restore it, and write the new text into the column correction",
        )
    return replace(row, verdict=verdict)
