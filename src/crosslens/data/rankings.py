"""Ranked lists and judgements in and out, whatever form they have: TREC, JSON, JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from crosslens.core.errors import InputError, reading
from crosslens.core.ids import Ids
from crosslens.core.lists import RankedLists
from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.core.relevance import Relevance
from crosslens.data.files import existing_file, format_stem, format_suffix, read_bytes, writing_bytes
from crosslens.data.ranked_json import parse_qrels_json, parse_run_json
from crosslens.data.trec import parse_qrels, parse_run

_BLOCK = 1_000_000


def read_run(path: str | Path) -> RankedLists:
    """A ranking that a system made: higher scores first, equal scores in the file's own order of ranks.

    TREC (``query Q0 item rank score system``), JSON (``{query: [ids]}`` best first, or ``{query: {id: score}}`` as
    ranx saves it), or JSON lines (``{"query": …, "items": […], "scores": […]}``); each may be .gz.
    """
    path = existing_file(path)
    content = read_bytes(path)
    form = _form(path, content)
    with reading(path):
        return parse_run(content) if form == "trec" else parse_run_json(path, lines=form == "lines")


def read_qrels(path: str | Path) -> Relevance:
    """Judgements: which items answer which query, and how well.

    TREC qrels (``query 0 item grade``), JSON (``{query: [ids]}`` or ``{query: {id: grade}}``), or JSON lines
    (``{"query": …, "items": […], "grades": […]}``); each may be .gz. Grade 0 is judged irrelevant.
    """
    path = existing_file(path)
    content = read_bytes(path)
    form, source = _form(path, content), format_stem(path)
    with reading(path):
        if form == "trec":
            return parse_qrels(content, source)
        return parse_qrels_json(path, lines=form == "lines", source=source)


def write_run(ranking: Ranking | RankedLists, path: str | Path, system: str | None = None) -> Path:
    """Write ranked lists: TREC, or by the ending ``.json`` (``{query: {id: score}}``) or ``.jsonl``; .gz too.

    ``system`` is the name in the last TREC column. A file that stands there is replaced.
    """
    if isinstance(ranking, Ranking):
        kept = ranking.top_items != UNRANKED
        rows, places = np.nonzero(kept)
        items, scores = ranking.top_items[kept], ranking.top_scores[kept]
    else:
        rows = np.repeat(np.arange(len(ranking.query_ids)), np.diff(ranking.offsets))
        places = np.arange(len(rows)) - ranking.offsets[rows]
        items, scores = ranking.items, ranking.scores
    suffix = format_suffix(path)
    with writing_bytes(path) as out:
        if suffix in (".json", ".jsonl"):
            offsets = np.searchsorted(rows, np.arange(len(ranking.query_ids) + 1))
            _write_json(out, ranking.query_ids, ranking.item_ids, offsets, items, scores, "scores", suffix)
        else:
            name = system or (ranking.system if isinstance(ranking, RankedLists) else "") or "crosslens"
            _check_words((name,), "system name", path)
            columns = {"rank": pl.Series(places + 1), "score": pl.Series(scores), "system": pl.lit(name)}
            _write_trec(out, ranking.query_ids, ranking.item_ids, rows, items, "Q0", columns, path)
    return Path(path)


def write_qrels(relevance: Relevance, path: str | Path) -> Path:
    """Write judgements: TREC qrels, or by the ending ``.json`` (``{query: {id: grade}}``) or ``.jsonl``; .gz too.

    Whole grades are written without a point. A file that stands there is replaced.
    """
    whole = bool((relevance.grades == np.round(relevance.grades)).all())
    grades = relevance.grades.astype(np.int64) if whole else relevance.grades
    suffix = format_suffix(path)
    query_ids, item_ids, items = relevance.query_ids, relevance.item_ids, relevance.items
    with writing_bytes(path) as out:
        if suffix in (".json", ".jsonl"):
            _write_json(out, query_ids, item_ids, relevance.offsets, items, grades, "grades", suffix)
        else:
            columns = {"grade": pl.Series(grades)}
            _write_trec(out, query_ids, item_ids, relevance.rows, items, "0", columns, path)
    return Path(path)


def _form(path: Path, content: bytes) -> str:
    """``trec``, ``json`` or ``lines``: by the ending, otherwise by how the content begins."""
    head = content[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        raise InputError("the file is empty", file=path, expected="a run or qrels", fix="check how it was written")
    if format_suffix(path) == ".jsonl":
        return "lines"
    if not head.startswith((b"{", b"[")):
        return "json" if format_suffix(path) == ".json" else "trec"
    first = content.lstrip().split(b"\n", 1)[0]
    try:
        row = json.loads(first)
    except ValueError:
        return "json"
    return "lines" if isinstance(row, dict) and {"query", "items"} <= row.keys() else "json"


def _check_words(ids: Ids, what: str, path: str | Path) -> None:
    bad = pl.Series(ids, dtype=pl.String).str.contains(r"\s").arg_true()
    if len(bad):
        raise InputError(
            f"the {what} {ids[int(bad[0])]!r} holds white space",
            file=path,
            expected="names without spaces: columns of TREC files are separated by them",
            fix="rename it, or write a .json or .jsonl file",
        )


def _write_trec(
    out: IO[bytes],
    query_ids: Ids,
    item_ids: Ids,
    rows: np.ndarray[Any, Any],
    items: np.ndarray[Any, Any],
    second: str,
    columns: dict[str, Any],
    path: str | Path,
) -> None:
    _check_words(query_ids, "query id", path)
    _check_words(item_ids, "item id", path)
    queries, names = pl.Series(query_ids, dtype=pl.String), pl.Series(item_ids, dtype=pl.String)
    frame = pl.DataFrame({"row": rows, "column": items}).with_columns(**columns)
    for block in frame.iter_slices(_BLOCK):
        block.select(
            queries.gather(block["row"]).alias("query"),
            pl.lit(second).alias("second"),
            names.gather(block["column"]).alias("item"),
            pl.exclude("row", "column"),
        ).write_csv(out, include_header=False, separator=" ", quote_style="never")


def _write_json(
    out: IO[bytes],
    query_ids: Ids,
    item_ids: Ids,
    offsets: np.ndarray[Any, Any],
    items: np.ndarray[Any, Any],
    numbers: np.ndarray[Any, Any],
    key: str,
    suffix: str,
) -> None:
    # numpy prints the shortest text that gives the number back; through Python's float a float32 would grow digits.
    names = [item_ids[item] for item in items]
    texts = numbers.astype(str).tolist()
    rows = []
    for query, start, end in zip(query_ids, offsets[:-1], offsets[1:], strict=True):
        listed = [json.dumps(name, ensure_ascii=False) for name in names[start:end]]
        asked = json.dumps(query, ensure_ascii=False)
        if suffix == ".json":
            pairs = ", ".join(f"{name}: {text}" for name, text in zip(listed, texts[start:end], strict=True))
            rows.append(f"{asked}: {{{pairs}}}")
        else:
            both = f'"items": [{", ".join(listed)}], "{key}": [{", ".join(texts[start:end])}]'
            rows.append(f'{{"query": {asked}, {both}}}')
    text = "{" + ",\n".join(rows) + "}\n" if suffix == ".json" else "".join(f"{row}\n" for row in rows)
    out.write(text.encode())
