"""Which of several models on one dataset is better, and which do not differ: one statement of any two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crosslens.analyze import Planted, Subject, with_misses
from crosslens.comparisons import MetricComparison, compare, primary_metric, same_lists
from crosslens.core import (
    STATED_SIZE,
    Effect,
    Figure,
    InputError,
    Observation,
    Presented,
    Section,
    Table,
    Text,
    UsageError,
    finding_kind,
)
from crosslens.metrics import facts_of, measure, unit_of
from crosslens.values import BOTH, IMAGE_TO_TEXT, Run, split_name

_LEVEL = 0.05

COMPARISON = "comparison"
"""The stage that compares the runs over a dataset."""


@dataclass(frozen=True, eq=False)
class ModelComparison(Presented):
    """The best of several models against the next best.

    ``equal`` are models with the same lists, which count as one. ``ahead`` compares the two that lead, ``p`` and
    interval corrected for all that the best could have been compared with; None where there is one left. ``reason``
    says why nothing was compared.
    """

    metric: str
    means: Mapping[str, float]
    equal: tuple[tuple[str, ...], ...] = ()
    ahead: MetricComparison | None = None
    p: float = 1.0
    gained: tuple[str, ...] = ()
    reason: str = ""

    title = "Which model is better"

    def sections(self) -> Iterator[Section]:
        if self.reason:
            yield Section(self.title, (Text((self.reason,), note=True),))
            return
        rows = [(name, Figure.percent(mean)) for name, mean in sorted(self.means.items(), key=lambda row: -row[1])]
        lines = [fact.text for fact in self.findings() if fact.bounded or (fact.p is not None and fact.p <= _LEVEL)]
        yield Section(self.title, (Text.of(*lines), Table(("model", self.metric), rows, "lr")))

    def findings(self) -> Iterator[Observation]:
        for names in self.equal:
            words = {"runs": " and ".join(names), "metric": self.metric, "why": "they give the same lists"}
            effect = Effect(0.0, 0.0, 0.0, "points")
            yield Observation("no-difference", words, effect, 0.0, bounded=True, subject=" = ".join(names))
        ahead = self.ahead
        if ahead is None:
            return
        best, second = (
            " and ".join(next((names for names in self.equal if name in names), (name,)))
            for name in (ahead.other, ahead.baseline)
        )
        effect, subject = Effect(ahead.difference, ahead.low, ahead.high, "points"), f"{best}, {second}"
        points = Figure.percent(ahead.difference, ahead.low, ahead.high, unit=" points")
        if ahead.low > -STATED_SIZE and ahead.high < STATED_SIZE and ahead.p_value > _LEVEL:
            words = {"runs": f"{best} and {second}", "metric": self.metric, "why": f"the difference is {points}"}
            yield Observation("no-difference", words, effect, 0.0, bounded=True, subject=subject)
            return
        others = f", the next best of {len(self.means)}" if len(self.means) > 2 else ""
        words = {"best": best, "second": second, "metric": self.metric, "points": str(points), "others": others}
        evidence = [{"query": query} for query in self.gained]
        weight = max(ahead.difference, 0.0)
        yield Observation("better", words, effect, weight, self.p, evidence=evidence, subject=subject)

    def as_dict(self) -> dict[str, Any]:
        ahead = self.ahead
        return {
            "metric": self.metric,
            "means": dict(self.means),
            "equal": [list(names) for names in self.equal],
            "ahead": None if ahead is None else {
                "best": ahead.other, "second": ahead.baseline, "difference": ahead.difference, "low": ahead.low,
                "high": ahead.high, "p": self.p, "images": ahead.images,
            },
            "reason": self.reason,
        }  # fmt: skip


def compare_models(runs: Mapping[str, Run]) -> ModelComparison:
    """Compare the best run with the next best by the primary metric, a share; runs with the same lists are one.

    Which run is the best was looked for: p and interval are corrected for the comparisons of it with all others.
    """
    eligible = {name: replace(run, name=name) for name, run in runs.items() if not run.published}
    shared = [
        metric
        for metric in next(iter(eligible.values()), Run("", {}))
        if all(metric in run for run in eligible.values()) and split_name(metric)[0] != BOTH
        and unit_of(metric) == "share" and facts_of(metric).higher_is_better and not facts_of(metric).pooled
    ]  # fmt: skip
    if len(eligible) < 2 or not shared:
        return ModelComparison("", {}, reason="There are no two runs with a share of the queries to compare.")
    metric = primary_metric(shared)
    means = {name: run[metric].mean for name, run in eligible.items()}
    groups: list[list[str]] = []
    for name in sorted(eligible, key=lambda name: -means[name]):
        group = next((group for group in groups if same_lists(metric, eligible[group[0]], eligible[name])), [])
        if not group:
            groups.append(group)
        group.append(name)
    result = ModelComparison(metric, means, tuple(tuple(group) for group in groups if len(group) > 1))
    rivals = len(groups) - 1
    if not rivals:
        return result
    leading, level = [eligible[group[0]] for group in groups[:2]], 1 - _LEVEL / rivals
    best, second = (replace(run, values={metric: replace(run[metric], level=level)}) for run in leading)
    try:
        (ahead,) = compare(second, best, metrics=[metric], correction="none").results
    except (InputError, UsageError) as error:
        return replace(result, reason=f"The two best runs cannot be compared: {error.problem}.")
    before = dict(zip(second[metric].query_ids, second[metric].values, strict=True))
    after = zip(best[metric].query_ids, best[metric].values, strict=True)
    gained = tuple(query for query, value in after if value > before.get(query, np.inf))
    return replace(result, ahead=ahead, p=min(1.0, ahead.p_value * rivals), gained=gained)


# Plants: a second model, to be compared with the one that it was made from


def compare_with_planted(subject: Subject, planted: Subject) -> ModelComparison:
    """What an audit of both as two models would say."""
    return compare_models({"as given": run_of(subject, "as given"), "planted": run_of(planted, "planted")})


def run_of(subject: Subject, name: str) -> Run:
    """Hit@1 of a subject's rankings, as a run."""
    owners = dict(subject.dataset.image_rows), dict(zip(subject.dataset.caption_ids, subject.owner, strict=True))
    clusters = {
        direction: np.array([owners[direction != IMAGE_TO_TEXT][query] for query in ranking.query_ids], np.int64)
        for direction, ranking in subject.rankings.items()
    }
    return Run(name, measure(subject.rankings, clusters, ("Hit@1",)), dict(subject.rankings))


@finding_kind(
    "better",
    "{metric} of {best} is {points} above that of {second}{others}.",
    stage=COMPARISON, strengths=(0.02, 0.05, 0.1), strength_words="a second model that finds {:.0%} fewer captions",
)  # fmt: skip
def plant_worse_model(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """A second model: noise in its vectors of some captions, so that it loses so many points."""
    hits = np.flatnonzero(subject.caption_hits == 1)
    if not subject.has_vectors or not len(hits):
        return Planted(subject)
    lost = stream.permutation(hits)[: round(strength * int(np.isfinite(subject.caption_hits).sum()))]
    return Planted.at(with_misses(subject, lost, stream, of_images=False), captions=lost)


@finding_kind(
    "no-difference",
    "{runs} do not differ in {metric}: {why}.",
    stage=COMPARISON, strengths=(1.0,), strength_words="a second model of the same vectors, in other units",
)  # fmt: skip
def plant_equal_model(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """A second model whose vectors are those of the first, times a power of two: the same lists."""
    if subject.images is None or subject.captions is None or not subject.has_vectors:
        return Planted(subject)
    factor = 2.0 ** int(stream.integers(1, 4))
    images, captions = (side.vectors * np.asarray(factor, side.dtype) for side in (subject.images, subject.captions))
    return Planted.at(subject.with_vectors(images, captions), captions=range(len(captions)))
