"""TREC files, read in columns: runs (``query Q0 item rank score system``) and qrels (``query 0 item grade``).

What trec_eval reads is read here: blank lines and lines that begin with ``#`` are skipped, text after the system of a
run is ignored, and a grade below 0 is no judgement. Unlike trec_eval, ties follow the rank column, and a file of two
systems is refused.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import polars as pl

from crosslens.core import (
    LARGEST_WHOLE,
    Ids,
    InputError,
    RankedLists,
    Relevance,
    decode,
    is_inexact,
)
from crosslens.data.io.checks import wrong_width

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
_NUMBERS: Mapping[Any, tuple[Callable[[str], float], str]] = {
    pl.Int64: (int, "a whole number"),
    pl.Float64: (float, "a number"),
}


def parse_run(content: bytes) -> RankedLists:
    """The lists of a run: higher scores first, equal scores in the order of the rank column, then of the lines."""
    table = _Lines(content, _RUN, ignore_rest=True)
    frame = table.frame()
    table.refuse(~frame["score"].is_finite(), "score", "a finite number", "correct the score, or remove the line")
    table.refuse(_inexact(table, frame["score"]), "score", "a whole number up to 2⁵³", "write a smaller score")
    system = _first_word(frame["system"][0])
    # Where tabs separate the columns, the last one may hold more than the system.
    if set(map(_first_word, frame["system"].unique())) != {system}:
        expected = f"one system per file (the first is {system!r})"
        other = frame["system"].str.extract(r"(\S+)") != system
        table.refuse(other, "system", expected, "split the file into one run per system")
    coded, query_ids, item_ids = _coded(frame, "score", "rank")
    table.refuse_repeated(coded, "ranked")
    del frame  # the texts are the bulk of the memory, and no longer needed
    if not _in_order(coded):
        coded = coded.sort("query", "score", "rank", descending=[False, True, False], maintain_order=True)
    return RankedLists(
        query_ids,
        item_ids,
        _offsets(coded, len(query_ids)),
        coded["item"].to_numpy().astype(np.int64),
        coded["score"].to_numpy().copy(),
        system,
    )


def _inexact(table: _Lines, scores: pl.Series) -> pl.Series:
    """Which scores are whole numbers that float64 rounds: two of them could become equal."""
    large = scores.abs() >= LARGEST_WHOLE
    if not large.any():
        return large
    texts = replace(table, schema={**table.schema, "score": pl.String}).frame()["score"]
    whole = large & texts.str.contains(r"^[+-]?\d+$")
    rows = [row for row in whole.arg_true() if is_inexact(int(texts[row]))]
    return pl.Series(np.isin(np.arange(len(whole)), rows))


def parse_qrels(content: bytes, source: str) -> Relevance:
    """The grades of a qrels file: grade 0 is judged irrelevant, a grade below 0 is no judgement."""
    table = _Lines(content, _QRELS)
    frame = table.frame()
    table.refuse(~frame["grade"].is_finite(), "grade", "a finite number", "correct the grade, or remove the line")
    coded, query_ids, item_ids = _coded(frame, "grade")
    table.refuse_repeated(coded, "judged")
    coded = coded.filter(pl.col("grade") >= 0)
    rows, columns = coded["query"].to_numpy(), coded["item"].to_numpy()
    grades = coded["grade"].to_numpy()
    return Relevance.from_indices(query_ids, item_ids, rows.astype(np.int64), columns.astype(np.int64), grades, source)


@dataclass(frozen=True)
class _Lines:
    """A file of white-space separated columns; if the fast way to read it fails, the bad line is named."""

    content: bytes
    schema: Mapping[str, Any]
    ignore_rest: bool = False
    """Whether text after the last column is ignored; otherwise it is an error."""

    def frame(self) -> pl.DataFrame:
        frame = self._by_separator()
        if frame is None:
            frame = self._by_pattern()
        if frame is None:
            self._name_bad_line()
        return frame

    def _by_separator(self) -> pl.DataFrame | None:
        """The usual case: single spaces, or single tabs, throughout."""
        first = self.content[: self.content.find(b"\n") + 1] or self.content
        frame = self._csv("\t" if b"\t" in first else " ", self.schema, comment_prefix=_COMMENT)
        return None if frame is None or not frame.height or _has_null(frame) else frame

    def _by_pattern(self) -> pl.DataFrame | None:
        """Runs of spaces and tabs, blank lines: slower, still in columns."""
        lines = self._csv("\x1f", {"line": pl.String})
        if lines is None:
            return None
        gap = r"[ \t]+"
        rest = r"(?:[ \t].*)?[\r]*$" if self.ignore_rest else r"[ \t\r]*$"
        pattern = r"^[ \t]*" + gap.join(rf"(?<{name}>\S+)" for name in self.schema) + rest
        text = pl.col("line").str.strip_chars()
        texts = lines.filter((text != "") & ~text.str.starts_with(_COMMENT))["line"]
        frame = texts.str.extract_groups(pattern).struct.unnest()
        frame = frame.with_columns(pl.col(name).cast(kind, strict=False) for name, kind in self.schema.items())
        return None if not frame.height or _has_null(frame) else frame

    def _csv(self, separator: str, schema: Mapping[str, Any], **options: Any) -> pl.DataFrame | None:
        try:
            return pl.read_csv(
                io.BytesIO(self.content), has_header=False, separator=separator, quote_char=None, schema=dict(schema),
                truncate_ragged_lines=self.ignore_rest, **options,
            )  # fmt: skip
        except pl.exceptions.PolarsError:
            return None

    def _name_bad_line(self) -> NoReturn:
        names, lines = list(self.schema), 0
        for number, line in enumerate(decode(self.content).split("\n"), start=1):
            fields = line.split()
            if not fields or fields[0].startswith(_COMMENT):
                continue
            lines += 1
            if len(fields) < len(names) or (len(fields) > len(names) and not self.ignore_rest):
                expected = f"{len(names)} columns: {' '.join(names)}"
                raise wrong_width(fields, f"line {number}", expected, _other_format(len(fields)))
            for name, text in zip(names, fields, strict=False):
                convert, kind = _NUMBERS.get(self.schema[name], (None, ""))
                if convert is not None and not _converts(text, convert):
                    fix = f"correct the {name}, or remove the line"
                    raise InputError(f"the {name} is {text!r}", row=f"line {number}", expected=kind, fix=fix)
        columns = f"lines of {' '.join(names)}"
        if not lines:
            raise InputError("no lines besides comments", expected=columns, fix="check how it was written")
        raise InputError("cannot be read", expected=columns, fix="separate columns by one space")

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


def _first_word(text: str) -> str:
    return " ".join(text.split()[:1])


def _has_null(frame: pl.DataFrame) -> bool:
    return any(frame[name].null_count() for name in frame.columns)


def _converts(text: str, convert: Callable[[str], float]) -> bool:
    try:
        return not math.isnan(convert(text)) or text.lower() in ("nan", "-nan", "+nan")
    except ValueError:
        return False


def _other_format(columns: int) -> str:
    likely = {4: "a qrels file: pass it as the qrels", 6: "a run: pass it as the ranking"}
    return f"this looks like {likely[columns]}" if columns in likely else "check the separators; ids hold no spaces"


def _coded(frame: pl.DataFrame, *values: str) -> tuple[pl.DataFrame, Ids, Ids]:
    """Queries and items as numbers in order of appearance, with their ids."""
    ids, codes = {}, {}
    for name in ("query", "item"):
        ids[name] = frame[name].unique(maintain_order=True)
        codes[name] = frame[name].cast(pl.Enum(ids[name])).to_physical()
    coded = pl.DataFrame({**codes, **{name: frame[name] for name in values}})
    return coded, tuple(ids["query"]), tuple(ids["item"])


def _in_order(coded: pl.DataFrame) -> bool:
    """Whether the lines already come query by query, best first: most files do, and sorting is the slow part."""
    query, score, rank = (coded[name].to_numpy() for name in ("query", "score", "rank"))
    later, same = query[1:] > query[:-1], query[1:] == query[:-1]
    down = (score[1:] < score[:-1]) | ((score[1:] == score[:-1]) & (rank[1:] >= rank[:-1]))
    return bool((later | (same & down)).all())


def _offsets(coded: pl.DataFrame, queries: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    offsets = np.zeros(queries + 1, np.int64)
    np.cumsum(np.bincount(coded["query"].to_numpy(), minlength=queries), out=offsets[1:])
    return offsets
