"""A model's scores of a split, in blocks that fit into memory, and their figures by the exact ranking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.core import UsageError
from crosslens.engine import Progress, shown_progress, stage
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
from crosslens.storage import Array
from crosslens.train.features import ImageFeatures, Split
from crosslens.train.models.protocol import TrainableModel
from crosslens.train.processes import Group
from crosslens.train.recipe import TrainingSettings
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Dataset, MetricValues, Ranking, Relevance, Run

if TYPE_CHECKING:
    from crosslens.train.captions import CaptionSource


_IMAGES, _PICTURES, _CAPTIONS = 500, 64, 1_000
"""How many are encoded at once; pictures are larger than features."""
LARGEST_BLOCK = 2**26
"""Numbers that the scores of a block of pairs may take at once: 256 MiB in float32."""
LARGEST_GPU_BLOCK = 2**29
"""Numbers of a block on a GPU, where many small blocks cost more than they save: 2 GiB."""


def score_matrix(model: TrainableModel, split: Split, captions: CaptionSource, group: Group) -> Array:
    """All scores of a split, images × captions. Of several processes, each compares its share of the images."""
    out = np.zeros((len(split.features), len(split.dataset.texts)), np.float32)
    rows = group.share(np.arange(len(out)))
    if len(rows):
        share = slice(int(rows[0]), int(rows[-1]) + 1)
        out[share] = score_features(model, split.features[share], captions, out.shape[1], group.device)
    return group.add_array(out)


def score_features(
    model: TrainableModel,
    features: ImageFeatures,
    captions: CaptionSource,
    count: int,
    device: Any,
    progress: Progress | None = None,
) -> Array:
    """Images × ``count`` captions, float32. Memory: encodings of all images and of 1,000 captions, a block of pairs."""
    import torch

    progress = shown_progress(progress)
    out = np.empty((len(features), count), np.float32)
    image_blocks, caption_blocks = divide(len(features), features.pixels is not None, captions, count)
    largest = LARGEST_BLOCK if torch.device(device).type == "cpu" else LARGEST_GPU_BLOCK
    with torch.inference_mode(), stage(progress, "scoring pairs", count):
        images = [(rows, model.encode_images(features.batch(rows, device))) for rows in image_blocks]
        for columns in caption_blocks:
            encoded = model.encode_captions(captions.batch(columns, device))
            for rows, encoded_images in images:
                for lines, places, scores in scores_in_blocks(model, encoded_images, encoded, largest):
                    out[np.ix_(np.arange(rows.start, rows.stop)[lines], columns[places])] = scores
            progress.advance(len(columns))
    return out


def divide(images: int, pictures: bool, captions: CaptionSource, count: int) -> tuple[list[slice], list[Array]]:
    """Rows of images and positions of captions that are encoded at once.

    Captions are taken by their length, so that little of a block is padding. The scores of a block are the same to the
    last bit where it is computed alone.
    """
    order = np.arange(count) if captions.lengths is None else np.argsort(captions.lengths, kind="stable")
    return list(_slices(images, _PICTURES if pictures else _IMAGES)), [
        order[part] for part in _slices(count, _CAPTIONS)
    ]


def scores_in_blocks(
    model: TrainableModel, images: Any, captions: Any, largest: int
) -> Iterator[tuple[slice, slice, Array]]:
    """Rows, columns and scores of blocks whose pairs take at most ``largest`` numbers; a block has at least one pair.

    What a pair takes is the model's ``numbers_per_pair``; models without it only take the score itself.
    """
    numbers_per_pair = getattr(model, "numbers_per_pair", None)
    pairs = max(1, largest // (numbers_per_pair(images, captions) if numbers_per_pair else 1))
    rows_at_once = min(_count(images), max(1, math.isqrt(pairs)))
    for columns in _slices(_count(captions), max(1, pairs // rows_at_once)):
        encoded = _rows(captions, columns)
        for rows in _slices(_count(images), rows_at_once):
            scores: Array = model.scores(_rows(images, rows), encoded).float().cpu().numpy()
            yield rows, columns, scores


def _slices(count: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def _count(encoding: Any) -> int:
    """Items of an encoding: a tensor, or a tuple of tensors, with a row per item."""
    return len(encoding[0]) if isinstance(encoding, tuple) else len(encoding)


def _rows(encoding: Any, rows: slice) -> Any:
    """These items of an encoding, which stays of its kind."""
    if not isinstance(encoding, tuple):
        return encoding[rows]
    parts = tuple(tensor[rows] for tensor in encoding)
    return type(encoding)(*parts) if hasattr(encoding, "_fields") else parts  # a named tuple takes them one by one


TEST_METRICS = "Hit@1 Hit@5 Hit@10 MedR Rsum"
DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)
DEPTH = 10
"""Of the ranked lists, where no metric needs more."""


class TrainingMetrics:
    """The metrics that a training names: one by which checkpoints are chosen, and those of the test split."""

    def __init__(self, settings: TrainingSettings) -> None:
        self.test = f"{TEST_METRICS} {settings.test_metrics}"
        metric, self._test = parse_metrics(settings.metric), parse_metrics(self.test)
        if len(metric) != 1:
            problem = f"metric is {settings.metric!r}"
            raise UsageError(problem, fix="name one metric, such as Rsum", option="metric")
        check_metrics([*metric, *self._test])

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
        return {name: float(values.mean) for name, values in self._values(rankings, intervals=False).items()}

    def run(self, name: str, scores: Array) -> Run:
        """A run with values per query, intervals over images, and the rankings behind them."""
        rankings, dataset = self._rankings(scores), self._dataset
        facts = {
            "name": dataset.name, "fingerprint": dataset.fingerprint, "images": len(dataset.image_ids),
            "captions": len(dataset.texts),
        }  # fmt: skip
        return Run(name, self._values(rankings, intervals=True), rankings, provenance={"dataset": facts})

    def _rankings(self, scores: Array) -> dict[str, Ranking]:
        cutoffs = (request.spec.cutoff or 0 for request in self.requests)
        depth = max(DEPTH, *cutoffs, list_depth(self.requests, self._judged))
        return rank_both(ScoreMatrix(scores), self._relevance, depth=depth, threads=self._threads)

    def _values(self, rankings: dict[str, Ranking], *, intervals: bool) -> dict[str, MetricValues]:
        if self._gains is None:
            deepest, dataset = ideal_depth(self.requests, self._judged), self._dataset
            self._gains = {}
            for phi in option_values(self.requests, "φ"):
                matrix = relevance_matrix(dataset, phi, threads=self._threads, progress=self._progress)
                self._gains[phi] = GainMatrix(
                    matrix, image_of=dataset.caption_image, deepest=deepest, threads=self._threads
                )
        without_intervals: dict[str, Any] = {} if intervals else {"resamples": 0}
        images = np.asarray(self._dataset.caption_image)
        clusters = {IMAGE_TO_TEXT: np.arange(len(self._dataset.image_ids)), TEXT_TO_IMAGE: images}
        return measure(rankings, clusters, self.requests, gains=self._gains, **without_intervals)


def check_metrics(requests: Sequence[MetricRequest]) -> None:
    """Raise for a metric that needs more than a score matrix and captions; φ are looked up."""
    for request in requests:
        if request.direction not in (None, IMAGE_TO_TEXT, TEXT_TO_IMAGE):
            raise UsageError(f"{request} ranks captions by captions", fix="name a metric of i2t or t2i")
    for name, request in requests_naming(requests, "scores_from"):
        if name != OWN_SCORES:
            raise UsageError(
                f"{request} needs the scores of another encoder",
                fix=f"use scores_from={OWN_SCORES}, or evaluate the trained model by crosslens evaluate",
            )
    for phi in option_values(requests, "φ"):
        load_similarity(phi)
