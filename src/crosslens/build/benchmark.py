"""A finished RECOS benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crosslens.analyze import Discriminability
from crosslens.build.log import DecisionLog
from crosslens.build.settings import RecosSettings
from crosslens.core import Dataset


@dataclass(frozen=True, eq=False)
class Recos:
    """Its three versions, the check of all candidates, every decision, and notes."""

    versions: Mapping[str, Dataset]
    check: Discriminability
    settings: RecosSettings
    log: DecisionLog
    notes: tuple[str, ...]
    already: bool = False
    """True where the output folder contained it before."""
