"""Items from failures: each failed query with what it retrieved first, its concept metrics and its derived causes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from crosslens.core import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    Dataset,
    InputError,
    MissingExtraError,
    Progress,
    Run,
    random_stream,
)
from crosslens.data import RowName
from crosslens.explanations import explain_run, failed_queries, ranking_of
from crosslens.web.judging.tasks.content import ItemContent, NewItem, ShownPicture, ShownText

QUERY, RETRIEVED = "Query", "Retrieved"
FAILURE_COLUMNS = ("query", "text", "ground_truth", "retrieved", "item", "answer")
"""The columns by which a table of failures is known: ``failures.parquet`` of ``crosslens explain -o`` has them."""
_CONCEPTS = ("CA", "NonCommonSimilarity", "CE", "SD", "SD[binary]")
_METRICS = ("rank", "score", "truth_score", "margin", *_CONCEPTS, *(f"query {name}" for name in _CONCEPTS))
_CAUSE = "cause_"


def run_items(
    run: Run,
    dataset: Dataset,
    direction: str | None = None,
    *,
    shown_as: str,
    limit: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[list[NewItem], str]:
    """One item per failed query of a direction, in their order; ``limit`` draws so many of them.

    Where the dataset has objects, items come with concept metrics and derived causes, as ``crosslens explain`` has
    them; otherwise the second value says why not. ``shown_as`` is the name under which the server offers the
    dataset's pictures.
    """
    ranking = ranking_of(run, direction, dataset)
    failures = sample(failed_queries(run, dataset, direction), limit, seed)
    note = ""
    if dataset.objects is None or not dataset.objects.height:
        note = f"no concept metrics and causes: the dataset {dataset.name} has no objects"
    elif failures.height:
        chosen = set(failures["query"])
        rows = [row for row, query in enumerate(ranking.query_ids) if query in chosen]
        drawn = replace(run, rankings={ranking.direction: ranking.of_queries(rows)})
        try:
            failures = explain_run(drawn, dataset, ranking.direction, resamples=0, progress=progress).failures
        except MissingExtraError as error:
            note = f"no concept metrics and causes: {error.problem}; {error.fix}"
    origin = {"run": run.name, "direction": ranking.direction}
    return failure_items(failures, dataset, shown_as=shown_as, origin=origin), note


def failure_items(
    failures: pl.DataFrame,
    dataset: Dataset,
    *,
    shown_as: str,
    origin: Mapping[str, str] | None = None,
    row_name: RowName | None = None,
) -> list[NewItem]:
    """One item per row of a table of failures.

    A text query shows its text and the retrieved picture, an image query its picture and the retrieved caption.
    ``origin`` names the run and the direction; the direction is otherwise that of the rows.
    """
    known = set(dataset.image_ids)
    items = []
    for number, row in enumerate(failures.iter_rows(named=True)):
        if unknown := [row[name] for name in ("ground_truth", "retrieved") if row[name] not in known]:
            raise InputError(
                f"image {unknown[0]!r} is not in the dataset {dataset.name!r}",
                row=row_name(number) if row_name else number,
                fix="name the dataset of the run",
                subject=str(unknown[0]),
            )
        direction = IMAGE_TO_TEXT if row["text"] is None else TEXT_TO_IMAGE
        items.append(_item(row, dataset, shown_as, {"run": "", "direction": direction, **(origin or {})}))
    return items


def sample(rows: pl.DataFrame, limit: int | None, seed: int) -> pl.DataFrame:
    """All rows, or so many of them, drawn by the seed and in their order."""
    if limit is None or rows.height <= limit:
        return rows
    chosen = random_stream(seed, "judging", "sample").choice(rows.height, limit, replace=False)
    return rows[sorted(chosen.tolist())]


def _item(row: Mapping[str, Any], dataset: Dataset, shown_as: str, origin: Mapping[str, str]) -> NewItem:
    if row["text"] is None:
        text, picture = ShownText(row["answer"], RETRIEVED), ShownPicture(shown_as, row["query"], QUERY)
        pair = {"image": row["query"], "caption": row["item"]}
    else:
        text, picture = ShownText(row["text"], QUERY), ShownPicture(shown_as, row["retrieved"], RETRIEVED)
        pair = {"image": row["retrieved"], "caption": row["query"]}
    about = {"from": "failures", **origin, "query": row["query"], "item": row["item"], **pair}
    about |= {"expected_image": row["ground_truth"], "dataset": dataset.name}
    about |= {"metrics": {name: row[name] for name in _METRICS if row.get(name) is not None}}
    causes = {name.removeprefix(_CAUSE).replace("_", " "): row[name] for name in row if name.startswith(_CAUSE)}
    return NewItem(ItemContent((picture,), (text,), about | ({"causes": causes} if causes else {})))
