"""File formats of human judgements of image–caption pairs, read as rows: image, caption, scores."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from crosslens.core import InputError, UnknownNameError
from crosslens.data.io.checks import RowName, check_ids, check_texts, on_lines, wrong_width
from crosslens.data.io.files import format_suffix, numbered_lines, read_lines
from crosslens.data.io.records import IMAGE_COLUMNS
from crosslens.data.io.tables import TABLE_SUFFIXES, read_table, require_column

By = Literal["id", "text", "either"]

GRADE = "grade"
"""The column with the grade that was decided on for a pair, whoever judged it."""
_TEXT_COLUMNS = ("text", "caption_text")
_SCORE_COLUMNS = ("score", "agg_score")
_SEVERAL_SCORES = re.compile(r"score[ _-]?\w+")


@dataclass(frozen=True)
class JudgedRows:
    """One entry per row of the file; ``scores`` holds one list per row, a number per judge.

    ``by`` says how captions are named: by their ids, by their texts, or by either, which the dataset decides.
    ``judges`` names the judge of each row, where the file does. ``same_persons``: a column of scores is one person's
    throughout; Flickr8k's files sort the scores of a pair.
    """

    images: list[str]
    captions: list[str]
    by: By
    scores: list[list[float]]
    row_name: RowName
    judges: list[str] | None = None
    same_persons: bool = True


def read_rows(path: str | Path, form: str | None) -> JudgedRows:
    """The rows of a file, in the format named or that its content shows."""
    if form is not None and form not in FORMAT_READERS:
        raise UnknownNameError("format of judgements", form, FORMAT_READERS)
    return FORMAT_READERS[form or _guess_format(path)](path)


def _guess_format(path: str | Path) -> str:
    """``cxc`` by its header, a table as ``pairs``; lines of five columns are Flickr8k's, by their scores."""
    suffix = format_suffix(path)
    first = "" if suffix == ".parquet" else read_lines(path)[0]
    if "agg_score" in first or "sampling_method" in first:
        return "cxc"
    if suffix in TABLE_SUFFIXES:
        return "pairs"
    scores = {tuple(line.split("\t")[2:]) for line in read_lines(path) if line.strip()}
    return "flickr8k-expert" if all(set(row) <= set("1234") for row in scores) else "flickr8k-cf"


def read_pairs(path: str | Path) -> JudgedRows:
    """A table with the columns image, caption (an id or the text) and score; a pair judged by several has several rows.

    ``caption_id`` or ``text`` instead of ``caption`` says which of the two it is. A column ``judge`` names the judge of
    each row; columns ``score_1``, ``score_2``, … hold one judge each (empty: did not judge). Beside a column ``grade``,
    rows without a score are not judgements: the pairs of the ground truth in exported judgements.
    """
    frame, row_name = _scored(*read_table(path))
    image_at = require_column(frame, "image", IMAGE_COLUMNS)
    caption_at = require_column(frame, "caption", ("caption_id", *_TEXT_COLUMNS, "caption"))
    by: By = "either" if caption_at == "caption" else "text" if caption_at in _TEXT_COLUMNS else "id"
    score_columns = _score_columns(frame)
    columns = [
        _numbers(frame[name].to_list(), name, row_name, optional=len(score_columns) > 1) for name in score_columns
    ]
    scores = [list(row) for row in zip(*columns, strict=True)]
    for index, row in enumerate(scores):
        if all(map(math.isnan, row)):
            raise InputError("the pair has no score", row=row_name(index), expected="a score", fix="remove the row")
    captions = frame[caption_at].to_list()
    return JudgedRows(
        check_ids(frame[image_at].to_list(), "image id", row_name),
        check_texts(captions, row_name) if by == "text" else check_ids(captions, "caption", row_name),
        by,
        scores,
        row_name,
        check_ids(frame["judge"].to_list(), "judge", row_name) if "judge" in frame.columns else None,
    )


def read_cxc(path: str | Path) -> JudgedRows:
    """Crisscrossed Captions' image–text files (``sits_val.csv``, ``sits_test.csv``): caption, image, score from 0 to 5.

    The raw files, one row per judge, are read too. The files for two captions (sts) or two images (sis) are refused.
    """
    frame, row_name = read_table(path)
    for other, what in (("caption1", "two captions"), ("image1", "two images")):
        if other in frame.columns:
            raise InputError(
                f"the file judges {what}", row="line 1", expected="images against captions", fix="use a sits_ file"
            )
    score_at = next((name for name in (*_SCORE_COLUMNS, "annotator_score") if name in frame.columns), None)
    if score_at is None or not {"caption", "image"} <= set(frame.columns):
        expected = "caption, image, agg_score, sampling_method"
        fix = "check that the file is CxC's sits_val.csv or sits_test.csv"
        raise InputError(f"the columns are {', '.join(frame.columns)}", row="line 1", expected=expected, fix=fix)
    return JudgedRows(
        check_ids(frame["image"].to_list(), "image", row_name),
        check_ids(frame["caption"].to_list(), "caption", row_name),
        "id",
        [[score] for score in _numbers(frame[score_at].to_list(), score_at, row_name, low=0, high=5)],
        row_name,
    )


def read_flickr8k_expert(path: str | Path) -> JudgedRows:
    """Flickr8k's ``ExpertAnnotations.txt``: photo, caption id, and three experts' grades from 1 to 4."""
    images, captions, numbers, row_name = _flickr_lines(path, "photo.jpg, photo.jpg#n, three grades from 1 to 4")
    for index, row in enumerate(numbers):
        for grade in row:
            if grade not in (1, 2, 3, 4):
                raise InputError(
                    f"the grade is {grade:g}", row=row_name(index), expected="1, 2, 3 or 4", fix="correct the grade"
                )
    return JudgedRows(images, captions, "id", numbers, row_name, same_persons=False)


def read_flickr8k_crowd(path: str | Path) -> JudgedRows:
    """Flickr8k's ``CrowdFlowerAnnotations.txt``: photo, caption id, share of yes, number of yes, number of no."""
    images, captions, numbers, row_name = _flickr_lines(
        path, "photo.jpg, photo.jpg#n, share of yes, number of yes, of no"
    )
    scores = []
    for index, (share, yes, no) in enumerate(numbers):
        whole = all(count >= 0 and count == int(count) for count in (yes, no))
        if not whole or not yes + no or abs(share - yes / (yes + no)) > 1e-6:
            raise InputError(
                f"{share:g} of yes with {yes:g} yes and {no:g} no",
                row=row_name(index),
                expected="the share of yes, which is yes ÷ (yes + no)",
                fix="check that the file is CrowdFlowerAnnotations.txt",
            )
        scores.append([1.0] * int(yes) + [0.0] * int(no))
    return JudgedRows(images, captions, "id", scores, row_name, same_persons=False)


FORMAT_READERS: dict[str, Callable[[str | Path], JudgedRows]] = {
    "pairs": read_pairs,
    "cxc": read_cxc,
    "flickr8k-expert": read_flickr8k_expert,
    "flickr8k-cf": read_flickr8k_crowd,
}
"""Format → function that reads it."""


def _flickr_lines(path: str | Path, expected: str) -> tuple[list[str], list[str], list[list[float]], RowName]:
    lines, line_numbers = numbered_lines(path)
    row_name = on_lines(line_numbers)
    rows = [line.split("\t") for line in lines]
    for index, row in enumerate(rows):
        if len(row) != 5:
            fix = "check that tabs were not lost, or name another format of judgements"
            raise wrong_width(row, row_name(index), f"5 columns, tabs between them: {expected}", fix)
    images, captions, *columns = zip(*rows, strict=True)
    numbers = [_numbers(column, "score", row_name) for column in columns]
    return (
        check_ids(images, "image id", row_name),
        check_ids(captions, "caption id", row_name),
        [list(row) for row in zip(*numbers, strict=True)],
        row_name,
    )


def _scored(frame: pl.DataFrame, row_name: RowName) -> tuple[pl.DataFrame, RowName]:
    """The rows with a score, where a column says which grade was decided on."""
    if not {"score", GRADE} <= set(frame.columns):
        return frame, row_name
    kept = (frame["score"].is_not_null() & (frame["score"].cast(pl.String) != "")).arg_true().to_list()
    return frame[kept], lambda index: row_name(kept[index])


def _score_columns(frame: pl.DataFrame) -> list[str]:
    for name in _SCORE_COLUMNS:
        if name in frame.columns:
            return [name]
    several = [name for name in frame.columns if _SEVERAL_SCORES.fullmatch(name)]
    if not several:
        problem = f"no column for the score (found: {', '.join(frame.columns)})"
        expected = "a header with score, or with score_1, score_2, … for several judges"
        raise InputError(problem, row="line 1", expected=expected, fix="rename the column")
    return several


def optional_numbers(values: Sequence[Any], what: str, row_name: RowName) -> list[float]:
    """Finite numbers, NaN where a value is empty."""
    return _numbers(values, what, row_name, optional=True)


def _numbers(
    values: Sequence[Any], what: str, row_name: RowName, *, optional: bool = False, low: float = -math.inf,
    high: float = math.inf,
) -> list[float]:  # fmt: skip
    """Finite numbers; an empty value is NaN where it is optional."""
    numbers = []
    for index, value in enumerate(values):
        if optional and (value is None or value == ""):
            numbers.append(math.nan)
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or not low <= number <= high:
            expected = "a finite number" + (f" from {low:g} to {high:g}" if math.isfinite(high) else "")
            fix = "correct the score, or remove the row"
            raise InputError(f"the {what} is {value!r}", row=row_name(index), expected=expected, fix=fix)
        numbers.append(number)
    return numbers
