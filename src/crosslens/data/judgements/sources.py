"""Which pairs are relevant, from where people name it: a published set, a qrels file, or a table of judgements."""

from __future__ import annotations

from pathlib import Path

from crosslens.core import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Relevance
from crosslens.data.io.files import format_suffix
from crosslens.data.io.rankings import read_qrels
from crosslens.data.judgements.eccv import KINDS, eccv_files, read_eccv
from crosslens.data.judgements.graded_table import read_graded_table

JUDGEMENT_SETS = tuple(KINDS)
"""Judgements that are known by name: those of the COCO 5K test split that :func:`read_eccv` reads."""
_TABLES = (".parquet", ".csv")


def read_relevance(source: str | Path) -> Relevance | dict[str, Relevance]:
    """The judgements of a set by its name, in both directions; or of a qrels file, in the direction that it has.

    A ``.parquet`` or ``.csv`` file is a table of judged pairs (see :func:`read_graded_table`).
    """
    if source in JUDGEMENT_SETS:
        return {direction: read_eccv(str(source), direction) for direction in (IMAGE_TO_TEXT, TEXT_TO_IMAGE)}
    return read_graded_table(source) if format_suffix(source) in _TABLES else read_qrels(source)


def relevance_files(source: str | Path) -> list[Path]:
    """The files that :func:`read_relevance` reads."""
    return eccv_files(str(source)) if source in JUDGEMENT_SETS else [Path(source)]
