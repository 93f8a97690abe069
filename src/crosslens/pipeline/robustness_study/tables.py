"""The tables of a study: the drop of every metric, and the results of all models and variants put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    BOTH,
    IMAGE_TO_TEXT,
    Dataset,
    MetricValues,
    Progress,
    Run,
    UsageError,
    argument,
    fingerprint,
    split_name,
    stage,
)
from crosslens.metrics import bounds_of, facts_of
from crosslens.pipeline.comparison import compare, same_lists
from crosslens.pipeline.options import RobustnessOptions, SignificanceOptions
from crosslens.pipeline.robustness_study.query_changes import (
    BRITTLE_COLUMNS,
    PAIR_COLUMNS,
    QUERY_COLUMNS,
    WORD_COLUMNS,
    brittle_rows,
    change_row,
    direction_rsum,
    edited_parts,
    mean_overlap,
    overlap_rows,
    query_table,
    word_rows,
)
from crosslens.pipeline.robustness_study.study import Robustness
from crosslens.pipeline.robustness_study.variant_runner import IntArray, QueryResults
from crosslens.pipeline.robustness_study.variants import CAPTION_COLUMNS, ORIGINAL, BoolArray, Variant
from crosslens.statistics import Bootstrap, aggregate, correct, difference_bounds, paired_permutation, relative_interval

DROP_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "seed": pl.Int64, "metric": pl.String,
    "before": pl.Float64, "after": pl.Float64, "drop": pl.Float64,
    "low": pl.Float64, "high": pl.Float64,
    "percent": pl.Float64, "percent_low": pl.Float64, "percent_high": pl.Float64,
    "p": pl.Float64, "adjusted_p": pl.Float64, "queries": pl.Int64,
    "applied_share": pl.Float64, "applied": pl.Int64,
    "applied_drop": pl.Float64, "applied_low": pl.Float64, "applied_high": pl.Float64,
}  # fmt: skip
"""``drop`` is how much worse: before − after, or after − before where lower is better (``MedR``, ``Fails``).
``percent`` is the same in percent of ``before``; its interval, of means only, is that of a ratio over the same images.

``applied_share`` is of the captions, NaN where only lists are known. ``applied`` counts the queries of the metric that
were touched: captions that changed, images that have such a caption; ``applied_drop`` is the drop over those alone.
"""


HEADLINE_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "seed": pl.Int64, "query": pl.String, "cluster": pl.Int64,
    "before": pl.Float64, "after": pl.Float64,
}  # fmt: skip


def drop_rows(
    model: str, variant: Variant, original: QueryResults, changed: QueryResults, options: SignificanceOptions
) -> list[dict[str, Any]]:
    """A row per metric of one model on one variant; p-values are not corrected yet."""
    permutations, seed = options.permutations, options.seed
    comparison = compare(original.run, changed.run, correction="none", permutations=permutations, seed=seed)
    tests = {test.metric: (test.difference, test.low, test.high, test.p_value) for test in comparison.results}
    name = direction_rsum(original.direction)
    if name not in tests:  # the metrics of the study are named, and this is not among them
        rsum = paired_permutation(
            100 * changed.hits, 100 * original.hits, original.clusters,
            permutations=permutations, resamples=options.resamples, level=options.level, seed=seed,
            bounds=bounds_of(name),
        )  # fmt: skip
        interval = (0.0, 0.0) if same_lists(name, original.run, changed.run) else rsum.interval
        tests[name] = rsum.difference, *interval, rsum.p_value
    rows = []
    for metric, test in tests.items():
        before, after = _values(metric, original), _values(metric, changed)
        touched = variant.touched(len(before.values), images=split_name(metric)[0] in (IMAGE_TO_TEXT, BOTH))
        row = _row(model, variant, metric, before, after, test, touched)
        over = _drop_over(metric, before, after, touched, options)
        if row["low"] == row["high"] == 0:  # the lists are the same, so those of the touched queries are
            over |= dict.fromkeys(("applied_low", "applied_high"), 0.0)
        rows.append(row | over)
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
    relative = (float("nan"), float("nan"))
    if before.statistic == "mean" and not facts_of(metric).pooled:
        relative = relative_interval([before.values], [after.values], before.clusters, low, high)
    sign = -1.0 if facts_of(metric).higher_is_better else 1.0
    drop, (low, high), (percent_low, percent_high) = (
        sign * difference, sorted((sign * low, sign * high)), sorted(100 * sign * limit for limit in relative)
    )  # fmt: skip
    counted = np.isfinite(before.values)
    return {
        "model": model, "perturbation": variant.perturbation, "seed": variant.seed, "metric": metric,
        "before": before.mean, "after": after.mean, "drop": drop + 0.0, "low": low + 0.0, "high": high + 0.0,
        "percent": 100 * drop / before.mean + 0.0 if before.mean else float("nan"),
        "percent_low": percent_low + 0.0, "percent_high": percent_high + 0.0, "p": p, "queries": int(counted.sum()),
        "applied": int((touched & counted).sum()),
        "applied_share": variant.applied_share,
    }  # fmt: skip


def _values(metric: str, results: QueryResults) -> MetricValues:
    if metric in results.run.values:
        return results.run[metric]
    values, nan = 100 * results.hits, float("nan")
    return MetricValues(metric, results.query_ids, values, results.clusters, aggregate(values), nan, nan)


def _drop_over(
    metric: str, before: MetricValues, after: MetricValues, chosen: BoolArray, options: SignificanceOptions
) -> dict[str, float]:
    """The drop over the chosen queries alone, with its interval where the figure is a mean."""
    sign = 1.0 if facts_of(metric).higher_is_better else -1.0
    if before.statistic != "mean":
        figures = [aggregate(values.values[chosen], values.statistic) for values in (before, after)]
        drop, low, high = sign * (figures[0] - figures[1]), float("nan"), float("nan")
    else:
        bootstrap = Bootstrap(before.clusters[chosen], options.resamples, options.seed)
        change = sign * (before.values[chosen] - after.values[chosen])
        bounds = bounds_of(metric)
        estimate = bootstrap.estimate(change, level=options.level, bounds=bounds and difference_bounds(bounds))
        drop, low, high = estimate.mean, estimate.low, estimate.high
    return {"applied_drop": drop + 0.0, "applied_low": low + 0.0, "applied_high": high + 0.0}


def headline(run: Run, direction: str) -> str:
    """The main figure of a model: ``Rsum`` in one of its forms where both directions are there, or its half."""
    sums = (name for name in run if split_name(name)[0] == BOTH and name.startswith("Rsum"))
    return next(sums, direction_rsum(direction))


def significance_settings(options: RobustnessOptions) -> dict[str, Any]:
    """How drops are tested and listed, as the result stores it."""
    names = ("correction", "permutations", "resamples", "level", "seed", "listed", "match_by")
    return {name: getattr(options, name) for name in names}


@dataclass(frozen=True)
class StudyTables:
    """``results[model][label]``, the original's under ``original``."""

    dataset: Dataset | None
    variants: Mapping[str, Variant]
    results: Mapping[str, Mapping[str, QueryResults]]
    options: RobustnessOptions

    def result(self, about: Mapping[str, Any], progress: Progress) -> Robustness:
        """Every table; all but the drops and the captions are of the first seed."""
        seed = next(iter(self.variants.values())).seed
        first = {label: variant for label, variant in self.variants.items() if variant.seed == seed}
        any_results = next(iter(self.results.values()))[ORIGINAL]
        parts: Mapping[str, Any] = {}
        note = ""
        if self.dataset is not None:
            parts, note = edited_parts(self.dataset, list(first.values()), self.options.threads, progress)
        drops = corrected(self._drops(progress), self.options.correction)
        same = self._same_texts(any_results.direction)
        pairs = pl.DataFrame(self._for_each_model(first, overlap_rows, same), schema=PAIR_COLUMNS)
        brittle = self._for_each_model(first, brittle_rows, self.options.listed)
        captions = (variant.table() for variant in self.variants.values())
        queries = (query_table(*case) for case in self._cases(self.variants))
        tables = {
            "drops": drops,
            "spread": spread(drops),
            "changes": pl.DataFrame([change_row(*case, same) for case in self._cases(first)]),
            "overlap": mean_overlap(pairs),
            "overlap_pairs": pairs,
            "words": pl.DataFrame(self._words(parts, first), schema=WORD_COLUMNS),
            "brittle": pl.DataFrame(brittle, schema=BRITTLE_COLUMNS),
            "captions": pl.concat([pl.DataFrame(schema=CAPTION_COLUMNS), *captions]),
            "queries": pl.concat([pl.DataFrame(schema=QUERY_COLUMNS), *queries]),
            "headline_queries": pl.concat([pl.DataFrame(schema=HEADLINE_COLUMNS), *self._headlines(first)]),
        }
        notes = [*about.get("notes", ()), *([note] if note else [])]
        return Robustness(
            tuple(self.results),
            tuple(dict.fromkeys(variant.perturbation for variant in self.variants.values())),
            headline(any_results.run, any_results.direction),
            any_results.direction,
            tables,
            {**about, "notes": notes},
        )

    @property
    def key(self) -> str:
        """Changes when any value of any query of any run does, the way they are tested, or what tables hold of it."""
        return fingerprint(
            "study",
            {
                "testing": significance_settings(self.options),
                "columns": [*DROP_COLUMNS, *HEADLINE_COLUMNS],
                **{f"texts of {label}": variant.texts for label, variant in self.variants.items()},
                **{
                    f"{model}/{label}": f"{after.run.fingerprint} {fingerprint('own', {'scores': after.own})}"
                    for model, results in self.results.items()
                    for label, after in results.items()
                },
            },
        )

    def _same_texts(self, direction: str) -> IntArray | None:
        """Per query, the number of its text, where queries are matched by text."""
        if self.options.match_by != "text":
            return None
        if self.dataset is None or direction == IMAGE_TO_TEXT:
            lacks = "no texts are known" if self.dataset is None else "the queries are images"
            raise UsageError(
                f"{argument('match_by', 'text')}, but {lacks}",
                fix=f"pass {argument('dataset')} with the direction t2i, or match by id",
                option="match_by",
            )
        return np.unique(np.array(self.dataset.texts, object), return_inverse=True)[1]

    def _cases(self, variants: Mapping[str, Variant]) -> Iterable[tuple[str, Variant, QueryResults, QueryResults]]:
        """Every model and variant, with the results before and after."""
        for model, results in self.results.items():
            for label, variant in variants.items():
                yield model, variant, results[ORIGINAL], results[label]

    def _for_each_model(self, variants: Mapping[str, Variant], make: Any, *more: Any) -> list[dict[str, Any]]:
        rows = []
        for model, results in self.results.items():
            rows += make(model, results[ORIGINAL], {label: results[label] for label in variants}, variants, *more)
        return rows

    def _drops(self, progress: Progress) -> list[dict[str, Any]]:
        rows = []
        with stage(progress, "testing drops", len(self.results) * len(self.variants)):
            for case in self._cases(self.variants):
                rows += drop_rows(*case, self.options)
                progress.advance()
        return rows

    def _headlines(self, variants: Mapping[str, Variant]) -> Iterable[pl.DataFrame]:
        for model, variant, before, after in self._cases(variants):
            name = headline(before.run, before.direction)
            if name != direction_rsum(before.direction):  # which is in the table of queries
                own, changed = before.run[name], after.run[name]
                facts = {"model": model, "perturbation": variant.perturbation, "seed": variant.seed}
                columns = (own.query_ids, own.clusters, own.values, changed.values)
                table = pl.DataFrame(dict(zip(("query", "cluster", "before", "after"), columns, strict=True)))
                yield table.with_columns(**{key: pl.lit(value) for key, value in facts.items()}).select(
                    pl.col(key).cast(kind) for key, kind in HEADLINE_COLUMNS.items()
                )

    def _words(self, parts: Mapping[str, Any], variants: Mapping[str, Variant]) -> list[dict[str, Any]]:
        rows = []
        named = {variants[label].perturbation: by_part for label, by_part in parts.items()}
        for model, results in self.results.items():
            if results[ORIGINAL].direction != IMAGE_TO_TEXT:
                after = {variants[label].perturbation: results[label] for label in variants}
                rows += word_rows(model, named, results[ORIGINAL], after, self.options)
        return rows


def spread(drops: pl.DataFrame) -> pl.DataFrame:
    """The drop over seeds: mean, standard deviation, extremes; empty with one seed."""
    drop = pl.col("drop")
    grouped = drops.group_by("model", "perturbation", "metric", maintain_order=True).agg(
        seeds=pl.len(), mean=drop.mean(), deviation=drop.std(), lowest=drop.min(), highest=drop.max()
    )
    return grouped.filter(pl.col("seeds") > 1)
