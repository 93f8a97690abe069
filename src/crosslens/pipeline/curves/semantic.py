"""Semantic recall against m, the number of similar items that count as relevant: one curve per run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosslens.core import (
    TEXT_TO_IMAGE,
    Dataset,
    InputError,
    MetricValues,
    Presented,
    Progress,
    Ranking,
    Relevance,
    Run,
    Section,
    UsageError,
    argument,
)
from crosslens.data import ARRAY_SUFFIXES
from crosslens.metrics import measure, parse_metric, parse_metrics
from crosslens.pipeline.comparison import run_labels
from crosslens.pipeline.curves.ranked_run import clusters_of, ranking_of
from crosslens.pipeline.curves.sections import CURVE_FAMILIES, curve_sections
from crosslens.pipeline.graded_relevance import GradedRelevance
from crosslens.pipeline.known_ids import direction_ids

_MOST_POINTS = 1000


@dataclass(frozen=True)
class Curves(Presented):
    """``values[run][family]`` holds one figure for each of ``counts``, the values of m."""

    phi: str
    k: int
    direction: str
    non_gt: bool
    counts: tuple[int, ...]
    values: Mapping[str, Mapping[str, tuple[MetricValues, ...]]]
    dataset: str = ""
    similarity: Mapping[str, Any] | None = None
    by_image: bool = False

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Semantic recall against m"

    def sections(self, **options: Any) -> Iterator[Section]:
        """The lines, the table, and what they mean."""
        return curve_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent."""
        return {
            "phi": self.phi,
            "similarity": dict(self.similarity or {}),
            "dataset": self.dataset,
            "direction": self.direction,
            "k": self.k,
            "non_gt": self.non_gt,
            "by_image": self.by_image,
            "m": list(self.counts),
            "runs": {
                run: {family: [value.as_dict() for value in values] for family, values in families.items()}
                for run, families in self.values.items()
            },
        }


def curve(
    runs: Sequence[Run],
    dataset: Dataset,
    phi: Any = "cider",
    *,
    m: Sequence[int] = tuple(range(1, 51)),
    k: int = 5,
    direction: str = TEXT_TO_IMAGE,
    non_gt: bool = True,
    by_image: bool = False,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Curves:
    """``SR[φ, m]@k`` and ``SRhit[φ, m]@k`` of each run for every m, from the rankings that the runs keep.

    ``phi`` is a name, or whatever :func:`crosslens.relevance_matrix` takes. With ``non_gt`` the ground truth is left
    out of both sides, as in FIVE's Figure 3; with ``by_image`` the captions of the query's image vote for m images, as
    in FIVE's code.
    """
    runs = tuple(runs)
    if not runs:
        raise UsageError("no runs", fix="name at least one")
    name = phi if isinstance(phi, str) and not phi.endswith((*ARRAY_SUFFIXES, ".csv")) else "matrix"
    counts = tuple(dict.fromkeys(map(int, m)))
    flags = ", non-gt" * non_gt + ", by-image" * by_image
    names = [f"{family}[{name}, m={count}{flags}]@{k}" for family in CURVE_FAMILIES for count in counts]
    specs = [parse_metric(metric).spec for metric in names]
    rankings = [_ranking(run, dataset, direction) for run in runs]
    graded = GradedRelevance(parse_metrics(specs), dataset, {name: phi})
    first = rankings[0]
    judged = Relevance.from_indices(first.query_ids, first.item_ids, first.rows, first.relevant, first.grades)
    gains, fingerprints = graded.gains({direction: judged}, (), threads=threads, progress=progress)
    values = {}
    for label, run, ranking in zip(run_labels(runs), runs, rankings, strict=True):
        clusters = {direction: clusters_of(run, direction)}
        measured = measure(
            {direction: ranking}, clusters, specs, resamples=resamples, level=level, seed=seed, gains=gains
        )
        values[label] = {
            family: tuple(measured[f"{direction}/{spec}"] for spec in specs if spec.family == family)
            for family in CURVE_FAMILIES
        }
    similarity = {**graded.description["similarities"][name], **fingerprints[name]}
    return Curves(name, k, direction, non_gt, counts, values, dataset.name, similarity, by_image)


def parse_counts(text: str, name: str = "m") -> tuple[int, ...]:
    """Values of m (or of ``name``) as people write them: ``1..50``, ``1,5,10``, ``1..10,20,30``."""
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([1-9]\d*)\s*(?:\.\.\s*([1-9]\d*)\s*)?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise UsageError(f"cannot read the values of {name} {text!r}", fix="write them as 1..50, or as 1,5,10,20")
        counts += range(first, min(last, first + _MOST_POINTS) + 1)
    if len(counts) > _MOST_POINTS:
        raise UsageError(f"more than {_MOST_POINTS:,} values of {name}", fix="name fewer, such as 1,5,10,20,50")
    return tuple(dict.fromkeys(counts))


def _ranking(run: Run, dataset: Dataset, direction: str) -> Ranking:
    ranking = ranking_of(run, direction)
    queries, items = direction_ids(dataset, direction)
    # Ready-made lists may name more items, behind those of the dataset.
    if ranking.query_ids != queries or ranking.item_ids[: len(items)] != items:
        raise InputError(
            f"{run.name} is over other images or captions than the dataset {dataset.name!r}",
            expected="runs of one dataset, in its order",
            fix=f"evaluate the runs on the same dataset, or pass theirs: {argument('dataset')}",
        )
    return ranking
