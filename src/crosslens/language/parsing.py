"""Parsing texts on all cores, each distinct text once, with a cache between runs.

The cache has one folder per pipeline, version and layout. Each file in it is a Parquet table of parses, named by a hash
of its own bytes: it is never changed, several processes may add files at the same time, a killed one loses at most the
batch it was parsing, and a damaged file is detected when it is read.
"""

from __future__ import annotations

import hashlib
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import InputError, UsageError, available_cores
from crosslens.engine import Progress, shown_progress, stage
from crosslens.language.parse import PARSE_COLUMNS, Parses
from crosslens.language.spacy_pipeline import Pipeline, find_pipeline, parse_batches
from crosslens.storage import atomic_file, cache_folder, fingerprint, is_encodable, parquet_bytes, remove_abandoned

_LAYOUT = 1
"""Changes whenever a parse of the same text by the same pipeline may: another layout, other lemmas."""
_AT_ONCE = 64
"""Files that are searched together: one by one, setting up the search takes longer than searching."""
BATCH = 512
"""Texts that are parsed and stored together: the most that a killed process loses."""
_WORTH_A_PROCESS = 2_048
"""Fewer texts than this are parsed sooner than another process has loaded its pipeline."""
_STORE = "crosslens.store"
"""Where a file says which folder it belongs to; earlier versions did not."""
_HASHES: dict[Path, set[int]] = {}
"""The texts in every file that this process has read, as hashes: a file without a wanted text is not read again."""
_SCHEMA = {"text": pl.String, **PARSE_COLUMNS}


class ParseCache:
    """The parses that one pipeline has made so far."""

    def __init__(self, pipeline: Pipeline, folder: str | Path | None = None) -> None:
        identity = {"pipeline": pipeline.name, "version": pipeline.version, "spacy": pipeline.spacy, "layout": _LAYOUT}
        slug = re.sub(r"[^A-Za-z0-9]+", "-", str(pipeline))
        self.folder = cache_folder(folder) / "parses" / f"{slug}-{fingerprint('parses', identity)[:12]}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            remove_abandoned(self.folder)
        except OSError as error:
            raise InputError(
                f"cannot be used as a cache: {error.strerror}",
                file=self.folder,
                fix="choose another folder with CROSSLENS_CACHE",
            ) from error

    def fetch(self, texts: pl.Series) -> pl.DataFrame:
        """The cached parses of these texts, one row each, in any order."""
        hashes = set(map(hash, texts))
        files = [
            file for file in sorted(self.folder.glob("*.parquet")) if not _HASHES.get(file, hashes).isdisjoint(hashes)
        ]
        empty = as_table([], [])
        matches = [empty]
        for start in range(0, len(files), _AT_ONCE):
            tables = [self._verified(file) for file in files[start : start + _AT_ONCE]]
            readable = [empty, *(table for table in tables if table is not None)]
            matches.append(
                pl.concat(readable).join(texts.to_frame("text"), on="text", how="semi", maintain_order="left")
            )
        return pl.concat(matches).unique("text", keep="first", maintain_order=True)

    def add(self, texts: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
        """Store the parses of a batch; returns them as a table."""
        table = as_table(texts, rows)
        content = bytes(parquet_bytes(table, metadata={_STORE: self.folder.name}))
        with atomic_file(self.folder / f"{_digest(content)}.parquet", wait=True) as partial:
            partial.write_bytes(content)
        return table

    def _verified(self, file: Path) -> pl.DataFrame | None:
        try:
            content = file.read_bytes()
            if _digest(content) != file.stem:
                raise OSError("its content is not what was written")
            store = pl.read_parquet_metadata(io.BytesIO(content)).get(_STORE, self.folder.name)
            if store != self.folder.name:
                raise OSError(f"it belongs to {store}")
            table = pl.read_parquet(io.BytesIO(content))
            _HASHES[file] = set(map(hash, table["text"]))
            return table if table.schema == _SCHEMA else table.cast(_SCHEMA)  # type: ignore[arg-type]
        except (OSError, pl.exceptions.PolarsError) as error:
            note = f"note: a damaged cache file was removed, its texts are parsed again: {file} ({error})"
            print(note, file=sys.stderr)
            file.unlink(missing_ok=True)
            return None


def as_table(texts: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Texts and their parses as one table."""
    schema: dict[str, Any] = _SCHEMA
    return pl.DataFrame([(text, *row) for text, row in zip(texts, rows, strict=True)], schema=schema, orient="row")


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


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
    ``cache`` is a folder, True for the default one, False for none. A text's parse depends on the text and the pipeline
    alone: not on the other texts, on ``threads`` (processes, here) or on the cache.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"threads {threads}", fix="use 1 or more, or leave it out")
    require_texts(texts)
    parser = find_pipeline(pipeline)
    column = pl.Series("text", list(texts), dtype=pl.String)
    distinct = column.unique(maintain_order=True)
    store = None if cache is False else ParseCache(parser, None if cache is True else cache)
    tables = [store.fetch(distinct) if store else as_table([], [])]
    missing = distinct.filter(~distinct.is_in(tables[0]["text"].implode())).to_list()
    if missing:
        batches = [missing[start : start + BATCH] for start in range(0, len(missing), BATCH)]
        workers = 1 if len(missing) < _WORTH_A_PROCESS else threads or available_cores()
        with stage(shown_progress(progress), "parsing captions", len(missing)) as bar:
            for batch, rows in zip(batches, parse_batches(batches, parser, workers), strict=True):
                tables.append(store.add(batch, rows) if store else as_table(batch, rows))
                bar.advance(len(batch))
    table = column.to_frame().join(pl.concat(tables), on="text", how="left", maintain_order="left")
    return Parses(table.select(list(PARSE_COLUMNS)).rechunk(), str(parser))


def require_texts(texts: Sequence[str]) -> None:
    """Raise for a single text, and for an entry that is no text or holds half a character, which no parser takes."""
    if isinstance(texts, str):
        raise InputError("one text where a list of texts belongs", fix="put it into a list")
    for row, text in enumerate(texts):
        if not isinstance(text, str) or not is_encodable(text):
            expected, fix = "texts of valid Unicode", "remove or correct this row, or decode the file as UTF-8"
            raise InputError(f"{text!r:.60} is not a text", row=row, expected=expected, fix=fix)
