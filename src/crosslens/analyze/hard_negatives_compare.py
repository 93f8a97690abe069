"""Two models on the same hard negatives: who is right where, and is the difference more than chance?"""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.hard_negatives import ALL, Outcomes, members_of
from crosslens.analyze.hard_negatives_result import HardNegativesResult, bounds, percent, shown_figures
from crosslens.core.errors import UsageError
from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.core.json_form import json_form
from crosslens.data.hard_negatives import ACCURACY, HardNegatives
from crosslens.statistics import holm, paired_permutation

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Difference:
    """First − second over the cases of one category.

    ``only_first`` and ``only_second`` count the cases that one model alone has right. ``p_value`` comes from a
    permutation test that swaps photos, ``corrected`` from it for the number of rows (Holm); ``mcnemar`` is McNemar's
    exact test, which takes cases for independent.
    """

    grouping: str
    category: str
    measure: str
    cases: int
    difference: float
    low: float
    high: float
    only_first: int
    only_second: int
    p_value: float
    mcnemar: float
    corrected: float = float("nan")


@dataclass(frozen=True)
class HardNegativesComparison:
    """Two models, difference by difference; prints as a table."""

    first: str
    second: str
    differences: tuple[Difference, ...]
    level: float = 0.95

    @property
    def table(self) -> pl.DataFrame:
        """One row per category and measure."""
        return pl.DataFrame([asdict(one) for one in self.differences])

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        rows = [asdict(one) for one in self.differences]
        found: dict[str, Any] = json_form({"first": self.first, "second": self.second, "differences": rows})
        return found

    def text(self, width: int | None = None) -> str:
        """A table per measure, a row per category."""
        head = f"1st: {self.first}; 2nd: {self.second}. Difference 1st − 2nd in points."
        note = (
            "1st, 2nd: how many cases this model alone has right. p: a permutation test that swaps photos, adjusted "
            "for the number of rows (Holm)."
        )
        head, note = ("\n".join(textwrap.wrap(one, width or PAGE_WIDTH)) for one in (head, note))
        measures = dict.fromkeys(one.measure for one in self.differences)
        return "\n\n".join([head, *(self._grid(measure).text(width) for measure in measures), note])

    def _grid(self, measure: str) -> Grid:
        single = measure == ACCURACY[0]
        rows = []
        for one in shown_figures(self.differences, measure):
            name = one.category if single else f"{one.grouping} {one.category}"
            rows.append(
                (
                    "all cases" if one.grouping == ALL else f"  {name}",
                    f"{one.cases:,}",
                    f"{percent(one.difference, signed=True)}  {bounds(one.low, one.high, signed=True)}".rstrip(),
                    f"{one.only_first:,}",
                    f"{one.only_second:,}",
                    f"{one.corrected:.4f}",
                )
            )
        title = "" if single else f"{measure} score"
        return Grid((title, "cases", "difference", "1st", "2nd", "p"), tuple(rows), "lrlrrr")

    def __str__(self) -> str:
        return self.text()


def compare_results(
    first: HardNegativesResult,
    second: HardNegativesResult,
    *,
    permutations: int = 10_000,
    resamples: int = 1000,
    seed: int = 0,
) -> HardNegativesComparison:
    """First − second on the cases that both have scores for."""
    negatives, left, right = _common(first, second)
    rows = []
    for measure in negatives.measures:
        ours, theirs = left.correct(measure), right.correct(measure)
        for grouping, category, part in _parts(negatives):
            tested = paired_permutation(
                np.where(part, ours, np.nan), np.where(part, theirs, np.nan), negatives.clusters,
                permutations=permutations, resamples=resamples, level=first.level, seed=seed,
            )  # fmt: skip
            only = int((part & ours & ~theirs).sum()), int((part & ~ours & theirs).sum())
            rows.append(
                Difference(
                    grouping,
                    category,
                    measure,
                    int(part.sum()),
                    tested.difference,
                    tested.low,
                    tested.high,
                    *only,
                    tested.p_value,
                    mcnemar(*only),
                )
            )
    corrected = holm(np.array([one.p_value for one in rows]))
    found = [Difference(**{**asdict(one), "corrected": float(p)}) for one, p in zip(rows, corrected, strict=True)]
    return HardNegativesComparison(first.model, second.model, tuple(found), first.level)


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided test that the two counts come from a fair coin; 1 where there is nothing to tell."""
    from scipy.stats import binomtest

    total = only_first + only_second
    return 1.0 if total == 0 else float(binomtest(only_first, total, 0.5).pvalue)


def _parts(negatives: HardNegatives) -> list[tuple[str, str, BoolArray]]:
    whole: list[tuple[str, str, BoolArray]] = [(ALL, "", np.ones(len(negatives), np.bool_))]
    for grouping in negatives.groupings:
        fewest = negatives.fewest if grouping == negatives.averaged else 1
        members = members_of(negatives, grouping)
        whole += [(grouping, category, part) for category, part in members.items() if part.sum() >= fewest]
    return whole


def _common(first: HardNegativesResult, second: HardNegativesResult) -> tuple[HardNegatives, Outcomes, Outcomes]:
    """The cases that both have, and both models' outcomes there."""
    if first.negatives.name != second.negatives.name or first.negatives.measures != second.negatives.measures:
        raise UsageError(
            f"results on {first.negatives.name} and on {second.negatives.name}", fix="compare results on the same cases"
        )
    shared = set(first.negatives.cases["case"]) & set(second.negatives.cases["case"])
    found = []
    for one in (first, second):
        kept = one.negatives.cases["case"].is_in(list(shared)).to_numpy()
        margins = {name: values[kept] for name, values in one.outcomes.margins.items()}
        found.append((one.negatives.select(kept), Outcomes(margins, one.outcomes.tolerance)))
    (negatives, left), (other, right) = found
    if negatives.fingerprint != other.fingerprint:
        raise UsageError("cases of one name that differ", fix="compare results on the same cases")
    return negatives, left, right
