"""The folder of an IMP benchmark: filled-in sheets are never lost, another benchmark is never replaced unasked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import polars as pl

from crosslens.build.copied_images import IMAGES, copied_paths, copy_pictures, with_files
from crosslens.build.imp.benchmark import DATASET, Imp
from crosslens.build.imp.candidates import CANDIDATE_COLUMNS, Candidates
from crosslens.build.imp.card import readme
from crosslens.build.imp.people.agreement import measure_agreement
from crosslens.build.imp.people.verdicts import AGREED, PeoplesVerdicts, lost_verdicts
from crosslens.build.imp.sections import DONE, ImpPage
from crosslens.build.log import IMP, DecisionLog
from crosslens.build.sheets import read_written_sheet, write_sheet
from crosslens.core import (
    DATASET_LAYOUT,
    ConflictError,
    CrosslensError,
    Dataset,
    InputError,
    Layout,
    Workspace,
    argument,
    fingerprint,
    parquet_bytes,
    read_parquet_file,
    remove,
    workspace,
    write_text,
)

LOG, PAGE = "decisions.jsonl", "page.html"
SAMPLED, CANDIDATES, REJECTED, LEAKS = "sampled.parquet", "candidates.parquet", "rejected.parquet", "leaks.csv"
STAGES = "stages"
"""The tables of finished stages while a build is in progress."""
_LAYOUT = Layout(
    "a benchmark",
    LOG,
    (
        "README.md",
        PAGE,
        SAMPLED,
        CANDIDATES,
        REJECTED,
        LEAKS,
        AGREED,
        "annotate-*.csv",
        *DATASET_LAYOUT.within(DATASET),
    ),
)


def tables_fingerprint(candidates: Candidates) -> str:
    """A hash of the sampled images and of all captions of their clusters."""
    return fingerprint("imp tables", {"images": candidates.images, "captions": candidates.captions})


class ImpFolder:
    """The benchmark in a folder, as far as it has come."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.log = DecisionLog.load(target / LOG, IMP) if _LAYOUT.holds(target) else None

    def is_of(self, candidates_key: str) -> bool:
        """Whether the benchmark in this folder has the candidates of that key."""
        return self.log is not None and self.log.head.get("candidates_key") == candidates_key

    def candidates(self) -> Candidates | None:
        """The candidates in this folder; None where the tables are damaged, or of a version that lacks a column."""
        assert self.log is not None
        try:
            images, captions = (read_parquet_file(self.target / name) for name in (SAMPLED, CANDIDATES))
        except (OSError, InputError, pl.exceptions.PolarsError):
            return None
        candidates = Candidates(images, captions)
        same = self.log.of("candidates")[0]["fingerprint"] == tables_fingerprint(candidates)
        return candidates if same and captions.columns == list(CANDIDATE_COLUMNS) else None

    @property
    def sheets(self) -> list[Path]:
        """The sheets in this folder, that of the agreement stage last."""
        return [*sorted(self.target.glob("annotate-*.csv")), *self.target.glob(AGREED)]

    def finished(self, key: str) -> bool:
        """Whether the benchmark of this key is in the folder, whole."""
        if self.log is None or self.log.head.get("key") != key:
            return False
        if self.log.head["status"] != DONE:
            return bool(self.sheets)
        try:
            Dataset.load(self.target / DATASET)
            read_parquet_file(self.target / REJECTED)
        except (OSError, InputError, pl.exceptions.PolarsError):
            return False
        return not self.log.head["copy_images"] or (self.target / IMAGES).is_dir()

    def refuse(self, candidates_key: str, people: PeoplesVerdicts, *, key: str, overwrite: bool) -> None:
        """Raise if something would be lost: another benchmark, verdicts that people wrote, files of others."""
        if self.log is None:
            return
        done = self.log.head["status"] == DONE and self.log.head["key"] != key
        if not overwrite and (done or not self.is_of(candidates_key)):
            raise ConflictError(
                f"{self.target} already contains a different benchmark",
                fix=f"choose another output, or pass {argument('overwrite', True)}",
            )
        lost = lost_verdicts(self.sheets, people)
        if lost:
            raise ConflictError(
                f"the sheets in {self.target} have verdicts that would be lost: {lost:,}",
                fix=f"pass those sheets as {argument('annotations')}, or move them",
            )
        _LAYOUT.refuse_foreign_files(self.target, self._copied())

    def load(self, imp: Imp, people: PeoplesVerdicts) -> Imp:
        """The benchmark in this folder, which is finished."""
        assert self.log is not None
        leaks = self.target / LEAKS
        done = imp.status == DONE
        return replace(
            imp,
            log=self.log,
            dataset=Dataset.load(self.target / DATASET) if done else None,
            rejected=read_parquet_file(self.target / REJECTED) if done else None,
            leaks=read_written_sheet(leaks) if leaks.is_file() else None,
            agreement=measure_agreement(people.sheets) if people.key is not None else None,
            already=True,
        )

    def write(self, work: Workspace, imp: Imp, people: PeoplesVerdicts, *, copy_images: bool) -> Imp:
        """Write everything and put it in place; returns the benchmark as written."""
        new = work.new
        remove(new)
        new.mkdir()
        if imp.dataset is not None:
            dataset = imp.dataset
            if copy_images:
                dataset = with_files(dataset, copy_pictures(dataset, new / IMAGES), self.target / DATASET)
            (new / DATASET).mkdir()
            dataset.write_into(new / DATASET)
            imp = replace(imp, dataset=dataset)
        tables = {SAMPLED: imp.candidates.images, CANDIDATES: imp.candidates.captions, REJECTED: imp.rejected}
        for name, table in tables.items():
            if table is not None:
                (new / name).write_bytes(parquet_bytes(table))
        files = dict(imp.candidates.images.select("image", "file").iter_rows())
        for name, sheet in people.tables(imp.candidates.kept, files).items():
            write_sheet(sheet, new / name)
        if imp.leaks is not None and imp.leaks.height:
            write_sheet(imp.leaks, new / LEAKS)
        if imp.dataset is not None:
            write_text(new / PAGE, ImpPage(imp).content(".html").decode())
        write_text(new / "README.md", readme(imp, copied=copy_images))
        imp.log.save(new / LOG)
        work.publish(_LAYOUT, [*self._copied(), *copied_paths(new / IMAGES)])
        return imp

    def _copied(self) -> list[str]:
        """The pictures that were copied into the folder."""
        if self.log is None or not self.log.head["copy_images"]:
            return []
        with suppress(InputError):
            files = Dataset.load(self.target / DATASET).images["file"].drop_nulls()
            return [file.removeprefix("../") for file in files]
        return []


@contextmanager
def building(output: Path | None, key: str) -> Iterator[Workspace | None]:
    """Where a benchmark is prepared; a killed build leaves its finished stages to the next, a failed one nothing."""
    if output is None:
        yield None
        return
    with workspace(output, key, keep=(STAGES,)) as work:
        try:
            yield work
        except CrosslensError:
            work.discard()
            raise
