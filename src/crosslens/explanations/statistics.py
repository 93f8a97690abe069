"""Statistics over the table of failures: means of concept metrics, their correlations, and association rules.

An association rule "if A then B" is over a table of true and false: a row is something that was judged (a failure), a
column something that may be true of it. Null is "not judged": a rule is counted over the rows in which everything it
names was judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import combinations
from math import inf, nan
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError
from crosslens.explanations.concepts import METRICS, most_similar
from crosslens.explanations.lexicon import ancestor_at
from crosslens.explanations.objects import ImageObjects
from crosslens.language import load_wordnet
from crosslens.statistics import Bootstrap, correct, correlations
from crosslens.storage import Array, FloatArray, IntArray, random_stream

SCOPES = ("all", "query")
"""Query-agnostic (every object counts) and query-informed (only what the query mentions)."""
QUERY = "query "
"""The prefix of query-informed columns."""

POOLED = {
    "CA": ("common", "synsets_ground_truth"),
    "matched_synsets": ("concept_pairs", "missing", "extra"),
    "SD[binary]": ("box_pairs_over", "box_pairs"),
    "wrong_count": ("wrong_counts", "common"),
}
"""Shares that are also taken over all failures together: the sums of a tally, and of those it is a part of."""
TOTALS = ("object_hit", "object_miss", "object_extra", "CE")
"""Metrics that are also summed up: counts, which have no highest value. SD has none either; all others are shares."""

CORRELATED = ("CA", "NonCommonSimilarity", "CE", "SD[binary]", "attribute_agreement", "spatial_agreement", "rank")

_MEANS: dict[str, Any] = {
    **dict.fromkeys(("scope", "metric"), pl.String),
    **dict.fromkeys(("mean", "low", "high"), pl.Float64),
    **dict.fromkeys(("defined", "undefined"), pl.Int64),
    **dict.fromkeys(("total", "pooled"), pl.Float64),
}
_CORRELATIONS: dict[str, Any] = {
    "first": pl.String,
    "second": pl.String,
    "failures": pl.Int64,
    **{f"{name}{end}": pl.Float64 for name in ("spearman", "kendall-b") for end in ("", "_low", "_high")},
}

RULE_COLUMNS: dict[str, Any] = {
    "if": pl.List(pl.String),
    "then": pl.String,
    **dict.fromkeys(("rows", "count_if", "count_then", "count"), pl.Int64),
    **dict.fromkeys(("support", "confidence", "lift", "p_value", "p_adjusted"), pl.Float64),
}


def column_of(metric: str, scope: str) -> str:
    """The column of a metric in the table of failures."""
    return metric if scope == SCOPES[0] else QUERY + metric


def metric_means(failures: pl.DataFrame, draws: Bootstrap, level: float = 0.95) -> pl.DataFrame:
    """One row per scope and metric: the mean over the failures that define it, with its interval over images.

    ``undefined`` counts the others. ``total`` is the sum (objects hit, missed); ``pooled`` the share over all
    failures together, where a metric is a share: failures with more objects weigh more in it.
    """
    rows = []
    for scope in SCOPES:
        for metric in METRICS:
            column = column_of(metric, scope)
            if column not in failures.columns:
                continue
            values = failures[column]
            bounds = (0.0, inf if metric in (*TOTALS, "SD") else 1.0)
            interval = draws.estimate(values.fill_null(nan).to_numpy(), level=level, bounds=bounds).cells
            undefined = values.null_count()
            total = float(values.sum()) if metric in TOTALS else None
            pooled = None
            if metric in POOLED:
                part, *whole = (int(failures[column_of(name, scope)].sum()) for name in POOLED[metric])
                pooled = part / sum(whole) if sum(whole) else None
            rows.append((scope, metric, *interval, values.len() - undefined, undefined, total, pooled))
    return pl.DataFrame(rows, schema=_MEANS, orient="row")


def metric_correlations(
    failures: pl.DataFrame, clusters: Array, *, resamples: int = 200, level: float = 0.95, seed: int = 0
) -> pl.DataFrame:
    """Spearman's ρ and Kendall's τ-b of each two metrics, and of each with the rank, over failures that define both."""
    columns = {
        name: failures[name].cast(pl.Float64).fill_null(nan).to_numpy()
        for name in CORRELATED
        if name in failures.columns
    }
    rows = []
    for first, second in combinations(columns, 2):
        defined = np.isfinite(columns[first]) & np.isfinite(columns[second])
        pair = (columns[first][defined], columns[second][defined])
        result = correlations(*pair, clusters[defined], resamples=resamples, seed=seed)
        ends = [end for name in ("spearman", "kendall-b") for end in result.estimate(name, level).cells]
        rows.append((first, second, int(defined.sum()), *ends))
    return pl.DataFrame(rows, schema=_CORRELATIONS, orient="row")


def association_rules(
    table: pl.DataFrame,
    clusters: IntArray | None = None,
    *,
    longest: int = 1,
    minimum: int = 5,
    confidence: float = 0.0,
    support: float = 0.0,
    correction: str = "holm",
    seed: int = 0,
) -> pl.DataFrame:
    """Every rule "if A then B" over the boolean columns of ``table``, by adjusted p-value.

    A is up to ``longest`` columns, all true; B another one. ``rows``: where all of them were judged; ``count_if`` and
    ``count_then``: how often A and B are true there, ``count``: both. ``support`` = count / rows, ``confidence`` =
    count / count_if, ``lift`` = confidence / (count_then / rows): above 1, A makes B likelier than it is anyway.

    ``p_value`` is the chance of at least this ``count`` where A and B have nothing to do with each other. Rows of one
    of the ``clusters`` (the image of each row) are not independent: B is permuted between images with the same number
    of rows, all rows of an image together, see :func:`_permuted_p_values`. Where no image has two rows, this is
    Fisher's exact test. ``p_adjusted`` corrects it for every rule that was tested, which are those with A, and B, true
    in at least ``minimum`` rows and not in all of them. The least ``confidence`` and ``support`` only choose what is
    listed: what is tested does not depend on what comes out.
    """
    from scipy.stats import hypergeom

    wrong = [name for name, kind in table.schema.items() if kind != pl.Boolean]
    if wrong:
        raise InputError(
            f"the column {wrong[0]!r} holds {table.schema[wrong[0]]}",
            expected="true, false or null",
            fix="pass a table of boolean columns only",
        )
    if longest < 1:
        raise UsageError(f"longest = {longest}", fix="longest must be at least 1", option="longest")
    if minimum < 1:
        raise UsageError(f"minimum = {minimum}", fix="minimum must be at least 1; 5 is usual", option="minimum")
    tested = list(_tested(table, longest, minimum))
    if not tested:
        return pl.DataFrame(schema=RULE_COLUMNS)
    counts = np.array([numbers for _, _, numbers in tested], np.int64)
    rows, first, second, joint = counts.T
    if clusters is None or len(np.unique(clusters)) == table.height:
        p_values = np.clip(hypergeom.sf(joint - 1, rows, first, second), 0.0, 1.0)
    else:
        p_values = _permuted_p_values(table, clusters, [(names, name) for names, name, _ in tested], seed)
    rules = pl.DataFrame(
        {
            "if": [list(names) for names, _, _ in tested],
            "then": [name for _, name, _ in tested],
            "rows": rows,
            "count_if": first,
            "count_then": second,
            "count": joint,
            "support": joint / rows,
            "confidence": joint / first,
            "lift": (joint * rows) / (first.astype(np.float64) * second),
            "p_value": p_values,
            "p_adjusted": correct(p_values, correction),
        },
        schema=RULE_COLUMNS,
    )
    strong = rules.filter((pl.col("confidence") >= confidence) & (pl.col("support") >= support) & (pl.col("count") > 0))
    order = ["p_adjusted", "p_value", "lift", "count"]
    return strong.sort(order, descending=[False, False, True, True], maintain_order=True)


def _tested(table: pl.DataFrame, longest: int, minimum: int) -> Iterator[tuple[tuple[str, ...], str, tuple[int, ...]]]:
    """Every rule with its counts: rows judged, A, B, both."""
    names = table.columns
    is_judged = {name: table[name].is_not_null().to_numpy() for name in names}
    true = {name: table[name].fill_null(False).to_numpy() for name in names}
    for size in range(1, longest + 1):
        for condition in combinations(names, size):
            covered = np.logical_and.reduce([is_judged[name] for name in condition])
            holds = np.logical_and.reduce([true[name] for name in condition]) & covered
            if int(holds.sum()) < minimum:
                continue
            for name in names:
                if name not in condition:
                    rows = covered & is_judged[name]
                    first, second = holds & rows, true[name] & rows
                    counts = tuple(int(cells.sum()) for cells in (rows, first, second, first & second))
                    if all(minimum <= count < counts[0] for count in counts[1:3]):
                        yield condition, name, counts


_PERMUTATIONS, _PER_TEST = 2000, 50
"""At least so many permutations, and so many for each rule tested: the smallest p, times that number, is then 0.02."""
_SCREENED = 200
"""Of so many permutations, a rule that a tenth exceed is no finding, and is not permuted further."""
_PERMUTED_CELLS = 1 << 21
_ROUNDING = 1e-9


def _permuted_p_values(
    table: pl.DataFrame, clusters: IntArray, rules: Sequence[tuple[tuple[str, ...], str]], seed: int
) -> FloatArray:
    """p = (1 + permutations at least as extreme) / (1 + permutations), of each rule.

    What is compared is how often A and B are true together, less how often they would be by chance: nulls move with
    the rows, so the number of rows in which both were judged changes.
    """
    is_judged = {name: table[name].is_not_null().to_numpy() for name in table.columns}
    true = {name: table[name].fill_null(False).to_numpy() for name in table.columns}
    conditions = list(dict.fromkeys(names for names, _ in rules))
    covered = np.stack([np.logical_and.reduce([is_judged[name] for name in names]) for names in conditions])
    holds = covered & np.stack([np.logical_and.reduce([true[name] for name in names]) for names in conditions])
    rules_of = {name: [row for row, (_, then) in enumerate(rules) if then == name] for name in table.columns}
    row_of_condition = np.array([conditions.index(names) for names, _ in rules])

    def excess(permuted: IntArray, tested: IntArray) -> FloatArray:
        """Of each permutation (a row of row numbers) and each of the rules that are tested."""
        results = np.empty((len(permuted), len(rules)))
        for name, numbers in rules_of.items():
            part = np.intersect1d(numbers, tested)
            if not len(part):
                continue
            # Counts are whole numbers below 2 ** 24, which float32 adds exactly, in any order.
            flags = np.concatenate([holds[row_of_condition[part]], covered[row_of_condition[part]]]).astype(np.float32)
            joint, second = np.split(true[name].astype(np.float32)[permuted] @ flags.T, 2, axis=1)
            rows = permuted[:1] if is_judged[name].all() else permuted
            first, shared = np.split(is_judged[name].astype(np.float32)[rows] @ flags.T, 2, axis=1)
            results[:, part] = joint - first.astype(np.float64) * second / np.maximum(shared, 1)
        return results[:, tested]

    # Images with the same number of rows, each an array of images × rows.
    _, image_of, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    by_image, size_of = np.argsort(image_of, kind="stable"), sizes[np.sort(image_of)]
    blocks = [by_image[size_of == size].reshape(-1, size) for size in np.unique(sizes)]
    everything, tested = np.arange(table.height)[None], np.arange(len(rules))
    observed, random = excess(everything, tested)[0], random_stream(seed, "rules")
    extreme, draws = np.zeros((2, len(rules)))
    total, done = max(_PERMUTATIONS, _PER_TEST * len(rules)), 0
    step = max(1, _PERMUTED_CELLS // table.height)
    while done < total and len(tested):
        count = min(step, (_SCREENED if done < _SCREENED else total) - done)
        permuted = np.repeat(everything, count, axis=0)
        for block in blocks:
            moved = random.permuted(np.tile(np.arange(len(block)), (count, 1)), axis=1)
            permuted[:, block.ravel()] = block[moved].reshape(count, -1)
        extreme[tested] += (excess(permuted, tested) >= observed[tested] - _ROUNDING).sum(axis=0)
        done += count
        draws[tested] = done
        if done == _SCREENED:
            tested = tested[extreme[tested] < _SCREENED / 10]
    return np.asarray((1 + extreme) / (1 + draws), np.float64)


_PAIR: dict[str, Any] = {"expected": pl.String, "shown": pl.String}
PAIR_COLUMNS: dict[str, Any] = {"failure": pl.Int64, **_PAIR, "similarity": pl.Float64}
CONFUSION_COLUMNS: dict[str, Any] = {
    **_PAIR,
    "count": pl.Int64,
    **dict.fromkeys(("share", "share_of_expected", "lift", "similarity"), pl.Float64),
    "examples": pl.List(pl.String),
}
EXAMPLES = 3
"""Queries that each confusion names."""


def concept_pairs(
    objects: ImageObjects,
    ground_truth_rows: Sequence[int] | Array,
    retrieved_rows: Sequence[int] | Array,
    *,
    mentioned: Sequence[Collection[str]] | None = None,
) -> pl.DataFrame:
    """The matched pairs of every failure: a concept of the right image that the retrieved one lacks, and what it has.

    The matching is the one behind ``NonCommonSimilarity``. With ``mentioned`` (per failure the synsets that its query
    mentions) only what was asked for counts as missing, and only what was not asked for as shown instead.
    """
    concepts = [
        frozenset(objects.concepts[objects.offsets[image] : objects.offsets[image + 1]].tolist()) - {-1}
        for image in range(objects.images)
    ]
    row_of = {name: row for row, name in enumerate(objects.synsets)}
    ids = load_wordnet().ids(objects.synsets) if objects.synsets else np.empty(0, np.int64)

    @cache
    def similarities(concept: int) -> Array:
        row: Array = load_wordnet().path_similarities(ids[[concept]], ids)[0]
        return row

    @cache  # many failures lack and have the same
    def match(missing: tuple[int, ...], extra: tuple[int, ...]) -> list[tuple[str, str, float]]:
        weights = np.stack([similarities(concept)[list(extra)] for concept in missing])
        return [
            (objects.synsets[missing[row]], objects.synsets[extra[column]], float(weights[row, column]))
            for row, column in most_similar(weights)
        ]

    rows: list[tuple[int, str, str, float]] = []
    for failure, (right, wrong) in enumerate(zip(ground_truth_rows, retrieved_rows, strict=True)):
        missing = concepts[int(right)] - concepts[int(wrong)]
        extra = concepts[int(wrong)] - concepts[int(right)]
        if mentioned is not None:
            query_concepts = {row_of[name] for name in mentioned[failure] if name in row_of}
            missing, extra = missing & query_concepts, extra - query_concepts
        if missing and extra:
            rows += [(failure, *pair) for pair in match(tuple(sorted(missing)), tuple(sorted(extra)))]
    return pl.DataFrame(rows, schema=PAIR_COLUMNS, orient="row")


def count_confusions(pairs: pl.DataFrame, queries: Sequence[str], *, depth: int | None = None) -> pl.DataFrame:
    """Count the pairs of :func:`concept_pairs`: one row per expected and shown concept, the most frequent first.

    ``depth`` replaces both by their hypernyms that many steps below the root of WordNet; a pair with the same hypernym
    then has it on both sides. ``count`` is in how many failures the pair occurs, each once. ``share`` is of failures
    that have any pair, ``share_of_expected`` of those that have one for the same expected concept. ``lift`` is how much
    more often the two co-occur than if they were independent. ``examples`` are the first queries, the most similar
    concepts first.
    """
    names = {synset: ancestor_at(synset, depth) for synset in sorted({*pairs["expected"], *pairs["shown"]})}
    ends = [pl.col(side).replace(names).alias(side) for side in ("expected", "shown")]
    once = pairs.with_columns(ends).group_by("failure", "expected", "shown", maintain_order=True)
    table = once.agg(pl.col("similarity").max()).with_columns(
        pl.col("failure").n_unique().over(side).alias(f"of_{side}") for side in ("expected", "shown")
    )
    whole = table["failure"].n_unique()
    ordered = table.sort(["similarity", "failure"], descending=[True, False], maintain_order=True)
    confusions = ordered.group_by("expected", "shown", "of_expected", "of_shown", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("count"),
        pl.col("similarity").mean(),
        pl.col("failure").head(EXAMPLES).alias("examples"),
    )
    examples = [[queries[row] for row in rows] for rows in confusions["examples"].to_list()]
    count, expected, shown = (pl.col(name).cast(pl.Float64) for name in ("count", "of_expected", "of_shown"))
    return (
        confusions.with_columns(
            pl.Series("examples", examples, dtype=pl.List(pl.String)),
            (count / whole).alias("share"),
            (count / expected).alias("share_of_expected"),
            (count * whole / (expected * shown)).alias("lift"),
        )
        .select(pl.col(name).cast(kind) for name, kind in CONFUSION_COLUMNS.items())
        .sort(["count", "expected", "shown"], descending=[True, False, False])
    )
