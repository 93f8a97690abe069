"""All runs in one table, two of them compared, and datasets: what they are like, and who retrieves an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl

from crosslens.core import (
    BOTH,
    TEXT_TO_IMAGE,
    Cell,
    CrosslensError,
    Dataset,
    FactList,
    Figure,
    Histogram,
    InputError,
    Link,
    Presented,
    Section,
    Table,
    UsageError,
    split_name,
)
from crosslens.data import DatasetDescription, describe
from crosslens.language import count_words
from crosslens.metrics import facts_of, metric_figure, unit_sentence
from crosslens.pipeline import Comparison, compare
from crosslens.web.background import RecentCache
from crosslens.web.explorer.queries import shown_facts
from crosslens.web.explorer.retrieval import QueryTables, Retrieval
from crosslens.web.library import RunSummary
from crosslens.web.pages import query_address

LONGEST = 40
"""Longer captions are counted as having so many words."""
_USUAL = ("Hit@1", "Hit@5", "Hit@10", "Recall@1", "Recall@5", "Recall@10", "MRR", "mAP@R", "MedR", "Rsum")
_SHOWN = 8
_MANY_VALUES, _PERMUTATIONS, _FEW = 200_000, 10_000, 1_000
_VALUES, _WRONG, _RUNS = 10, 10, 8


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
        """Metric → the runs with the best figure, one for each dataset with several runs."""
        by_dataset: dict[str, list[RunSummary]] = {}
        for run in self.runs:
            if run.problem is None:
                by_dataset.setdefault(run.dataset or run.dataset_name, []).append(run)
        best: dict[str, list[str]] = {metric: [] for metric in self.metrics}
        for members in by_dataset.values():
            for metric in self.metrics if len(members) > 1 else ():
                means = {run.id: mean for run in members if (mean := run.figure(metric).value) is not None}
                if means:
                    top = (max if facts_of(metric).higher_is_better else min)(means.values())
                    best[metric] += [run for run, mean in means.items() if mean == top]
        return best

    def sections(self) -> Iterator[Section]:
        """A row per run with its figures, the best of each dataset marked; then the folders that cannot be read."""
        read, best = [run for run in self.runs if run.problem is None], self.best
        has_folders = any(run.location != run.name for run in read)
        header = ("Run", *(("Folder",) if has_folders else ()), "Dataset", *self.metrics)
        rows = []
        for run in read:
            dataset = Link(run.dataset_name, f"/datasets/{quote(run.dataset, safe='')}") if run.dataset else None
            name = Link(run.name, f"/runs/{quote(run.id, safe='')}")
            place = (run.location,) if has_folders else ()
            rows.append((name, *place, dataset or run.dataset_name, *map(run.figure, self.metrics)))
        marked = frozenset(
            (row, column)
            for column, metric in enumerate(self.metrics, start=len(header) - len(self.metrics))
            for row, run in enumerate(read)
            if run.id in best[metric]
        )
        notes = (
            f"{len(self.runs)} of {self.total} runs. {unit_sentence(self.metrics)} In brackets: the interval.",
            *(["Bold: the best of its dataset."] if marked else []),
        )
        table = Table(header, rows, "l" * len(header), notes=notes, best=marked)
        broken = tuple((run.name, run.location, run.problem) for run in self.runs if run.problem is not None)
        damaged = Table(("Run", "Folder", "Problem"), broken, title="Cannot be read")
        yield Section("", (*((table,) if rows else ()), *((damaged,) if broken else ())))

    def as_dict(self) -> dict[str, Any]:
        return vars(self) | {"runs": [run.as_dict() for run in self.runs], "best": self.best}


@dataclass(frozen=True)
class RunFilter:
    """Which runs: those whose name or location holds every word of ``name``, with the metrics that hold a word."""

    dataset: str = ""
    name: str = ""
    metric: str = ""
    sort: str = ""
    descending: bool = True


def run_list(summaries: Sequence[RunSummary], chosen: RunFilter) -> RunList:
    """The runs that match; damaged ones match by location only."""
    words = chosen.name.lower().split()
    runs = [
        run
        for run in summaries
        if (not chosen.dataset or run.dataset == chosen.dataset or run.problem is not None)
        if all(word in f"{run.name}\n{run.location}".lower() for word in words)
    ]
    every = tuple(dict.fromkeys(known for run in summaries for known in run.metrics))
    if chosen.sort in every:
        means = {run.id: run.figure(chosen.sort).value for run in runs}
        runs.sort(key=lambda run: means[run.id] or 0.0, reverse=chosen.descending)
        runs.sort(key=lambda run: means[run.id] is None)
    runs.sort(key=lambda run: run.problem is not None)
    if words := chosen.metric.lower().split():
        shown = [known for known in every if any(word in known.lower() for word in words)]
    else:
        usual = [known for wanted in _USUAL for known in every if split_name(known)[1] == wanted][:_SHOWN]
        usual.sort(key=lambda known: (split_name(known)[0] != TEXT_TO_IMAGE, split_name(known)[0] == BOTH))
        shown = usual or list(every)[:_SHOWN]
    datasets = {run.dataset: run.dataset_name for run in summaries if run.dataset}
    return RunList(tuple(runs), len(summaries), tuple(shown), every, datasets)


class Comparisons:
    """Paired comparisons of two runs, kept."""

    def __init__(self, tables: QueryTables) -> None:
        self._library = tables.library
        self._cache: RecentCache[Comparison] = RecentCache(32)

    def compare(self, baseline: str, other: str, metric: str = "") -> Comparison:
        """Two runs on the metrics that they share and that contain a word of ``metric``.

        Large runs are tested with fewer permutations, so that a page does not take minutes: the notes say how many.
        """
        if baseline == other:
            raise UsageError("a run is compared with itself", fix="choose two different runs")
        first, second = self._library.run(baseline), self._library.run(other)
        words = metric.lower().split()
        names = [name for name in first if not words or any(word in name.lower() for word in words)]
        shared = [name for name in names if name in second.values]
        if not shared:
            raise UsageError("the two runs share no metric", fix="choose runs of the same evaluation")
        size = sum(len(first[name].values) for name in shared)
        permutations = _PERMUTATIONS if size <= _MANY_VALUES else _FEW
        signatures = (self._library.summary(run).signature for run in (baseline, other))
        key = (baseline, other, *signatures, metric)
        return self._cache.get(key, lambda: compare(first, second, metrics=shared, permutations=permutations))


def comparison_sections(comparison: Comparison, baseline: str, other: str) -> Iterator[Section]:
    """As everywhere, but the queries that differ most lead to their pages."""
    yield from (replace(section, title="") for section in comparison.sections(queries=False))
    rows: list[tuple[Cell, ...]] = []
    for result in comparison.results:
        plain = replace(metric_figure(result.metric, None), digits=3)
        direction = split_name(result.metric)[0]
        state = {"with": other, **({} if direction == BOTH else {"direction": direction})}
        for better, queries in ((result.other, result.largest_gains), (result.baseline, result.largest_losses)):
            for case in queries:
                values = (replace(plain, value=value, plain=True) for value in (case.baseline, case.other))
                page = Link(case.query, query_address(baseline, case.query, state))
                rows.append((result.metric, page, *values, better))
    header = ("metric", "query", comparison.baseline, comparison.others[0], "better")
    title = "The queries that differ most"
    yield Section("", (Table(header, rows, title=title, folded=True),) if rows else ())


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
        if self.card:
            yield Section("", (FactList(tuple(self.card.items()), "Card"),))
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


class DatasetPages:
    """Datasets of the served folder, their images with captions, and who retrieves an image."""

    def __init__(self, tables: QueryTables) -> None:
        self._tables, self._library = tables, tables.library
        self._cache: RecentCache[ServedDataset] = RecentCache(8)
        self._words: RecentCache[pl.DataFrame] = RecentCache(4)

    def rows(self) -> list[dict[str, Any]]:
        """All datasets, those that cannot be read with the reason."""
        rows = []
        for summary in self._library.datasets():
            row = {"id": summary.id, "name": summary.name, "runs": list(summary.runs)}
            known: dict[str, Any] = {"images": None, "captions": None, "problem": None}
            try:
                dataset = self._library.dataset(summary.id)
                known |= {"images": len(dataset.image_ids), "captions": len(dataset.caption_ids)}
            except (CrosslensError, OSError) as error:
                known["problem"] = error.problem if isinstance(error, CrosslensError) else "the dataset cannot be read"
            rows.append(row | known)
        return rows

    def dataset(self, name: str) -> tuple[ServedDataset, dict[str, str]]:
        """What a dataset is like, and the names of the runs over it by their ids."""
        summary, dataset = self._library.dataset_summary(name), self._library.dataset(name)
        served = self._cache.get((name, dataset.fingerprint), lambda: ServedDataset.of(name, dataset))
        return served, {run: self._library.summary(run).name for run in summary.runs}

    def images(self, name: str, search: str, offset: int, limit: int) -> dict[str, Any]:
        """The images whose captions or ids contain every word, a page at a time."""
        dataset = self._library.dataset(name)
        table = self._words.get((name, dataset.fingerprint), lambda: _image_words(dataset))
        total = table.height
        for word in search.lower().split():
            table = table.filter(pl.col("words").str.contains(word, literal=True))
        rows = [
            {"image": image, "has_picture": self._tables.has_picture(name, image), "captions": captions or []}
            for image, captions in table[offset : offset + limit].select("image", "captions").iter_rows()
        ]
        counts = {"images": total, "matching": table.height, "offset": offset, "limit": limit}
        return {"dataset": name, **counts, "rows": rows}

    def image(self, name: str, image: str) -> dict[str, Any]:
        """An image with its captions, and who retrieves it.

        ``image_ranks`` are by run the ranks of the first of its captions when the image is the query,
        ``retrieved_wrongly`` caption queries of other images with this image in their list, the highest ranks first.
        """
        (_, names), dataset = self.dataset(name), self._library.dataset(name)
        if image not in dataset.image_rows:
            raise InputError(f"no image {image!r:.200} in {dataset.name}", code="unknown-id", subject=image)
        runs = dict(list(names.items())[:_RUNS])
        by_text, by_image = (
            {run: known for run in runs if (known := self._tables.retrieval_if_known(run, direction)) is not None}
            for direction in (TEXT_TO_IMAGE, "i2t")
        )
        wrong = {run: _wrong_queries(retrieval, image) for run, retrieval in by_text.items()}
        objects: list[str] = []
        if dataset.objects is not None:
            counted = dataset.objects.filter(pl.col("image") == image)["name"].drop_nulls().value_counts(sort=True)
            objects = [f"{count} × {label}" if count > 1 else str(label) for label, count in counted.iter_rows()]
        captions = dataset.captions.filter(pl.col("image") == image).select("caption", "text").iter_rows()
        return {
            "dataset": name,
            "dataset_name": dataset.name,
            "image": image,
            "has_picture": self._tables.has_picture(name, image),
            "columns": shown_facts(dataset.images.row(dataset.image_rows[image], named=True)),
            "captions": [
                {"caption": caption, "text": text, "ranks": {run: _rank_of(by_text[run], caption) for run in by_text}}
                for caption, text in captions
            ],
            "objects": objects,
            "runs": runs,
            "image_ranks": {run: _rank_of(retrieval, image) for run, retrieval in by_image.items()},
            "retrieved_wrongly": {run: queries[:_WRONG] for run, queries in wrong.items()},
            "wrong_counts": {run: len(queries) for run, queries in wrong.items()},
        }


def _image_words(dataset: Dataset) -> pl.DataFrame:
    """One row per image: its captions, and all that can be searched for in lower case."""
    captions = dataset.captions.group_by("image", maintain_order=True).agg(pl.col("text").alias("captions"))
    joined = dataset.images.select("image").join(captions, on="image", how="left", maintain_order="left")
    words = pl.concat_str(
        pl.col("captions").list.join("\n").fill_null(""), pl.lit("\n"), pl.col("image")
    ).str.to_lowercase()
    return joined.with_columns(words.alias("words"))


def _rank_of(retrieval: Retrieval, query: str) -> int | None:
    row = retrieval.rows.get(query)
    return None if row is None else retrieval.rank(row)


def _wrong_queries(retrieval: Retrieval, image: str) -> list[dict[str, Any]]:
    """Caption queries with the image in their kept list although it is not relevant to them, the best ranks first."""
    ranking = retrieval.ranking
    if ranking is None or image not in retrieval.item_rows:
        return []
    item = retrieval.item_rows[image]
    rows, ranks = np.nonzero(ranking.top_items == item)
    relevant = set(ranking.rows[(ranking.relevant == item) & (ranking.grades > 0)].tolist())
    wrong: list[dict[str, Any]] = []
    for index in np.argsort(ranks, kind="stable"):
        if int(rows[index]) not in relevant:
            query = retrieval.run.rankings[retrieval.direction].query_ids[rows[index]]
            row = retrieval.rows.get(query)
            text = None if row is None or len(wrong) >= _WRONG else retrieval.texts[row]
            wrong.append({"query": query, "text": text, "rank": int(ranks[index]) + 1})
    return wrong
