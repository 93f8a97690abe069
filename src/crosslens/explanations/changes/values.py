"""Queries that one run wins over another, and queries that it loses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from crosslens.core import Presented, Section, json_form
from crosslens.explanations.changes.sections import change_sections
from crosslens.statistics import PairedTest


@dataclass(frozen=True)
class TopHit:
    """The first item of a query's list in one run.

    ``rank`` is that of the first relevant item, None where a given list ends before it; ``phi`` how much the hit says
    what the query says; ``causes`` what is wrong with the hit, and ``wrong`` the phrases that disagree with it.
    """

    item: str
    image: str
    text: str | None
    rank: int | None
    phi: float | None
    causes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Whether it is relevant."""
        return self.rank == 1


@dataclass(frozen=True)
class QueryChange:
    """One query in both runs; ``image`` is the relevant image, or the query image itself."""

    query: str
    text: str | None
    image: str
    first: TopHit
    second: TopHit


@dataclass(frozen=True, eq=False)
class RunChanges(Presented):
    """Two runs on the same queries of one direction.

    A query is won where its first relevant item is ranked higher by the second run. ``ranks`` tests the difference of
    the mean reciprocal ranks, ``phi`` that of the mean φ of the top hits, whose means are ``phi_means``. ``causes``
    has a row per cause: how many queries fail so in either run, in how many won queries it is gone, and in how many
    lost ones new. ``won`` and ``lost`` are the queries that changed most; ``captions`` has a caption of each image that
    they name, ``pictures`` its file, and ``problem`` says why there are none.
    """

    runs: tuple[str, str]
    dataset: str
    direction: str
    queries: int
    wins: int
    losses: int
    ranks: PairedTest
    phi_name: str
    phi_means: tuple[float, float]
    phi: PairedTest
    causes: pl.DataFrame
    won: tuple[QueryChange, ...]
    lost: tuple[QueryChange, ...]
    notes: tuple[str, ...] = ()
    captions: Mapping[str, str] = field(default_factory=dict)
    pictures: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"What {self.runs[1]} changed"

    def sections(self, **options: Any) -> Iterator[Section]:
        """The balance, causes, and queries won and lost."""
        return change_sections(self)

    @property
    def images(self) -> tuple[str, ...]:
        """The images that are shown."""
        changes = (*self.won, *self.lost)
        return tuple(
            dict.fromkeys(
                image for change in changes for image in (change.image, change.first.image, change.second.image)
            )
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        facts = {
            name: getattr(self, name)
            for name in ("runs", "dataset", "direction", "queries", "wins", "losses", "phi_name", "phi_means", "notes")
        }
        tests = {name: asdict(getattr(self, name)) for name in ("ranks", "phi")}
        shown = {name: [asdict(change) for change in getattr(self, name)] for name in ("won", "lost")}
        content: dict[str, Any] = json_form({**facts, **tests, "causes": self.causes.to_dicts(), **shown})
        return content
