"""Which letters touch which on a QWERTY keyboard."""

from __future__ import annotations

from collections.abc import Mapping

ROWS = (("qwertyuiop", 0.0), ("asdfghjkl", 0.25), ("zxcvbnm", 0.75))
"""The rows of letters, and how far each is set in, in widths of a key: they do not stand straight below each other."""


def _touching() -> dict[str, str]:
    """Keys touch when they are in the same row or the next one, and less than a width and a bit apart."""
    places = {
        letter: (row, inset + column)
        for row, (letters, inset) in enumerate(ROWS)
        for column, letter in enumerate(letters)
    }

    def touch(one: tuple[int, float], other: tuple[int, float]) -> bool:
        down, across = abs(one[0] - other[0]), abs(one[1] - other[1])
        return (down == 0 and across == 1) or (down == 1 and across < 1)

    return {one: "".join(other for other in places if touch(places[one], places[other])) for one in places}


KEY_NEIGHBOURS: Mapping[str, str] = _touching()
"""For each letter (lower case) the letters whose keys touch its own: ``s`` has ``w e a d z x``."""
