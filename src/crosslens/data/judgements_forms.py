"""Files in which people judged image–caption pairs, as rows: whom a row is about, and what was said of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from crosslens.core.errors import InputError, UnknownNameError
from crosslens.data.checks import Place, check_ids, check_texts, count_of, on_lines
from crosslens.data.files import format_suffix, read_lines
from crosslens.data.scene import IMAGE_NAMES
from crosslens.data.tables import TABLE_SUFFIXES, read_table

By = Literal["id", "text", "either"]

_TEXT_COLUMNS = ("text", "caption_text")
_SCORE_COLUMNS = ("score", "agg_score")
_SEVERAL_SCORES = re.compile(r"score[ _-]?\w+")


@dataclass(frozen=True)
class JudgedRows:
    """One entry per row of the file; ``scores`` holds one list per row, a number per judge.

    ``by`` says how captions are named: by their ids, by their texts, or in a way that the dataset has to tell.
    ``judges`` names the judge of each row, where the file does.
    """

    images: list[str]
    captions: list[str]
    by: By
    scores: list[list[float]]
    place: Place
    judges: list[str] | None = None


def read_rows(path: str | Path, form: str | None) -> JudgedRows:
    """The rows of a file, in the form that is named or that its content shows."""
    if form is not None and form not in FORMS:
        raise UnknownNameError("form of judgements", form, FORMS)
    return FORMS[form or guess_form(path)](path)


def guess_form(path: str | Path) -> str:
    """``cxc`` by its header, a table as ``pairs``; lines of five columns are Flickr8k's, told apart by their scores."""
    suffix = format_suffix(path)
    first = "" if suffix == ".parquet" else read_lines(path)[0]
    if "agg_score" in first or "sampling_method" in first:
        return "cxc"
    if suffix in TABLE_SUFFIXES:
        return "pairs"
    fields = [line.split("\t") for line in read_lines(path) if line.strip()]
    scores = {tuple(row[2:]) for row in fields}
    return "flickr8k-expert" if all(set(row) <= set("1234") for row in scores) else "flickr8k-cf"


def read_pairs(path: str | Path) -> JudgedRows:
    """A table with the columns image, caption (an id or the text) and score; a pair judged by several has several rows.

    ``caption_id`` or ``text`` instead of ``caption`` says which of the two it is. A column ``judge`` names the judge of
    each row; columns ``score_1``, ``score_2``, … hold one judge each (empty: did not judge).
    """
    table = read_table(path)
    frame, place = table.frame, table.place
    image_at = _column(frame, "image", IMAGE_NAMES)
    caption_at = _column(frame, "caption", ("caption_id", *_TEXT_COLUMNS, "caption"))
    by: By = "either" if caption_at == "caption" else "text" if caption_at in _TEXT_COLUMNS else "id"
    score_columns = _score_columns(frame)
    columns = [_numbers(frame[name].to_list(), name, place, optional=len(score_columns) > 1) for name in score_columns]
    scores = [list(row) for row in zip(*columns, strict=True)]
    _demand_a_score(scores, place)
    captions = frame[caption_at].to_list()
    return JudgedRows(
        check_ids(frame[image_at].to_list(), "image id", place),
        check_texts(captions, place) if by == "text" else check_ids(captions, "caption", place),
        by,
        scores,
        place,
        check_ids(frame["judge"].to_list(), "judge", place) if "judge" in frame.columns else None,
    )


def read_cxc(path: str | Path) -> JudgedRows:
    """Crisscrossed Captions' image–text files (``sits_val.csv``, ``sits_test.csv``): caption, image, score from 0 to 5.

    The raw files, one row per judge, are read too. The files for two captions (sts) or two images (sis) are refused.
    """
    table = read_table(path)
    frame, place = table.frame, table.place
    for other, what in (("caption1", "two captions"), ("image1", "two images")):
        if other in frame.columns:
            raise InputError(
                f"the file judges {what}", row="line 1", expected="images against captions", fix="use a sits_ file"
            )
    score_at = next((one for one in (*_SCORE_COLUMNS, "annotator_score") if one in frame.columns), None)
    if score_at is None or not {"caption", "image"} <= set(frame.columns):
        raise InputError(
            f"the columns are {', '.join(frame.columns)}",
            row="line 1",
            expected="caption, image, agg_score, sampling_method",
            fix="check that the file is CxC's sits_val.csv or sits_test.csv",
        )
    return JudgedRows(
        check_ids(frame["image"].to_list(), "image", place),
        check_ids(frame["caption"].to_list(), "caption", place),
        "id",
        [[one] for one in _numbers(frame[score_at].to_list(), score_at, place, low=0, high=5)],
        place,
    )


def read_flickr8k_expert(path: str | Path) -> JudgedRows:
    """Flickr8k's ``ExpertAnnotations.txt``: photo, caption id, and three experts' grades from 1 to 4."""
    images, captions, numbers, place = _flickr_lines(path, "photo.jpg, photo.jpg#n, three grades from 1 to 4")
    for index, row in enumerate(numbers):
        for grade in row:
            if grade not in (1, 2, 3, 4):
                raise InputError(
                    f"the grade is {grade:g}", row=place(index), expected="1, 2, 3 or 4", fix="correct the grade"
                )
    return JudgedRows(images, captions, "id", numbers, place)


def read_flickr8k_crowd(path: str | Path) -> JudgedRows:
    """Flickr8k's ``CrowdFlowerAnnotations.txt``: photo, caption id, share of yes, number of yes, number of no."""
    images, captions, numbers, place = _flickr_lines(path, "photo.jpg, photo.jpg#n, share of yes, number of yes, of no")
    scores = []
    for index, (share, yes, no) in enumerate(numbers):
        whole = all(one >= 0 and one == int(one) for one in (yes, no))
        if not whole or not yes + no or abs(share - yes / (yes + no)) > 1e-6:
            raise InputError(
                f"{share:g} of yes with {yes:g} yes and {no:g} no",
                row=place(index),
                expected="the share of yes, which is yes ÷ (yes + no)",
                fix="check that the file is CrowdFlowerAnnotations.txt",
            )
        scores.append([1.0] * int(yes) + [0.0] * int(no))
    return JudgedRows(images, captions, "id", scores, place)


FORMS: dict[str, Callable[[str | Path], JudgedRows]] = {
    "pairs": read_pairs,
    "cxc": read_cxc,
    "flickr8k-expert": read_flickr8k_expert,
    "flickr8k-cf": read_flickr8k_crowd,
}
"""The forms in which judgements come; each reader's first line says what it reads."""


def _flickr_lines(path: str | Path, expected: str) -> tuple[list[str], list[str], list[list[float]], Place]:
    lines = [(number, line) for number, line in enumerate(read_lines(path), start=1) if line.strip()]
    place = on_lines([number for number, _ in lines])
    rows = [line.split("\t") for _, line in lines]
    for index, row in enumerate(rows):
        if len(row) != 5:
            raise InputError(
                count_of(len(row), "column"),
                row=place(index),
                expected=f"5 columns, tabs between them: {expected}",
                fix="check that tabs were not lost, or name another form of judgements",
            )
    images, captions, *columns = zip(*rows, strict=True)
    numbers = [_numbers(column, "score", place) for column in columns]
    return (
        check_ids(images, "image id", place),
        check_ids(captions, "caption id", place),
        [list(row) for row in zip(*numbers, strict=True)],
        place,
    )


def _column(frame: pl.DataFrame, what: str, usual: Sequence[str]) -> str:
    for name in usual:
        if name in frame.columns:
            return name
    raise InputError(
        f"no column for the {what} (found: {', '.join(frame.columns)})",
        row="line 1",
        expected=f"a header with {' or '.join(usual)}",
        fix="rename the column",
    )


def _score_columns(frame: pl.DataFrame) -> list[str]:
    for name in _SCORE_COLUMNS:
        if name in frame.columns:
            return [name]
    several = [name for name in frame.columns if _SEVERAL_SCORES.fullmatch(name)]
    if not several:
        raise InputError(
            f"no column for the score (found: {', '.join(frame.columns)})",
            row="line 1",
            expected="a header with score, or with score_1, score_2, … for several judges",
            fix="rename the column",
        )
    return several


def _numbers(
    values: Sequence[Any], what: str, place: Place, *, optional: bool = False, low: float = -math.inf,
    high: float = math.inf,
) -> list[float]:  # fmt: skip
    """Finite numbers; an empty value is NaN where it is optional."""
    found = []
    for index, value in enumerate(values):
        if optional and (value is None or value == ""):
            found.append(math.nan)
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or not low <= number <= high:
            raise InputError(
                f"the {what} is {value!r}",
                row=place(index),
                expected="a finite number" + (f" from {low:g} to {high:g}" if math.isfinite(high) else ""),
                fix="correct the score, or remove the row",
            )
        found.append(number)
    return found


def _demand_a_score(scores: list[list[float]], place: Place) -> None:
    for index, row in enumerate(scores):
        if all(math.isnan(one) for one in row):
            raise InputError("nobody judged this pair", row=place(index), expected="a score", fix="remove the row")
