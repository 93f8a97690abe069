"""Ids: unique, non-empty strings, always carried beside the arrays they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from crosslens.core.errors import InputError, UnknownNameError
from crosslens.core.input_files.json_text import is_encodable

Ids = tuple[str, ...]

_IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff")


def as_ids(values: Iterable[Any], what: str) -> Ids:
    """Turn numbers or strings into ids; a missing, empty or repeated one raises."""
    ids = tuple("" if value is None else str(value) for value in values)
    if not is_encodable("".join(ids)):
        row = next(row for row, name in enumerate(ids) if not is_encodable(name))
        fix = f"rename the {what}: it holds half of a surrogate pair"
        raise InputError(f"the {what} id is {ids[row]!r:.60}", row=row, expected="text that UTF-8 can hold", fix=fix)
    if len(set(ids)) == len(ids) and "" not in ids:
        return ids
    seen: dict[str, int] = {}
    for row, name in enumerate(ids):
        if name == "":
            raise InputError(f"empty {what} id", row=row, fix=f"give every {what} an id")
        if name in seen:
            problem = f"duplicate {what} id {name!r} (first at row {seen[name]})"
            fix = "remove or rename one of the two"
            raise InputError(problem, row=row, expected=f"each {what} once", fix=fix, code="duplicate-id", subject=name)
        seen[name] = row
    return ids


def match_ids(
    names: Sequence[str], ids: Sequence[str], *, any_ending: bool = True
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The row of each of ``names`` in ``ids``, −1 where there is none.

    Some files call an image ``beach.jpg``, others ``beach``: a name that is not among the ids matches the one that
    differs from it by the ending of an image file only, unless ``any_ending`` is off. Where several of the names or of
    the ids differ by nothing else, nothing is guessed.
    """
    row_of = {name: row for row, name in enumerate(ids)}
    if any_ending and not all(name in row_of for name in names):
        distinct = dict.fromkeys(names)
        sharing = Counter(map(without_image_ending, distinct))
        rows: dict[str, int] = {}
        for row, name in enumerate(ids):
            stem = without_image_ending(name)
            rows[stem] = -1 if stem in rows else row
        for name in distinct:
            stem = without_image_ending(name)
            if name not in row_of and sharing[stem] == 1:
                row_of[name] = rows.get(stem, -1)
    return np.fromiter((row_of.get(name, -1) for name in names), dtype=np.int64, count=len(names))


def has_image_ending(name: str) -> bool:
    """Whether a name ends as those of image files do."""
    return name.lower().endswith(_IMAGE_ENDINGS)


def without_image_ending(name: str) -> str:
    """``beach`` for ``beach.jpg``; any other id as it is."""
    if has_image_ending(name):
        return name.rpartition(".")[0] or name
    return name


def spelled_as(ids: Sequence[str], names: Sequence[str]) -> Ids:
    """``names``, each as the id in ``ids`` that it matches is written; one that matches none as it is."""
    return tuple(name if row < 0 else ids[row] for name, row in zip(names, match_ids(names, ids), strict=True))


def positions(
    names: Sequence[str], ids: Ids, what: str, *, any_ending: bool = False
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The row of each of ``names`` in ``ids``; an unknown one raises, naming its row and near names.

    ``any_ending``: for ids from two sources, where images match as in :func:`match_ids`.
    """
    rows = match_ids(names, ids, any_ending=any_ending)
    if len(rows) and rows.min() < 0:
        row = int(np.argmax(rows < 0))
        near = UnknownNameError(what, names[row], ids[:100_000]).suggestions
        raise InputError(
            f"unknown {what} id {names[row]!r}",
            row=row,
            expected=f"one of the {len(ids)} {what} ids",
            fix=f"did you mean {near[0]!r}?" if near else f"add it to the {what}s, or remove this row",
            code="unknown-id",
            subject=names[row],
        )
    return rows


def frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only view of ``array``: the values that flow through crosslens do not change."""
    view = array.view()
    view.flags.writeable = False
    return view


def distinct_names(names: Iterable[str]) -> list[str]:
    """The names, of which the second and further of the same get a number: ``coco``, ``coco (2)``."""
    taken: list[str] = []
    for name in names:
        label, number = name, 1
        while label in taken:
            number += 1
            label = f"{name} ({number})"
        taken.append(label)
    return taken
