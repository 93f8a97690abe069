"""Runs on the same queries, compared: by how much they differ, whether that is chance, and on which queries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, count
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from crosslens.comparisons.options import PermutationOptions
from crosslens.comparisons.paired_queries import SAME_TRUTH, aligned, span_of
from crosslens.comparisons.results import Comparison, MetricComparison, corrected
from crosslens.core import (
    CrosslensError,
    InputError,
    UnknownNameError,
    UsageError,
    accepts_options,
    refuse_other_keywords,
)
from crosslens.metrics import (
    MetricRequest,
    MetricSpec,
    bounds_of,
    facts_of,
    matching_names,
    observations,
    parse_metric,
    parse_metrics,
    read_spec,
    spec_of,
    split_metrics,
)
from crosslens.statistics import PairedTest, detectable_difference, paired_permutation, same_tests
from crosslens.storage import FloatArray, IntArray
from crosslens.values import BOTH, IMAGE_TO_TEXT, TEXT_TO_IMAGE, Ranking, Run, split_name, stored_facts

if TYPE_CHECKING:
    from crosslens.comparisons.keywords import PermutationKeywords

_SAME = 1e-12


@accepts_options(PermutationOptions)
def compare(
    *runs: Run | str | Path,
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    all_pairs: bool = False,
    **options: Unpack[PermutationKeywords],
) -> Comparison:
    """Compare the first run with each of the others; p-values come from a paired permutation test over images.

    Queries are matched by id. Of ``primary``, p-values are corrected for the pairs of runs, those of all other metrics,
    the secondary ones, among themselves. Equal tests are counted once.

    Args:
        runs: Runs, or their folders.
        metrics: Names of metrics; by default all that the runs share.
        all_pairs: Compare every run with every other one.
    """
    refuse_other_keywords(options, compare)
    test = PermutationOptions.pick(options)
    if len(runs) < 2:
        raise UsageError("a comparison requires two runs", fix="name a second run")
    loaded = tuple(run if isinstance(run, Run) else Run.load(run) for run in runs)
    labelled = tuple(replace(run, name=label) for run, label in zip(loaded, run_labels(loaded), strict=True))
    for run in labelled:
        if run.published:
            raise UsageError(
                f"{run.name!r} has published figures alone, without values per query",
                fix="compare runs that were evaluated here; show and leaderboard put published figures beside them",
                code="published-figures",
            )
        if _option(run, "folds", 1) != _option(labelled[0], "folds", 1):
            raise InputError(
                f"{labelled[0].name!r} has {_option(labelled[0], 'folds', 1)} folds, {run.name!r} has "
                f"{_option(run, 'folds', 1)}",
                expected="galleries of the same size",
                fix="evaluate both runs with the same folds",
            )
    names, notes = _metric_names(labelled, metrics)
    pairs = list(combinations(labelled, 2))[: None if all_pairs else len(labelled) - 1]
    main = primary_metric(names, test.primary)
    blocks = corrected([_compared_pair(names, main, *pair, test) for pair in pairs], test.correction)
    return Comparison(
        labelled[0].name, tuple(other.name for other in labelled[1:]), tuple(chain.from_iterable(blocks)),
        test.correction, test.permutations, test.seed, labelled[0][names[0]].level,
        (*notes, *notes_on_protocols(loaded), *_notes_on_settings(labelled, {split_name(name)[0] for name in names})),
        all_pairs,
        {run.name: {name: (run[name].mean, run[name].low, run[name].high) for name in names} for run in labelled},
        compared=labelled,
    )  # fmt: skip


def primary_metric(names: Sequence[str], primary: str | None = None) -> str:
    """The metric that decides: the one named, else ``Hit@1``, else the first; of ``t2i`` where that is among them."""
    meant = matching_names("Hit@1" if primary is None else primary, names)
    if primary is not None and not meant:
        raise UnknownNameError("metric among those compared", primary, names)
    meant = meant or list(names)
    return next((name for name in meant if split_name(name)[0] == TEXT_TO_IMAGE), meant[0])


def _compared_pair(
    names: Sequence[str], primary: str, baseline: Run, other: Run, options: PermutationOptions
) -> list[MetricComparison]:
    """All metrics of two runs; p-values are not corrected yet."""
    order = sorted(names, key=lambda name: name != primary)  # what is the same as the primary metric is said of it
    tested = {name: _compared(name, baseline, other, options) for name in order}
    same = dict(zip(order, same_tests([test for _, test in tested.values()]), strict=True))
    return [
        replace(
            tested[name][0], primary=name == primary, same_as=order[same[name]] if order[same[name]] != name else None
        )
        for name in names
    ]


def _compared(name: str, baseline: Run, other: Run, options: PermutationOptions) -> tuple[MetricComparison, PairedTest]:
    higher_is_better, pooled = facts_of(name).higher_is_better, facts_of(name).pooled
    ours, theirs = baseline[name], other[name]
    values, order = aligned(name, baseline, other)
    test = _tested(name, baseline, other, values, order, options)
    change = values - ours.values
    gain = np.nan_to_num(change if higher_is_better else -change)
    wins, losses = int((gain > _SAME).sum()), int((gain < -_SAME).sum())
    result = MetricComparison(
        name, baseline.name, other.name, ours.mean, theirs.mean,
        test.difference, test.low, test.high, test.p_value, adjusted_p=test.p_value,
        n=ours.n, wins=wins, losses=losses, ties=ours.n - wins - losses,
        statistic=ours.statistic, higher_is_better=higher_is_better, images=test.clusters,
        detectable=nan if pooled or ours.statistic != "mean" else detectable_difference(
            change, ours.clusters, level=ours.level, span=span_of(name)
        ),
    )  # fmt: skip
    return result, test


def _tested(
    name: str, baseline: Run, other: Run, values: FloatArray, order: IntArray, options: PermutationOptions
) -> PairedTest:
    ours = baseline[name]
    clusters, strata, folds = ours.clusters, None, int(_option(baseline, "folds", 1))
    if folds > 1:  # consecutive, nearly equal parts of the images
        images = int(baseline.provenance["dataset"]["images"])
        sizes = [len(part) for part in np.array_split(np.arange(images), folds)]
        strata = np.asarray(np.repeat(np.arange(folds), sizes)[clusters], np.int64)
    first, second = values, ours.values
    if facts_of(name).pooled:
        second, rows = _pairs(name, baseline)
        first, other_rows = _pairs(name, other)
        counts = np.bincount(rows, minlength=len(ours.query_ids))
        others = np.bincount(other_rows, minlength=len(other[name].query_ids))[order]
        if not np.array_equal(counts, np.where(order >= 0, others, 0)):
            raise InputError(f"{name}: the runs differ in how many items are relevant to a query", fix=SAME_TRUTH)
        # Into the baseline's order of queries; the pairs of a query stay together.
        new_row = {int(row): position for position, row in enumerate(order) if row >= 0}
        first = first[np.argsort([new_row[int(row)] for row in other_rows], kind="stable")]
        clusters, strata = clusters[rows], None if strata is None else strata[rows]
    test = paired_permutation(
        first, second, clusters, statistic=ours.statistic, strata=strata, permutations=options.permutations,
        level=ours.level, seed=options.seed, bounds=bounds_of(name),
    )  # fmt: skip
    if np.array_equal(first, second, equal_nan=True) and same_lists(name, baseline, other):
        return replace(test, low=0.0, high=0.0)
    return test


def same_lists(name: str, baseline: Run, other: Run) -> bool:
    """Whether a metric looks at the same lists in both runs: their difference is then 0 on any queries.

    Equal values of different lists are not: on other queries, they could differ.
    """
    direction = split_name(name)[0]
    directions = baseline.rankings.keys() | other.rankings.keys() if direction == BOTH else {direction}
    pairs = [[run.rankings.get(part) for run in (baseline, other)] for part in directions]
    return bool(pairs) and all(
        ours is not None and theirs is not None and ours.same_lists(theirs) for ours, theirs in pairs
    )


def _pairs(name: str, run: Run) -> tuple[FloatArray, IntArray]:
    """The values behind a pooled metric, one per (query, relevant item); they are in the ranking only."""
    spec = parse_metric(name).spec
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


def _option(run: Run, key: str, default: Any) -> Any:
    return run.provenance.get("options", {}).get(key, default)


def _require_same_measure(name: str, runs: tuple[Run, ...]) -> None:
    """Raise unless a graded metric was computed from the same values in all runs, whatever they are called."""
    for option in read_spec(split_name(name)[1]).options:
        source = option.rpartition("=")[2]
        for where in ("similarities", "scores_from"):
            measures = [run.provenance.get(where, {}).get(source) for run in runs]
            for run, measure in zip(runs, measures, strict=True):
                if measure != measures[0]:
                    raise InputError(
                        f"{source!r} has different values in {runs[0].name!r} and {run.name!r}",
                        expected="the same relevance for both runs",
                        fix="evaluate both with the same one, or give them different names",
                    )


def notes_on_protocols(runs: Iterable[Run]) -> list[str]:
    """Say where runs follow different conventions: a difference between them may be one of conventions."""
    protocols = {run.name: str(run.protocol.get("name", "crosslens' own")) for run in runs}
    if len(set(protocols.values())) <= 1:
        return []
    per_run = ", ".join(f"{name} {protocol}" for name, protocol in protocols.items())
    return [f"The runs follow different protocols: {per_run}."]


def notes_on_published(runs: Iterable[Run]) -> list[str]:
    """Say what the label of figures means that were not computed here: nobody knows what their queries were."""
    published = any(run.published for run in runs)
    return ["(published): figures of others, not computed and not tested here; their queries may differ."] * published


def _notes_on_settings(runs: tuple[Run, ...], directions: set[str]) -> Iterator[str]:
    """Galleries of other sizes, of which larger ones lower the figures; other rules for ties; other code of plugins."""
    for direction in sorted(directions - {BOTH}):
        items = "captions" if direction == IMAGE_TO_TEXT else "images"
        sizes = {run.name: run.provenance.get("dataset", {}).get(items) for run in runs}
        if None not in sizes.values() and len(set(sizes.values())) > 1:
            per_run = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
            yield f"The galleries of {direction} differ, and larger ones are harder: {per_run} {items}."
    modes = {run.name: str(_option(run, "ties", "stable")) for run in runs}
    if len(set(modes.values())) > 1:
        yield "The runs break ties differently: " + ", ".join(f"{name} {mode}" for name, mode in modes.items()) + "."
    versions: dict[str, set[str]] = {}
    for run in runs:
        for plugin, content in run.provenance.get("plugins", {}).items():
            versions.setdefault(plugin, set()).add(content)
    changed = [plugin for plugin, contents in versions.items() if len(contents) > 1]
    if changed:
        yield f"The runs were computed with different versions of the plugin {', '.join(changed)}."


def run_labels(runs: tuple[Run, ...]) -> list[str]:
    """The runs' names with their protocols; a second run of one name gets a number."""
    labels: list[str] = []
    for run in runs:
        labels.append(unused_label(run.label, labels))
    return labels


def unused_label(name: str, labels: Collection[str], form: Callable[[str], str] = str) -> str:
    """The name, with a number behind it where ``form(name)`` is taken."""
    candidates = chain([name], (f"{name} ({number})" for number in count(2)))
    return next(label for label in candidates if form(label) not in labels)


def _metric_names(
    runs: tuple[Run, ...], metrics: str | Iterable[str | MetricSpec | MetricRequest] | None
) -> tuple[list[str], list[str]]:
    """The names of the metrics to compare, and notes on the choice."""
    if metrics is None:
        return _shared(runs)
    names: dict[str, None] = {}
    notes: dict[str, None] = {}
    parts = [metrics] if isinstance(metrics, str) else metrics
    for word in (word for part in parts for word in (split_metrics(part) if isinstance(part, str) else [part])):
        # A metric of a plugin that is not loaded is known by its stored name alone.
        requested = [name for name in runs[0] if word in (name, split_name(name)[1]) and spec_of(name) is None]
        if not requested:
            (request,) = parse_metrics([word])
            directions = dict.fromkeys(split_name(name)[0] for name in runs[0])
            everywhere = list(request.names([direction for direction in directions if direction != BOTH]))
            available = [name for name in everywhere if request.direction or name in runs[0].values]
            requested = available or everywhere or [str(request)]
            notes |= dict.fromkeys(request.notes)
        for name in requested:
            lacking = next((run for run in runs if name not in run.values), None)
            if lacking is not None:
                raise UnknownNameError(f"metric in {lacking.name!r}", name, lacking.values)
            _require_same_measure(name, runs)
            names[name] = None
    if not names:
        parse_metrics([])  # raises
    return list(names), [*notes, *_notes_on_unknown(names)]


def _notes_on_unknown(names: Iterable[str]) -> list[str]:
    """What to know of metrics that are compared by their stored values alone."""
    unknown = [name for name in names if spec_of(name) is None]
    notes = []
    if unknown:
        notes.append(f"Compared by their stored values, as their plugin is not loaded: {', '.join(unknown)}.")
    assumed = [name for name in unknown if stored_facts(name) is None]
    if assumed:
        notes.append(f"Assumed, as the runs do not say it: higher is better in {', '.join(assumed)}.")
    return notes


def _shared(runs: tuple[Run, ...]) -> tuple[list[str], list[str]]:
    everywhere = [name for name in runs[0] if all(name in run.values for run in runs)]
    names, notes = [], []
    for name in everywhere:
        try:
            _require_same_measure(name, runs)
            if facts_of(name).pooled:
                for run in runs:
                    _ranking(name, run)
                parse_metric(name)  # its pairs are computed again, which takes the metric itself
        except CrosslensError as error:
            notes.append(f"Left out: {name} ({error.problem}).")
        else:
            names.append(name)
    apart = list(dict.fromkeys(name for run in runs for name in run if name not in everywhere))
    if apart:
        notes.append(f"Left out, as not all runs have them: {', '.join(apart)}.")
    if not names:
        raise UsageError("the runs have no metric in common", fix="evaluate them with the same metrics")
    return names, [*notes, *_notes_on_unknown(names)]
