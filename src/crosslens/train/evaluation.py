"""Figures of a split's scores, by the same exact ranking as everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crosslens.core import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    Dataset,
    MetricValues,
    Progress,
    Ranking,
    Relevance,
    Run,
    UsageError,
)
from crosslens.metrics import (
    OWN_SCORES,
    GainMatrix,
    MetricRequest,
    ideal_depth,
    list_depth,
    measure,
    option_values,
    parse_metrics,
    requests_naming,
)
from crosslens.rank import ScoreMatrix, rank_both
from crosslens.similarity import load_similarity, relevance_matrix
from crosslens.train.recipes.recipe import TrainingSettings

Array = np.ndarray[Any, Any]
TEST_METRICS = "Hit@1 Hit@5 Hit@10 MedR Rsum"
DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)
DEPTH = 10
"""Of the ranked lists, where no metric needs more."""


class TrainingMetrics:
    """The metrics that a training names: one by which checkpoints are chosen, and those of the test split."""

    def __init__(self, settings: TrainingSettings) -> None:
        self.test = f"{TEST_METRICS} {settings.test_metrics}"
        chosen, self._test = parse_metrics(settings.metric), parse_metrics(self.test)
        if len(chosen) != 1:
            problem = f"metric is {settings.metric!r}"
            raise UsageError(problem, fix="name one metric, such as Rsum", option="metric")
        check_metrics([*chosen, *self._test])

    def are_in(self, figures: Mapping[str, float]) -> bool:
        """Whether all figures of the test split are there."""
        return {name for request in self._test for name in request.names(DIRECTIONS)} <= figures.keys()


class SplitMetrics:
    """Metrics of one split. What graded ones compare with is computed once, at the first call."""

    def __init__(self, dataset: Dataset, metrics: str, *, threads: int | None = None, progress: Progress) -> None:
        self.requests = parse_metrics(metrics)
        check_metrics(self.requests)
        self._dataset, self._threads, self._progress = dataset, threads, progress
        self._relevance = Relevance.from_dataset(dataset)
        self._judged = {IMAGE_TO_TEXT: self._relevance, TEXT_TO_IMAGE: self._relevance.flip()}
        self._gains: dict[str, GainMatrix] | None = None

    def __call__(self, scores: Array) -> dict[str, float]:
        """Their figures for a score matrix (images × captions)."""
        rankings = self._rankings(scores)
        return {name: float(values.mean) for name, values in self._values(rankings, resamples=0).items()}

    def run(self, name: str, scores: Array) -> Run:
        """The same as a run: values per query, intervals over images, and the rankings behind them."""
        rankings, dataset = self._rankings(scores), self._dataset
        about = {
            "name": dataset.name, "fingerprint": dataset.fingerprint, "images": len(dataset.image_ids),
            "captions": len(dataset.texts),
        }  # fmt: skip
        return Run(name, self._values(rankings), rankings, provenance={"dataset": about})

    def _rankings(self, scores: Array) -> dict[str, Ranking]:
        cutoffs = (request.spec.cutoff or 0 for request in self.requests)
        depth = max(DEPTH, *cutoffs, list_depth(self.requests, self._judged))
        return rank_both(ScoreMatrix(scores), self._relevance, depth=depth, threads=self._threads)

    def _values(self, rankings: dict[str, Ranking], **options: Any) -> dict[str, MetricValues]:
        if self._gains is None:
            self._gains = {name: self._gain_matrix(name) for name in option_values(self.requests, "φ")}
        images = np.asarray(self._dataset.caption_image)
        clusters = {IMAGE_TO_TEXT: np.arange(len(self._dataset.image_ids)), TEXT_TO_IMAGE: images}
        return measure(rankings, clusters, self.requests, gains=self._gains, **options)

    def _gain_matrix(self, phi: str) -> GainMatrix:
        matrix = relevance_matrix(self._dataset, phi, threads=self._threads, progress=self._progress)
        deepest = ideal_depth(self.requests, self._judged)
        return GainMatrix(matrix, image_of=self._dataset.caption_image, deepest=deepest, threads=self._threads)


def check_metrics(requests: Sequence[MetricRequest]) -> None:
    """Raise for a metric that needs more than a score matrix and captions; φ are looked up."""
    for request in requests:
        if request.direction not in (None, IMAGE_TO_TEXT, TEXT_TO_IMAGE):
            raise UsageError(f"{request} ranks captions by captions", fix="name a metric of i2t or t2i")
    for name, request in requests_naming(requests, "scores_from"):
        if name != OWN_SCORES:
            raise UsageError(
                f"{request} needs the scores of another encoder", fix=f"use scores_from={OWN_SCORES}, or evaluate "
                "the trained model by crosslens evaluate",
            )  # fmt: skip
    for phi in option_values(requests, "φ"):
        load_similarity(phi)
