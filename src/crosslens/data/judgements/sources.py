"""Which pairs are relevant, from where people name it: a published set of judgements, or a qrels file."""

from __future__ import annotations

from pathlib import Path

from crosslens.core import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Relevance
from crosslens.data.io.rankings import read_qrels
from crosslens.data.judgements.eccv import KINDS, eccv_files, read_eccv

JUDGEMENT_SETS = tuple(KINDS)
"""Judgements that are known by name: those of the COCO 5K test split that :func:`read_eccv` reads."""


def read_relevance(source: str | Path) -> Relevance | dict[str, Relevance]:
    """The judgements of a set by its name, in both directions; or of a qrels file, in the direction that it has."""
    if source in JUDGEMENT_SETS:
        return {direction: read_eccv(str(source), direction) for direction in (IMAGE_TO_TEXT, TEXT_TO_IMAGE)}
    return read_qrels(source)


def relevance_files(source: str | Path) -> list[Path]:
    """The files that :func:`read_relevance` reads."""
    return eccv_files(str(source)) if source in JUDGEMENT_SETS else [Path(source)]
