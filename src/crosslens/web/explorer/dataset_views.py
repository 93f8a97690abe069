"""Datasets: what they are like, their images with captions, and who retrieves an image."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import TEXT_TO_IMAGE, CrosslensError, Dataset, InputError
from crosslens.data import describe
from crosslens.language import count_words
from crosslens.web.explorer.figures import shown_value
from crosslens.web.explorer.models import (
    CaptionView,
    DatasetRow,
    DatasetView,
    GroupView,
    ImageList,
    ImageRow,
    ImageView,
    SpreadView,
    WrongQuery,
)
from crosslens.web.explorer.retrieval import Retrieval, directions_of
from crosslens.web.explorer.tables import QueryTables
from crosslens.web.kept import Kept
from crosslens.web.library import DatasetSummary

LONGEST = 40
"""Longer captions are counted as having so many words."""
_VALUES, _WRONG, _RUNS = 10, 10, 8
_NOT_FACTS = ("image", "file", "caption", "text", "width", "height")


class DatasetPages:
    """The descriptions of datasets, kept: each takes a look at every caption."""

    def __init__(self, tables: QueryTables) -> None:
        self._tables, self._library = tables, tables.services.library
        self._kept: Kept[DatasetView] = Kept(8)
        self._words: Kept[pl.DataFrame] = Kept(4)

    def rows(self) -> list[DatasetRow]:
        """All datasets, those that cannot be read with the reason."""
        return [self._row(summary) for summary in self._library.datasets()]

    def _row(self, summary: DatasetSummary) -> DatasetRow:
        known: dict[str, Any] = {"id": summary.id, "name": summary.name, "runs": list(summary.runs)}
        try:
            dataset = self._library.dataset(summary.id)
        except (CrosslensError, OSError) as error:
            problem = error.problem if isinstance(error, CrosslensError) else "the dataset cannot be read"
            return DatasetRow(**known, images=None, captions=None, problem=problem)
        return DatasetRow(**known, images=len(dataset.image_ids), captions=len(dataset.caption_ids), problem=None)

    def view(self, name: str) -> DatasetView:
        """What a dataset is like."""
        summary, dataset = self._library.dataset_summary(name), self._library.dataset(name)
        view = self._kept.get((name, dataset.fingerprint), lambda: _view(summary, dataset))
        return view.model_copy(update={"runs": self._run_names(summary)})

    def _run_names(self, summary: DatasetSummary) -> dict[str, str]:
        return {run: self._library.summary(run).name for run in summary.runs}

    def images(self, name: str, search: str, offset: int, limit: int) -> ImageList:
        """The images whose captions or ids contain every word, a page at a time."""
        dataset = self._library.dataset(name)
        table = self._words.get((name, dataset.fingerprint), lambda: _image_words(dataset))
        total = table.height
        for word in search.lower().split():
            table = table.filter(pl.col("words").str.contains(word, literal=True))
        rows = [
            ImageRow(image=image, has_picture=self._tables.has_picture(name, image), captions=captions or [])
            for image, captions in table[offset : offset + limit].select("image", "captions").iter_rows()
        ]
        return ImageList(dataset=name, images=total, matching=table.height, offset=offset, limit=limit, rows=rows)

    def image(self, name: str, image: str) -> ImageView:
        """An image with its captions, and who retrieves it."""
        summary, dataset = self._library.dataset_summary(name), self._library.dataset(name)
        if image not in dataset.image_rows:
            raise InputError(f"no image {image!r:.200} in {dataset.name}", code="unknown-id", subject=image)
        captions = dataset.captions.filter(pl.col("image") == image)
        runs = dict(list(self._run_names(summary).items())[:_RUNS])
        text_queries = {run: own for run in runs if (own := self._retrieval(run, TEXT_TO_IMAGE)) is not None}
        image_queries = {run: own for run in runs if (own := self._retrieval(run, "i2t")) is not None}
        wrong = {run: _wrong_queries(own, image) for run, own in text_queries.items()}
        return ImageView(
            dataset=name,
            dataset_name=dataset.name,
            image=image,
            has_picture=self._tables.has_picture(name, image),
            columns=_facts(dataset.images.row(dataset.image_rows[image], named=True)),
            captions=[
                CaptionView(
                    caption=caption, text=text,
                    ranks={run: _rank_of(own, caption) for run, own in text_queries.items()},
                )
                for caption, text in captions.select("caption", "text").iter_rows()
            ],
            objects=_objects(dataset, image),
            runs=runs,
            image_ranks={run: _rank_of(own, image) for run, own in image_queries.items()},
            retrieved_wrongly={run: queries[:_WRONG] for run, queries in wrong.items()},
            wrong_counts={run: len(queries) for run, queries in wrong.items()},
        )  # fmt: skip

    def _retrieval(self, run: str, direction: str) -> Retrieval | None:
        try:
            if direction not in directions_of(self._tables.run(run)):
                return None
            return self._tables.table(run, direction).retrieval
        except CrosslensError:  # damaged since the folder was looked at
            return None


def _view(summary: DatasetSummary, dataset: Dataset) -> DatasetView:
    about = describe(dataset)
    lengths = count_words(dataset.captions["text"]).clip(upper_bound=LONGEST)
    counts = dict(sorted(lengths.value_counts().iter_rows()))
    return DatasetView(
        id=summary.id,
        name=dataset.name,
        runs={},
        images=about.images,
        captions=about.captions,
        objects=about.objects,
        captions_per_image=SpreadView(**asdict(about.captions_per_image)),
        words=SpreadView(**asdict(about.words)),
        word_counts={int(length): int(count) for length, count in counts.items()},
        groups=[_group(dataset, column, values) for column, values in about.groups.items()],
        problems=list(about.problems),
        card={name: text for name, text in asdict(dataset.card).items() if text},
    )


def _group(dataset: Dataset, column: str, values: int) -> GroupView:
    table, _, name = column.partition(".")
    frame = {"images": dataset.images, "captions": dataset.captions, "objects": dataset.objects}[table]
    assert frame is not None
    labels = frame[name or "name"]
    labels = labels.explode() if isinstance(labels.dtype, pl.List) else labels
    counted = labels.cast(pl.String).fill_null("no value").value_counts(sort=True).head(_VALUES)
    return GroupView(column=column, values=values, counts={str(value): int(count) for value, count in counted.rows()})


def _image_words(dataset: Dataset) -> pl.DataFrame:
    """One row per image: its captions, and all that can be searched for in lower case."""
    captions = dataset.captions.group_by("image", maintain_order=True).agg(pl.col("text").alias("captions"))
    joined = dataset.images.select("image").join(captions, on="image", how="left", maintain_order="left")
    words = pl.concat_str(
        pl.col("captions").list.join("\n").fill_null(""), pl.lit("\n"), pl.col("image")
    ).str.to_lowercase()
    return joined.with_columns(words.alias("words"))


def _facts(row: dict[str, Any]) -> dict[str, str]:
    return {name: shown_value(value) for name, value in row.items() if value is not None and name not in _NOT_FACTS}


def _objects(dataset: Dataset, image: str) -> list[str]:
    if dataset.objects is None:
        return []
    names = dataset.objects.filter(pl.col("image") == image)["name"].drop_nulls().value_counts(sort=True)
    return [f"{count} × {name}" if count > 1 else str(name) for name, count in names.iter_rows()]


def _rank_of(own: Retrieval, query: str) -> int | None:
    row = own.rows.get(query)
    return None if row is None else own.rank(row)


def _wrong_queries(own: Retrieval, image: str) -> list[WrongQuery]:
    """Caption queries with the image in their kept list although it is not relevant to them, the best ranks first."""
    ranking = own.ranking
    if ranking is None or image not in own.item_rows:
        return []
    item = own.item_rows[image]
    rows, ranks = np.nonzero(ranking.top_items == item)
    relevant = set(ranking.rows[(ranking.relevant == item) & (ranking.grades > 0)].tolist())
    order = [index for index in np.argsort(ranks, kind="stable") if int(rows[index]) not in relevant]
    wrong: list[WrongQuery] = []
    for index in order:
        query = own.run.rankings[own.direction].query_ids[rows[index]]
        row = own.rows.get(query)
        text = None if row is None or len(wrong) >= _WRONG else own.text(row)
        wrong.append(WrongQuery(query=query, text=text, rank=int(ranks[index]) + 1))
    return wrong
