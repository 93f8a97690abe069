"""Objects as plain values, ``{"synset": "zebra.n.01", "box": [x, y, w, h]}``, checked and made into arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from crosslens.core.errors import InputError, UsageError
from crosslens.explain.concepts.naming import canonical_synset, plain_name, synset_of_name
from crosslens.explain.concepts.objects import ImageObjects

KEYS = ("synset", "name", "box", "attributes")
SIDES = ("ground_truth", "retrieved")
Objects = Iterable[Mapping[str, Any]]
Size = tuple[float, float]


def plain_objects(ground_truth: Objects, retrieved: Objects, sizes: tuple[Size, Size] | None = None) -> ImageObjects:
    """Two lists of objects as the images ``ground_truth`` and ``retrieved``.

    ``sizes``: width and height of both pictures, which makes areas shares of them; without, areas are width × height of
    the boxes as they are.
    """
    pixels = [1.0, 1.0] if sizes is None else _pixels(sizes)
    sides = [_checked(some, side) for some, side in zip((ground_truth, retrieved), SIDES, strict=True)]
    things = [one for some in sides for one in some]
    boxes = np.array([one[2] for one in things], dtype=np.float64).reshape(-1, 4)
    over = np.repeat(pixels, [len(some) for some in sides])
    return ImageObjects.of(
        SIDES,
        [len(some) for some in sides],
        [one[0] for one in things],
        [one[1] for one in things],
        boxes,
        boxes[:, 2] * boxes[:, 3] / over,
        [one[3] for one in things],
    )


_Thing = tuple[str, str | None, tuple[float, ...], tuple[str, ...]]


def _checked(objects: Objects, side: str) -> list[_Thing]:
    if isinstance(objects, str | Mapping) or not isinstance(objects, Iterable):
        raise InputError(f"{side} is {objects!r:.60}", expected="a list of objects", fix="put the objects into a list")
    return [_object(one, f"{side}[{number}]") for number, one in enumerate(objects)]


def _object(one: Any, place: str) -> _Thing:
    if not isinstance(one, Mapping):
        raise InputError(
            f"{one!r:.60} is not an object",
            row=place,
            expected='a mapping such as {"synset": "zebra.n.01", "box": [x, y, w, h]}',
            fix='write {"name": …} or {"synset": …}',
        )
    if unknown := [key for key in one if key not in KEYS]:
        raise InputError(f"unknown key {unknown[0]!r}", row=place, expected=f"the keys {', '.join(KEYS)}")
    name, synset = _text(one, "name", place), _text(one, "synset", place)
    if name is None and synset is None:
        raise InputError("neither a synset nor a name", row=place, expected="one of the two", fix="say what it is")
    if synset is not None:
        try:
            synset = canonical_synset(synset)
        except InputError as error:
            raise InputError(error.problem, row=place, expected="a synset of WordNet 3.0", fix=error.fix) from None
    elif name is not None:
        synset = synset_of_name(name)
    return plain_name(name or synset or ""), synset, _box(one.get("box"), place), _words(one.get("attributes"), place)


def _text(one: Mapping[str, Any], key: str, place: str) -> str | None:
    value = one.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{key} {value!r:.60}", row=place, expected="a text", fix=f"write the {key}, or leave it out")
    return value


def _box(box: Any, place: str) -> tuple[float, ...]:
    if box is None:
        return (np.nan,) * 4
    sides = list(box) if isinstance(box, Sequence | np.ndarray) and not isinstance(box, str) else []
    numbers = [float(side) for side in sides if isinstance(side, Real) and not isinstance(side, bool)]
    good = len(sides) == len(numbers) == 4 and bool(np.isfinite(numbers).all())
    if not good or numbers[2] <= 0 or numbers[3] <= 0:
        raise InputError(
            f"box {box!r:.60}",
            row=place,
            expected="[x, y, width, height], finite, width and height above 0",
            fix="correct the box, or leave it out for an object without one",
        )
    return tuple(numbers)


def _words(words: Any, place: str) -> tuple[str, ...]:
    if words is None:
        return ()
    if isinstance(words, str) or not isinstance(words, Sequence) or not all(isinstance(one, str) for one in words):
        raise InputError(
            f"attributes {words!r:.60}", row=place, expected="a list of texts", fix='write ["brown", "small"]'
        )
    return tuple(words)


def _pixels(sizes: Any) -> list[float]:
    try:
        (one, two), (three, four) = sizes
        sides = [float(side) for side in (one, two, three, four)]
    except (TypeError, ValueError):
        sides = []
    if not sides or not np.isfinite(sides).all() or min(sides) <= 0:
        raise UsageError(
            f"sizes {sizes!r:.60}", fix="give (width, height) of the ground truth and of the retrieved picture"
        )
    return [sides[0] * sides[1], sides[2] * sides[3]]
