"""Scores of one's own for hard negatives: a table with the columns caption, score and, where needed, case and image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.errors import InputError, reading
from crosslens.data.checks import Place, check_ids, check_known
from crosslens.data.files import format_suffix
from crosslens.data.hard_negatives import HardNegatives
from crosslens.data.json_lines import read_records
from crosslens.data.tables import read_table

Scores = np.ndarray[Any, np.dtype[np.float64]]

_COLUMNS = "caption (its id, such as 12:right), score; image where cases have two"


def read_pair_scores(path: str | Path, negatives: HardNegatives) -> Scores:
    """The score of every pair of a caption and an image, in the order of ``negatives.pairs``; NaN where there is none.

    The file is a .csv, .tsv, .parquet or .jsonl with a row per pair. ``caption`` is the caption's id; with a column
    ``case`` its end, such as ``right``, will do. ``image`` may be left out where each case has one picture. Rows of
    cases that are not in ``negatives`` raise.
    """
    with reading(path):
        if format_suffix(path) == ".jsonl":
            records = read_records(path)
            frame, place = pl.DataFrame(records.rows, infer_schema_length=None), records.place
        else:
            table = read_table(path)
            frame, place = table.frame, table.place
        return pair_scores(frame, negatives, place)


def pair_scores(frame: pl.DataFrame, negatives: HardNegatives, place: Place = lambda row: row) -> Scores:
    """The same from a table in memory."""
    captions = _captions(frame, negatives, place)
    values = _numbers(frame, place)
    pairs = negatives.pairs
    image_ids = negatives.dataset.image_ids
    if "image" in frame.columns:
        images = check_ids(frame["image"].to_list(), "image", place)
        check_known(images, set(image_ids), "image", place)
    elif len(negatives.measures) > 1:
        raise InputError("no column 'image'", expected=_COLUMNS, fix="say which of the two images each score is of")
    else:
        own = dict(zip(negatives.dataset.caption_ids, negatives.dataset.captions["image"], strict=True))
        images = [own[one] for one in captions]
    ids = negatives.dataset.caption_ids
    wanted = {
        (ids[caption], image_ids[image]): row
        for row, (caption, image) in enumerate(pairs.select("caption", "image").iter_rows())
    }
    found = np.full(pairs.height, np.nan)
    for row, key in enumerate(zip(captions, images, strict=True)):
        if key not in wanted:
            raise InputError(
                f"caption {key[0]!r} and image {key[1]!r} are in no case together",
                row=place(row),
                expected="pairs of one case",
                fix="correct or remove the row",
            )
        if not np.isnan(found[wanted[key]]):
            raise InputError(
                f"a second score of caption {key[0]!r} and image {key[1]!r}",
                row=place(row),
                expected="one score per pair",
                fix="keep one of the two",
            )
        found[wanted[key]] = values[row]
    return found


def _captions(frame: pl.DataFrame, negatives: HardNegatives, place: Place) -> list[str]:
    for column in ("caption", "score"):
        if column not in frame.columns:
            raise InputError(
                f"no column {column!r} (found: {', '.join(frame.columns)})", expected=_COLUMNS, fix="rename or add it"
            )
    captions = check_ids(frame["caption"].to_list(), "caption", place)
    known = set(negatives.dataset.caption_ids)
    if "case" in frame.columns:
        cases = check_ids(frame["case"].to_list(), "case", place)
        check_known(cases, set(negatives.cases["case"]), "case", place)
        captions = [one if one in known else f"{case}:{one}" for case, one in zip(cases, captions, strict=True)]
    check_known(captions, known, "caption", place)
    return captions


def _numbers(frame: pl.DataFrame, place: Place) -> list[float]:
    found = []
    for row, value in enumerate(frame["score"]):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not np.isfinite(number):
            raise InputError(
                f"the score is {value!r}", row=place(row), expected="a finite number", fix="score this pair again"
            )
        found.append(number)
    return found
