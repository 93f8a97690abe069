"""All runs in one table, and what a dataset is like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote

import polars as pl

from crosslens.comparisons import dataset_label
from crosslens.core import FactList, Figure, Histogram, Link, Presented, Section, Table
from crosslens.data import DatasetDescription, describe
from crosslens.language import count_words
from crosslens.metrics import facts_of, unit_sentence
from crosslens.values import BOTH, TEXT_TO_IMAGE, Dataset, split_name
from crosslens.web.library import RunSummary

LONGEST = 40
"""Longer captions are counted as having so many words."""
_USUAL = ("Hit@1", "Hit@5", "Hit@10", "Recall@1", "Recall@5", "Recall@10", "MRR", "mAP@R", "MedR", "Rsum")
_SHOWN, _VALUES = 6, 10


@dataclass(frozen=True)
class RunList(Presented):
    """The runs that match, the metrics shown, and what runs can be filtered by. Damaged runs come last."""

    runs: tuple[RunSummary, ...]
    total: int
    metrics: tuple[str, ...]
    all_metrics: tuple[str, ...]
    datasets: dict[str, str]

    title = "Runs"

    @property
    def best(self) -> dict[str, list[str]]:
        """Metric → the runs with the best figure among those that can be compared with each other."""
        best: dict[str, list[str]] = {metric: [] for metric in self.metrics}
        for members in comparable_runs(self.runs):
            for metric in self.metrics:
                means = {run.id: mean for run in members if (mean := run.figure(metric).value) is not None}
                if means:
                    top = (max if facts_of(metric).higher_is_better else min)(means.values())
                    best[metric] += [run for run, mean in means.items() if mean == top]
        return best

    def sections(self) -> Iterator[Section]:
        """A row per run with its figures, the best of comparable ones marked; then the folders that cannot be read."""
        read, best = [run for run in self.runs if run.problem is None], self.best
        has_folders = len({run.name for run in read}) < len(read)
        header = ("Run", *(("Folder",) if has_folders else ()), "Dataset", *self.metrics)
        rows = []
        for run in read:
            label = dataset_label(run.provenance)
            dataset = Link(label, f"/datasets/{quote(run.dataset, safe='')}") if run.dataset else label
            name = Link(run.name, f"/runs/{quote(run.id, safe='')}")
            place = (run.location,) if has_folders else ()
            rows.append((name, *place, dataset, *map(run.figure, self.metrics)))
        marked = frozenset(
            (row, column)
            for column, metric in enumerate(self.metrics, start=len(header) - len(self.metrics))
            for row, run in enumerate(read)
            if run.id in best[metric]
        )
        notes = (
            f"{len(self.runs)} of {self.total} runs. {unit_sentence(self.metrics)} In brackets: the interval.",
            *(["Bold: the best of the runs with the same queries."] if marked else []),
        )
        table = Table(header, rows, "l" * len(header), notes=notes, best=marked)
        broken = tuple((run.name, run.location, run.problem) for run in self.runs if run.problem is not None)
        damaged = Table(("Run", "Folder", "Problem"), broken, title="Cannot be read")
        yield Section("", (*((table,) if rows else ()), *((damaged,) if broken else ())))

    def as_dict(self) -> dict[str, Any]:
        return vars(self) | {"runs": [run.as_dict() for run in self.runs], "best": self.best}


def comparable(first: RunSummary, second: RunSummary) -> bool:
    """Whether a paired comparison of two runs works: the same queries and relevant items, and a metric of both."""
    shared = [name for name in first.metrics if name in second.metrics]
    queries, relevant = zip(*(_compared_by(run, shared) for run in (first, second)), strict=True)
    return (
        first.problem is None and second.problem is None and bool(shared) and queries[0] == queries[1]
        and relevant[0] == relevant[1] and (bool(first.dataset) or all(map(_is_stated, relevant[0])))
        and all(first.metrics[name]["n"] == second.metrics[name]["n"] for name in shared)
    )  # fmt: skip


def _compared_by(run: RunSummary, metrics: Sequence[str]) -> tuple[tuple[Any, ...], list[Any]]:
    """What decides which queries a run has, and what says which items are relevant to those of each metric."""
    options, relevance = run.provenance.get("options", {}), run.provenance.get("relevance")
    relevance = relevance if isinstance(relevance, Mapping) else {}
    sampled = options.get("queries")
    seed = options.get("seed") if sampled else None
    queries = run.dataset, options.get("folds", 1), sampled, seed, run.provenance.get("text_sets")
    return queries, [relevance.get(split_name(name)[0], relevance) for name in metrics]


def _is_stated(relevance: Any) -> bool:
    """Whether the content of judgements is stated: without a dataset, only that says that two runs have the same."""
    return isinstance(relevance, Mapping) and bool(relevance.get("fingerprint"))


def comparable_runs(runs: Sequence[RunSummary]) -> list[tuple[RunSummary, ...]]:
    """The runs that can be compared with each other, those over one dataset together."""
    groups: list[list[RunSummary]] = []
    by_kind: dict[str, list[RunSummary]] = {}  # runs of one kind need not be looked at two by two
    for run in runs:
        counts = {name: values["n"] for name, values in run.metrics.items()}
        kind = repr((run.problem, counts, _compared_by(run, list(counts))))
        if kind not in by_kind and comparable(run, run):
            group = next((group for group in groups if all(comparable(run, member) for member in group)), None)
            if group is None:
                groups.append(group := [])
            by_kind[kind] = group
        if kind in by_kind:
            by_kind[kind].append(run)
    return [tuple(group) for group in groups if len(group) > 1]


@dataclass(frozen=True)
class RunFilter:
    """Which runs: those whose name or location holds every word of ``name``, with the metrics that hold a word."""

    dataset: str = ""
    name: str = ""
    metric: str = ""
    sort: str = ""
    descending: bool = True


def run_list(summaries: Sequence[RunSummary], filters: RunFilter) -> RunList:
    """The runs that match; damaged ones match by location only."""
    words = filters.name.lower().split()
    runs = [
        run
        for run in summaries
        if (not filters.dataset or run.dataset == filters.dataset or run.problem is not None)
        if all(word in f"{run.name}\n{run.location}".lower() for word in words)
    ]
    every = tuple(dict.fromkeys(metric for run in summaries for metric in run.metrics))
    if filters.sort in every:
        means = {run.id: run.figure(filters.sort).value for run in runs}
        runs.sort(key=lambda run: means[run.id] or 0.0, reverse=filters.descending)
        runs.sort(key=lambda run: means[run.id] is None)
    runs.sort(key=lambda run: run.problem is not None)
    if words := filters.metric.lower().split():
        columns = [metric for metric in every if any(word in metric.lower() for word in words)]
    else:
        usual = [metric for name in _USUAL for metric in every if split_name(metric)[1] == name][:_SHOWN]
        usual.sort(key=lambda metric: (split_name(metric)[0] != TEXT_TO_IMAGE, split_name(metric)[0] == BOTH))
        columns = usual or list(every)[:_SHOWN]
    datasets = {run.dataset: run.dataset_name for run in summaries if run.dataset}
    return RunList(tuple(runs), len(summaries), tuple(columns), every, datasets)


@dataclass(frozen=True)
class ServedDataset(Presented):
    """A dataset as its page shows it: its statistics, lengths of captions and the most frequent values of columns.

    ``word_counts`` are words of a caption → captions; the last may stand for all longer ones.
    """

    id: str
    description: DatasetDescription
    word_counts: dict[int, int]
    groups: tuple[dict[str, Any], ...]
    card: dict[str, str]

    @staticmethod
    def of(name: str, dataset: Dataset) -> ServedDataset:
        """Counted anew; every caption is looked at."""
        description = describe(dataset)
        lengths = count_words(dataset.captions["text"]).clip(upper_bound=LONGEST).value_counts()
        frames = {"images": dataset.images, "captions": dataset.captions, "objects": dataset.objects}
        groups = []
        for column, values in description.groups.items():
            table, _, label = column.partition(".")
            frame = frames[table]
            assert frame is not None
            labels = frame[label or "name"]
            labels = labels.explode() if isinstance(labels.dtype, pl.List) else labels
            counted = labels.cast(pl.String).fill_null("no value").value_counts(sort=True).head(_VALUES)
            groups.append({"column": column, "values": values, "counts": dict(counted.iter_rows())})
        counts = dict(sorted((int(length), int(count)) for length, count in lengths.iter_rows()))
        card = {entry: text for entry, text in asdict(dataset.card).items() if text}
        return ServedDataset(name, description, counts, tuple(groups), card)

    @property
    def title(self) -> str:
        return self.description.title

    def sections(self) -> Iterator[Section]:
        for section in self.description.sections():
            yield replace(section, title="")
        card = tuple((entry, text) for entry, text in self.card.items() if text not in self.description.notes)
        if card:
            yield Section("", (FactList(card, "Card"),))
        if self.word_counts:
            lengths = range(min(self.word_counts), max(self.word_counts) + 1)
            chart = Histogram(
                title="Captions by number of words", edges=(*lengths, lengths.stop), unit=Figure(None, digits=0),
                counts=tuple(self.word_counts.get(length, 0) for length in lengths), noun="captions", whole=True,
                axis=f"words, {LONGEST} or more together" if lengths[-1] >= LONGEST else "words",
            )  # fmt: skip
            yield Section("", (chart,))
        if self.groups:
            rows = tuple(
                (
                    group["column"],
                    group["values"],
                    ", ".join(f"{value} ({count:,})" for value, count in group["counts"].items()),
                )
                for group in self.groups
            )
            yield Section("Groups", (Table(("column", "values", "most frequent"), rows),))

    def as_dict(self) -> dict[str, Any]:
        counted = {"word_counts": self.word_counts, "groups": self.groups, "card": self.card}
        return {"id": self.id, **self.description.as_dict(), **counted}
