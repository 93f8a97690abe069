"""How much every metric falls under every variant, with the interval of the fall and whether it is chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.metric_values import MetricValues
from crosslens.core.relevance import IMAGE_TO_TEXT
from crosslens.core.run import BOTH, Run, split_name
from crosslens.metrics import family_of
from crosslens.metrics.figures import spec_of
from crosslens.pipeline.compare import compare
from crosslens.pipeline.robustness.outcome import FloatArray, Outcome
from crosslens.pipeline.robustness.variants import BoolArray, Variant
from crosslens.statistics import Bootstrap, centre, correct, paired_permutation

DROP_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "seed": pl.Int64, "metric": pl.String,
    "before": pl.Float64, "after": pl.Float64, "drop": pl.Float64, "relative": pl.Float64,
    "low": pl.Float64, "high": pl.Float64, "p": pl.Float64, "adjusted_p": pl.Float64, "queries": pl.Int64,
    "applied_share": pl.Float64, "applied": pl.Int64,
    "applied_drop": pl.Float64, "applied_low": pl.Float64, "applied_high": pl.Float64,
}  # fmt: skip
"""``drop`` is how much worse: before − after, or after − before where lower is better (``MedR``, ``Fails``).

``applied_share`` is of the captions. ``applied`` counts the queries of the metric that were touched: captions that
changed, images that have such a caption; ``applied_drop`` is the drop over those alone.
"""


def half_sum(direction: str) -> str:
    """The part of ``Rsum`` that is of one direction: Hit@1 + Hit@5 + Hit@10 in percent, from 0 to 300."""
    return f"{direction}/Rsum"


def drop_rows(
    model: str,
    original: Outcome,
    outcomes: Mapping[str, Outcome],
    variants: Mapping[str, Variant],
    *,
    permutations: int,
    resamples: int,
    level: float,
    seed: int,
) -> list[dict[str, Any]]:
    """A row per variant and metric of one model; p-values are not corrected yet."""
    rows = []
    for label, outcome in outcomes.items():
        found = compare(original.run, outcome.run, correction="none", permutations=permutations, seed=seed)
        tests = {one.metric: (one.difference, one.low, one.high, one.p_value) for one in found.results}
        half = half_sum(original.direction)
        halves = paired_permutation(
            100 * outcome.hits, 100 * original.hits, original.clusters,
            permutations=permutations, resamples=resamples, level=level, seed=seed,
        )  # fmt: skip
        tests[half] = halves.difference, *halves.interval, halves.p_value
        for metric, test in tests.items():
            before, after = _values(metric, original), _values(metric, outcome)
            touched = _touched(metric, original, variants[label])
            only = _drop_over(metric, before, after, touched, resamples, level, seed)
            rows.append(_row(model, variants[label], metric, before, after, test, touched) | only)
    return rows


def corrected(rows: Sequence[dict[str, Any]], correction: str) -> pl.DataFrame:
    """All rows as a table; p-values corrected for the number of models and variants that share a metric."""
    table = pl.DataFrame(list(rows), schema={k: v for k, v in DROP_COLUMNS.items() if k != "adjusted_p"})
    adjusted = np.full(table.height, np.nan)
    for metric in table["metric"].unique(maintain_order=True):
        chosen = (table["metric"] == metric).to_numpy()
        adjusted[chosen] = correct(table["p"].to_numpy()[chosen], correction)
    return table.with_columns(adjusted_p=pl.Series(adjusted)).select(list(DROP_COLUMNS))


def _row(
    model: str, variant: Variant, metric: str, before: MetricValues, after: MetricValues,
    test: tuple[float, float, float, float], touched: BoolArray,
) -> dict[str, Any]:  # fmt: skip
    difference, low, high, p = test
    drop, low, high = (-difference, -high, -low) if higher_is_better(metric) else (difference, low, high)
    counted = np.isfinite(before.values)
    return {
        "model": model, "perturbation": variant.perturbation, "seed": variant.seed, "metric": metric,
        "before": before.mean, "after": after.mean, "drop": drop + 0.0,
        "relative": drop / before.mean + 0.0 if before.mean else float("nan"),
        "low": low + 0.0, "high": high + 0.0, "p": p, "queries": int(counted.sum()),
        "applied": int((touched & counted).sum()),
        "applied_share": float(variant.applied.mean()),
    }  # fmt: skip


def higher_is_better(metric: str) -> bool:
    """Which way is better; unknown metrics (of a plug-in that is gone) count as most do."""
    spec = spec_of(metric)
    return spec is None or family_of(spec).higher_is_better


def _values(metric: str, outcome: Outcome) -> MetricValues:
    if metric != half_sum(outcome.direction):
        return outcome.run[metric]
    values = 100 * outcome.hits
    return MetricValues(metric, outcome.query_ids, values, outcome.clusters, centre(values), float("nan"), float("nan"))


def _touched(metric: str, original: Outcome, variant: Variant) -> BoolArray:
    """Per query of the metric, whether its caption changed; of an image, whether any of its captions did."""
    if split_name(metric)[0] not in (IMAGE_TO_TEXT, BOTH):
        return variant.applied
    touched = np.zeros(len(variant.dataset.image_ids), np.bool_)
    touched[variant.dataset.caption_image[variant.applied]] = True
    return np.ones_like(touched) if variant.captions is None else touched


def _drop_over(
    metric: str, before: MetricValues, after: MetricValues, chosen: BoolArray, resamples: int, level: float, seed: int
) -> dict[str, float]:
    """The drop over the chosen queries alone, with its interval where the figure is a mean."""
    sign = 1.0 if higher_is_better(metric) else -1.0
    drops: FloatArray = sign * (before.values[chosen] - after.values[chosen])
    if before.statistic != "mean":
        figures = [centre(one.values[chosen], one.statistic) for one in (before, after)]
        drop, low, high = sign * (figures[0] - figures[1]), float("nan"), float("nan")
    else:
        found = Bootstrap(before.clusters[chosen], resamples, seed).estimate(drops, level=level)
        drop, low, high = found.mean, found.low, found.high
    return {"applied_drop": drop + 0.0, "applied_low": low + 0.0, "applied_high": high + 0.0}


def headline(run: Run, direction: str) -> str:
    """The figure that stands for a model: ``Rsum`` in one of its forms where both directions are there, or its half."""
    return next((name for name in run if split_name(name)[0] == BOTH and name.startswith("Rsum")), half_sum(direction))
