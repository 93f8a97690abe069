"""The outcomes of all models under all variants, put together into the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.fingerprint import fingerprint
from crosslens.core.progress import Progress, Silent, stage
from crosslens.pipeline.robustness.brittle import BRITTLE_COLUMNS, QUERY_COLUMNS, brittle_rows, query_table
from crosslens.pipeline.robustness.changes import change_row, mean_overlap, overlap_rows
from crosslens.pipeline.robustness.drops import corrected, drop_rows, headline
from crosslens.pipeline.robustness.outcome import Outcome
from crosslens.pipeline.robustness.result import Robustness
from crosslens.pipeline.robustness.variants import CAPTION_COLUMNS, ORIGINAL, Variant
from crosslens.pipeline.robustness.words import WORD_COLUMNS, edited_parts, word_rows

_PAIR_COLUMNS = {
    "model": pl.String, "first": pl.String, "second": pl.String, "group": pl.String,
    "jaccard": pl.Float64, "among_changed": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True)
class Testing:
    """How sure figures are made."""

    correction: str = "holm"
    permutations: int = 10_000
    resamples: int = 1000
    level: float = 0.95
    seed: int = 0
    listed: int = 20
    """How many of the most brittle queries are listed."""


@dataclass(frozen=True)
class Study:
    """``outcomes[model][label]``, the original's under ``original``."""

    dataset: Dataset
    variants: Mapping[str, Variant]
    outcomes: Mapping[str, Mapping[str, Outcome]]
    testing: Testing = field(default_factory=Testing)

    def result(self, about: Mapping[str, Any], threads: int | None, progress: Progress | None) -> Robustness:
        """Every table."""
        first = {label: one for label, one in self.variants.items() if one.seed == self._first_seed}
        any_outcome = next(iter(self.outcomes.values()))[ORIGINAL]
        parts, note = edited_parts(self.dataset, list(first.values()), threads, progress)
        drops = corrected(self._drops(progress or Silent()), self.testing.correction)
        pairs = _table(self._each(first, overlap_rows), _PAIR_COLUMNS)
        tables = {
            "drops": drops,
            "spread": spread(drops),
            "changes": _changes(self, first),
            "overlap": mean_overlap(pairs),
            "overlap_pairs": pairs,
            "words": _table(self._words(parts, first), WORD_COLUMNS),
            "brittle": _table(self._each(first, brittle_rows, self.testing.listed), BRITTLE_COLUMNS),
            "captions": pl.concat([pl.DataFrame(schema=CAPTION_COLUMNS), *(v.table() for v in self.variants.values())]),
            "queries": pl.concat([pl.DataFrame(schema=QUERY_COLUMNS), *self._queries()]),
        }
        notes = [*about.get("notes", ()), *([note] if note else [])]
        return Robustness(
            tuple(self.outcomes),
            tuple(dict.fromkeys(one.perturbation for one in self.variants.values())),
            headline(any_outcome.run, any_outcome.direction),
            any_outcome.direction,
            tables,
            {**about, "notes": notes},
        )

    @property
    def key(self) -> str:
        """Changes when any value of any query of any run does, or the way they are tested."""
        return fingerprint(
            "study",
            {
                "testing": vars(self.testing),
                **{f"texts of {label}": one.dataset.texts for label, one in self.variants.items()},
                **{
                    f"{model}/{label}": f"{one.run.fingerprint} {fingerprint('own', {'scores': one.own})}"
                    for model, found in self.outcomes.items()
                    for label, one in found.items()
                },
            },
        )

    @property
    def _first_seed(self) -> int:
        return next(iter(self.variants.values())).seed

    def _each(self, variants: Mapping[str, Variant], make: Any, *more: Any) -> list[dict[str, Any]]:
        rows = []
        for model, found in self.outcomes.items():
            chosen = {label: found[label] for label in variants}
            rows += make(model, found[ORIGINAL], chosen, variants, *more)
        return rows

    def _drops(self, progress: Progress) -> list[dict[str, Any]]:
        rows = []
        one = self.testing
        with stage(progress, "testing drops", len(self.outcomes) * len(self.variants)):
            for model, found in self.outcomes.items():
                for label in self.variants:
                    rows += drop_rows(
                        model, found[ORIGINAL], {label: found[label]}, self.variants,
                        permutations=one.permutations, resamples=one.resamples, level=one.level, seed=one.seed,
                    )  # fmt: skip
                    progress.advance()
        return rows

    def _words(self, parts: Mapping[str, Any], variants: Mapping[str, Variant]) -> list[dict[str, Any]]:
        rows = []
        one = self.testing
        named = {variants[label].perturbation: found for label, found in parts.items()}
        for model, found in self.outcomes.items():
            if found[ORIGINAL].direction != "i2t":
                outcomes = {variants[label].perturbation: found[label] for label in variants}
                rows += word_rows(
                    model, named, found[ORIGINAL], outcomes, resamples=one.resamples, level=one.level, seed=one.seed
                )
        return rows

    def _queries(self) -> list[pl.DataFrame]:
        return [
            query_table(model, variant, found[ORIGINAL], found[label])
            for model, found in self.outcomes.items()
            for label, variant in self.variants.items()
        ]


def spread(drops: pl.DataFrame) -> pl.DataFrame:
    """The drop over seeds: mean, standard deviation, extremes; empty with one seed."""
    found = drops.group_by("model", "perturbation", "metric", maintain_order=True).agg(
        pl.len().alias("seeds"),
        pl.col("drop").mean().alias("mean"),
        pl.col("drop").std().alias("deviation"),
        pl.col("drop").min().alias("lowest"),
        pl.col("drop").max().alias("highest"),
    )
    return found.filter(pl.col("seeds") > 1)


def _changes(study: Study, variants: Mapping[str, Variant]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            change_row(model, variant, found[ORIGINAL], found[label])
            for model, found in study.outcomes.items()
            for label, variant in variants.items()
        ]
    )


def _table(rows: list[dict[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(schema))
