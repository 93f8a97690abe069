"""Rankings and judgements as JSON: ``{query: [ids]}``, ``{query: {id: number}}`` (ranx), or JSON lines per query."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core.errors import InputError
from crosslens.core.lists import RankedLists
from crosslens.core.relevance import Relevance
from crosslens.data.checks import check_ids, check_unique
from crosslens.data.files import read_json
from crosslens.data.json_lines import read_records

_LAYOUT = "{query: [item, …]} or {query: {item: number}}"


@dataclass(frozen=True)
class _Query:
    """What a file says of one query."""

    query: str
    place: str
    items: list[str]
    numbers: Sequence[float] | None


def parse_run_json(path: Path, lines: bool) -> RankedLists:
    """Ranked lists: by score where there are scores, otherwise in the order given."""
    found = list(_from_lines(path, "scores") if lines else _from_mapping(path))
    lists: dict[str, Any] = {
        one.query: one.items if one.numbers is None else dict(zip(one.items, one.numbers, strict=True)) for one in found
    }
    return RankedLists.of(lists)


def parse_qrels_json(path: Path, lines: bool, source: str) -> Relevance:
    """Judgements: grade 1 where no grades are given."""
    found = list(_from_lines(path, "grades") if lines else _from_mapping(path))
    for one in found:
        for item, grade in zip(one.items, one.numbers or (), strict=False):
            if grade < 0:
                raise InputError(
                    f"the grade of item {item!r} is {grade:g}",
                    row=one.place,
                    expected="0 (irrelevant) or a number above",
                    fix="write 0 for irrelevant, or leave the item out",
                )
    return Relevance.from_pairs(
        [one.query for one in found for _ in one.items],
        [item for one in found for item in one.items],
        [grade for one in found for grade in (one.numbers or [1.0] * len(one.items))],
        query_ids=[one.query for one in found],
        source=source,
    )


def _from_mapping(path: Path) -> Iterator[_Query]:
    content = read_json(path)
    if not isinstance(content, dict) or not content:
        found = "nothing" if content in ({}, []) else type(content).__name__
        raise InputError(f"the file holds {found} at its top", expected=_LAYOUT, fix="write one entry per query")
    for query, ranked in content.items():
        place = f"query {query!r}"
        if isinstance(ranked, Mapping):
            yield _Query(query, place, list(ranked), _numbers(list(ranked.values()), list(ranked), place))
        elif isinstance(ranked, list):
            yield _Query(query, place, _items(ranked, place), None)
        else:
            raise InputError(
                f"the list is {ranked!r:.60}", row=place, expected=_LAYOUT, fix="write the query's items as a list"
            )


def _from_lines(path: Path, key: str) -> Iterator[_Query]:
    records = read_records(path)
    queries = records.ids("query")
    check_unique(queries, "query", records.place)
    for index, (query, items) in enumerate(zip(queries, records.values("items"), strict=True)):
        place = str(records.place(index))
        if not isinstance(items, list):
            raise InputError(f"'items' is {items!r:.60}", row=place, expected="a list of ids", fix="put it in […]")
        numbers = records.rows[index].get(key)
        if numbers is not None and (not isinstance(numbers, list) or len(numbers) != len(items)):
            count = len(numbers) if isinstance(numbers, list) else 0
            raise InputError(
                f"{count} {key} for {len(items)} items",
                row=place,
                expected=f"one of the {key} for every item",
                fix=f"complete {key!r}, or leave it out",
            )
        ids = _items(items, place)
        yield _Query(query, place, ids, None if numbers is None else _numbers(numbers, ids, place))


def _items(items: list[Any], place: str) -> list[str]:
    ids = check_ids(items, "item id", lambda index: f"{place}, item {index}")
    check_unique(ids, "item", lambda index: f"{place}, item {index}")
    return ids


def _numbers(values: list[Any], items: list[str], place: str) -> list[float]:
    for item, value in zip(items, values, strict=True):
        if type(value) not in (int, float) or not math.isfinite(value):
            raise InputError(
                f"the number of item {item!r} is {value!r:.40}",
                row=place,
                expected="a finite number",
                fix="correct it, or leave the item out",
            )
    return [float(value) for value in values]
