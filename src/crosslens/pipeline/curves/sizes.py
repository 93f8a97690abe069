"""Sizes of galleries: as people write them, and those of a curve that names none."""

from __future__ import annotations

import re
from collections.abc import Iterable

from crosslens.core import UsageError

_MOST = 1000
_LARGEST = 10**12
_SIZE = r"([0-9][0-9_]{0,15}(?:e[0-9]{1,2})?)"
_PART = re.compile(rf"\s*{_SIZE}\s*(?:\.\.\s*{_SIZE}\s*)?")


def parse_sizes(text: str) -> tuple[int, ...]:
    """``10,50,150``, ``2..100``, ``1000,1e6``: ascending, each once."""
    sizes: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        first, last = (_whole(match[1]), _whole(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= _LARGEST:
            raise UsageError(
                f"cannot read the sizes {text!r:.60}", fix="write them as 10,50,150, as 2..100 or as 1000,1e6",
                option="sizes",
            )  # fmt: skip
        sizes.update(range(first, min(last, first + _MOST) + 1))
        if len(sizes) > _MOST:
            raise UsageError(f"more than {_MOST:,} sizes", fix="name fewer, such as 10,100,1000", option="sizes")
    return tuple(sorted(sizes))


def round_sizes(smallest: int, galleries: Iterable[int]) -> tuple[int, ...]:
    """1, 2, 5, 10, …, from the smallest possible size to the largest gallery, and the size of every gallery."""
    galleries = set(galleries)
    steps = (factor * 10**power for power in range(13) for factor in (1, 2, 5))
    return tuple(sorted({size for size in steps if smallest <= size <= max(galleries)} | galleries))


def _whole(text: str) -> int:
    digits, _, power = text.partition("e")
    return int(digits + "0" * int(power or 0))
