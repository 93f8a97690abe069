"""Runs on the same queries, compared: by how much they differ, whether that is chance, and on which queries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import (
    BOTH,
    CrosslensError,
    Ids,
    InputError,
    MetricValues,
    Ranking,
    Run,
    UnknownNameError,
    UsageError,
    split_name,
)
from crosslens.metrics import MetricRequest, MetricSpec, family_of, observations, parse_metric, parse_metrics
from crosslens.pipeline.comparison_results import Comparison, MetricComparison, QueryDifference
from crosslens.statistics import PairedTest, correct, paired_permutation

IntArray = np.ndarray[Any, np.dtype[np.int64]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_SHOWN = 3
"""Queries named among the largest gains, and among the largest losses."""
_SAME = 1e-12


def compare(
    *runs: Run | str | Path,
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    correction: str = "holm",
    permutations: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare the first run (or run folder) with each of the others, on the metrics named or on all they share.

    Queries are matched by id. p-values come from a paired permutation test over images and are corrected (``holm``,
    ``bh`` or ``none``) for the number of metrics times the number of pairs of runs.
    """
    if len(runs) < 2:
        raise UsageError("a comparison requires two runs", fix="name a second run")
    correct([], correction)
    loaded = tuple(run if isinstance(run, Run) else Run.load(run) for run in runs)
    named = tuple(replace(run, name=label) for run, label in zip(loaded, run_labels(loaded), strict=True))
    _require_same_folds(named)
    names, notes = _metric_names(named, metrics)
    baseline, others = named[0], named[1:]
    results = [_compared(name, baseline, other, permutations, seed) for other in others for name in names]
    adjusted = correct([result.p_value for result in results], correction)
    results = [replace(result, adjusted_p=float(p)) for result, p in zip(results, adjusted, strict=True)]
    return Comparison(
        baseline.name, tuple(other.name for other in others), tuple(results), correction, permutations, seed,
        baseline[names[0]].level, (*notes, *_notes_on_ties(named)),
    )  # fmt: skip


class _Aligned(NamedTuple):
    """One metric of two runs, in the baseline's order of queries."""

    baseline: FloatArray
    other: FloatArray
    order: IntArray
    """The row of each of the baseline's queries in the other run."""


def _compared(name: str, baseline: Run, other: Run, permutations: int, seed: int) -> MetricComparison:
    spec = parse_metric(name).spec
    family = family_of(spec)
    ours, theirs = baseline[name], other[name]
    aligned = _align(name, baseline, other)
    test = _tested(name, spec, baseline, other, aligned, permutations, seed)
    change = aligned.other - aligned.baseline
    gain = np.nan_to_num(change if family.higher_is_better else -change)
    won, lost = gain > _SAME, gain < -_SAME
    wins, losses = int(won.sum()), int(lost.sum())
    return MetricComparison(
        name, baseline.name, other.name, ours.mean, theirs.mean,
        test.difference, test.low, test.high, test.p_value, adjusted_p=test.p_value,
        n=ours.n, wins=wins, losses=losses, ties=ours.n - wins - losses,
        largest_gains=_largest(gain, won, ours.query_ids, aligned),
        largest_losses=_largest(-gain, lost, ours.query_ids, aligned),
        statistic=ours.statistic, higher_is_better=family.higher_is_better,
    )  # fmt: skip


def _largest(gain: FloatArray, eligible: Any, queries: Ids, aligned: _Aligned) -> tuple[QueryDifference, ...]:
    order = np.argsort(-gain, kind="stable")[:_SHOWN]
    return tuple(
        QueryDifference(queries[row], float(aligned.baseline[row]), float(aligned.other[row]))
        for row in order[eligible[order]]
    )


def _tested(
    name: str, spec: MetricSpec, baseline: Run, other: Run, aligned: _Aligned, permutations: int, seed: int
) -> PairedTest:
    ours = baseline[name]
    clusters, strata = ours.clusters, _strata(baseline, ours)
    first, second = aligned.other, aligned.baseline
    if family_of(spec).pooled(spec):
        second, rows = _pairs(name, spec, baseline)
        first, other_rows = _pairs(name, spec, other)
        queries = len(ours.query_ids)
        counts = np.bincount(rows, minlength=queries), np.bincount(other_rows, minlength=queries)[aligned.order]
        if not np.array_equal(*counts):
            raise InputError(f"{name}: the runs differ in how many items are relevant to a query", fix=_SAME_TRUTH)
        first = _reordered(first, other_rows, aligned.order)
        clusters, strata = clusters[rows], None if strata is None else strata[rows]
    return paired_permutation(
        first, second, clusters, statistic=ours.statistic, strata=strata, permutations=permutations, level=ours.level,
        seed=seed,
    )  # fmt: skip


_SAME_TRUTH = "evaluate both runs on the same dataset with the same relevance"


def _align(name: str, baseline: Run, other: Run) -> _Aligned:
    """Match queries by id; both runs must have the same ones, and count the same ones."""
    ours, theirs = baseline[name], other[name]
    row_of = {query: row for row, query in enumerate(theirs.query_ids)}
    for run, compared in ((baseline, other), (other, baseline)):
        known = set(compared[name].query_ids)
        missing = [query for query in run[name].query_ids if query not in known]
        if missing:
            raise InputError(
                f"{name}: {len(missing):,} of the {len(run[name].query_ids):,} queries of {run.name!r} are not in "
                f"{compared.name!r}, the first is {missing[0]!r}",
                expected="the same queries in both runs",
                fix=_SAME_TRUTH,
            )
    order = np.fromiter((row_of[query] for query in ours.query_ids), np.int64, len(ours.query_ids))
    values = theirs.values[order]
    apart = np.isnan(values) != np.isnan(ours.values)
    if apart.any():
        raise InputError(
            f"{name}: {int(apart.sum()):,} queries count in only one of {baseline.name!r} and {other.name!r}, "
            f"the first is {ours.query_ids[int(np.argmax(apart))]!r}",
            expected="queries with the same relevant items in both runs",
            fix=_SAME_TRUTH,
        )
    return _Aligned(ours.values, values, order)


def _pairs(name: str, spec: MetricSpec, run: Run) -> tuple[FloatArray, IntArray]:
    """The values behind a pooled metric, one per (query, relevant item); they are in the ranking only."""
    values, rows = observations(spec, _ranking(name, run), _option(run, "ties", "stable"))
    assert rows is not None
    return values, rows


def _ranking(name: str, run: Run) -> Ranking:
    direction = split_name(name)[0]
    if direction not in run.rankings:
        raise UsageError(
            f"{name} is computed over pairs, and {run.name!r} has no {direction} ranking to take them from",
            fix=f"leave {name} out, or evaluate {run.name!r} again",
        )
    return run.rankings[direction]


def _reordered(values: FloatArray, rows: IntArray, order: IntArray) -> FloatArray:
    """Pairs brought into another order of queries; those of a query stay together."""
    new_row = np.empty_like(order)
    new_row[order] = np.arange(len(order))
    return values[np.argsort(new_row[rows], kind="stable")]


def _strata(run: Run, values: MetricValues) -> IntArray | None:
    """The fold of every query, if the run was ranked within folds: consecutive, nearly equal parts of the images."""
    folds = int(_option(run, "folds", 1))
    if folds == 1:
        return None
    images = int(run.provenance["dataset"]["images"])
    sizes = [len(part) for part in np.array_split(np.arange(images), folds)]
    return np.asarray(np.repeat(np.arange(folds), sizes)[values.clusters], np.int64)


def _option(run: Run, key: str, default: Any) -> Any:
    return run.provenance.get("options", {}).get(key, default)


def _require_same_folds(runs: tuple[Run, ...]) -> None:
    expected = _option(runs[0], "folds", 1)
    for run in runs:
        if _option(run, "folds", 1) != expected:
            raise InputError(
                f"{runs[0].name!r} has {expected} folds, {run.name!r} has {_option(run, 'folds', 1)}",
                expected="galleries of the same size",
                fix="evaluate both runs with the same folds",
            )


def _require_same_measure(name: str, runs: tuple[Run, ...]) -> None:
    """Raise unless a graded metric was computed from the same values in all runs, whatever they are called."""
    spec = parse_metric(name).spec
    family = family_of(spec)
    if not family.graded:
        return
    for option, where in (("φ", "similarities"), ("scores_from", "scores_from")):
        source = family.value_of(spec, option)
        measures = [run.provenance.get(where, {}).get(source) for run in runs]
        for run, measure in zip(runs, measures, strict=True):
            if measure != measures[0]:
                raise InputError(
                    f"{source!r} has different values in {runs[0].name!r} and {run.name!r}",
                    expected="the same relevance for both runs",
                    fix="evaluate both with the same one, or give them different names",
                )


def _notes_on_ties(runs: tuple[Run, ...]) -> list[str]:
    modes = {run.name: str(_option(run, "ties", "stable")) for run in runs}
    if len(set(modes.values())) == 1:
        return []
    return ["The runs break ties differently: " + ", ".join(f"{name} {mode}" for name, mode in modes.items()) + "."]


def run_labels(runs: tuple[Run, ...]) -> list[str]:
    """The runs' names; a second run of one name gets a number."""
    labels: list[str] = []
    for run in runs:
        labels.append(unused_label(run.name, labels))
    return labels


def unused_label(name: str, taken: Collection[str], form: Callable[[str], str] = str) -> str:
    """The name, with a number behind it where ``form(name)`` is taken."""
    candidates = chain([name], (f"{name} ({number})" for number in count(2)))
    return next(label for label in candidates if form(label) not in taken)


def _metric_names(
    runs: tuple[Run, ...], metrics: str | Iterable[str | MetricSpec | MetricRequest] | None
) -> tuple[list[str], list[str]]:
    """The names of the metrics to compare, and notes on the choice."""
    if metrics is None:
        return _shared(runs)
    names: dict[str, None] = {}
    notes: dict[str, None] = {}
    directions = list(dict.fromkeys(split_name(name)[0] for name in runs[0]))
    for request in parse_metrics(metrics):
        requested = request.names([direction for direction in directions if direction != BOTH])
        available = [name for name in requested if request.direction or name in runs[0].values]
        for name in available or requested or [str(request)]:
            for run in runs:
                if name not in run.values:
                    raise UnknownNameError(f"metric in {run.name!r}", name, run.values)
            _require_same_measure(name, runs)
            names[name] = None
        notes |= dict.fromkeys(request.notes)
    return list(names), list(notes)


def _shared(runs: tuple[Run, ...]) -> tuple[list[str], list[str]]:
    everywhere = [name for name in runs[0] if all(name in run.values for run in runs)]
    names, notes = [], []
    for name in everywhere:
        try:
            spec = parse_metric(name).spec
            _require_same_measure(name, runs)
            if family_of(spec).pooled(spec):
                for run in runs:
                    _ranking(name, run)
        except CrosslensError as error:
            notes.append(f"Left out: {name} ({error.problem}).")
        else:
            names.append(name)
    apart = list(dict.fromkeys(name for run in runs for name in run if name not in everywhere))
    if apart:
        notes.append(f"Left out, as not all runs have them: {', '.join(apart)}.")
    if not names:
        raise UsageError("the runs have no metric in common", fix="evaluate them with the same metrics")
    return names, notes
