"""What a search for counterfactuals found: one query's edit, and how robust many queries are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from crosslens.core.json_form import json_form
from crosslens.explain.counterfactuals.gallery import Standing
from crosslens.perturb.edit import Edit

RIGHT, WRONG = "right", "wrong"


@dataclass(frozen=True)
class Counterfactual:
    """The smallest edit of one query that changes whether its own image comes first.

    ``flipped`` says whether there is one; if not, ``after`` and the edit are of the edit that came closest (``after``
    is None where there was no edit to try). ``characters`` is its edit distance, where neighbours swapped count once,
    ``words`` how many words it touches, ``perturbations`` all that make it.

    ``tried`` of ``candidates`` edits were encoded, every one of up to ``searched`` characters; with the words that were
    asked, ``encodings`` were spent. ``complete`` says that the candidates were all edits that these perturbations can
    make, ``exhaustive`` that no smaller flip (or none at all, where none was found) was missed among them.
    """

    query: str
    image: str
    before: Standing
    after: Standing | None
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
        """``right → wrong`` for a success that can be broken, ``wrong → right`` for a failure that can be mended."""
        return f"{RIGHT} → {WRONG}" if self.before.right else f"{WRONG} → {RIGHT}"

    def ruled_out(self, characters: int) -> bool:
        """Whether it is known that no edit of so many characters flips it."""
        if self.flipped:  # costs are tried in order
            return self.complete and self.characters > characters
        return self.exhaustive or (self.complete and self.searched >= characters)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        plain: dict[str, Any] = json_form(
            {
                "query": self.query,
                "image": self.image,
                "flipped": self.flipped,
                "kind": self.kind,
                "perturbations": self.perturbations,
                "characters": self.characters,
                "words": self.words,
                "edits": [{"span": one.span, "before": one.before, "after": one.after} for one in self.edits],
                "before": _standing(self.before),
                "after": None if self.after is None else _standing(self.after),
                "candidates": self.candidates,
                "tried": self.tried,
                "searched": self.searched,
                "encodings": self.encodings,
                "exhaustive": self.exhaustive,
                "complete": self.complete,
            }
        )
        return plain


@dataclass(frozen=True)
class Radius:
    """How many of some queries an edit of at most so many characters flips.

    ``flipped`` do for certain; of ``open`` ones nobody knows, as the budget did not reach that far.
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
class Counterfactuals:
    """Counterfactuals of several queries of one dataset, by one model."""

    dataset: str
    model: str
    direction: str
    gallery: int
    perturbations: tuple[str, ...]
    budget: int
    results: tuple[Counterfactual, ...]

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def of(self, *, right: bool) -> tuple[Counterfactual, ...]:
        """Those of queries that found their image first, or of those that did not."""
        return tuple(one for one in self.results if one.before.right == right)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The numbers of characters at which some query flips."""
        return tuple(sorted({one.characters for one in self.results if one.flipped}))

    def radii(self, *, right: bool) -> tuple[Radius, ...]:
        """The curve of robustness: for each of the steps, how many queries flip up to there; empty without queries."""
        group = self.of(right=right)
        return tuple(
            Radius(
                step,
                len(group),
                sum(one.flipped and one.characters <= step for one in group),
                sum(not (one.flipped and one.characters <= step) and not one.ruled_out(step) for one in group),
            )
            for step in (self.steps if group else ())
        )

    def by_perturbation(self, *, right: bool) -> dict[str, int]:
        """How many smallest flips each perturbation makes; one that several make counts for each of them."""
        flips = [one.perturbations for one in self.of(right=right) if one.flipped]
        counts = {name: sum(name in makers for makers in flips) for name in self.perturbations}
        return {name: counts[name] for name in sorted(counts, key=lambda name: -counts[name]) if counts[name]}

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per query."""
        rows = [_row(one) for one in self.results]
        return pl.DataFrame(rows, schema=_COLUMNS, orient="row")

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: the summary, then every query."""
        summary = {
            name: {
                "queries": len(self.of(right=right)),
                "flipped": sum(one.flipped for one in self.of(right=right)),
                "radius": [
                    {"characters": one.characters, "share": one.share, "at_most": one.at_most}
                    for one in self.radii(right=right)
                ],
                "by_perturbation": self.by_perturbation(right=right),
            }
            for name, right in ((RIGHT, True), (WRONG, False))
        }
        return {
            "dataset": self.dataset,
            "model": self.model,
            "direction": self.direction,
            "gallery": self.gallery,
            "perturbations": list(self.perturbations),
            "budget": self.budget,
            "summary": summary,
            "queries": [one.as_dict() for one in self.results],
        }


_COLUMNS: dict[str, Any] = {
    "query": pl.String,
    "image": pl.String,
    "kind": pl.String,
    "flipped": pl.Boolean,
    "characters": pl.Int64,
    "words": pl.Int64,
    "perturbations": pl.List(pl.String),
    "text_before": pl.String,
    "text_after": pl.String,
    "top_before": pl.String,
    "top_after": pl.String,
    "rank_before": pl.Int64,
    "rank_after": pl.Int64,
    "margin_before": pl.Float64,
    "margin_after": pl.Float64,
    "encodings": pl.Int64,
    "exhaustive": pl.Boolean,
}


def _row(one: Counterfactual) -> tuple[Any, ...]:
    before, after = one.before, one.after
    pairs = [(getattr(before, name), getattr(after, name, None)) for name in ("text", "top", "rank", "margin")]
    edit = (one.characters, one.words, list(one.perturbations)) if after else (None, None, [])
    stands = [value for pair in pairs for value in pair]
    return (one.query, one.image, one.kind, one.flipped, *edit, *stands, one.encodings, one.exhaustive)


def _standing(one: Standing) -> dict[str, Any]:
    return {
        "text": one.text,
        "top": one.top,
        "rank": one.rank,
        "score": one.score,
        "rival": one.rival,
        "rival_score": one.rival_score,
        "margin": one.margin,
    }
