"""What every export format offers: files made from runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from crosslens.core.run import Run

Files = Mapping[str, str]
"""Content by part: ``""`` for a format of one file, ``i2t`` and ``t2i`` for one file per direction."""


@dataclass(frozen=True)
class Format:
    """``render`` turns runs and the chosen metrics (None: all) into files; ``several`` says whether many runs fit."""

    render: Callable[[Sequence[Run], Sequence[str] | None], Files]
    summary: str
    several: bool = False
