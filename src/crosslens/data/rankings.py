"""Ranked lists and qrels in and out: TREC, JSON and JSON lines.

TREC files are read in columns: runs (``query Q0 item rank score system``) and qrels (``query 0 item grade``). What
trec_eval reads is read here: blank lines and lines that begin with ``#`` are skipped, text after the system of a run is
ignored, and a grade below 0 is no judgement. Unlike trec_eval, ties follow the rank column, and a file of two systems
is refused. Ids with white space are escaped (:func:`crosslens.values.escape_ids`).

JSON is ``{query: [ids]}`` or ``{query: {id: number}}`` (as ranx writes it); JSON lines hold one query each.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError, reading, to_stderr
from crosslens.data.files import existing_file, format_stem, format_suffix, read_bytes, read_json, writing_bytes
from crosslens.data.rows import TABLE_SUFFIXES, check_ids, check_unique, read_records, wrong_width
from crosslens.storage import Array, decode, is_finite_number, parse_json
from crosslens.values import (
    LARGEST_WHOLE,
    UNRANKED,
    Ids,
    RankedLists,
    Ranking,
    Relevance,
    escape_ids,
    escape_note,
    is_inexact,
    unescape_ids,
)

_RUN = {
    "query": pl.String,
    "Q0": pl.String,
    "item": pl.String,
    "rank": pl.Int64,
    "score": pl.Float64,
    "system": pl.String,
}
_QRELS = {"query": pl.String, "iteration": pl.String, "item": pl.String, "grade": pl.Float64}
_COMMENT = "#"
Notify = Callable[[str], None]
_NUMBERS: Mapping[Any, tuple[Callable[[str], object], str]] = {
    pl.Int64: (int, "a whole number"),
    pl.Float64: (float, "a number"),
}


@dataclass(frozen=True)
class _Lines:
    """A file of white-space separated columns; if the fast way to read it fails, the bad line is named."""

    content: bytes
    schema: Mapping[str, Any]
    ignore_rest: bool = False
    """Whether text after the last column is ignored; otherwise it is an error."""

    def frame(self) -> pl.DataFrame:
        if (at := self.content.find(b"\0")) >= 0:
            decode(self.content)  # raises for UTF-16, in which every second byte may be one
            number = self.content.count(b"\n", 0, at) + 1
            fix = "check how it was written: many programs end a text there"
            raise InputError("the line has a NUL", row=f"line {number}", expected="ids without NUL", fix=fix)
        # The usual case: single spaces, or single tabs, throughout.
        first = self.content[: self.content.find(b"\n") + 1] or self.content
        frame = self._csv("\t" if b"\t" in first else " ", self.schema, comment_prefix=_COMMENT)
        if _is_whole(frame):
            return frame
        lines = self._csv("\x1f", {"line": pl.String})
        if lines is not None:  # runs of spaces and tabs, blank lines: slower, still in columns
            rest = r"(?:[ \t].*)?[\r]*$" if self.ignore_rest else r"[ \t\r]*$"
            pattern = r"^[ \t]*" + r"[ \t]+".join(rf"(?<{name}>\S+)" for name in self.schema) + rest
            text = pl.col("line").str.strip_chars()
            texts = lines.filter((text != "") & ~text.str.starts_with(_COMMENT))["line"]
            frame = texts.str.extract_groups(pattern).struct.unnest()
            frame = frame.with_columns(pl.col(name).cast(kind, strict=False) for name, kind in self.schema.items())
            if _is_whole(frame):
                return frame
        # What is wrong with the first bad line.
        names, is_empty = list(self.schema), True
        for number, line in enumerate(decode(self.content).split("\n"), start=1):
            fields = line.split()
            if not fields or fields[0].startswith(_COMMENT):
                continue
            is_empty = False
            if len(fields) < len(names) or (len(fields) > len(names) and not self.ignore_rest):
                likely = {4: "a qrels file: pass it as the qrels", 6: "a run: pass it as the ranking"}.get(len(fields))
                fix = (
                    f"this looks like {likely}"
                    if likely
                    else "check the separators; write an id with a space as %%my%20photo.jpg"
                )
                raise wrong_width(fields, f"line {number}", f"{len(names)} columns: {' '.join(names)}", fix)
            for name, field in zip(names, fields, strict=False):
                convert, expected = _NUMBERS.get(self.schema[name], (str, ""))
                try:
                    convert(field)
                except ValueError:
                    problem, fix = f"the {name} is {field!r}", f"correct the {name}, or remove the line"
                    raise InputError(problem, row=f"line {number}", expected=expected, fix=fix) from None
        columns = f"lines of {' '.join(names)}"
        if is_empty:
            raise InputError("no lines besides comments", expected=columns, fix="check how it was written")
        raise InputError("cannot be read", expected=columns, fix="separate columns by one space")

    def _csv(self, separator: str, schema: Mapping[str, Any], **options: Any) -> pl.DataFrame | None:
        try:
            return pl.read_csv(
                io.BytesIO(self.content), has_header=False, separator=separator, quote_char=None, schema=dict(schema),
                truncate_ragged_lines=self.ignore_rest, **options,
            )  # fmt: skip
        except pl.exceptions.PolarsError:
            return None

    def refuse(self, bad: pl.Series, column: str, expected: str, fix: str) -> None:
        """Name the first line where ``bad`` is true, if there is one."""
        if bad.any():
            number, line = self._line(int(bad.arg_max() or 0))
            value = line.split()[list(self.schema).index(column)]
            raise InputError(f"the {column} is {value!r}", row=f"line {number}", expected=expected, fix=fix)

    def refuse_repeated(self, coded: pl.DataFrame, verb: str) -> None:
        """Name the first line whose query and item occur together on an earlier one."""
        # One number per pair: many times faster to compare than a pair of columns.
        pairs = coded["query"].cast(pl.Int64) * (coded["item"].max() + 1) + coded["item"].cast(pl.Int64)  # type: ignore[operator]
        if pairs.n_unique() == len(pairs):
            return
        number, line = self._line(int((~pairs.is_first_distinct()).arg_max() or 0))
        fields = line.split()
        problem = f"item {fields[2]!r} is {verb} twice for query {fields[0]!r}"
        fix = "remove the second occurrence"
        raise InputError(problem, row=f"line {number}", expected="each item at most once per query", fix=fix)

    def _line(self, row: int) -> tuple[int, str]:
        """The number and text of a line, by its index among those that are neither blank nor comments."""
        for number, line in enumerate(self.content.split(b"\n"), start=1):
            if line.strip() and not line.strip().startswith(_COMMENT.encode()):
                if row == 0:
                    return number, line.decode()
                row -= 1
        raise AssertionError("fewer lines than rows")


def _is_whole(frame: pl.DataFrame | None) -> TypeGuard[pl.DataFrame]:
    return frame is not None and frame.height > 0 and not any(column.null_count() for column in frame)


def _coded(frame: pl.DataFrame, *values: str) -> tuple[pl.DataFrame, Ids, Ids]:
    """Queries and items as numbers in order of appearance, with their ids as they were before they were escaped."""
    ids, codes = {}, {}
    for name in ("query", "item"):
        ids[name] = frame[name].unique(maintain_order=True)
        codes[name] = frame[name].cast(pl.Enum(ids[name])).to_physical()
    coded = pl.DataFrame({**codes, **{name: frame[name] for name in values}})
    return coded, unescape_ids(ids["query"]), unescape_ids(ids["item"])


_LAYOUT = "{query: [item, …]} or {query: {item: number}}"
_Array = Array
_Ranked = list[str] | dict[str, float]
"""The items of a query, with their scores or grades where the file has them."""


def _from_mapping(path: Path) -> Iterator[tuple[str, _Ranked]]:
    content = read_json(path)
    if not isinstance(content, dict) or not content:
        top = "nothing" if content in ({}, []) else type(content).__name__
        raise InputError(f"the file holds {top} at its top", expected=_LAYOUT, fix="write one entry per query")
    for query, ranked in content.items():
        row_name = f"query {query!r}"
        if isinstance(ranked, Mapping):
            yield query, _numbered(list(ranked), list(ranked.values()), row_name)
        elif isinstance(ranked, list):
            yield query, _items(ranked, row_name)
        else:
            fix = "write the query's items as a list"
            raise InputError(f"the list is {ranked!r:.60}", row=row_name, expected=_LAYOUT, fix=fix)


def _from_lines(path: Path, key: str) -> Iterator[tuple[str, _Ranked]]:
    records = read_records(path)
    queries = records.ids("query", unique="query")
    for index, (query, items) in enumerate(zip(queries, records.values("items"), strict=True)):
        row_name = str(records.row_name(index))
        if not isinstance(items, list):
            raise InputError(f"'items' is {items!r:.60}", row=row_name, expected="a list of ids", fix="put it in […]")
        numbers = records.rows[index].get(key)
        if numbers is not None and (not isinstance(numbers, list) or len(numbers) != len(items)):
            count = len(numbers) if isinstance(numbers, list) else 0
            expected, fix = f"one of the {key} for every item", f"complete {key!r}, or leave it out"
            raise InputError(f"{count} {key} for {len(items)} items", row=row_name, expected=expected, fix=fix)
        ids = _items(items, row_name)
        yield query, ids if numbers is None else _numbered(ids, numbers, row_name)


def _items(items: list[Any], row_name: str) -> list[str]:
    def item_name(index: int) -> str:
        return f"{row_name}, item {index}"

    ids = check_ids(items, "item id", item_name)
    check_unique(ids, "item", item_name)
    return ids


def _numbered(items: list[str], values: list[Any], row_name: str) -> dict[str, float]:
    for item, value in zip(items, values, strict=True):
        if not is_finite_number(value) or is_inexact(value):
            problem = f"the number of item {item!r} is {value!r:.40}"
            expected = "a whole number up to 2⁵³" if type(value) is int else "a finite number"
            raise InputError(problem, row=row_name, expected=expected, fix="correct it, or leave the item out")
    return {item: float(value) for item, value in zip(items, values, strict=True)}


def read_run(path: str | Path) -> RankedLists:
    """The ranking of a system: higher scores first, equal scores in the order of the file's ranks.

    Args:
        path: TREC (``query Q0 item rank score system``), JSON (``{query: [ids]}`` best first, or ``{query: {id:
            score}}`` as ranx saves it), or JSON lines (``{"query": …, "items": […], "scores": […]}``); each may be .gz.
    """
    content, entries = _read(existing_file(path), "scores")
    with reading(path):
        if entries is not None:
            lists: dict[str, Any] = dict(entries)
            return RankedLists.of(lists)
        table = _Lines(content, _RUN, ignore_rest=True)
        frame = table.frame()
        table.refuse(~frame["score"].is_finite(), "score", "a finite number", "correct the score, or remove the line")
        large = frame["score"].abs() >= LARGEST_WHOLE
        if large.any():  # whole numbers that float64 rounds: two of them could become equal
            texts = replace(table, schema={**table.schema, "score": pl.String}).frame()["score"]
            whole = (large & texts.str.contains(r"^[+-]?\d+$")).arg_true()
            rows = [row for row in whole if is_inexact(int(texts[row]))]
            inexact = pl.Series(np.isin(np.arange(len(texts)), rows))
            table.refuse(inexact, "score", "a whole number up to 2⁵³", "write a smaller score")
        # Where tabs separate the columns, the last one may hold more than the system.
        systems = frame["system"].unique(maintain_order=True).str.extract(r"(\S+)").fill_null("")
        system = systems[0]
        if (systems != system).any():
            expected = f"one system per file (the first is {system!r})"
            other = frame["system"].str.extract(r"(\S+)") != system
            table.refuse(other, "system", expected, "split the file into one run per system")
        coded, query_ids, item_ids = _coded(frame, "score", "rank")
        table.refuse_repeated(coded, "ranked")
        del frame  # the texts are the bulk of the memory, and no longer needed
        # Whether the lines already come query by query, best first: most files do, and sorting is the slow part.
        query, score, rank = (coded[name].to_numpy() for name in ("query", "score", "rank"))
        later, same = query[1:] > query[:-1], query[1:] == query[:-1]
        down = (score[1:] < score[:-1]) | ((score[1:] == score[:-1]) & (rank[1:] >= rank[:-1]))
        if not bool((later | (same & down)).all()):
            coded = coded.sort("query", "score", "rank", descending=[False, True, False], maintain_order=True)
        offsets = np.zeros(len(query_ids) + 1, np.int64)
        np.cumsum(np.bincount(coded["query"].to_numpy(), minlength=len(query_ids)), out=offsets[1:])
        items, scores = coded["item"].to_numpy().astype(np.int64), coded["score"].to_numpy().copy()
        return RankedLists(query_ids, item_ids, offsets, items, scores, unescape_ids([system])[0])


def read_qrels(path: str | Path) -> Relevance:
    """Qrels: which items are relevant to which query, with grades.

    Args:
        path: TREC qrels (``query 0 item grade``), JSON (``{query: [ids]}`` or ``{query: {id: grade}}``), or JSON lines
            (``{"query": …, "items": […], "grades": […]}``); each may be .gz. Grade 0 is judged irrelevant, a grade
            below 0 is no judgement.
    """
    content, entries = _read(existing_file(path), "grades")
    source = format_stem(path)
    with reading(path):
        if entries is None:
            table = _Lines(content, _QRELS)
            frame = table.frame()
            wrong = ~frame["grade"].is_finite()
            table.refuse(wrong, "grade", "a finite number", "correct the grade, or remove the line")
            coded, query_ids, item_ids = _coded(frame, "grade")
            table.refuse_repeated(coded, "judged")
            coded = coded.filter(pl.col("grade") >= 0)
            rows, items = (coded[name].to_numpy().astype(np.int64) for name in ("query", "item"))
            return Relevance.from_indices(query_ids, item_ids, rows, items, coded["grade"].to_numpy(), source)
        graded = {query: items if isinstance(items, dict) else dict.fromkeys(items, 1.0) for query, items in entries}
        pairs = [(query, item, grade) for query, items in graded.items() for item, grade in items.items() if grade >= 0]
        return Relevance.from_pairs(
            *(zip(*pairs, strict=True) if pairs else ((), (), ())),
            query_ids=list(graded),
            item_ids=dict.fromkeys(item for items in graded.values() for item in items),
            source=source,
        )


def write_run(
    ranking: Ranking | RankedLists, path: str | Path, system: str | None = None, *, notify: Notify = to_stderr
) -> Path:
    """Write ranked lists. An existing file is replaced.

    Args:
        ranking: What is written.
        path: TREC, or by the ending ``.json`` (``{query: {id: score}}``) or ``.jsonl``; .gz too.
        system: The name in the last TREC column.
        notify: Told of escaped ids.
    """
    if isinstance(ranking, Ranking):
        listed = ranking.top_items != UNRANKED
        rows, ranks = np.nonzero(listed)
        items, scores = ranking.top_items[listed], ranking.top_scores[listed]
    else:
        rows = np.repeat(np.arange(len(ranking.query_ids)), np.diff(ranking.offsets))
        ranks = np.arange(len(rows)) - ranking.offsets[rows]
        items, scores = ranking.items, ranking.scores
    name = system or (ranking.system if isinstance(ranking, RankedLists) else "") or "crosslens"
    columns = {"rank": pl.Series(ranks + 1), "score": pl.Series(scores), "system": pl.lit(escape_ids([name])[0])}
    return _write(path, ranking, rows, items, scores, ("scores", "Q0"), columns, notify)


def write_qrels(relevance: Relevance, path: str | Path, *, notify: Notify = to_stderr) -> Path:
    """Write qrels. Whole grades are written without a decimal point. An existing file is replaced.

    Args:
        relevance: What is written.
        path: TREC qrels, or by the ending ``.json`` (``{query: {id: grade}}``) or ``.jsonl``; .gz too. The ending of a
            table is refused: as one, the file would be read back.
        notify: Told of escaped ids.
    """
    if (suffix := format_suffix(path)) in TABLE_SUFFIXES:
        raise UsageError(f"qrels are written as TREC or JSON, not as {suffix}", fix="end the name in .qrels or .json")
    whole = bool((relevance.grades == np.round(relevance.grades)).all())
    grades = relevance.grades.astype(np.int64) if whole else relevance.grades
    columns = {"grade": pl.Series(grades)}
    return _write(path, relevance, relevance.rows, relevance.items, grades, ("grades", "0"), columns, notify)


def _read(path: Path, key: str) -> tuple[bytes, Iterator[tuple[str, _Ranked]] | None]:
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


def _write(
    path: str | Path, source: Ranking | RankedLists | Relevance, rows: _Array, items: _Array, numbers: _Array,
    called: tuple[str, str], columns: dict[str, Any], notify: Notify,
) -> Path:  # fmt: skip
    """Queries and items, query by query: as JSON by the ending of ``path``, else as TREC, with ``columns`` last.

    ``called`` is what JSON lines call the numbers, and TREC's second column.
    """
    suffix = format_suffix(path)
    with writing_bytes(path) as out:
        if suffix in (".json", ".jsonl"):
            # numpy prints the shortest text that gives the number back; a float32 would grow digits as a Python float.
            texts = numbers.astype(str).tolist()
            names = [json.dumps(source.item_ids[item], ensure_ascii=False) for item in items]
            entries = []
            for query, (start, end) in zip(
                source.query_ids, pairwise(np.searchsorted(rows, np.arange(len(source.query_ids) + 1))), strict=True
            ):
                quoted = json.dumps(query, ensure_ascii=False)
                if suffix == ".json":
                    pairs = zip(names[start:end], texts[start:end], strict=True)
                    entries.append(f"{quoted}: {{{', '.join(f'{name}: {text}' for name, text in pairs)}}}")
                else:
                    both = f'"items": [{", ".join(names[start:end])}], "{called[0]}": [{", ".join(texts[start:end])}]'
                    entries.append(f'{{"query": {quoted}, {both}}}\n')
            out.write(("{" + ",\n".join(entries) + "}\n" if suffix == ".json" else "".join(entries)).encode())
        else:
            if note := escape_note((*source.query_ids, *source.item_ids)):
                notify(f"note: {note}")
            queries, item_names = (
                pl.Series(escape_ids(ids), dtype=pl.String) for ids in (source.query_ids, source.item_ids)
            )
            frame = pl.DataFrame({"row": rows, "column": items}).with_columns(**columns)
            for block in frame.iter_slices(1_000_000):
                block.select(
                    queries.gather(block["row"]).alias("query"),
                    pl.lit(called[1]).alias("second"),
                    item_names.gather(block["column"]).alias("item"),
                    pl.exclude("row", "column"),
                ).write_csv(out, include_header=False, separator=" ", quote_style="never")
    return Path(path)
