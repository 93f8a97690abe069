"""The tables of a study: the drop of every metric, and the results of all models and variants put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    BOTH,
    IMAGE_TO_TEXT,
    Dataset,
    MetricValues,
    MissingExtraError,
    Progress,
    Run,
    UsageError,
    argument,
    fingerprint,
    split_name,
    stage,
)
from crosslens.language import parse_texts
from crosslens.metrics import RSUM_CUTOFFS, bounds_of, facts_of
from crosslens.perturbations import Caption, Edit, perturbations_with
from crosslens.pipeline.comparison import compare, same_lists
from crosslens.pipeline.options import RobustnessOptions, SignificanceOptions
from crosslens.pipeline.robustness_study.drop_table import CHANGE_FIGURES, CHANGE_GROUPS, POOLED, direction_rsum
from crosslens.pipeline.robustness_study.study import Robustness
from crosslens.pipeline.robustness_study.variant_runner import FloatArray, IntArray, QueryResults
from crosslens.pipeline.robustness_study.variants import CAPTION_COLUMNS, ORIGINAL, BoolArray, Variant
from crosslens.statistics import Bootstrap, aggregate, correct, difference_bounds, paired_permutation, relative_interval

PAIR_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "first": pl.String, "second": pl.String, "group": pl.String,
    "jaccard": pl.Float64, "among_changed": pl.Float64,
}  # fmt: skip

BRITTLE_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "place": pl.Int64, "query": pl.String, "mean_drop": pl.Float64, "rank_before": pl.Float64,
    "original": pl.String, "perturbation": pl.String, "rank_after": pl.Float64, "drop": pl.Float64, "text": pl.String,
}  # fmt: skip
"""``drop`` is in hits (0 to 3); ``mean_drop`` is its mean over all variants, unchanged captions counting as 0."""

QUERY_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "seed": pl.Int64, "query": pl.String, "cluster": pl.Int64,
    "applied": pl.Boolean,
    "rank_before": pl.Float64, "rank_after": pl.Float64, "hits_before": pl.Float64, "hits_after": pl.Float64,
    "own_score_before": pl.Float64, "own_score_after": pl.Float64, "up_while_similarity_down": pl.Boolean,
}  # fmt: skip
"""A rank is null where the relevant item is not in a ranked list that was given."""

Variants = Mapping[str, Variant]
Results = Mapping[str, QueryResults]


def change_row(
    model: str, variant: Variant, before: QueryResults, after: QueryResults, same: IntArray | None = None
) -> dict[str, Any]:
    """EXPL's Tables 4 and 5 for one variant: changed queries, how their ranks moved, figures before and after.

    A query is ranked lower where its relevant item has a larger rank than before, or is no longer in its list. Shares
    are of changed queries that have a relevant item; figures are over all queries, and (``changed_…``) over the changed
    ones. ``same`` is that of :func:`change_groups`.
    """
    counted = ~np.isnan(before.rank)
    changed = touched(before, variant) & counted
    lower, higher = after.rank > before.rank, after.rank < before.rank
    groups = {group: int(members.sum()) for group, members in change_groups(before, after, same).items()}
    odd = improved_by_less(variant, before, after)
    row: dict[str, Any] = {
        "model": model, "perturbation": variant.perturbation, "seed": variant.seed,
        "queries": int(counted.sum()), "changed": int(changed.sum()), "changed_share": _share(changed, counted),
        "lower": _share(lower, changed), "higher": _share(higher, changed), "same": _share(~lower & ~higher, changed),
        **groups,
        "up_while_similarity_down": int(odd.sum()) if np.isfinite(before.own).any() else None,
    }  # fmt: skip
    for prefix, queries in (("", counted), ("changed_", changed)):
        for when, results in (("before", before), ("after", after)):
            rank = results.rank[queries]
            # Where a list ends before any relevant item, MRR is not known.
            reciprocal = 1 / np.where(np.isinf(rank), np.nan, rank)
            values = (rank <= 1, rank <= 10, np.where(rank <= 10, 1 / rank, 0), reciprocal, rank > 1)
            for figure, value in zip(CHANGE_FIGURES, values, strict=True):
                row[f"{prefix}{figure} {when}"] = float(value.mean()) if len(rank) else float("nan")
    return row


def touched(results: QueryResults, variant: Variant) -> BoolArray:
    """Per query of the tables' direction, whether it changed."""
    return variant.touched(len(results.query_ids), images=results.direction == IMAGE_TO_TEXT)


def improved_by_less(variant: Variant, before: QueryResults, after: QueryResults) -> BoolArray:
    """Changed queries whose relevant item has a better rank although its own score is lower."""
    return touched(before, variant) & (after.rank < before.rank) & (after.own < before.own)


def change_groups(before: QueryResults, after: QueryResults, same: IntArray | None = None) -> dict[str, BoolArray]:
    """BRIT's groups: queries by the change of their score, which is Hit@1 + Hit@5 + Hit@10.

    Queries that have the same number in ``same`` are one, with the mean of their changes. Those without a relevant item
    are in no group.
    """
    score = after.hits - before.hits
    if same is not None:
        counted = np.isfinite(score)
        sums, counts = (np.bincount(same[counted], weights, same.max() + 1) for weights in (score[counted], None))
        score = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return {"decreased": score < 0, "increased": score > 0, "unchanged": score == 0}


def overlap_rows(
    model: str, before: QueryResults, results: Results, variants: Variants, same: IntArray | None = None
) -> list[dict[str, Any]]:
    """BRIT's Table 5 for one model, and the pairs of variants that it averages.

    The Jaccard similarity of two variants' sets of queries, for each group; which of them the paper averages is not
    published, crosslens takes all pairs of variants. ``among_changed`` is over queries that both variants changed. A
    pair whose sets are both empty does not count.
    """
    rows = []
    members = {label: change_groups(before, after, same) for label, after in results.items()}
    for first, second in combinations(results, 2):
        both = touched(before, variants[first]) & touched(before, variants[second])
        if same is not None:
            both = np.bincount(same, both) > 0
        for group in CHANGE_GROUPS:
            left, right = members[first][group], members[second][group]
            rows.append(
                {"model": model, "first": variants[first].perturbation, "second": variants[second].perturbation,
                 "group": group, "jaccard": _share(left & right, left | right),
                 "among_changed": _share(left & right & both, (left | right) & both)}
            )  # fmt: skip
    return rows


def brittle_rows(
    model: str, before: QueryResults, results: Results, variants: Variants, most: int
) -> list[dict[str, Any]]:
    """The queries with the largest mean drop of hits; among equals, those whose ranks drop furthest."""
    labels = list(results)
    drops = np.array([before.hits - results[label].hits for label in labels])
    rank_drops = np.log2([_shown(results[label].rank) / _shown(before.rank) for label in labels]).mean(axis=0)
    means = drops.mean(axis=0)
    # The order is by figures and then by id, so that it does not depend on the order of the dataset.
    order = sorted(np.flatnonzero(means > 0), key=lambda row: (-means[row], -rank_drops[row], before.query_ids[row]))
    rows = []
    for position, row in enumerate(order[:most], start=1):
        for number, label in enumerate(labels):
            variant = variants[label]
            if not touched(before, variant)[row]:
                continue
            original = text = None  # where images are the queries, or texts are not known
            if before.direction != IMAGE_TO_TEXT and variant.captions is not None:
                original, text = variant.captions[row].original, variant.captions[row].text
            elif before.direction != IMAGE_TO_TEXT and variant.texts:  # pictures changed
                original = text = variant.texts[row]
            # A list may end before the relevant item.
            ranks = [float(own.rank[row]) if np.isfinite(own.rank[row]) else None for own in (before, results[label])]
            rows.append(
                {"model": model, "place": position, "query": before.query_ids[row], "mean_drop": float(means[row]),
                 "rank_before": ranks[0], "perturbation": variant.perturbation, "rank_after": ranks[1],
                 "drop": float(drops[number][row]), "original": original, "text": text}
            )  # fmt: skip
    return rows


def query_table(model: str, variant: Variant, before: QueryResults, after: QueryResults) -> pl.DataFrame:
    """Every query before and after."""
    count = len(before.query_ids)
    return pl.DataFrame(
        {
            "model": [model] * count, "perturbation": [variant.perturbation] * count, "seed": [variant.seed] * count,
            "query": before.query_ids, "cluster": before.clusters, "applied": touched(before, variant),
            "rank_before": before.rank, "rank_after": after.rank,
            "hits_before": before.hits, "hits_after": after.hits,
            "own_score_before": before.own, "own_score_after": after.own,
            "up_while_similarity_down": improved_by_less(variant, before, after),
        },
        schema=QUERY_COLUMNS,
    ).with_columns(
        pl.when(pl.col(name).is_infinite()).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("rank_before", "rank_after")
    )  # fmt: skip


def _shown(rank: FloatArray) -> FloatArray:
    """Ranks to order by: what its list does not show comes behind all that lists show."""
    shown = np.isfinite(rank)
    return np.where(np.isinf(rank), rank[shown].max(initial=RSUM_CUTOFFS[-1]) + 1, rank)


def _share(part: BoolArray, whole: BoolArray) -> float:
    return float((part & whole).sum() / whole.sum()) if whole.any() else float("nan")


_EDITED_WORDS = ("word", "adversarial", "beyond")
_ARTICLES = ("a", "an")

WORD_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "part_of_speech": pl.String, "captions": pl.Int64,
    "change": pl.Float64, "low": pl.Float64, "high": pl.Float64, "decreased": pl.Float64,
}  # fmt: skip
"""``change`` is the mean of 100 × (hits after − hits before): from −300 to 300, in points of one direction's Rsum."""


def edited_parts(
    dataset: Dataset, variants: Sequence[Variant], threads: int | None, progress: Progress | None
) -> tuple[dict[str, dict[str, BoolArray]], str]:
    """Per variant and part of speech, which captions had such a word edited; and a note where that is not known.

    Only for perturbations that change words one by one: a shuffle edits no word in particular.
    """
    chosen = {
        variant.label: variant.captions
        for variant in variants
        if variant.level in _EDITED_WORDS and variant.captions is not None and variant.applied_share > 0
    }
    if not chosen:
        return {}, ""
    try:
        parses = parse_texts(dataset.texts, threads=threads, progress=progress)
    except MissingExtraError as error:
        return {}, f"no table by part of speech: {error.problem}"
    captions = [Caption(text, parse=parse) for text, parse in zip(dataset.texts, parses, strict=True)]
    parts: dict[str, dict[str, BoolArray]] = {}
    for label, results in chosen.items():
        by_part = parts.setdefault(label, {})
        for row, (caption, result) in enumerate(zip(captions, results, strict=True)):
            for part in parts_of(caption, result.edits):
                by_part.setdefault(part, np.zeros(len(captions), np.bool_))[row] = True
    return parts, ""


def word_rows(
    model: str,
    parts: Mapping[str, Mapping[str, BoolArray]],
    before: QueryResults,
    results: Mapping[str, QueryResults],
    options: SignificanceOptions,
) -> list[dict[str, Any]]:
    """A row per variant and part of speech; then the typos together."""
    rows = []
    pooled: dict[str, list[tuple[FloatArray, Any]]] = {}
    typos = perturbations_with("typo")
    for label, by_part in parts.items():
        change = 100 * (results[label].hits - before.hits)
        for part, chosen in by_part.items():
            counted = chosen & np.isfinite(change)
            if counted.any():
                sample = change[counted], before.clusters[counted]
                rows.append(_word_row(model, label, part, *sample, options))
                if label in typos:
                    pooled.setdefault(part, []).append(sample)
    for part, samples in pooled.items():
        values, clusters = (np.concatenate(arrays) for arrays in zip(*samples, strict=True))
        rows.append(_word_row(model, POOLED, part, values, clusters, options))
    order = {label: number for number, label in enumerate(parts)}
    return sorted(
        rows, key=lambda row: (row["perturbation"] == POOLED, order.get(row["perturbation"], 0), row["change"])
    )


def _word_row(
    model: str, name: str, part: str, change: FloatArray, clusters: Any, options: SignificanceOptions
) -> dict[str, Any]:
    most = 100.0 * len(RSUM_CUTOFFS)
    estimate = Bootstrap(clusters, options.resamples, options.seed).estimate(
        change, level=options.level, bounds=(-most, most)
    )
    return {
        "model": model, "perturbation": name, "part_of_speech": part, "captions": len(change),
        "change": estimate.mean, "low": estimate.low, "high": estimate.high, "decreased": float((change < 0).mean()),
    }  # fmt: skip


def parts_of(caption: Caption, edits: Sequence[Edit]) -> set[str]:
    """The parts of speech of the edited words; an article that only follows another edit (a → an) does not count."""
    words = [edit for edit in edits if len(edits) == 1 or edit.before.lower() not in _ARTICLES]
    parts = set()
    for edit in words or edits:
        overlapping = [token for token in caption.tokens if token.start < edit.end and edit.start < token.end]
        if edit.start == edit.end:  # an insertion: the token that contains it or ends there, or else begins there
            overlapping = [token for token in caption.tokens if token.start < edit.start <= token.end] or [
                token for token in caption.tokens if token.start == edit.start
            ]
        parts |= {token.pos for token in overlapping}
    return parts


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
        difference, low, high, p = test
        is_mean, sign = before.statistic == "mean", -1.0 if facts_of(metric).higher_is_better else 1.0
        relative = (float("nan"), float("nan"))
        if is_mean and not facts_of(metric).pooled:
            relative = relative_interval([before.values], [after.values], before.clusters, low, high)
        drop, (low, high) = sign * difference, sorted((sign * low, sign * high))
        percent_low, percent_high = sorted(100 * sign * limit for limit in relative)
        counted = np.isfinite(before.values)
        if is_mean:  # over the touched queries alone
            bounds = bounds_of(metric)
            estimate = Bootstrap(before.clusters[touched], options.resamples, options.seed).estimate(
                sign * (after.values[touched] - before.values[touched]), level=options.level,
                bounds=bounds and difference_bounds(bounds),
            )  # fmt: skip
            applied = (estimate.mean, estimate.low, estimate.high)
        else:
            figures = [aggregate(values.values[touched], values.statistic) for values in (before, after)]
            applied = (sign * (figures[1] - figures[0]), float("nan"), float("nan"))
        if low == high == 0:  # the lists are the same, so those of the touched queries are
            applied = (applied[0], 0.0, 0.0)
        row = {
            "model": model, "perturbation": variant.perturbation, "seed": variant.seed, "metric": metric,
            "before": before.mean, "after": after.mean, "drop": drop + 0.0, "low": low + 0.0, "high": high + 0.0,
            "percent": 100 * drop / before.mean + 0.0 if before.mean else float("nan"),
            "percent_low": percent_low + 0.0, "percent_high": percent_high + 0.0, "p": p,
            "queries": int(counted.sum()), "applied": int((touched & counted).sum()),
            "applied_share": variant.applied_share,
        }  # fmt: skip
        names = ("applied_drop", "applied_low", "applied_high")
        rows.append(row | {name: value + 0.0 for name, value in zip(names, applied, strict=True)})
    return rows


def corrected(rows: Sequence[dict[str, Any]], correction: str) -> pl.DataFrame:
    """All rows as a table; p-values corrected for the number of models and variants that share a metric."""
    table = pl.DataFrame(list(rows), schema={k: v for k, v in DROP_COLUMNS.items() if k != "adjusted_p"})
    adjusted = np.full(table.height, np.nan)
    for metric in table["metric"].unique(maintain_order=True):
        chosen = (table["metric"] == metric).to_numpy()
        adjusted[chosen] = correct(table["p"].to_numpy()[chosen], correction)
    return table.with_columns(adjusted_p=pl.Series(adjusted)).select(list(DROP_COLUMNS))


def _values(metric: str, results: QueryResults) -> MetricValues:
    if metric in results.run.values:
        return results.run[metric]
    values, nan = 100 * results.hits, float("nan")
    return MetricValues(metric, results.query_ids, values, results.clusters, aggregate(values), nan, nan)


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
            by_label, note = edited_parts(self.dataset, list(first.values()), self.options.threads, progress)
            parts = {first[label].perturbation: by_part for label, by_part in by_label.items()}
        rows = []
        with stage(progress, "testing drops", len(self.results) * len(self.variants)):
            for case in self._cases(self.variants):
                rows += drop_rows(*case, self.options)
                progress.advance()
        drops = corrected(rows, self.options.correction)
        same = self._same_texts(any_results.direction)
        overlap, brittle, words = [], [], []
        for model, results in self.results.items():
            after = {label: results[label] for label in first}
            overlap += overlap_rows(model, results[ORIGINAL], after, first, same)
            brittle += brittle_rows(model, results[ORIGINAL], after, first, self.options.listed)
            if results[ORIGINAL].direction != IMAGE_TO_TEXT:
                by_name = {first[label].perturbation: results[label] for label in first}
                words += word_rows(model, parts, results[ORIGINAL], by_name, self.options)
        pairs = pl.DataFrame(overlap, schema=PAIR_COLUMNS)
        captions = (variant.table() for variant in self.variants.values())
        queries = (query_table(*case) for case in self._cases(self.variants))
        tables = {
            "drops": drops,
            "spread": spread(drops),
            "changes": pl.DataFrame([change_row(*case, same) for case in self._cases(first)]),
            "overlap": pairs.group_by("model", "group", maintain_order=True).agg(
                pl.col("jaccard", "among_changed").fill_nan(None).mean(),
                pl.col("jaccard").fill_nan(None).count().alias("pairs"),
            ),
            "overlap_pairs": pairs,
            "words": pl.DataFrame(words, schema=WORD_COLUMNS),
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


def spread(drops: pl.DataFrame) -> pl.DataFrame:
    """The drop over seeds: mean, standard deviation, extremes; empty with one seed."""
    drop = pl.col("drop")
    grouped = drops.group_by("model", "perturbation", "metric", maintain_order=True).agg(
        seeds=pl.len(), mean=drop.mean(), deviation=drop.std(), lowest=drop.min(), highest=drop.max()
    )
    return grouped.filter(pl.col("seeds") > 1)
