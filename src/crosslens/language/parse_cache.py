"""Parses kept between runs, found by content: the same text is never parsed twice by the same pipeline.

One folder per pipeline, version and layout. Each file in it is a Parquet table of parses, named by a hash of its own
bytes: it is never changed, several processes may add files at the same time, a killed one loses at most the batch it
was parsing, and a damaged file is found out when it is read.
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

from crosslens.core.atomic import PARTIAL, atomic_file
from crosslens.core.errors import InputError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.machine import cache_folder
from crosslens.language.parse import PARSE_COLUMNS
from crosslens.language.pipeline import Pipeline

_LAYOUT = 1
"""Changes whenever a parse of the same text by the same pipeline may: another layout, other lemmas."""
_AT_ONCE = 64
"""Files that are looked through together: one by one, setting up the search takes longer than searching."""
_SCHEMA = {"text": pl.String, **PARSE_COLUMNS}


class ParseCache:
    """The parses that one pipeline has made so far."""

    def __init__(self, pipeline: Pipeline, folder: str | Path | None = None) -> None:
        about = {"pipeline": pipeline.name, "version": pipeline.version, "spacy": pipeline.spacy, "layout": _LAYOUT}
        slug = re.sub(r"[^A-Za-z0-9]+", "-", str(pipeline))
        self.folder = cache_folder(folder) / "parses" / f"{slug}-{fingerprint('parses', about)[:12]}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot be used as a cache: {error.strerror}",
                file=self.folder,
                fix="choose another folder with CROSSLENS_CACHE",
            ) from error

    def fetch(self, texts: pl.Series) -> pl.DataFrame:
        """What is kept of these texts, one row each, in any order."""
        wanted = texts.to_frame("text")
        # Another process may be writing files that begin like that.
        files = [file for file in sorted(self.folder.glob("*.parquet")) if not file.name.startswith(PARTIAL)]
        found = [_empty()]
        for start in range(0, len(files), _AT_ONCE):
            tables = [self._verified(file) for file in files[start : start + _AT_ONCE]]
            kept = [_empty(), *(table for table in tables if table is not None)]
            found.append(pl.concat(kept).join(wanted, on="text", how="semi", maintain_order="left"))
        return pl.concat(found).unique("text", keep="first", maintain_order=True)

    def add(self, texts: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
        """Keep the parses of a batch; returns them as a table."""
        table = as_table(texts, rows)
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        content = buffer.getvalue()
        with atomic_file(self.folder / f"{_digest(content)}.parquet") as partial:
            partial.write_bytes(content)
        return table

    def _verified(self, file: Path) -> pl.DataFrame | None:
        try:
            content = file.read_bytes()
            if _digest(content) != file.stem:
                raise OSError("its content is not what was written")
            table = pl.read_parquet(io.BytesIO(content))
            return table if table.schema == _SCHEMA else table.cast(_SCHEMA)  # type: ignore[arg-type]
        except (OSError, pl.exceptions.PolarsError) as error:
            note = f"note: a damaged file of parses was removed, its texts are parsed again: {file} ({error})"
            print(note, file=sys.stderr)
            file.unlink(missing_ok=True)
            return None


def as_table(texts: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Texts and their parses as one table."""
    schema: dict[str, Any] = _SCHEMA
    return pl.DataFrame([(text, *row) for text, row in zip(texts, rows, strict=True)], schema=schema, orient="row")


def _empty() -> pl.DataFrame:
    return as_table([], [])


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
