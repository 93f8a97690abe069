"""Texts in, parses out: on all cores, each text once, kept between runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from crosslens.core.errors import InputError, UsageError
from crosslens.core.machine import available_cores
from crosslens.core.progress import Progress, Silent, stage
from crosslens.language.parse import PARSE_COLUMNS, Parses
from crosslens.language.parse_cache import ParseCache, as_table
from crosslens.language.parse_worker import parse_batches
from crosslens.language.pipeline import Pipeline, find_pipeline

BATCH = 512
"""Texts that are parsed and stored together: the most that a killed process loses."""

_WORTH_A_PROCESS = 2_048
"""Fewer texts than this are parsed sooner than another process has loaded its pipeline."""


def parse_texts(
    texts: Sequence[str],
    *,
    pipeline: str | None = None,
    cache: str | Path | bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Parses:
    """The parses of ``texts``, in their order.

    ``pipeline`` is the name of an installed spaCy pipeline; without one, the first of those crosslens knows.
    ``cache`` is a folder, True for the usual one, False for none. A text's parse depends on the text and the pipeline
    alone: not on the texts beside it, on ``threads`` (processes, here) or on what was kept.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"threads {threads}", fix="use 1 or more, or leave it out")
    _check(texts)
    found = find_pipeline(pipeline)
    wanted = pl.Series("text", list(texts), dtype=pl.String)
    distinct = wanted.unique(maintain_order=True)
    store = None if cache is False else ParseCache(found, None if cache is True else cache)
    tables = [store.fetch(distinct) if store else as_table([], [])]
    missing = distinct.filter(~distinct.is_in(tables[0]["text"].implode())).to_list()
    tables += _parse_missing(missing, found, store, threads or available_cores(), progress or Silent())
    table = wanted.to_frame().join(pl.concat(tables), on="text", how="left", maintain_order="left")
    return Parses(table.select(list(PARSE_COLUMNS)).rechunk(), str(found))


def _parse_missing(
    missing: list[str], pipeline: Pipeline, store: ParseCache | None, workers: int, progress: Progress
) -> list[pl.DataFrame]:
    if not missing:
        return []
    batches = [missing[start : start + BATCH] for start in range(0, len(missing), BATCH)]
    if len(missing) < _WORTH_A_PROCESS:
        workers = 1
    tables = []
    with stage(progress, "parsing captions", len(missing)):
        for batch, rows in zip(batches, parse_batches(batches, pipeline, workers), strict=True):
            tables.append(store.add(batch, rows) if store else as_table(batch, rows))
            progress.advance(len(batch))
    return tables


def _check(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise InputError("one text where a list of texts belongs", fix="put it into a list")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{text!r:.60} is not a text", row=row, expected="texts", fix="remove or mend this row")
