"""Found pairs against positives that people verified: precision, recall, and the curve between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Ids, InputError, Relevance, match_ids
from crosslens.similarity import PreparedSimilarity
from crosslens.statistics import Estimate, share_of_sums

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ThresholdPoint:
    """Retrieval at a threshold among the judged pairs: how many are found, and how many of them are verified."""

    threshold: float
    found: int
    hits: int
    positives: int

    @property
    def precision(self) -> float:
        return self.hits / self.found if self.found else float("nan")

    @property
    def recall(self) -> float:
        return self.hits / self.positives if self.positives else float("nan")


@dataclass(frozen=True, eq=False)
class Verification:
    """Precision and recall over the pairs of judged images and captions, outside the ground truth.

    People reviewed the pairs that some systems had found and confirmed part of them; a pair that they never saw counts
    as wrong here. So precision is a lower bound.

    ``points`` are the chosen threshold and the usual quantiles; ``curve`` has one row per distinct φ of a verified
    pair, highest first: threshold, found, hits. ``average_precision`` is the area under it, Σ (Rₙ − Rₙ₋₁) Pₙ.
    """

    pairs: int
    positives: int
    points: tuple[ThresholdPoint, ...]
    precision: Estimate
    recall: Estimate
    average_precision: float
    curve: Array

    @property
    def chance(self) -> float:
        """The precision, and the average precision, of guessing."""
        return self.positives / self.pairs if self.pairs else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it, without the curve."""
        return {
            "pairs": self.pairs,
            "positives": self.positives,
            "precision": {"value": self.precision.mean, "low": self.precision.low, "high": self.precision.high},
            "recall": {"value": self.recall.mean, "low": self.recall.low, "high": self.recall.high},
            "average_precision": self.average_precision,
            "chance": self.chance,
            "points": [
                {name: getattr(point, name) for name in ("threshold", "found", "precision", "recall")}
                for point in self.points
            ],
        }


@dataclass(frozen=True, eq=False)
class VerifiedPairs:
    """Which pairs are judged, which of them are verified, and what φ these have."""

    images: Array
    captions: Array
    keys: Array
    values: Array

    @staticmethod
    def of(
        verified: Relevance | Mapping[str, Relevance], truth: Relevance, prepared: PreparedSimilarity
    ) -> VerifiedPairs:
        """From verified positives of one direction or both; ids that the dataset lacks are left out."""
        directions = verified if isinstance(verified, Mapping) else {_direction(verified, truth): verified}
        images = np.zeros(len(truth.query_ids), np.bool_)
        captions = np.zeros(len(truth.item_ids), np.bool_)
        keys = [np.empty(0, np.int64)]
        for direction, judged in directions.items():
            seen = judged.relevant() if direction == IMAGE_TO_TEXT else judged.relevant().flip()
            rows = match_ids(seen.query_ids, truth.query_ids)[seen.rows]
            columns = match_ids(seen.item_ids, truth.item_ids)[seen.items]
            inside = (rows >= 0) & (columns >= 0)
            if direction == IMAGE_TO_TEXT:
                images[rows[inside]] = True
            else:
                captions[columns[inside]] = True
            keys.append(rows[inside] * len(captions) + columns[inside])
        relevant = truth.relevant()
        positives = np.setdiff1d(np.concatenate(keys), relevant.rows * len(captions) + relevant.items)
        if not len(positives):
            raise InputError(
                "no verified positive lies outside the ground truth",
                expected="verified pairs of the dataset's own images and captions",
                fix="check that both are of the same collection and split",
            )
        values = np.asarray(prepared.pairs(positives // len(captions), positives % len(captions)), np.float32)
        return VerifiedPairs(images, captions, positives, values)


class ThresholdCounter:
    """Counts at every threshold, gathered a few rows of φ at a time."""

    def __init__(self, thresholds: Sequence[float], verified: VerifiedPairs | None) -> None:
        self._thresholds = np.asarray(thresholds, np.float32)
        self._verified = verified
        self.totals = np.zeros(len(thresholds), np.int64)
        self._levels = np.unique(np.concatenate([self._thresholds, verified.values if verified else []]))
        self._retrieved = np.zeros(len(self._levels) + 1, np.int64)
        self._per_image: list[Array] = []
        self._pairs = 0

    def add(self, rows: slice, values: Array) -> None:
        """Count the pairs of these rows; those of the ground truth are −∞."""
        self.totals += [int((values >= threshold).sum()) for threshold in self._thresholds]
        if self._verified is None:
            return
        judged = self._verified.images[rows, None] | self._verified.captions[None]
        judged &= values > -np.inf
        self._pairs += int(judged.sum())
        chosen = values[judged & (values >= self._levels[0])]
        self._retrieved += np.bincount(
            np.searchsorted(self._levels, chosen, side="right"), minlength=len(self._retrieved)
        )
        self._per_image.append((judged & (values >= self._thresholds[0])).sum(axis=1))

    def verification(self) -> Verification:
        """Everything that was counted, as precision and recall."""
        assert self._verified is not None
        # A pair in bin b reaches the first b levels: those at least as high as level n are in the bins above n.
        retrieved = self._retrieved[::-1].cumsum()[::-1][1:]
        level_of = np.searchsorted(self._levels, self._verified.values)
        hits = np.bincount(level_of, minlength=len(self._levels))[::-1].cumsum()[::-1]
        positives = len(self._verified.values)
        points = tuple(
            ThresholdPoint(float(threshold), int(retrieved[level]), int(hits[level]), positives)
            for threshold, level in zip(self._thresholds, np.searchsorted(self._levels, self._thresholds), strict=True)
        )
        reached = np.unique(level_of)[::-1]
        curve = np.column_stack([self._levels[reached], retrieved[reached], hits[reached]]).astype(np.float64)
        steps = np.diff(curve[:, 2], prepend=0.0) / positives
        area = float((steps * curve[:, 2] / curve[:, 1]).sum())
        precision, recall = self._intervals(points[0])
        return Verification(self._pairs, positives, points, precision, recall, area, curve)

    def _intervals(self, point: ThresholdPoint) -> tuple[Estimate, Estimate]:
        """Precision and recall at the chosen threshold, with intervals over images."""
        assert self._verified is not None
        retrieved = np.concatenate(self._per_image)
        owners = self._verified.keys // len(self._verified.captions)
        positives = np.bincount(owners, minlength=len(retrieved))
        hits = np.bincount(owners, self._verified.values >= np.float32(point.threshold), len(retrieved))
        return share_of_sums(hits, retrieved), share_of_sums(hits, positives)


def _direction(verified: Relevance, truth: Relevance) -> str:
    def known(left: Ids, right: Ids) -> int:
        pairs = ((verified.query_ids, left), (verified.item_ids, right))
        return sum(int((match_ids(names, ids) >= 0).sum()) for names, ids in pairs)

    as_images, as_captions = known(truth.query_ids, truth.item_ids), known(truth.item_ids, truth.query_ids)
    return IMAGE_TO_TEXT if as_images >= as_captions else TEXT_TO_IMAGE
