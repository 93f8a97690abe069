"""The runs and datasets of the served folder. Only reads; what appears in the folder appears here."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from crosslens.comparisons import dataset_label
from crosslens.core import CrosslensError, Figure, InputError, UnknownNameError, UsageError
from crosslens.explanations import dataset_of_run, image_folder_of
from crosslens.metrics import metric_figure
from crosslens.pipeline import ROBUSTNESS_FILE, Robustness
from crosslens.storage import being_written, json_form, read_manifest, read_text_file, read_whole
from crosslens.values import ASSUMED_FACTS, QUERIES_FILE, RECIPE_FILE, RUN_FILE, Dataset, Run, read_facts
from crosslens.web.background import RecentCache

_DEEPEST = 6
_MOST_FOLDERS = 20_000
"""Folders looked into: a served home directory must not keep the server busy for minutes."""
_PLAIN = re.compile(r"[A-Za-z0-9._~-]+")
_LONGEST_SLUG = 80


@dataclass(frozen=True)
class RunSummary:
    """What a run's header says; of a folder that cannot be read, ``problem`` says why.

    ``signature`` changes when the files do. ``dataset`` is the id of its dataset in addresses, empty where the run does
    not say its content: ``dataset_name`` is then what leaderboards call it.
    """

    id: str
    folder: Path
    location: str
    name: str
    signature: tuple[int, ...]
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    dataset: str = ""
    dataset_name: str = ""
    problem: str | None = None

    def figure(self, metric: str) -> Figure:
        """The figure of a metric with its interval; without a value where the run has none."""
        return metric_figure(metric, None).of_row(self.metrics.get(metric))

    def as_dict(self) -> dict[str, Any]:
        names = ("id", "name", "location", "dataset", "dataset_name", "problem")
        return {name: getattr(self, name) for name in names} | {"figures": self.metrics}


def address_name(text: str) -> str:
    """A text as a part of an address: as it is where it is plain, else with a hash that keeps different texts apart."""
    plain = text.replace("/", "~")
    if _PLAIN.fullmatch(plain) and len(plain) <= _LONGEST_SLUG and not set(plain) <= {"."} and "~" not in text:
        return plain
    slug = re.sub(r"[^A-Za-z0-9._~-]+", "_", plain).strip("._")[:_LONGEST_SLUG]
    return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def dataset_id(name: str, fingerprint: str) -> str:
    """A dataset in addresses: its name, and as much of its fingerprint as tells it from others."""
    return f"{address_name(name)}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:8]}"


def stored_folders(root: Path) -> tuple[list[Path], list[Path]]:
    """The runs and the robustness studies below ``root``, which may be one itself, sorted.

    The runs inside a study are parts of it. Links and hidden folders are not followed.
    """
    runs: list[Path] = []
    studies: list[Path] = []
    waiting, folders_read = deque([(root, 0)]), 0
    while waiting and folders_read < _MOST_FOLDERS:
        folder, depth = waiting.popleft()
        folders_read += 1
        if (folder / ROBUSTNESS_FILE).is_file():
            studies.append(folder)
        elif (folder / RUN_FILE).is_file() and not any(
            folder.is_relative_to(study) for study in studies if study != root
        ):
            runs.append(folder)
        if depth < _DEEPEST:
            with suppress(OSError), os.scandir(folder) as entries:  # removed meanwhile, or not ours to read
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
                waiting += [(folder / name, depth + 1) for name in names if not name.startswith((".", "ranking-"))]
    return runs, studies


def file_signature(*files: Path) -> tuple[int, ...]:
    """Times and sizes of files: equal where nothing was written."""
    numbers: list[int] = []
    for file in files:
        try:
            status = file.stat()
            numbers += [status.st_mtime_ns, status.st_size]
        except OSError:
            numbers += [0, 0]
    return tuple(numbers)


def read_summary(root: Path, folder: Path, signature: tuple[int, ...]) -> RunSummary:
    """The header of a run, its checksums compared with its files; whatever is wrong becomes its ``problem``."""
    location = "." if folder == root else folder.relative_to(root).as_posix()
    identity = address_name(root.resolve().name if folder == root else location)

    def read() -> dict[str, Any]:
        content, manifest = read_manifest(folder / RUN_FILE, "run")
        # Recipes may be removed, as before sharing a run.
        manifest.check_folder((QUERIES_FILE, *([RECIPE_FILE] if (folder / RECIPE_FILE).exists() else [])))
        return content

    try:
        content = read_whole(folder, folder / RUN_FILE, read=read)
        figures = {}
        for name, values in content["metrics"].items():
            numbers = {part: values.get(part) for part in ("mean", "low", "high")}
            for part, value in numbers.items():
                if value is not None and not isinstance(value, int | float):
                    raise ValueError(f"{name} has the {part} {value!r:.40}")
            facts = read_facts(name, values) or ASSUMED_FACTS
            unit = {"unit": facts.unit, "higher_is_better": facts.higher_is_better}
            figures[str(name)] = {**json_form(numbers), "n": int(values.get("n") or 0), **unit}
        provenance = dict(content.get("provenance", {}))
        source = provenance.get("dataset") or {}
        dataset, name = "", dataset_label(provenance)
        if fingerprint := str(source.get("fingerprint", "")):
            name = str(source.get("name", ""))
            dataset = dataset_id(name, fingerprint)
        label = str(content.get("name", folder.name))
        return RunSummary(identity, folder, location, label, signature, figures, provenance, dataset, name)
    except (CrosslensError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        problem = error.problem if isinstance(error, CrosslensError) else f"unreadable: {error}"
        return RunSummary(identity, folder, location, folder.name, signature, problem=problem.splitlines()[0])


def recipe_alone(summary: RunSummary) -> Run:
    """A run with nothing but its recipe: enough to find its dataset and pictures, and read at once."""
    file = summary.folder / RECIPE_FILE
    if not file.is_file():
        return Run(summary.name, {}, home=summary.folder)

    def read() -> str:
        read_manifest(summary.folder / RUN_FILE, "run")[1].check_folder((RECIPE_FILE,))
        return read_text_file(file)

    recipe = read_whole(summary.folder, summary.folder / RUN_FILE, read=read)
    return Run(summary.name, {}, recipe=recipe, home=summary.folder)


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
        self._study_folders: list[Path] = []
        self._runs: RecentCache[Run] = RecentCache(_RUNS)
        self._datasets: RecentCache[Dataset] = RecentCache(_DATASETS)
        self._unreadable: dict[str, tuple[float, CrosslensError | None]] = {}
        self._folders: RecentCache[list[Path]] = RecentCache(_DATASETS)
        self._studies: RecentCache[Robustness | None] = RecentCache(_STUDIES)

    def runs(self) -> list[RunSummary]:
        """All runs in the folder now, those that cannot be read too, by their location."""
        with self._lock:
            if time.monotonic() - self._looked > _SECONDS:
                by_folder = {summary.folder: summary for summary in self._summaries.values()}
                runs, self._study_folders = stored_folders(self.folder)
                fresh = []
                for folder in runs:
                    signature = file_signature(*(folder / name for name in (RUN_FILE, QUERIES_FILE, RECIPE_FILE)))
                    before = by_folder.get(folder)
                    same = before is not None and before.signature == signature
                    fresh.append(before if before and same else read_summary(self.folder, folder, signature))
                # Where two folders cannot be exchanged in one step, a run is gone while it is replaced.
                fresh += [by_folder[folder] for folder in by_folder.keys() - set(runs) if being_written(folder)]
                self._summaries = {summary.id: summary for summary in fresh}
                self._looked = time.monotonic()
            return list(self._summaries.values())

    def summary(self, run: str) -> RunSummary:
        """What is known of a run without reading its queries."""
        self.runs()
        if run not in (summaries := self._summaries):
            raise UnknownNameError("run", run, summaries)
        return summaries[run]

    def run(self, run: str) -> Run:
        """A run by its id; one that cannot be read raises."""
        summary = self.summary(run)
        if summary.problem is not None:
            raise InputError(summary.problem, file=summary.location, fix="repeat the evaluation", code="damaged-run")
        return self._runs.get((run, summary.signature), lambda: Run.load(summary.folder))

    def studies(self, dataset: str) -> dict[str, Robustness]:
        """The robustness studies of a dataset in the folder, by location; those that cannot be read are left out."""
        self.runs()

        def load(folder: Path) -> Robustness | None:
            try:
                return Robustness.load(folder)
            except (CrosslensError, OSError):
                return None

        studies = {}
        for folder in self._study_folders:
            key = (folder, file_signature(folder / ROBUSTNESS_FILE))
            study = self._studies.get(key, partial(load, folder))
            source = None if study is None else study.about.get("dataset")
            if study is None or not isinstance(source, dict) or not source.get("fingerprint"):
                continue
            if dataset_id(str(source.get("name", "")), str(source["fingerprint"])) == dataset:
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
        summaries = {summary.id: summary for summary in self.datasets()}
        if dataset not in summaries:
            raise UnknownNameError("dataset", dataset, summaries)
        return summaries[dataset]

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
        summary = self.summary(run)
        if summary.dataset:
            return self.dataset(summary.dataset)
        datasets = list(self._given.values())
        if len(datasets) == 1:
            return datasets[0]
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

        def find() -> list[Path]:
            folders: list[Path] = []
            for run in summary.runs:
                with suppress(CrosslensError):
                    folder = image_folder_of(recipe_alone(self.summary(run)))
                    folders += [] if folder is None else [folder]
            data = self.dataset(dataset)
            folders += [*([] if data.home is None else [data.home]), *data.extra_folders]
            return list(dict.fromkeys(path.absolute() for path in folders))

        return self._folders.get(key, find)
