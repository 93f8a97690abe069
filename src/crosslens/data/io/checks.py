"""What every reader checks of its rows; a :data:`RowName` names a row the way its format does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

from crosslens.core import (
    CAPTION_CHARACTERS,
    InputError,
    UnknownNameError,
    is_encodable,
    is_finite_number,
    without_image_ending,
)

RowName = Callable[[int], int | str]
"""From the index of a row to its name in a message: ``line 17``, ``annotation 16``, row 16."""

_TYPE_NAMES = {
    bool: "true or false",
    int: "a number",
    float: "a number with a fraction",
    list: "a list",
    dict: "an object",
}


def counted(what: str) -> RowName:
    """Rows of a JSON array: ``annotation 16``."""
    return lambda index: f"{what} {index}"


def on_lines(lines: Sequence[int]) -> RowName:
    """Rows on these lines of a text file: ``line 17``."""
    return lambda index: f"line {lines[index]}"


def by_row(index: int) -> int:
    """Rows of a table without lines: ``row 16``."""
    return index


def check_unique(ids: Sequence[str], what: str, row_name: RowName) -> None:
    """Every id once."""
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for index, name in enumerate(ids):
        if name in first:
            earlier = row_name(first[name])
            raise InputError(
                f"duplicate {what} id {name!r} (first at {earlier if isinstance(earlier, str) else f'row {earlier}'})",
                row=row_name(index),
                expected=f"each {what} once",
                fix="remove or rename one of the two",
            )
        first[name] = index


def check_known(ids: Sequence[str], known: Collection[str], what: str, row_name: RowName) -> None:
    """Every id among the ``known`` ones."""
    known = known if isinstance(known, (set, dict)) else set(known)
    index = next((index for index, name in enumerate(ids) if name not in known), None)
    if index is None:
        return
    near = UnknownNameError(what, ids[index], list(known)[:20_000]).suggestions
    expected = f"one of the {len(known)} {what} ids"
    fix = f"did you mean {near[0]!r}?" if near else f"add the {what} {ids[index]!r}, or remove this entry"
    raise InputError(f"unknown {what} id {ids[index]!r}", row=row_name(index), expected=expected, fix=fix)


def check_texts(texts: Sequence[Any], row_name: RowName) -> list[str]:
    """Captions: strings with something in them."""
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"the caption is {_type_name(text)}", row=row_name(index), expected="a string", fix="quote the caption"
            )
        if not text or text.isspace():
            expected = "a non-empty text"
            fix = "write the caption or remove it"
            raise InputError("empty caption", row=row_name(index), expected=expected, fix=fix, code="empty-caption")
        CAPTION_CHARACTERS.check(len(text), "the caption", row=row_name(index))
    _check_encodable(texts, "caption", row_name)
    return list(texts)


def _check_encodable(texts: Sequence[Any], what: str, row_name: RowName) -> None:
    """No half of a surrogate pair, as in a file name that is not UTF-8: no file could hold it."""
    for index, text in enumerate(texts):
        if isinstance(text, str) and not is_encodable(text):
            expected, fix = "text that UTF-8 can hold", "correct the text, or rename the file"
            raise InputError(f"the {what} is {text!r:.60}", row=row_name(index), expected=expected, fix=fix)


def check_ids(values: Sequence[Any], what: str, row_name: RowName) -> list[str]:
    """Ids: non-empty strings or whole numbers, returned as strings."""
    for index, value in enumerate(values):
        if type(value) is int or (type(value) is str and value):
            continue
        expected = "a non-empty string or a whole number"
        fix = f"give this entry its {what}"
        raise InputError(f"the {what} is {_type_name(value)}", row=row_name(index), expected=expected, fix=fix)
    _check_encodable(values, what, row_name)
    return [str(value) for value in values]


def coco_ids_of(names: Sequence[str], row_name: RowName) -> list[str]:
    """The numbers at the end of COCO's file names: 391895 of ``COCO_val2014_000000391895.jpg``."""
    ids = []
    for index, name in enumerate(names):
        number = re.search(r"(\d+)$", without_image_ending(name))
        if number is None:
            problem = f"the file name {name!r} does not end in a number"
            fix = "pass coco_ids=False to use the names as ids"
            expected = "a name such as COCO_val2014_000000391895"
            raise InputError(problem, row=row_name(index), expected=expected, fix=fix)
        ids.append(str(int(number[1])))
    return ids


def box_columns(boxes: Sequence[Any], row_name: RowName) -> dict[str, list[float | None]]:
    """The columns x, y, w, h from boxes ``[x, y, width, height]``; None is an object without a box.

    A box of no width or no height is stored as no box: published annotations contain a few (rounding), and there is
    nothing inside them to look at.
    """
    rows: list[tuple[float | None, ...]] = []
    for index, box in enumerate(boxes):
        if box is not None and not _is_box(box):
            expected = "[x, y, width, height] in pixels: four finite numbers, width and height not negative"
            fix = "correct the box, or leave it out for an object without one"
            raise InputError(f"bad box {box!r}", row=row_name(index), expected=expected, fix=fix)
        is_empty = box is None or box[2] == 0 or box[3] == 0
        rows.append((None,) * 4 if is_empty else tuple(float(side) for side in box))
    return {name: [row[side] for row in rows] for side, name in enumerate("xywh")}


def _is_box(box: Any) -> bool:
    if not isinstance(box, (list, tuple)) or len(box) != 4:
        return False
    if not all(is_finite_number(side) for side in box):
        return False
    return bool(box[2] >= 0 and box[3] >= 0)


def number_within(images: Sequence[str], mark: str = "#") -> list[str]:
    """Ids for rows that have none: ``<image>#<n>``, counted from 0 within each image."""
    seen: Counter[str] = Counter()
    ids = []
    for image in images:
        ids.append(f"{image}{mark}{seen[image]}")
        seen[image] += 1
    return ids


def ids_or_numbers(
    values: Sequence[Any], images: Sequence[str], what: str, row_name: RowName, mark: str = "#"
) -> list[str]:
    """The ids in ``values``, numbers within the image where they are None."""
    numbers = number_within(images, mark)
    ids = [number if value is None else value for value, number in zip(values, numbers, strict=True)]
    return check_ids(ids, what, row_name)


def wrong_width(fields: Sequence[str], row_name: int | str, expected: str, fix: str) -> InputError:
    """The error for a line with too many or too few columns; ``expected``: how many, and which."""
    count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
    return InputError(count, row=row_name, expected=expected, fix=fix)


def _type_name(value: Any) -> str:
    if value is None:
        return "missing (null)"
    return "empty" if value == "" else _TYPE_NAMES.get(type(value), type(value).__name__)
