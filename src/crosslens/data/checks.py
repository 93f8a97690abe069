"""What every reader checks of the rows it finds; ``place`` names a row the way its format does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

from crosslens.core.errors import InputError, UnknownNameError

Place = Callable[[int], int | str]
"""From the number of a row, counted from 0, to its name in a message: ``line 17``, ``annotation 16``, row 16."""


def counted(what: str) -> Place:
    """Rows of a JSON array: ``annotation 16``."""
    return lambda index: f"{what} {index}"


def on_lines(lines: Sequence[int]) -> Place:
    """Rows that stand on these lines of a text file: ``line 17``."""
    return lambda index: f"line {lines[index]}"


def by_row(index: int) -> int:
    """Rows of a table without lines: ``row 16``."""
    return index


def check_unique(ids: Sequence[str], what: str, place: Place) -> None:
    """Every id once."""
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for index, one in enumerate(ids):
        if one in first:
            earlier = place(first[one])
            raise InputError(
                f"duplicate {what} id {one!r} (first at {earlier if isinstance(earlier, str) else f'row {earlier}'})",
                row=place(index),
                expected=f"each {what} once",
                fix="remove or rename one of the two",
            )
        first[one] = index


def check_known(wanted: Sequence[str], known: Collection[str], what: str, place: Place) -> None:
    """Every id of ``wanted`` among the ``known`` ones."""
    known = known if isinstance(known, (set, dict)) else set(known)
    if known.issuperset(wanted) if isinstance(known, set) else all(one in known for one in wanted):
        return
    index = next(index for index, one in enumerate(wanted) if one not in known)
    near = UnknownNameError(what, wanted[index], list(known)[:20_000]).suggestions
    raise InputError(
        f"unknown {what} id {wanted[index]!r}",
        row=place(index),
        expected=f"one of the {len(known)} {what} ids",
        fix=f"did you mean {near[0]!r}?" if near else f"add the {what} {wanted[index]!r}, or remove this entry",
    )


def check_texts(texts: Sequence[Any], place: Place) -> list[str]:
    """Captions: strings with something in them."""
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"the caption is {_kind(text)}", row=place(index), expected="a string", fix="quote the caption"
            )
        if not text or text.isspace():
            raise InputError(
                "empty caption",
                row=place(index),
                expected="a non-empty text",
                fix="write the caption or remove it",
            )
    return list(texts)


def check_ids(values: Sequence[Any], what: str, place: Place) -> list[str]:
    """Ids: non-empty strings or whole numbers, given back as strings."""
    for index, value in enumerate(values):
        if type(value) is int or (type(value) is str and value):
            continue
        raise InputError(
            f"the {what} is {_kind(value)}",
            row=place(index),
            expected="a non-empty string or a whole number",
            fix=f"give this entry its {what}",
        )
    return [str(value) for value in values]


def box_columns(boxes: Sequence[Any], place: Place) -> dict[str, list[float | None]]:
    """The columns x, y, w, h from boxes ``[x, y, width, height]``; None is an object without a box.

    A box of no width or no height is stored as no box: published annotations contain a few (rounding), and there is
    nothing inside them to look at.
    """
    rows: list[tuple[float | None, ...]] = []
    for index, box in enumerate(boxes):
        if box is None:
            rows.append((None,) * 4)
            continue
        if not _is_box(box):
            raise InputError(
                f"bad box {box!r}",
                row=place(index),
                expected="[x, y, width, height] in pixels: four finite numbers, width and height not negative",
                fix="correct the box, or leave it out for an object without one",
            )
        rows.append(tuple(float(side) for side in box) if box[2] > 0 and box[3] > 0 else (None,) * 4)
    return {name: [row[side] for row in rows] for side, name in enumerate("xywh")}


def _is_box(box: Any) -> bool:
    if not isinstance(box, (list, tuple)) or len(box) != 4:
        return False
    if not all(type(side) in (int, float) and math.isfinite(side) for side in box):
        return False
    return bool(box[2] >= 0 and box[3] >= 0)


def number_within(images: Sequence[str], mark: str = "#") -> list[str]:
    """Ids for things that have none: ``<image>#<n>``, counted from 0 within each image."""
    seen: Counter[str] = Counter()
    ids = []
    for image in images:
        ids.append(f"{image}{mark}{seen[image]}")
        seen[image] += 1
    return ids


def ids_or_numbers(given: Sequence[Any], images: Sequence[str], what: str, place: Place, mark: str = "#") -> list[str]:
    """The ids that are given, numbers within the image where they are None."""
    if all(one is None for one in given):
        return number_within(images, mark)
    numbered = number_within(images, mark)
    return check_ids([new if one is None else one for one, new in zip(given, numbered, strict=True)], what, place)


def count_of(number: int, noun: str) -> str:
    """``1 column``, ``2 columns``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _kind(value: Any) -> str:
    if value is None:
        return "missing (null)"
    if value == "":
        return "empty"
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number with a fraction",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)
