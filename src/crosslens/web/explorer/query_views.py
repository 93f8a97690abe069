"""A page of queries, and one query with what several runs retrieve for it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from crosslens.core import CrosslensError
from crosslens.web.explorer.figures import shown_value
from crosslens.web.explorer.models import ItemView, QueryList, QueryRow, QueryView, RunResult
from crosslens.web.explorer.query_table import QueryFilter, QueryTable
from crosslens.web.explorer.retrieval import directions_of
from crosslens.web.explorer.tables import QueryTables

STRIP = 5
"""Items shown beside each query of a list."""
_MOST_RELEVANT = 12
_SIDE_BY_SIDE = 4
_NOT_FACTS = ("text", "file", "image", "width", "height")


def query_list(
    tables: QueryTables, run: str, direction: str | None, chosen: QueryFilter, offset: int, limit: int
) -> QueryList:
    """The queries that match from ``offset`` on, at most ``limit``."""
    table = tables.table(run, direction)
    own = table.retrieval
    rows = table.select(chosen)
    dataset = tables.services.library.summary(run).dataset
    return QueryList(
        run=run,
        direction=own.direction,
        directions=directions_of(tables.run(run)),
        queries=len(own.query_ids),
        matching=len(rows),
        offset=offset,
        limit=limit,
        metrics=list(own.metrics),
        groups=table.groups,
        group_values=table.group_counts(chosen.group) if chosen.group else {},
        rows=[_row(tables, table, dataset, int(row)) for row in rows[offset : offset + limit]],
    )


def _row(tables: QueryTables, table: QueryTable, dataset: str, row: int) -> QueryRow:
    own = table.retrieval
    image = own.query_names[row] if own.forward else None
    expected = with_pictures(tables, dataset, own.relevant(row, 1))
    return QueryRow(
        query=own.query_ids[row],
        text=own.texts[row],
        image=image,
        has_picture=tables.has_picture(dataset, image),
        outcome=own.outcome(row),
        rank=own.rank(row),
        values=own.values(row),
        expected=expected[0] if expected else None,
        top=with_pictures(tables, dataset, own.top(row, STRIP)),
    )


def with_pictures(tables: QueryTables, dataset: str, items: Sequence[ItemView]) -> list[ItemView]:
    """The items, which now know whether there is a picture of them."""
    return [item.model_copy(update={"has_picture": tables.has_picture(dataset, item.image)}) for item in items]


def query_view(
    tables: QueryTables, run: str, direction: str | None, query: str, others: Sequence[str], k: int
) -> QueryView:
    """A query of a run beside what ``others`` retrieve for it; without any, the first runs over the same dataset."""
    library = tables.services.library
    table = tables.table(run, direction)
    own = table.retrieval
    row = own.row(query)
    dataset = library.summary(run).dataset
    same = {member: library.summary(member).name for member in _runs_over(tables, dataset) if member != run}
    shown = [other for other in others if other in same] or list(same)[: _SIDE_BY_SIDE - 1]
    results, notes = [_result(tables, run, table, row, k)], []
    for other in shown[: _SIDE_BY_SIDE - 1]:
        other_table = _table_with(tables, other, own.direction, query)
        if other_table is not None:
            results.append(_result(tables, other, other_table, other_table.retrieval.row(query), k))
        elif other in others:
            notes.append(f"{same[other]} has no such query.")
    _, problem = tables.dataset_if_known(run)
    notes += [] if problem is None else [f"Texts and pictures are missing: {problem}."]
    image = own.query_names[row] if own.forward else None
    compared = {result.run for result in results}
    return QueryView(
        dataset=dataset,
        direction=own.direction,
        query=query,
        text=own.text(row),
        image=image,
        has_picture=tables.has_picture(dataset, image),
        captions=_captions(table, image),
        columns=_columns(table, row),
        relevant=with_pictures(tables, dataset, own.relevant(row, _MOST_RELEVANT)),
        results=results,
        other_runs={member: name for member, name in same.items() if member not in compared},
        notes=notes,
    )


def _runs_over(tables: QueryTables, dataset: str) -> list[str]:
    library = tables.services.library
    return list(library.dataset_summary(dataset).runs) if dataset else []


def _table_with(tables: QueryTables, run: str, direction: str, query: str) -> QueryTable | None:
    """The queries of another run, if the query is among them; None where the run cannot be read."""
    try:
        if direction not in directions_of(tables.run(run)):
            return None
        table = tables.table(run, direction)
    except (CrosslensError, OSError):
        return None
    return table if query in table.retrieval.rows else None


def _result(tables: QueryTables, run: str, table: QueryTable, row: int, k: int) -> RunResult:
    own = table.retrieval
    summary = tables.services.library.summary(run)
    return RunResult(
        run=run,
        name=summary.name,
        outcome=own.outcome(row),
        rank=own.rank(row),
        values=own.values(row),
        items=with_pictures(tables, summary.dataset, own.top(row, k)),
    )


def _captions(table: QueryTable, image: str | None) -> list[str]:
    dataset = table.retrieval.dataset
    if image is None or dataset is None:
        return []
    return dataset.described.captions.filter(pl.col("image") == image)["text"].to_list()


def _columns(table: QueryTable, row: int) -> dict[str, str]:
    """What the dataset says of a query besides its text."""
    columns = table.retrieval.run.columns.get(table.retrieval.direction)
    if columns is None:
        return {}
    values = columns.row(row, named=True)
    return {name: shown_value(value) for name, value in values.items() if value is not None and name not in _NOT_FACTS}
