"""An overview as a folder: the failures as a table, the summary as JSON, the atlas and the rules beside them.

``failures.parquet``     one row per failure: every metric, query-agnostic and query-informed, and every cause
``overview.json``        means, correlations, causes, rules, the top of the atlas, settings and notes
``atlas.parquet``        which concepts are taken for which; ``atlas-query.parquet``: asked for, and shown instead
``rules.csv``            rules between causes
``comparison.json``      only of two runs: where they fail differently
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.atomic import atomic_folder, refuse_strangers
from crosslens.core.errors import ConflictError
from crosslens.core.json_form import json_form
from crosslens.explain.overview.overview import Overview

SUMMARY = "overview.json"
COMPARISON = "comparison.json"
FILES = ("failures.parquet", SUMMARY, "atlas.parquet", "atlas-query.parquet", "rules.csv", COMPARISON)


def save_overview(
    found: Overview, path: str | Path, *, comparison: dict[str, Any] | None = None, overwrite: bool = False
) -> Path:
    """Write the folder, whole or not at all; the same findings give the same bytes.

    A folder that holds other findings is kept unless ``overwrite``; one with files of others is never replaced.
    """
    path = Path(path)
    summary = _json(found.as_dict())
    compared = None if comparison is None else _json(json_form(comparison))
    if path.exists() and not path.is_dir():
        raise ConflictError(f"{path} is a file", fix="name a folder")
    if path.is_dir() and any(path.iterdir()):
        refuse_strangers(path, FILES)
        if not overwrite and _stored(path / SUMMARY) not in (None, summary):
            raise ConflictError(f"{path}: other findings stand there", fix="choose another place, or pass --overwrite")
    with atomic_folder(path) as folder:
        found.failures.write_parquet(folder / "failures.parquet")
        found.atlas.write_parquet(folder / "atlas.parquet")
        found.query_atlas.write_parquet(folder / "atlas-query.parquet")
        rules = found.rules.with_columns(pl.col("if").list.join(" + "))
        rules.write_csv(folder / "rules.csv")
        if compared is not None:
            (folder / COMPARISON).write_text(compared, encoding="utf-8")
        (folder / SUMMARY).write_text(summary, encoding="utf-8")
    return path


def _stored(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
