"""Ranked lists and qrels in and out: TREC, JSON and JSON lines.

JSON is ``{query: [ids]}`` or ``{query: {id: number}}`` (as ranx writes it); JSON lines hold one query each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from crosslens.core import (
    UNRANKED,
    Ids,
    InputError,
    RankedLists,
    Ranking,
    Relevance,
    decode,
    is_finite_number,
    is_inexact,
    parse_json,
    reading,
)
from crosslens.data.io.checks import check_ids, check_unique
from crosslens.data.io.files import existing_file, format_stem, format_suffix, read_bytes, read_json, writing_bytes
from crosslens.data.io.records import read_records
from crosslens.data.io.trec import parse_qrels, parse_run

_BLOCK = 1_000_000
_LAYOUT = "{query: [item, …]} or {query: {item: number}}"


@dataclass(frozen=True)
class _QueryItems:
    """The items of one query in a file, with their scores or grades."""

    query: str
    row_name: str
    items: list[str]
    numbers: Sequence[float] | None


def _run_from(entries: Iterable[_QueryItems]) -> RankedLists:
    """By score where there are scores, otherwise in the order given."""
    lists: dict[str, Any] = {
        entry.query: entry.items if entry.numbers is None else dict(zip(entry.items, entry.numbers, strict=True))
        for entry in entries
    }
    return RankedLists.of(lists)


def _qrels_from(entries: Sequence[_QueryItems], source: str) -> Relevance:
    """Grade 1 where the file has no grades; a grade below 0 is no judgement, as in TREC files."""
    pairs = [
        (entry.query, item, grade)
        for entry in entries
        for item, grade in zip(entry.items, entry.numbers or [1.0] * len(entry.items), strict=True)
        if grade >= 0
    ]
    named = dict.fromkeys(item for entry in entries for item in entry.items)
    return Relevance.from_pairs(
        [query for query, _, _ in pairs],
        [item for _, item, _ in pairs],
        [grade for _, _, grade in pairs],
        query_ids=[entry.query for entry in entries],
        item_ids=named,
        source=source,
    )


def _from_mapping(path: Path) -> Iterator[_QueryItems]:
    content = read_json(path)
    if not isinstance(content, dict) or not content:
        top = "nothing" if content in ({}, []) else type(content).__name__
        raise InputError(f"the file holds {top} at its top", expected=_LAYOUT, fix="write one entry per query")
    for query, ranked in content.items():
        row_name = f"query {query!r}"
        if isinstance(ranked, Mapping):
            yield _QueryItems(query, row_name, list(ranked), _numbers(list(ranked.values()), list(ranked), row_name))
        elif isinstance(ranked, list):
            yield _QueryItems(query, row_name, _items(ranked, row_name), None)
        else:
            raise InputError(
                f"the list is {ranked!r:.60}", row=row_name, expected=_LAYOUT, fix="write the query's items as a list"
            )


def _from_lines(path: Path, key: str) -> Iterator[_QueryItems]:
    records = read_records(path)
    queries = records.ids("query")
    check_unique(queries, "query", records.row_name)
    for index, (query, items) in enumerate(zip(queries, records.values("items"), strict=True)):
        row_name = str(records.row_name(index))
        if not isinstance(items, list):
            raise InputError(f"'items' is {items!r:.60}", row=row_name, expected="a list of ids", fix="put it in […]")
        numbers = records.rows[index].get(key)
        if numbers is not None and (not isinstance(numbers, list) or len(numbers) != len(items)):
            count = len(numbers) if isinstance(numbers, list) else 0
            expected = f"one of the {key} for every item"
            fix = f"complete {key!r}, or leave it out"
            raise InputError(f"{count} {key} for {len(items)} items", row=row_name, expected=expected, fix=fix)
        ids = _items(items, row_name)
        yield _QueryItems(query, row_name, ids, None if numbers is None else _numbers(numbers, ids, row_name))


def _items(items: list[Any], row_name: str) -> list[str]:
    ids = check_ids(items, "item id", lambda index: f"{row_name}, item {index}")
    check_unique(ids, "item", lambda index: f"{row_name}, item {index}")
    return ids


def _numbers(values: list[Any], items: list[str], row_name: str) -> list[float]:
    for item, value in zip(items, values, strict=True):
        if not is_finite_number(value) or is_inexact(value):
            problem = f"the number of item {item!r} is {value!r:.40}"
            expected = "a whole number up to 2⁵³" if type(value) is int else "a finite number"
            raise InputError(problem, row=row_name, expected=expected, fix="correct it, or leave the item out")
    return [float(value) for value in values]


def read_run(path: str | Path) -> RankedLists:
    """The ranking of a system: higher scores first, equal scores in the order of the file's ranks.

    TREC (``query Q0 item rank score system``), JSON (``{query: [ids]}`` best first, or ``{query: {id: score}}`` as
    ranx saves it), or JSON lines (``{"query": …, "items": […], "scores": […]}``); each may be .gz.
    """
    content, entries = _read(existing_file(path), "scores")
    with reading(path):
        return parse_run(content) if entries is None else _run_from(entries)


def read_qrels(path: str | Path) -> Relevance:
    """Qrels: which items are relevant to which query, with grades.

    TREC qrels (``query 0 item grade``), JSON (``{query: [ids]}`` or ``{query: {id: grade}}``), or JSON lines
    (``{"query": …, "items": […], "grades": […]}``); each may be .gz. Grade 0 is judged irrelevant, a grade below 0 is
    no judgement.
    """
    content, entries = _read(existing_file(path), "grades")
    source = format_stem(path)
    with reading(path):
        return parse_qrels(content, source) if entries is None else _qrels_from(list(entries), source)


def write_run(ranking: Ranking | RankedLists, path: str | Path, system: str | None = None) -> Path:
    """Write ranked lists: TREC, or by the ending ``.json`` (``{query: {id: score}}``) or ``.jsonl``; .gz too.

    ``system`` is the name in the last TREC column. An existing file is replaced.
    """
    if isinstance(ranking, Ranking):
        kept = ranking.top_items != UNRANKED
        rows, ranks = np.nonzero(kept)
        items, scores = ranking.top_items[kept], ranking.top_scores[kept]
    else:
        rows = np.repeat(np.arange(len(ranking.query_ids)), np.diff(ranking.offsets))
        ranks = np.arange(len(rows)) - ranking.offsets[rows]
        items, scores = ranking.items, ranking.scores
    name = system or (ranking.system if isinstance(ranking, RankedLists) else "") or "crosslens"
    columns = {"rank": pl.Series(ranks + 1), "score": pl.Series(scores), "system": pl.lit(name)}
    pairs = _Pairs(ranking.query_ids, ranking.item_ids, rows, items, scores, "scores")
    return pairs.write(path, "Q0", columns, system=name)


def write_qrels(relevance: Relevance, path: str | Path) -> Path:
    """Write qrels: TREC qrels, or by the ending ``.json`` (``{query: {id: grade}}``) or ``.jsonl``; .gz too.

    Whole grades are written without a decimal point. An existing file is replaced.
    """
    whole = bool((relevance.grades == np.round(relevance.grades)).all())
    grades = relevance.grades.astype(np.int64) if whole else relevance.grades
    pairs = _Pairs(relevance.query_ids, relevance.item_ids, relevance.rows, relevance.items, grades, "grades")
    return pairs.write(path, "0", {"grade": pl.Series(grades)})


def _read(path: Path, key: str) -> tuple[bytes, Iterator[_QueryItems] | None]:
    """The content, and its entries if it is JSON or JSON lines: by the ending, otherwise by how the content begins."""
    content = read_bytes(path)
    head = content[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        raise InputError("the file is empty", file=path, expected="a run or qrels", fix="check how it was written")
    if format_suffix(path) == ".jsonl":
        return content, _from_lines(path, key)
    if not head.startswith((b"{", b"[")):
        return content, _from_mapping(path) if format_suffix(path) == ".json" else None
    try:
        row = parse_json(decode(content.lstrip().split(b"\n", 1)[0]))
    except InputError:
        row = None
    is_line = isinstance(row, dict) and {"query", "items"} <= row.keys()
    return content, _from_lines(path, key) if is_line else _from_mapping(path)


def _check_words(ids: Ids, what: str, path: str | Path) -> None:
    bad = pl.Series(ids, dtype=pl.String).str.contains(r"\s").arg_true()
    if len(bad):
        expected = "names without spaces: columns of TREC files are separated by them"
        fix = "rename it, or write a .json or .jsonl file"
        raise InputError(f"the {what} {ids[int(bad[0])]!r} holds white space", file=path, expected=expected, fix=fix)


@dataclass(frozen=True)
class _Pairs:
    """Queries and items to be written, query by query, with the ``numbers`` that JSON lines call ``key``."""

    query_ids: Ids
    item_ids: Ids
    rows: np.ndarray[Any, Any]
    items: np.ndarray[Any, Any]
    numbers: np.ndarray[Any, Any]
    key: str

    def write(self, path: str | Path, second: str, columns: dict[str, Any], system: str = "") -> Path:
        """As JSON by the ending of ``path``, else as TREC, with ``second`` as second column and ``columns`` last."""
        with writing_bytes(path) as out:
            if (suffix := format_suffix(path)) in (".json", ".jsonl"):
                out.write(self._json(suffix).encode())
            else:
                _check_words((system,), "system name", path)
                _check_words(self.query_ids, "query id", path)
                _check_words(self.item_ids, "item id", path)
                self._write_trec(out, second, columns)
        return Path(path)

    def _write_trec(self, out: IO[bytes], second: str, columns: dict[str, Any]) -> None:
        queries, names = pl.Series(self.query_ids, dtype=pl.String), pl.Series(self.item_ids, dtype=pl.String)
        frame = pl.DataFrame({"row": self.rows, "column": self.items}).with_columns(**columns)
        for block in frame.iter_slices(_BLOCK):
            block.select(
                queries.gather(block["row"]).alias("query"),
                pl.lit(second).alias("second"),
                names.gather(block["column"]).alias("item"),
                pl.exclude("row", "column"),
            ).write_csv(out, include_header=False, separator=" ", quote_style="never")

    def _json(self, suffix: str) -> str:
        # numpy prints the shortest text that gives the number back; through Python's float a float32 would grow digits.
        texts = self.numbers.astype(str).tolist()
        names = [json.dumps(self.item_ids[item], ensure_ascii=False) for item in self.items]
        offsets = np.searchsorted(self.rows, np.arange(len(self.query_ids) + 1))
        rows = []
        for query, start, end in zip(self.query_ids, offsets[:-1], offsets[1:], strict=True):
            quoted = json.dumps(query, ensure_ascii=False)
            if suffix == ".json":
                pairs = zip(names[start:end], texts[start:end], strict=True)
                rows.append(f"{quoted}: {{{', '.join(f'{name}: {text}' for name, text in pairs)}}}")
            else:
                both = f'"items": [{", ".join(names[start:end])}], "{self.key}": [{", ".join(texts[start:end])}]'
                rows.append(f'{{"query": {quoted}, {both}}}')
        return "{" + ",\n".join(rows) + "}\n" if suffix == ".json" else "".join(f"{row}\n" for row in rows)
