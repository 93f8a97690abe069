"""Which of several models on one dataset is better, and which do not differ: one statement of any two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crosslens.analyze import Planted, Subject, has_vectors, with_misses
from crosslens.core import (
    BOTH,
    IMAGE_TO_TEXT,
    STATED_SIZE,
    Effect,
    Embeddings,
    Figure,
    InputError,
    Observation,
    Presented,
    Run,
    Section,
    Table,
    Text,
    UsageError,
    finding_kind,
    split_name,
)
from crosslens.metrics import facts_of, measure, unit_of
from crosslens.pipeline.comparison import compare, primary_metric, same_lists
from crosslens.pipeline.comparison_results import MetricComparison

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

    @property
    def title(self) -> str:
        return "Which model is better"

    @property
    def is_bounded(self) -> bool:
        """Whether the two that lead differ by less than the stated size, in either direction, if at all."""
        ahead = self.ahead
        small = ahead is not None and ahead.low > -STATED_SIZE and ahead.high < STATED_SIZE
        return small and ahead is not None and ahead.p_value > _LEVEL

    def _labels(self, name: str) -> str:
        """A model with those that are equal to it."""
        return " and ".join(next((names for names in self.equal if name in names), (name,)))

    def sections(self) -> Iterator[Section]:
        if self.reason:
            yield Section(self.title, (Text((self.reason,), note=True),))
            return
        rows = [(name, Figure.percent(mean)) for name, mean in sorted(self.means.items(), key=lambda row: -row[1])]
        said = [observation.text for observation in self.findings() if observation.bounded or self._is_better]
        yield Section(self.title, (Text.of(*said), Table(("model", self.metric), rows, "lr")))

    @property
    def _is_better(self) -> bool:
        return self.ahead is not None and not self.is_bounded and self.p <= _LEVEL

    def findings(self) -> Iterator[Observation]:
        for names in self.equal:
            words = {"runs": " and ".join(names), "metric": self.metric, "why": "they give the same lists"}
            effect = Effect(0.0, 0.0, 0.0, "points")
            yield Observation("no-difference", words, effect, 0.0, bounded=True, subject=" = ".join(names))
        ahead = self.ahead
        if ahead is None:
            return
        best, second = self._labels(ahead.other), self._labels(ahead.baseline)
        effect = Effect(ahead.difference, ahead.low, ahead.high, "points")
        interval = f"[{100 * ahead.low:.1f}, {100 * ahead.high:.1f}]"
        if self.is_bounded:
            size = f"the difference is {100 * ahead.difference:.1f} points {interval}"
            words = {"runs": f"{best} and {second}", "metric": self.metric, "why": size}
            yield Observation("no-difference", words, effect, 0.0, bounded=True, subject=f"{best}, {second}")
            return
        words = {
            "best": best,
            "second": second,
            "metric": self.metric,
            "points": f"{100 * ahead.difference:.1f} points",
            "interval": interval,
            "others": f", the next best of {len(self.means)}" if len(self.means) > 2 else "",
        }
        evidence = [{"query": query} for query in self.gained]
        yield Observation(
            "better", words, effect, max(ahead.difference, 0.0), p=self.p, evidence=evidence,
            subject=f"{best}, {second}",
        )  # fmt: skip

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


def compare_models(runs: Mapping[str, Run], *, permutations: int = 10_000, seed: int = 0) -> ModelComparison:
    """Compare the best run with the next best by the primary metric, a share; runs with the same lists are one.

    Which run is the best was looked for: p and interval are corrected for the comparisons of it with all others.
    """
    named = {name: replace(run, name=name) for name, run in runs.items() if not run.published}
    shared = [
        metric
        for metric in next(iter(named.values()), Run("", {}))
        if all(metric in run for run in named.values()) and split_name(metric)[0] != BOTH
        and unit_of(metric) == "share" and facts_of(metric).higher_is_better and not facts_of(metric).pooled
    ]  # fmt: skip
    if len(named) < 2 or not shared:
        return ModelComparison("", {}, reason="There are no two runs with a share of the queries to compare.")
    metric = primary_metric(shared)
    means = {name: run[metric].mean for name, run in named.items()}
    ordered = sorted(named, key=lambda name: -means[name])
    groups: list[list[str]] = []
    for name in ordered:
        equal = (group for group in groups if same_lists(metric, named[group[0]], named[name]))
        group = next(equal, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    same = tuple(tuple(group) for group in groups if len(group) > 1)
    if len(groups) == 1:
        return ModelComparison(metric, means, same)
    others = len(groups) - 1
    pair = [_measured(named[groups[place][0]], metric, 1 - _LEVEL / others) for place in (1, 0)]
    try:
        (ahead,) = compare(*pair, metrics=[metric], correction="none", permutations=permutations, seed=seed).results
    except (InputError, UsageError) as error:
        return ModelComparison(metric, means, same, reason=f"The two best runs cannot be compared: {error.problem}.")
    return ModelComparison(metric, means, same, ahead, min(1.0, ahead.p_value * others), _gained(pair, metric))


def _measured(run: Run, metric: str, level: float) -> Run:
    """The run with this metric alone, at another level."""
    return replace(run, values={metric: replace(run[metric], level=level)})


def _gained(pair: Sequence[Run], metric: str) -> tuple[str, ...]:
    """The queries that do better in the second run."""
    before = dict(zip(pair[0][metric].query_ids, pair[0][metric].values, strict=True))
    after = pair[1][metric]
    return tuple(
        query for query, value in zip(after.query_ids, after.values, strict=True) if value > before.get(query, np.inf)
    )


# Plants: a second model, to be compared with the one that it was made from


def compare_with_planted(subject: Subject, planted: Subject) -> ModelComparison:
    """What an audit of both as two models would say."""
    return compare_models({"as given": run_of(subject, "as given"), "planted": run_of(planted, "planted")})


def run_of(subject: Subject, name: str) -> Run:
    """Hit@1 of a subject's rankings, as a run."""
    rows = {"image": subject.dataset.image_rows, "caption": subject.dataset.caption_rows}
    clusters = {}
    for direction, ranking in subject.rankings.items():
        by_image = direction == IMAGE_TO_TEXT
        asked = [rows["image" if by_image else "caption"][query] for query in ranking.query_ids]
        clusters[direction] = np.array(asked, np.int64) if by_image else subject.owner[asked]
    return Run(name, measure(subject.rankings, clusters, ("Hit@1",)), dict(subject.rankings))


@finding_kind(
    "better",
    "{metric} of {best} is {points} {interval} above that of {second}{others}.",
    stage=COMPARISON, strengths=(0.02, 0.05, 0.1), strength_words="a second model that finds {:.0%} fewer captions",
)  # fmt: skip
def plant_worse_model(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """A second model: noise in its vectors of some captions, so that it loses so many points."""
    hits = np.flatnonzero(subject.caption_hits == 1)
    asked = int(np.isfinite(subject.caption_hits).sum())
    if not has_vectors(subject) or not len(hits):
        return Planted(subject, frozenset())
    chosen = stream.permutation(hits)[: round(strength * asked)]
    worse = with_misses(subject, chosen, False, stream)
    return Planted(worse, frozenset(subject.dataset.caption_ids[row] for row in chosen))


@finding_kind(
    "no-difference",
    "{runs} do not differ in {metric}: {why}.",
    stage=COMPARISON, strengths=(1.0,), strength_words="a second model of the same vectors, in other units",
)  # fmt: skip
def plant_equal_model(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """A second model whose vectors are those of the first, times a power of two: the same lists."""
    if not has_vectors(subject):
        return Planted(subject, frozenset())
    factor = 2.0 ** int(stream.integers(1, 4))
    sides = {
        name: Embeddings(side.ids, np.asarray(side.vectors) * np.asarray(factor, side.dtype))
        for name, side in (("images", subject.images), ("captions", subject.captions))
        if side is not None
    }
    return Planted(replace(subject, **sides).ranked(), frozenset(subject.dataset.caption_ids))  # type: ignore[arg-type]
