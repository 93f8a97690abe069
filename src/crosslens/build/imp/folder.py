"""The folder of an IMP benchmark: filled-in sheets are never lost, another benchmark is never replaced unasked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl

from crosslens.build.folder import IMP, LOG, BenchmarkFolder
from crosslens.build.imp.benchmark import DATASET, Imp, imp_page, readme
from crosslens.build.imp.candidates import CANDIDATE_COLUMNS, Candidates
from crosslens.build.imp.people import (
    AGREED,
    DONE,
    AnnotationSheet,
    PeoplesVerdicts,
    Verdict,
    lost_verdicts,
    measure_agreement,
    open_captions,
)
from crosslens.core import ConflictError, CrosslensError, InputError, argument
from crosslens.storage import (
    Layout,
    Workspace,
    atomic_file,
    fingerprint,
    for_spreadsheets,
    from_spreadsheets,
    hold_output,
    parquet_bytes,
    read_parquet_file,
    remove,
    workspace,
)
from crosslens.values import DATASET_LAYOUT, Dataset

PAGE = "page.html"
SAMPLED, CANDIDATES, REJECTED, LEAKS = "sampled.parquet", "candidates.parquet", "rejected.parquet", "leaks.csv"
_FILES = ("README.md", PAGE, SAMPLED, CANDIDATES, REJECTED, LEAKS, AGREED, "annotate-*.csv")
STAGES = "stages"
"""The tables of finished stages while a build is in progress."""


def tables_fingerprint(candidates: Candidates) -> str:
    """A hash of the sampled images and of all captions of their clusters."""
    return fingerprint("imp tables", {"images": candidates.images, "captions": candidates.captions})


class ImpFolder(BenchmarkFolder):
    """An IMP benchmark in a folder, as far as it has come."""

    form, datasets = IMP, (DATASET,)
    layout = Layout("a benchmark", LOG, (*_FILES, *DATASET_LAYOUT.within(DATASET)))

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
        if self.log is None or not self.has("key", key):
            return False
        if self.log.head["status"] != DONE:
            return bool(self.sheets)
        try:
            read_parquet_file(self.target / REJECTED)
        except (OSError, InputError, pl.exceptions.PolarsError):
            return False
        return not self.damaged()

    def check(self, candidates_key: str, people: PeoplesVerdicts, *, key: str, overwrite: bool) -> None:
        if self.log is None:
            return
        other_build = self.log.head["status"] == DONE and self.log.head["key"] != key
        self.refuse(
            different=not overwrite and (other_build or not self.has("candidates_key", candidates_key)),
            lost=lost_verdicts(self.sheets, people),
            sheets=f"the sheets in {self.target} have",
            fix=f"pass those sheets as {argument('annotations')}, or move them",
        )

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
            leaks=from_spreadsheets(pl.read_csv(leaks, infer_schema=False)) if leaks.is_file() else None,
            agreement=measure_agreement(people.sheets) if people.key is not None else None,
            already=True,
        )

    def write(self, work: Workspace, imp: Imp, people: PeoplesVerdicts, *, copy_images: bool) -> Imp:
        """Write everything and put it in place; returns the benchmark as written."""
        new = work.new
        datasets = {} if imp.dataset is None else {DATASET: imp.dataset}
        datasets_written = self.write_datasets(work, datasets, copy_images=copy_images)
        imp = replace(imp, dataset=datasets_written.get(DATASET))
        tables = {SAMPLED: imp.candidates.images, CANDIDATES: imp.candidates.captions, REJECTED: imp.rejected}
        for name, table in tables.items():
            if table is not None:
                (new / name).write_bytes(parquet_bytes(table))
        files = dict(imp.candidates.images.select("image", "file").iter_rows())
        for name, sheet in people.tables(imp.candidates.kept, files).items():
            for_spreadsheets(sheet).write_csv(new / name)
        if imp.leaks is not None and imp.leaks.height:
            for_spreadsheets(imp.leaks).write_csv(new / LEAKS)
        if imp.dataset is not None:
            imp_page(imp).save(new / PAGE)
        readme(imp, copied=copy_images).save(new / "README.md")
        self.publish(work, imp.log)
        return imp


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


def is_imp_folder(folder: str | Path) -> bool:
    """Whether ``build imp`` wrote the folder, at least as far as its candidates."""
    return all((Path(folder) / name).is_file() for name in (LOG, CANDIDATES, SAMPLED))


def candidate_captions(folder: str | Path) -> pl.DataFrame:
    """The captions that people are to judge, of the benchmark that is built in a folder."""
    return _opened(Path(folder))[0].kept


def candidate_dataset(folder: str | Path) -> Dataset:
    """The images of the benchmark that is built in a folder, with those captions."""
    candidates, _ = _opened(Path(folder))
    captions = candidates.kept.select("caption", "image", "text", "cosine")
    images = candidates.images.select("image", "file").join(captions, on="image", how="semi")
    files = images["file"].to_list()
    home = os.path.commonpath([Path(file).parent for file in files]) if files and None not in files else os.sep
    if Path(home) == Path(home).parent:
        raise InputError(
            "the images are not in one folder", file=folder, fix=f"pass {argument('dataset')} and the dataset of them"
        )
    plain = Dataset.of({image: [] for image in images["image"]}, name=f"{Path(folder).resolve().name}-candidates")
    relative = pl.Series("file", [file.removeprefix(home).lstrip(os.sep) for file in files])
    return replace(plain, images=plain.images.with_columns(relative), captions=captions, home=Path(home))


def write_verdicts(
    folder: str | Path,
    verdicts: Mapping[str, Mapping[str, Verdict]],
    decided: Mapping[str, Verdict],
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Write what people said as the sheets of the build in a folder; returns them. The build goes on with them.

    ``verdicts``: caption → person → verdict. Everybody has a sheet of their own where there are as many people as
    sheets; where there are more, a sheet holds the verdicts of several. ``decided`` are the verdicts on captions on
    which they differ. Verdicts in the folder that would be lost raise, unless ``overwrite``.
    """
    target = Path(folder)
    with hold_output(target):
        candidates, annotators = _opened(target)
        numbers = {name: at for at, name in enumerate(sorted({name for by in verdicts.values() for name in by}))}
        sheets = [dict.fromkeys(candidates.kept["caption"], Verdict()) for _ in range(annotators)]
        for caption in candidates.kept["caption"]:
            by = verdicts.get(caption, {})
            if len(by) > annotators:
                counts = f"{len(by)} people, and the benchmark has {annotators} annotators"
                fix = f"build it with {argument('annotators', len(by))}, or have each caption judged {annotators} times"
                raise InputError(f"caption {caption!r} was judged by {counts}", fix=fix)
            free = list(range(annotators))
            for person in sorted(by, key=numbers.__getitem__):
                # The sheet that is theirs, or the next free one.
                number = min(free, key=lambda slot: (slot - numbers[person]) % annotators)
                free.remove(number)
                sheets[number][caption] = by[person]
        complete = tuple(map(AnnotationSheet, sheets))
        undecided = set(open_captions(complete))
        agreed = {name: decided[name] for name in decided if name in undecided}
        people = PeoplesVerdicts(complete, AnnotationSheet(agreed))
        stored = ImpFolder(target)
        lost = 0 if overwrite else lost_verdicts(stored.sheets, people)
        if lost:
            raise ConflictError(
                f"the sheets in {target} have verdicts that would be lost: {lost:,}",
                fix=f"pass {argument('overwrite', True)} if nobody needs them",
            )
        tables = people.tables(candidates.kept, dict(candidates.images.select("image", "file").iter_rows()))
        for name, table in tables.items():
            with atomic_file(target / name) as file:
                for_spreadsheets(table).write_csv(file)
        for stale in stored.sheets:
            if stale.name not in tables:
                remove(stale)
        return [target / name for name in tables]


def _opened(folder: Path) -> tuple[Candidates, int]:
    """The candidates in a folder, and how many people judge each."""
    log = ImpFolder(folder).log if is_imp_folder(folder) else None
    candidates = None if log is None else ImpFolder(folder).candidates()
    if log is None or candidates is None:
        raise InputError(
            "no candidates of an IMP benchmark", file=folder, expected="a folder that build imp wrote",
            fix="run build imp first",
        )  # fmt: skip
    return candidates, int(log.head["settings"]["annotators"])
