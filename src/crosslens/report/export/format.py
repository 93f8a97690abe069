"""What every export format offers: files made from runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from crosslens.core.run import Run

Files = Mapping[str, str]
"""Content by part: ``""`` for a format of one file, ``i2t`` and ``t2i`` for one file per direction."""

Metrics = str | Sequence[str] | None
"""The metrics a person chose, as :func:`crosslens.report.selection.select` reads them."""


@dataclass(frozen=True)
class Format:
    """``render`` turns runs and the chosen metrics (None: all) into files; ``several`` says whether many runs fit.

    ``suffix`` is how the names of its files end, each format's its own: all exports of a run fit into one folder.
    """

    render: Callable[[Sequence[Run], Metrics], Files]
    summary: str
    suffix: str
    several: bool = False
