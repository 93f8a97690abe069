"""Which pairs are relevant, from where people name it: a published set, a qrels file, or a table of judgements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crosslens.core import IMAGE_TO_TEXT, TEXT_TO_IMAGE, InputError, Relevance, reading
from crosslens.data.io.checks import RowName, check_ids
from crosslens.data.io.files import format_stem, format_suffix
from crosslens.data.io.rankings import read_qrels
from crosslens.data.io.records import IMAGE_COLUMNS
from crosslens.data.io.tables import read_table, require_column
from crosslens.data.judgements.eccv import KINDS, eccv_files, read_eccv
from crosslens.data.judgements.formats import GRADE, optional_numbers, read_pairs

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


def read_graded_table(path: str | Path) -> Relevance:
    """Judged pairs of images and captions, by their ids.

    A column ``grade`` is the grade of the pair, the same in all its rows; empty where nothing was decided, which makes
    the pair unjudged. Without it the grade is the mean of the pair's scores, as :func:`read_pairs` reads them.
    """
    with reading(path):
        frame, row_name = read_table(path)
        if GRADE in frame.columns:
            images = frame[require_column(frame, "image", IMAGE_COLUMNS)].to_list()
            captions = frame[require_column(frame, "caption", ("caption_id", "caption"))].to_list()
            numbers = optional_numbers(frame[GRADE].to_list(), GRADE, row_name)
            names = check_ids(images, "image id", row_name), check_ids(captions, "caption", row_name)
        else:
            rows = read_pairs(path)
            names, row_name = (rows.images, rows.captions), rows.row_name
            numbers = [float(np.nanmean(scores)) for scores in rows.scores]
        pairs: dict[tuple[str, str], list[int]] = {}
        for index, pair in enumerate(zip(*names, strict=True)):
            pairs.setdefault(pair, []).append(index)
        decided = GRADE in frame.columns
        grades = [_same(numbers, rows, row_name) if decided else float(np.mean([numbers[row] for row in rows]))
                  for rows in pairs.values()]  # fmt: skip
        return _relevance(pairs, grades, format_stem(path))


def _relevance(pairs: Sequence[tuple[str, str]] | dict[tuple[str, str], list[int]], grades: Sequence[float],
               source: str) -> Relevance:  # fmt: skip
    judged = [(image, caption, grade) for (image, caption), grade in zip(pairs, grades, strict=True)
              if not math.isnan(grade)]  # fmt: skip
    if not judged:
        raise InputError("no pair has a grade", expected="at least one judged pair", fix="judge some items first")
    images, captions, numbers = zip(*judged, strict=True)
    return Relevance.from_pairs(images, captions, numbers, source=source)


def _same(grades: Sequence[float], members: Sequence[int], row_name: RowName) -> float:
    first = grades[members[0]]
    for row in members[1:]:
        if grades[row] != first and not (math.isnan(grades[row]) and math.isnan(first)):
            raise InputError(
                f"the pair has the grades {first:g} and {grades[row]:g}",
                row=row_name(row),
                expected="one grade in all rows of a pair",
                fix="correct one of the two",
            )
    return first
