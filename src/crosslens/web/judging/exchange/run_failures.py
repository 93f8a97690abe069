"""Items from a run: each failed query with what it retrieved first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from crosslens.core import Dataset, Ranking, Run, random_stream
from crosslens.explanations import failed_queries, ranking_of
from crosslens.web.judging.tasks.content import ItemContent, NewItem, ShownPicture, ShownText

QUERY, RETRIEVED, EXPECTED = "Query", "Retrieved", "Expected"
_METRICS = ("rank", "score", "truth_score", "margin")


def failure_items(
    run: Run | Mapping[str, Ranking],
    dataset: Dataset,
    direction: str | None = None,
    *,
    shown_as: str,
    with_truth: bool = False,
    limit: int | None = None,
    seed: int = 0,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
) -> list[NewItem]:
    """One item per failed query of a direction, in their order; ``limit`` draws so many of them.

    A text query shows its text and the retrieved picture, an image query its picture and the retrieved caption.
    ``with_truth`` also shows the picture that was expected. ``shown_as`` is the name under which the server offers the
    dataset's pictures. ``metrics`` are further numbers by query (φ, concept metrics), kept for correlations.
    """
    failures = sample(failed_queries(run, dataset, direction), limit, seed)
    ranking = ranking_of(run, direction, dataset)
    name = run.name if isinstance(run, Run) else ""
    return [
        _item(row, dataset, shown_as, {"run": name, "direction": ranking.direction}, with_truth, metrics or {})
        for row in failures.iter_rows(named=True)
    ]


def sample(rows: pl.DataFrame, limit: int | None, seed: int) -> pl.DataFrame:
    """All rows, or so many of them, drawn by the seed and in their order."""
    if limit is None or rows.height <= limit:
        return rows
    chosen = random_stream(seed, "judging", "sample").choice(rows.height, limit, replace=False)
    return rows[sorted(chosen.tolist())]


def _item(
    row: Mapping[str, Any],
    dataset: Dataset,
    shown_as: str,
    origin: Mapping[str, str],
    with_truth: bool,
    metrics: Mapping[str, Mapping[str, float]],
) -> NewItem:
    by_image = row["text"] is None
    if by_image:
        texts = (ShownText(row["answer"], RETRIEVED),)
        pictures = [ShownPicture(shown_as, row["query"], QUERY)]
        pair = {"image": row["query"], "caption": row["item"]}
    else:
        texts = (ShownText(row["text"], QUERY),)
        pictures = [ShownPicture(shown_as, row["retrieved"], RETRIEVED)]
        pair = {"image": row["retrieved"], "caption": row["query"]}
        if with_truth:
            pictures.append(ShownPicture(shown_as, row["ground_truth"], EXPECTED))
    numbers = {name: row[name] for name in _METRICS if row[name] is not None}
    numbers |= {name: values[row["query"]] for name, values in metrics.items() if row["query"] in values}
    about = {"from": "failures", **origin, "query": row["query"], "item": row["item"], **pair}
    about |= {"expected_image": row["ground_truth"], "dataset": dataset.name, "metrics": numbers}
    return NewItem(ItemContent(tuple(pictures), texts, about))
