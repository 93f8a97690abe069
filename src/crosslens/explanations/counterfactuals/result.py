"""The results of a search for counterfactuals: one query's edit, and how robust many queries are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from crosslens.core import Presented, Section, json_form
from crosslens.explanations.counterfactuals.options import RIGHT, WRONG
from crosslens.explanations.counterfactuals.query_set import QueryResult
from crosslens.explanations.counterfactuals.sections import counterfactual_sections
from crosslens.perturbations import Edit


@dataclass(frozen=True)
class Counterfactual:
    """The smallest edit of one query that changes whether its own image comes first.

    ``flipped`` says whether there is one; if not, ``after`` and the edit are of the edit that came closest (``after``
    is None where there was no edit to try). ``characters`` is its edit distance, where neighbours swapped count once,
    ``words`` how many words it touches, ``perturbations`` all that make it.

    ``tried`` of ``candidates`` edits were encoded, every one of up to ``searched`` characters; with the measurement of
    words, ``encodings`` were spent. ``complete`` says that the candidates were all edits that these perturbations can
    make, ``exhaustive`` that no smaller flip (or none at all, where there is none) was missed among them.
    """

    query: str
    image: str
    before: QueryResult
    after: QueryResult | None
    flipped: bool
    edits: tuple[Edit, ...]
    perturbations: tuple[str, ...]
    characters: int
    words: int
    candidates: int
    tried: int
    searched: int
    encodings: int
    exhaustive: bool
    complete: bool = True

    @property
    def kind(self) -> str:
        """``right → wrong`` for a success that turns into a failure, ``wrong → right`` for the reverse."""
        return f"{RIGHT} → {WRONG}" if self.before.right else f"{WRONG} → {RIGHT}"

    def ruled_out(self, characters: int) -> bool:
        """Whether it is known that no edit of so many characters flips it."""
        if self.flipped:  # costs are tried in order
            return self.complete and self.characters > characters
        return self.exhaustive or (self.complete and self.searched >= characters)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = ("query", "image", "flipped", "kind", "perturbations", "characters", "words")
        effort = ("candidates", "tried", "searched", "encodings", "exhaustive", "complete")
        content: dict[str, Any] = json_form(
            {
                **{name: getattr(self, name) for name in names},
                "edits": [{"span": edit.span, "before": edit.before, "after": edit.after} for edit in self.edits],
                "before": self.before.as_dict(),
                "after": None if self.after is None else self.after.as_dict(),
                **{name: getattr(self, name) for name in effort},
            }
        )
        return content


@dataclass(frozen=True)
class Radius:
    """How many of some queries an edit of at most so many characters flips.

    ``flipped`` do for certain; of ``open`` ones it is unknown, as the budget did not reach that far.
    """

    characters: int
    queries: int
    flipped: int
    open: int

    @property
    def share(self) -> float:
        """The share that is known to flip: a lower bound."""
        return self.flipped / self.queries

    @property
    def at_most(self) -> float:
        """The share if all that are open did: an upper bound."""
        return (self.flipped + self.open) / self.queries


@dataclass(frozen=True, eq=False)
class Counterfactuals(Presented):
    """Counterfactuals of several queries of one dataset, by one model; a terminal shows the first ``shown``."""

    dataset: str
    model: str
    direction: str
    gallery: int
    perturbations: tuple[str, ...]
    budget: int
    results: tuple[Counterfactual, ...]
    shown: int = 5

    @property
    def title(self) -> str:
        """The heading of a page."""
        return f"Counterfactuals: {self.dataset}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """The edits, smallest first, and how many characters it takes."""
        return counterfactual_sections(self)

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def of(self, *, right: bool) -> tuple[Counterfactual, ...]:
        """Those of queries that found their image first, or of those that did not."""
        return tuple(result for result in self.results if result.before.right == right)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The numbers of characters at which some query flips."""
        return tuple(sorted({result.characters for result in self.results if result.flipped}))

    def radii(self, *, right: bool) -> tuple[Radius, ...]:
        """The curve of robustness: for each of the steps, how many queries flip up to there; empty without queries."""
        group = self.of(right=right)
        radii = []
        for step in self.steps if group else ():
            flipped = [result.flipped and result.characters <= step for result in group]
            ruled_out = sum(result.ruled_out(step) for result, flips in zip(group, flipped, strict=True) if not flips)
            radii.append(Radius(step, len(group), sum(flipped), len(group) - sum(flipped) - ruled_out))
        return tuple(radii)

    def by_perturbation(self, *, right: bool) -> dict[str, int]:
        """How many smallest flips each perturbation makes; one that several make counts for each of them."""
        flips = [result.perturbations for result in self.of(right=right) if result.flipped]
        counts = {name: sum(name in makers for makers in flips) for name in self.perturbations}
        return {name: counts[name] for name in sorted(counts, key=lambda name: -counts[name]) if counts[name]}

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per query."""
        return pl.DataFrame([_row(result) for result in self.results], schema=_COLUMNS, orient="row")

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the summary, then every query."""
        summary = {
            name: {
                "queries": len(self.of(right=right)),
                "flipped": sum(result.flipped for result in self.of(right=right)),
                "radius": [
                    {"characters": radius.characters, "share": radius.share, "at_most": radius.at_most}
                    for radius in self.radii(right=right)
                ],
                "by_perturbation": self.by_perturbation(right=right),
            }
            for name, right in ((RIGHT, True), (WRONG, False))
        }
        about = {name: getattr(self, name) for name in ("dataset", "model", "direction", "gallery")}
        edits = {"perturbations": list(self.perturbations), "budget": self.budget}
        return {**about, **edits, "summary": summary, "queries": [result.as_dict() for result in self.results]}


_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("query", "image", "kind"), pl.String),
    "flipped": pl.Boolean,
    **dict.fromkeys(("characters", "words"), pl.Int64),
    "perturbations": pl.List(pl.String),
    **dict.fromkeys(("text_before", "text_after", "top_before", "top_after"), pl.String),
    **dict.fromkeys(("rank_before", "rank_after"), pl.Int64),
    **dict.fromkeys(("margin_before", "margin_after"), pl.Float64),
    "encodings": pl.Int64,
    "exhaustive": pl.Boolean,
}


def _row(result: Counterfactual) -> tuple[Any, ...]:
    before, after = result.before, result.after
    values = [getattr(side, name, None) for name in ("text", "top", "rank", "margin") for side in (before, after)]
    edit = (result.characters, result.words, list(result.perturbations)) if after else (None, None, [])
    start = (result.query, result.image, result.kind, result.flipped)
    return (*start, *edit, *values, result.encodings, result.exhaustive)
