"""What a study measured: the drop of every metric, where queries go, which words matter, and what is brittle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from crosslens.comparisons import compare
from crosslens.core import MissingExtraError
from crosslens.engine import Progress
from crosslens.language import parse_texts
from crosslens.metrics import RSUM_CUTOFFS, bounds_of, facts_of
from crosslens.perturbations import PERTURBATIONS, Caption, Edit, perturbations_with
from crosslens.pipeline.options import SignificanceOptions
from crosslens.pipeline.robustness_study.variants import Variant
from crosslens.statistics import Bootstrap, aggregate, correct, difference_bounds, relative_interval
from crosslens.storage import BoolArray, FloatArray, IntArray
from crosslens.values import BOTH, IMAGE_TO_TEXT, Dataset, MetricValues, Run, split_name

CHANGE_GROUPS = ("decreased", "increased", "unchanged")
CHANGE_FIGURES = ("Hit@1", "Hit@10", "MRR@10", "MRR", "Fails")
POOLED = "typos"
"""The row of the four typos together."""


def direction_rsum(direction: str) -> str:
    """The metric ``Rsum`` of one direction. Studies have it whether or not it is among their metrics."""
    return f"{direction}/Rsum"


@dataclass(frozen=True, eq=False)
class StudyTables:
    """The tables of a study; :class:`Robustness` says what is in each."""

    models: tuple[str, ...]
    perturbations: tuple[str, ...]
    headline: str
    direction: str
    about: Mapping[str, Any] = field(default_factory=dict)
    shown: tuple[str, ...] | None = None
    drops: pl.DataFrame = field(default_factory=pl.DataFrame)
    spread: pl.DataFrame = field(default_factory=pl.DataFrame)
    changes: pl.DataFrame = field(default_factory=pl.DataFrame)
    overlap: pl.DataFrame = field(default_factory=pl.DataFrame)
    overlap_pairs: pl.DataFrame = field(default_factory=pl.DataFrame)
    words: pl.DataFrame = field(default_factory=pl.DataFrame)
    brittle: pl.DataFrame = field(default_factory=pl.DataFrame)
    captions: pl.DataFrame = field(default_factory=pl.DataFrame)
    queries: pl.DataFrame = field(default_factory=pl.DataFrame)
    headline_queries: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def testing(self) -> SignificanceOptions:
        """How drops were tested."""
        return SignificanceOptions.pick(self.about.get("testing", {}))

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """All tables by name."""
        return {name: getattr(self, name) for name in TABLES}


TABLES = tuple(table.name for table in fields(StudyTables) if table.type == "pl.DataFrame")

KEYS: Mapping[str, Any] = {"model": pl.String, "perturbation": pl.String, "seed": pl.Int64}
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
    **KEYS, "query": pl.String, "cluster": pl.Int64, "applied": pl.Boolean,
    "rank_before": pl.Float64, "rank_after": pl.Float64, "hits_before": pl.Float64, "hits_after": pl.Float64,
    "own_score_before": pl.Float64, "own_score_after": pl.Float64, "up_while_similarity_down": pl.Boolean,
}  # fmt: skip
"""A rank is null where the relevant item is not in a ranked list that was given."""
HEADLINE_COLUMNS: Mapping[str, Any] = {
    **KEYS, "query": pl.String, "cluster": pl.Int64, "before": pl.Float64, "after": pl.Float64,
}  # fmt: skip
_RANKS = pl.col("rank_before", "rank_after")
LISTED_RANKS = pl.when(_RANKS.is_infinite()).then(None).otherwise(_RANKS).name.keep()


@dataclass(frozen=True, eq=False)
class Outcome:
    """A model on the dataset or on a variant: its run, and what that does not say of each query of ``direction``.

    ``rank`` is that of the best-ranked relevant item (infinite where a given list ends before it), ``own_score`` the
    query's score with its relevant item; NaN where there is none, or where only lists are known.
    """

    run: Run
    direction: str
    rank: FloatArray
    own_score: FloatArray

    @property
    def rsum(self) -> MetricValues:
        """Hit@1 + Hit@5 + Hit@10 of every query in percent, and the image of each; all runs of studies have it."""
        return self.run[direction_rsum(self.direction)]

    @property
    def hits(self) -> FloatArray:
        """The same from 0 to 3: what the query adds to ``Rsum``, before it is averaged."""
        return self.rsum.values / 100


def query_table(model: str, variant: Variant, before: Outcome, after: Outcome) -> pl.DataFrame:
    """Every query before and after, with its texts where captions are queries; a rank beyond a given list is infinite.

    A query is ``up_while_similarity_down`` where its relevant item has a better rank although its score is lower.
    """
    original = text = None
    if before.direction != IMAGE_TO_TEXT:
        text = variant.texts or None
        original = text if variant.captions is None else [caption.original for caption in variant.captions]
    up, down = pl.col("rank_after") < pl.col("rank_before"), pl.col("own_score_after") < pl.col("own_score_before")
    return pl.DataFrame(
        {
            "model": model, "perturbation": variant.perturbation, "seed": variant.seed, "query": before.rsum.query_ids,
            "cluster": before.rsum.clusters,
            "applied": variant.touched(len(before.rank), images=before.direction == IMAGE_TO_TEXT),
            "rank_before": before.rank, "rank_after": after.rank,
            "hits_before": before.hits, "hits_after": after.hits,
            "own_score_before": before.own_score, "own_score_after": after.own_score,
            "original": original, "text": text,
        },
        schema_overrides={**QUERY_COLUMNS, "original": pl.String, "text": pl.String},
    ).with_columns(up_while_similarity_down=pl.col("applied") & up & down)  # fmt: skip


def score_changes(queries: pl.DataFrame, texts: Sequence[str] | None = None) -> pl.DataFrame:
    """By how much the score of every query, which is Hit@1 + Hit@5 + Hit@10, changes; null without a relevant item.

    Queries of one of the ``texts`` are one, with the mean of their changes.
    """
    if texts is not None:
        queries = queries.with_columns(query=pl.Series([*texts] * (queries.height // len(texts))))
    change = (pl.col("hits_after") - pl.col("hits_before")).fill_nan(None).mean()
    return queries.group_by(*KEYS, "query", maintain_order=True).agg(change=change, applied=pl.col("applied").any())


def change_table(queries: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """EXPL's Tables 4 and 5: changed queries, how their ranks differ, BRIT's groups, and figures before and after.

    A query is ranked lower where its relevant item has a larger rank than before, or is no longer in its list. Shares
    are of changed queries that have a relevant item; figures are over all queries, and (``changed_…``) over the changed
    ones.
    """
    before, after, score = pl.col("rank_before"), pl.col("rank_after"), pl.col("own_score_before")
    counted = before.is_not_nan()
    changed = pl.col("applied") & counted
    ways = {"lower": after > before, "higher": after < before, "same": after == before}
    columns = {"queries": counted.sum(), "changed": changed.sum(), "changed_share": changed.sum() / counted.sum()}
    columns |= {way: (condition & changed).sum() / changed.sum() for way, condition in ways.items()}
    odd = pl.when(score.is_finite().any()).then(pl.col("up_while_similarity_down").sum())
    figures = {}
    for prefix, rows in (("", counted), ("changed_", changed)):
        for when in ("before", "after"):
            rank = pl.col(f"rank_{when}").filter(rows)
            # Where a list ends before any relevant item, MRR is not known.
            reciprocal = pl.when(rank.is_finite()).then(1 / rank).otherwise(float("nan"))
            values = (rank <= 1, rank <= 10, pl.when(rank <= 10).then(1 / rank).otherwise(0.0), reciprocal, rank > 1)
            for figure, value in zip(CHANGE_FIGURES, values, strict=True):
                figures[f"{prefix}{figure} {when}"] = value.mean().fill_null(float("nan"))
    groups = {group: _in_group(pl.col("change"), group).sum() for group in CHANGE_GROUPS}
    grouped = scores.group_by(*KEYS).agg(**groups)
    moves = queries.group_by(*KEYS, maintain_order=True).agg(**columns, up_while_similarity_down=odd, **figures)
    table = moves.join(grouped, on=list(KEYS), how="left", maintain_order="left")
    order = [*KEYS, *columns, *groups, "up_while_similarity_down", *figures]
    return table.select(order).with_columns(pl.selectors.unsigned_integer().cast(pl.Int64))


def _in_group(change: Any, group: str) -> Any:
    """Whether changes of scores are of one of BRIT's groups."""
    return change < 0 if group == "decreased" else change > 0 if group == "increased" else change == 0


def overlap_table(scores: pl.DataFrame) -> pl.DataFrame:
    """The Jaccard similarity of two variants' sets of queries, for each of BRIT's groups: its Table 5 averages them.

    Which pairs the paper averages is not published, crosslens takes all pairs of variants. ``among_changed`` is over
    queries that both variants changed. A pair whose sets are both empty has no number.
    """

    def jaccard(members: BoolArray, counted: BoolArray) -> FloatArray:
        inside = (members & counted).astype(np.float64)
        shared, each = inside @ inside.T, inside @ counted.T
        with np.errstate(invalid="ignore"):
            return shared / (each + each.T - shared)

    rows = []
    for (model,), table in scores.group_by("model", maintain_order=True):
        names = table["perturbation"].unique(maintain_order=True)
        change = table["change"].fill_null(float("nan")).to_numpy().reshape(len(names), -1)
        changed = table["applied"].to_numpy().reshape(len(names), -1)
        similar = {}
        for group in CHANGE_GROUPS:
            members = _in_group(change, group)
            similar[group] = jaccard(members, np.ones_like(changed)), jaccard(members, changed)
        rows += [
            (model, names[first], names[second], group, every[first, second], among_changed[first, second])
            for first, second in combinations(range(len(names)), 2)
            for group, (every, among_changed) in similar.items()
        ]
    return pl.DataFrame(rows, schema=PAIR_COLUMNS, orient="row")


def brittle_table(queries: pl.DataFrame, most: int) -> pl.DataFrame:
    """The queries with the largest mean drop of hits, each with the variants that change it.

    Among equals, those whose ranks drop furthest are first, and then the order is by id: it does not depend on that of
    the dataset.
    """

    def order_rank(when: str) -> pl.Expr:
        """The ranks to order by: what its list does not show comes behind all that lists show."""
        rank = pl.col(f"rank_{when}")
        last = pl.max_horizontal(pl.when(rank.is_finite()).then(rank).max().over(*KEYS), RSUM_CUTOFFS[-1])
        return pl.when(rank.is_infinite()).then(last + 1).otherwise(rank)

    queries = queries.with_columns(
        drop=pl.col("hits_before") - pl.col("hits_after"), fall=(order_rank("after") / order_rank("before")).log(2)
    ).with_columns(LISTED_RANKS)
    tables = [pl.DataFrame(schema=BRITTLE_COLUMNS)]
    for _, table in queries.group_by("model", maintain_order=True):
        means = table.group_by("query").agg(mean_drop=pl.col("drop").mean(), fall=pl.col("fall").mean())
        worst = means.filter(pl.col("mean_drop").fill_nan(None) > 0).sort(
            "mean_drop", "fall", "query", descending=[True, True, False]
        )
        places = worst.head(most).with_row_index("place", 1).cast({"place": pl.Int64})
        rows = places.join(table.filter("applied"), on="query", maintain_order="left_right")
        tables.append(rows.select(*BRITTLE_COLUMNS))
    return pl.concat(tables)


_EDITED_WORDS = ("word", "adversarial", "beyond")
_ARTICLES = ("a", "an")

WORD_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "part_of_speech": pl.String, "captions": pl.Int64,
    "change": pl.Float64, "low": pl.Float64, "high": pl.Float64, "decreased": pl.Float64,
}  # fmt: skip
"""``change`` is the mean of 100 × (hits after − hits before): from −300 to 300, in points of one direction's Rsum."""


def edited_parts(
    dataset: Dataset, variants: Iterable[Variant], threads: int | None, progress: Progress | None
) -> tuple[dict[str, dict[str, BoolArray]], str]:
    """Per perturbation and part of speech, which captions had such a word edited; and a note where that is not known.

    Only for perturbations that change words one by one: a shuffle edits no word in particular.
    """
    edited = {
        variant.perturbation: variant.captions
        for variant in variants
        if variant.perturbation in PERTURBATIONS
        and PERTURBATIONS[variant.perturbation].details["level"] in _EDITED_WORDS
        and variant.captions is not None
        and variant.applied_share > 0
    }
    if not edited:
        return {}, ""
    try:
        parses = parse_texts(dataset.texts, threads=threads, progress=progress)
    except MissingExtraError as error:
        return {}, f"no table by part of speech: {error.problem}"
    captions = [Caption(text, parse=parse) for text, parse in zip(dataset.texts, parses, strict=True)]
    parts: dict[str, dict[str, BoolArray]] = {name: {} for name in edited}
    for name, results in edited.items():
        for row, (caption, result) in enumerate(zip(captions, results, strict=True)):
            for part in parts_of(caption, result.edits):
                parts[name].setdefault(part, np.zeros(len(captions), np.bool_))[row] = True
    return parts, ""


def word_rows(
    model: str,
    parts: Mapping[str, Mapping[str, BoolArray]],
    before: Outcome,
    results: Mapping[str, Outcome],
    options: SignificanceOptions,
) -> list[dict[str, Any]]:
    """A row per perturbation and part of speech; then the typos together."""
    samples: dict[tuple[str, str], list[tuple[FloatArray, IntArray]]] = {}
    for name, by_part in parts.items():
        change = 100 * (results[name].hits - before.hits)
        for part, edited in by_part.items():
            counted = edited & np.isfinite(change)
            if counted.any():
                for row in [name] + [POOLED] * (name in perturbations_with("typo")):
                    samples.setdefault((row, part), []).append((change[counted], before.rsum.clusters[counted]))
    rows, most = [], 100.0 * len(RSUM_CUTOFFS)
    for (name, part), several in samples.items():
        change, clusters = (np.concatenate(arrays) for arrays in zip(*several, strict=True))
        estimate = Bootstrap(clusters, options.resamples, options.seed).estimate(
            change, level=options.level, bounds=(-most, most)
        )
        rows.append(
            {"model": model, "perturbation": name, "part_of_speech": part, "captions": len(change),
             "change": estimate.mean, "low": estimate.low, "high": estimate.high,
             "decreased": float((change < 0).mean())}
        )  # fmt: skip
    order = [*parts, POOLED]
    return sorted(rows, key=lambda row: (order.index(row["perturbation"]), row["change"]))


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
    **KEYS, "metric": pl.String, "before": pl.Float64, "after": pl.Float64, "drop": pl.Float64,
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


def drop_rows(
    model: str, variant: Variant, original: Outcome, changed: Outcome, options: SignificanceOptions
) -> list[dict[str, Any]]:
    """A row per metric of one model on one variant; p-values are not corrected yet."""
    comparison = compare(
        original.run, changed.run, correction="none", permutations=options.permutations, seed=options.seed
    )
    rows = []
    for test in comparison.results:
        metric, difference, low, high = test.metric, test.difference, test.low, test.high
        before, after = original.run[metric], changed.run[metric]
        touched = variant.touched(len(before.values), images=split_name(metric)[0] in (IMAGE_TO_TEXT, BOTH))
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
                sign * (after.values[touched] - before.values[touched]),
                level=options.level,
                bounds=bounds and difference_bounds(bounds),
            )
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
            "percent_low": percent_low + 0.0, "percent_high": percent_high + 0.0, "p": test.p_value,
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
        of_metric = (table["metric"] == metric).to_numpy()
        adjusted[of_metric] = correct(table["p"].to_numpy()[of_metric], correction)
    return table.with_columns(adjusted_p=pl.Series(adjusted)).select(list(DROP_COLUMNS))


def headline(run: Run, direction: str) -> str:
    """The main figure of a model: ``Rsum`` in one of its forms where both directions are there, or its half."""
    sums = (name for name in run if split_name(name)[0] == BOTH and name.startswith("Rsum"))
    return next(sums, direction_rsum(direction))


def spread(drops: pl.DataFrame) -> pl.DataFrame:
    """The drop over seeds: mean, standard deviation, extremes; empty with one seed."""
    drop = pl.col("drop")
    grouped = drops.group_by("model", "perturbation", "metric", maintain_order=True).agg(
        seeds=pl.len(), mean=drop.mean(), deviation=drop.std(), lowest=drop.min(), highest=drop.max()
    )
    return grouped.filter(pl.col("seeds") > 1)
