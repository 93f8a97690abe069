"""What comparisons found: of runs on the same queries, and of two caption sets of the same images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from crosslens.core import Presented, Run, Section, Statistic, UnknownNameError, json_form
from crosslens.pipeline.comparison_sections import caption_set_heading, caption_set_sections, comparison_sections

if TYPE_CHECKING:
    from crosslens.analyze import GranularityComparison
    from crosslens.explanations import RunChanges


@dataclass(frozen=True)
class QueryDifference:
    """One query and its value in both runs."""

    query: str
    baseline: float
    other: float


@dataclass(frozen=True)
class MetricComparison:
    """One metric of two runs on the same queries; ``difference`` is other − baseline.

    A query is won where the other run is better: above the baseline, or below it for a metric such as ``MedR``.
    """

    metric: str
    baseline: str
    other: str
    baseline_mean: float
    other_mean: float
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p: float
    n: int
    wins: int
    losses: int
    ties: int
    largest_gains: tuple[QueryDifference, ...]
    largest_losses: tuple[QueryDifference, ...]
    statistic: Statistic = "mean"
    higher_is_better: bool = True


@dataclass(frozen=True)
class MetricChange:
    """One metric on two caption sets; ``difference`` is after − before, ``relative`` the same as a share of before.

    ``better`` and ``worse`` count images: by the mean over an image's own queries.
    """

    metric: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    relative: float
    relative_low: float
    relative_high: float
    p_value: float
    adjusted_p: float
    images: int
    better: int
    worse: int
    statistic: Statistic = "mean"
    higher_is_better: bool = True


_FIGURE = ("mean", "low", "high")
Result = TypeVar("Result", MetricComparison, MetricChange)


class SignificanceResults(Presented, Generic[Result]):
    """A comparison metric by metric, and how it was tested."""

    results: tuple[Result, ...]
    correction: str
    permutations: int
    seed: int
    level: float

    def __getitem__(self, metric: str) -> Result:
        """The result of a metric; the first, where there are several."""
        for result in self.results:
            if result.metric == metric:
                return result
        raise UnknownNameError("metric in this comparison", metric, [result.metric for result in self.results])

    def test_facts(self) -> dict[str, Any]:
        """How differences were tested, for the JSON form."""
        return {
            "test": "paired permutation over images, two-sided",
            "correction": self.correction,
            "permutations": self.permutations,
            "seed": self.seed,
            "level": self.level,
        }


@dataclass(frozen=True)
class Comparison(SignificanceResults[MetricComparison]):
    """The first run against each of the others, or all pairs, metric by metric.

    ``figures`` are each run's own: by run and metric, the mean (or median) and its interval. ``changes`` are those of
    two runs query by query, where they were asked for.
    """

    baseline: str
    others: tuple[str, ...]
    results: tuple[MetricComparison, ...]
    correction: str
    permutations: int
    seed: int
    level: float
    notes: tuple[str, ...] = ()
    all_pairs: bool = False
    figures: Mapping[str, Mapping[str, tuple[float, float, float]]] = field(default_factory=dict)
    changes: RunChanges | None = None

    @property
    def title(self) -> str:
        """The heading of the page."""
        if self.changes is not None:
            return self.changes.title
        return (
            "Runs compared" if len(self.others) > 1 or self.all_pairs else f"{self.others[0]} against {self.baseline}"
        )

    def sections(self, **options: Any) -> Iterator[Section]:
        """A table per pair of runs, or one of all runs, and what changed."""
        yield from comparison_sections(self)
        if self.changes is not None:
            yield from self.changes.sections()

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of all runs, in the order given."""
        return self.baseline, *self.others

    def beaten(self, run: str, metric: str) -> tuple[str, ...]:
        """The runs that ``run`` is significantly better than: corrected p below 1 − level."""
        names = []
        for result in self.results:
            if result.metric == metric and result.adjusted_p < 1 - self.level:
                better = (result.difference > 0) == result.higher_is_better
                winner, loser = (result.other, result.baseline) if better else (result.baseline, result.other)
                if winner == run:
                    names.append(loser)
        return tuple(names)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent; None where there is no number."""
        return {
            "baseline": self.baseline,
            "others": list(self.others),
            "all_pairs": self.all_pairs,
            **self.test_facts(),
            "figures": {
                run: {name: json_form(dict(zip(_FIGURE, values, strict=True))) for name, values in own.items()}
                for run, own in self.figures.items()
            },
            "comparisons": [json_form(asdict(result)) for result in self.results],
            "notes": list(self.notes),
            **({} if self.changes is None else {"changes": self.changes.as_dict()}),
        }


@dataclass(frozen=True)
class CaptionSets(SignificanceResults[MetricChange]):
    """Two caption sets under one model: the change of every metric, both runs, and the captions' granularity.

    ``folder`` is where both runs were written, if they were. A ``wide`` table has a row per set, as papers print them.
    """

    names: tuple[str, str]
    runs: tuple[Run, Run]
    results: tuple[MetricChange, ...]
    granularity: GranularityComparison | None
    model: str
    correction: str
    permutations: int
    seed: int
    level: float
    notes: tuple[str, ...] = ()
    folder: Path | None = None
    wide: bool = False

    @property
    def title(self) -> str:
        """The heading of the page."""
        return caption_set_heading(self)

    def sections(self, **options: Any) -> Iterator[Section]:
        """A table per direction, and the captions themselves."""
        return caption_set_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent; None where there is no number."""
        return {
            "model": self.model,
            **{side: self._facts(number) for number, side in enumerate(("before", "after"))},
            **self.test_facts(),
            "metrics": {result.metric: json_form(asdict(result)) for result in self.results},
            "granularity": None if self.granularity is None else self.granularity.as_dict(),
            "notes": list(self.notes),
            "folder": None if self.folder is None else str(self.folder),
        }

    def _facts(self, number: int) -> dict[str, Any]:
        dataset = self.runs[number].provenance["dataset"]
        return {"name": self.names[number], "images": dataset["images"], "captions": dataset["captions"]}
