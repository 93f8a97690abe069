"""The runs and datasets of the served folder. Only reads; what appears in the folder appears here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock

from crosslens.core import CrosslensError, Dataset, InputError, Run, UnknownNameError, UsageError, being_written
from crosslens.explanations import dataset_of_run, image_folder_of
from crosslens.pipeline import ROBUSTNESS_FILE, Robustness
from crosslens.web.kept import Kept
from crosslens.web.run_folders import (
    RunSummary,
    dataset_id,
    file_signature,
    read_summary,
    recipe_alone,
    run_signature,
    stored_folders,
)

_SECONDS = 1.0
"""How long a look at the folder serves: a page asks several times."""
_RETRY = 5.0
"""Seconds until a dataset that cannot be read is tried again: a page asks for it once for every picture."""
_RUNS, _DATASETS, _STUDIES = 12, 6, 6
"""How many are kept in memory."""


@dataclass(frozen=True)
class DatasetSummary:
    """A dataset by its id in addresses, and the ids of the runs over it."""

    id: str
    name: str
    runs: tuple[str, ...]


class RunLibrary:
    """The runs below a folder, by ids that stand in addresses; ``datasets`` are given beside it.

    An id is looked up among the folders that were found, and never becomes a path.
    """

    def __init__(self, folder: Path, datasets: Sequence[Dataset] = ()) -> None:
        self.folder = folder
        self._given = {dataset_id(dataset.name, dataset.fingerprint): dataset for dataset in datasets}
        self._looked = float("-inf")
        self._lock = Lock()
        self._summaries: dict[str, RunSummary] = {}
        self._study_folders: tuple[Path, ...] = ()
        self._runs: Kept[Run] = Kept(_RUNS)
        self._datasets: Kept[Dataset] = Kept(_DATASETS)
        self._unreadable: dict[str, tuple[float, CrosslensError | None]] = {}
        self._folders: Kept[list[Path]] = Kept(_DATASETS)
        self._studies: Kept[Robustness | None] = Kept(_STUDIES)

    def runs(self) -> list[RunSummary]:
        """All runs in the folder now, those that cannot be read too, by their location."""
        with self._lock:
            if time.monotonic() - self._looked > _SECONDS:
                known = {summary.folder: summary for summary in self._summaries.values()}
                stored = stored_folders(self.folder)
                fresh = [self._look(folder, known.get(folder)) for folder in stored.runs]
                # Where two folders cannot be exchanged in one step, a run is gone while it is replaced.
                fresh += [known[folder] for folder in known.keys() - set(stored.runs) if being_written(folder)]
                self._summaries = {summary.id: summary for summary in fresh}
                self._study_folders = stored.studies
                self._looked = time.monotonic()
            return list(self._summaries.values())

    def _look(self, folder: Path, known: RunSummary | None) -> RunSummary:
        signature = run_signature(folder)
        if known is not None and known.signature == signature:
            return known
        return read_summary(self.folder, folder, signature)

    def summary(self, run: str) -> RunSummary:
        """What is known of a run without reading its queries."""
        self.runs()
        summary = self._summaries.get(run)
        if summary is None:
            raise UnknownNameError("run", run, self._summaries)
        return summary

    def run(self, run: str) -> Run:
        """A run by its id; one that cannot be read raises."""
        summary = self.summary(run)
        if summary.problem is not None:
            raise InputError(summary.problem, file=summary.location, fix="repeat the evaluation", code="damaged-run")
        return self._runs.get((run, summary.signature), lambda: Run.load(summary.folder))

    def studies(self, dataset: str) -> dict[str, Robustness]:
        """The robustness studies of a dataset in the folder, by location; those that cannot be read are left out."""
        self.runs()
        studies = {}
        for folder in self._study_folders:
            key = (folder, file_signature(folder / ROBUSTNESS_FILE))
            study = self._studies.get(key, partial(_load_study, folder))
            if study is not None and _dataset_of_study(study) == dataset:
                studies[folder.name if folder == self.folder else folder.relative_to(self.folder).as_posix()] = study
        return studies

    def datasets(self) -> list[DatasetSummary]:
        """The datasets of the runs, and those that were given beside the folder."""
        runs: dict[str, list[str]] = {name: [] for name in self._given}
        names = {name: dataset.name for name, dataset in self._given.items()}
        for summary in self.runs():
            if summary.problem is None and summary.dataset:
                runs.setdefault(summary.dataset, []).append(summary.id)
                names.setdefault(summary.dataset, summary.dataset_name)
        return [DatasetSummary(name, names[name], tuple(members)) for name, members in runs.items()]

    def dataset_summary(self, dataset: str) -> DatasetSummary:
        """The name of a dataset and the runs over it."""
        known = {summary.id: summary for summary in self.datasets()}
        if dataset not in known:
            raise UnknownNameError("dataset", dataset, known)
        return known[dataset]

    def dataset(self, dataset: str) -> Dataset:
        """A dataset by its id: as given beside the folder, else as the recipe of a run over it names it."""
        summary = self.dataset_summary(dataset)
        if dataset in self._given:
            return self._given[dataset]
        key = (dataset, tuple(self.summary(run).signature for run in summary.runs))
        failed, error = self._unreadable.get(dataset, (float("-inf"), None))
        if error is not None and time.monotonic() - failed < _RETRY:
            raise error
        try:
            return self._datasets.get(key, lambda: self._read_dataset(summary))
        except CrosslensError as problem:
            self._unreadable[dataset] = time.monotonic(), problem
            raise

    def dataset_of(self, run: str) -> Dataset:
        """The dataset of a run."""
        summary = self.summary(run)
        if summary.dataset:
            return self.dataset(summary.dataset)
        given = list(self._given.values())
        if len(given) == 1:
            return given[0]
        raise UsageError(
            f"the run {summary.name!r} does not say which dataset it is of",
            fix="name the dataset when the server starts, as its data",
            code="no-dataset",
        )

    def _read_dataset(self, summary: DatasetSummary) -> Dataset:
        problem: CrosslensError | None = None
        for run in summary.runs:
            try:
                return dataset_of_run(recipe_alone(self.summary(run)))
            except CrosslensError as error:
                problem = problem or error
        same_name = [dataset for dataset in self._given.values() if dataset.name == summary.name]
        if same_name:
            return same_name[0]
        reason = "" if problem is None else f": {problem.problem}"
        raise InputError(
            f"the dataset {summary.name!r} cannot be read{reason}",
            fix="name the dataset when the server starts, as its data",
            code="no-dataset",
        )

    def image_folders(self, dataset: str) -> list[Path]:
        """The folders that may hold the pictures of a dataset, as its runs and its reader name them."""
        summary = self.dataset_summary(dataset)
        key = (dataset, tuple(self.summary(run).signature for run in summary.runs))
        return self._folders.get(key, lambda: self._image_folders(summary))

    def _image_folders(self, summary: DatasetSummary) -> list[Path]:
        folders: list[Path] = []
        for run in summary.runs:
            try:
                folder = image_folder_of(recipe_alone(self.summary(run)))
            except CrosslensError:
                continue
            folders += [] if folder is None else [folder]
        data = self.dataset(summary.id)
        own = [] if data.home is None else [data.home]
        return list(dict.fromkeys(path.absolute() for path in (*folders, *own, *data.extra_folders)))


def _load_study(folder: Path) -> Robustness | None:
    try:
        return Robustness.load(folder)
    except (CrosslensError, OSError):
        return None


def _dataset_of_study(study: Robustness) -> str:
    known = study.about.get("dataset")
    if not isinstance(known, dict) or not known.get("fingerprint"):
        return ""
    return dataset_id(str(known.get("name", "")), str(known["fingerprint"]))
