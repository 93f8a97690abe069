"""A robustness study: its tables, stored beside the runs that they come from, and the folder in which both are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import ENDINGS, ConflictError, InputError, Presented, Section, argument
from crosslens.metrics import facts_of
from crosslens.pipeline.robustness_study.sections import study_sections
from crosslens.pipeline.robustness_study.tables import DROP_COLUMNS, TABLES, StudyTables
from crosslens.storage import (
    FORMAT_VERSION,
    Layout,
    Manifest,
    Workspace,
    atomic_file,
    json_form,
    link_tree,
    parquet_bytes,
    read_manifest,
    read_parquet_file,
    read_whole,
    require_entries,
    verification,
    workspace,
    write_header,
)
from crosslens.values import RUN_FILE, RUN_LAYOUT, check_stored_protocol, read_facts

ROBUSTNESS_FILE = "robustness.json"
STUDY_LAYOUT = Layout(
    "a robustness study",
    ROBUSTNESS_FILE,
    (*(f"{name}.parquet" for name in TABLES), "*/*.parquet", *RUN_LAYOUT.within("*/*")),
)


def read_study_header(file: Path) -> tuple[dict[str, Any], Manifest]:
    """What ``robustness.json`` says, and the files that it lists."""
    header, manifest = read_manifest(file, "robustness")
    types = {"models": list, "perturbations": list, "headline": str, "direction": str, "options": dict}
    require_entries(header, types, file)
    for name in ("models", "perturbations", "headline", "direction"):
        if name not in header or not all(isinstance(text, str) for text in header[name]):
            problem = f"{name!r} is {header.get(name)!r:.60}"
            raise InputError(problem, file=file, expected="names", fix="run the same command again")
    return header, manifest


def folder_name(model: str) -> str:
    """A model's name as a folder name; that of a perturbation may have brackets."""
    return re.sub(r"[^\w.@+\[\]-]+", "-", model).strip("-.") or "model"


_LARGE = ("overlap_pairs", "captions", "queries", "headline_queries")
"""Tables that are in the folder and in Python only: too long for a page of JSON."""


@dataclass(frozen=True, eq=False)
class Robustness(StudyTables, Presented):
    """Models × perturbations; every table is a polars table.

    ``drops``          per model, perturbation, seed and metric: before, after, drop (points, percent), intervals, p
    ``spread``         with several seeds: mean, standard deviation and extremes of the drop over them
    ``changes``        per model and perturbation: queries changed, ranked lower, higher, same; figures before and after
    ``overlap``        per model: how similar the sets of queries are that perturbations decrease, increase or leave
    ``overlap_pairs``  the same for each pair of perturbations
    ``words``          the drop by the part of speech of the edited word
    ``brittle``        the most brittle queries, with every perturbation of them
    ``captions``       every caption before and after, with its edits
    ``queries``        every query before and after: rank, hits, score of its relevant item
    ``headline_queries``  the headline of every query before and after, where ``queries`` does not say it

    All but ``drops`` and ``spread`` are of the first seed. ``shown`` names the tables that are printed; None for the
    usual ones.
    """

    @property
    def title(self) -> str:
        return f"Robustness: {self.about.get('dataset', {}).get('name', 'Ranked lists')}"

    def sections(self) -> Iterator[Section]:
        """The drops as heat maps, then the tables that are shown."""
        return study_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, but for fields named ``percent``; the long tables are left to Parquet."""
        return {
            "format": "crosslens/robustness",
            "version": FORMAT_VERSION,
            "models": list(self.models),
            "perturbations": list(self.perturbations),
            "headline": self.headline,
            "direction": self.direction,
            **self.about,
            "metric_facts": {
                name: asdict(facts_of(name)) for name in dict.fromkeys([self.headline, *self.drops["metric"]])
            },
            **{name: json_form(self.tables[name].to_dicts()) for name in TABLES if name not in _LARGE},
        }

    def save(self, file: str | Path, *, overwrite: bool = False) -> Path:
        """Write a folder with the tables and ``robustness.json``, or a file in the form that its ending names.

        The runs of a study that is in the folder stay.
        """
        folder = Path(file)
        if folder.suffix.lower() in ENDINGS:
            return super().save(file, overwrite=overwrite)
        with workspace(folder) as work:
            if STUDY_LAYOUT.holds(work.target):
                link_tree(work.target, work.new)
            else:
                work.new.mkdir()
            self.write_into(work.new)
            work.publish(STUDY_LAYOUT)
        return folder

    def write_into(self, folder: Path) -> None:
        """Write the same files into a folder that is being prepared; the header lists them and the runs beside them.

        The header of every run lists its own files.
        """
        for name, table in self.tables.items():
            with atomic_file(folder / f"{name}.parquet") as file:
                file.write_bytes(parquet_bytes(table))
        runs = [run for model in self.models for run in sorted((folder / folder_name(model)).glob(f"*/{RUN_FILE}"))]
        files = [f"{name}.parquet" for name in TABLES] + [run.relative_to(folder).as_posix() for run in runs]
        write_header(folder / ROBUSTNESS_FILE, self.as_dict(), files)

    @staticmethod
    def load(folder: str | Path, *, verify: bool = True) -> Robustness:
        """Read a folder that a study wrote; ``verify`` refuses files that have changed since."""
        folder = Path(folder)

        def read_table(file: Path) -> pl.DataFrame:
            try:
                return read_parquet_file(file)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise InputError(f"unreadable: {error}", file=file, fix="run the same command again") from error

        def read() -> Robustness:
            with verification(verify):
                header, manifest = read_study_header(folder / ROBUSTNESS_FILE)
                manifest.check_folder()
            tables = {name: read_table(folder / f"{name}.parquet") for name in TABLES}
            if missing := DROP_COLUMNS.keys() - set(tables["drops"].columns):
                problem, fix = f"no column {min(missing)!r}", "run the same command again"
                raise InputError(problem, file=folder / "drops.parquet", expected="all columns of drops", fix=fix)
            models, perturbations = tuple(header.pop("models")), tuple(header.pop("perturbations"))
            headline, direction = header.pop("headline"), header.pop("direction")
            for name, facts in header.pop("metric_facts", {}).items():
                read_facts(name, facts)
            check_stored_protocol(header.get("protocol", {}), folder / ROBUSTNESS_FILE)
            facts_of_study = {key: value for key, value in header.items() if key not in ("format", "version", *TABLES)}
            return Robustness(models, perturbations, headline, direction, facts_of_study, None, **tables)

        return read_whole(folder, folder / ROBUSTNESS_FILE, read=read)

    def __repr__(self) -> str:
        return f"Robustness({len(self.models)} models × {len(self.perturbations)} perturbations, {self.headline})"


class StudyFolder:
    """The study in a folder and, beside it, the new one that replaces it when it is complete.

    The new one begins with the runs of the stored study, if that is of the same ``setting``: the fingerprint of what
    the runs of a study share. A run that is there already is not made again.
    """

    def __init__(self, work: Workspace, setting: str, overwrite: bool) -> None:
        self.work, self.setting, self._overwrite = work, setting, overwrite
        self.stored: dict[str, Any] = {}
        """The header of a stored study of the same setting."""
        if not STUDY_LAYOUT.holds(work.target):
            return
        header: dict[str, Any] = {}
        try:
            header = read_study_header(work.target / ROBUSTNESS_FILE)[0]
        except InputError:  # a damaged one counts as none where it is to be replaced
            if not overwrite:
                raise
        if header.get("setting") == setting:
            STUDY_LAYOUT.refuse_foreign_files(work.target)
            self.stored = header
        else:
            STUDY_LAYOUT.refuse_other(work.target, overwrite=overwrite, why=" (other data, metrics or options)")

    def refuse_loss(self, kind: str, names: Collection[str], unnamed: int = 0) -> None:
        """Raise where the stored study has ``models`` or ``perturbations`` that the new one does not have.

        With ``unnamed`` ones whose names are not known yet, only where those cannot be all that is missing.
        """
        lost = [name for name in self.stored.get(kind, ()) if name not in names]
        if len(lost) > unnamed:
            problem = f"the stored study also has {', '.join(lost)}, which would be lost from its tables"
            self.refuse(problem, "name them too")

    def refuse(self, problem: str, fix: str) -> None:
        if not self._overwrite:
            otherwise = f"choose another output folder, or pass {argument('overwrite', True)}"
            raise ConflictError(f"{self.work.target}: {problem}", fix=f"{fix}, {otherwise}")

    def runs_of(self, model: str) -> Path:
        """Where the runs of a model are made."""
        if not self.work.new.is_dir():  # else it is interrupted work of the same setting
            if self.stored:
                link_tree(self.work.target, self.work.new)
            else:
                self.work.new.mkdir()
        return self.work.new / folder_name(model)

    def finish(self, key: str, make: Callable[[], Robustness]) -> Robustness:
        """The study; the stored one where it is of the same ``key`` and no run is new, else a new one in its place."""
        new, target = self.work.new, self.work.target
        of_stored = ((run, target / run.relative_to(new)) for run in new.glob(f"*/*/{RUN_FILE}"))
        if self.stored.get("key") == key and all(old.exists() and old.samefile(run) for run, old in of_stored):
            with suppress(InputError):  # damaged tables are made again
                result = Robustness.load(target)
                self.work.discard()
                return result
        result = make()
        result.write_into(new)
        self.work.publish(STUDY_LAYOUT)
        return result


@contextmanager
def study_folder(
    output: str | Path | None, setting: str, perturbations: Collection[str], *, seeds: int = 1, overwrite: bool = False
) -> Iterator[StudyFolder | None]:
    """Lock and prepare the folder of a study; interrupted work of the same setting is continued."""
    if output is None:
        yield None
        return
    STUDY_LAYOUT.holds(Path(output))  # refused before anything is made beside it
    with workspace(output, setting) as work:
        folder = StudyFolder(work, setting, overwrite)
        folder.refuse_loss("perturbations", perturbations)
        stored = folder.stored.get("options", {}).get("seeds", 1)  # the tables of more would be lost
        if seeds < stored:
            folder.refuse(f"the stored study has {stored} seeds, and this one {seeds}", f"use {stored} seeds")
        yield folder
