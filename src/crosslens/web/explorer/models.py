"""What pages show and the JSON interface answers: one set of values for both. Fractions, never percent; NaN is null."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel

Outcome = Literal["hit", "failed", "unknown"]
"""A hit: the first item is relevant. Unknown: the query has no relevant item, or the run keeps no ranks."""


def number(value: float | None) -> float | None:
    """A number as JSON can hold it."""
    return None if value is None or not math.isfinite(value) else float(value)


class RunFigure(BaseModel):
    """A metric of a run with its interval."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    unit: str
    higher_is_better: bool


class RunRow(BaseModel):
    """A run in the leaderboard; ``problem`` says why a damaged one cannot be read."""

    id: str
    name: str
    location: str
    dataset: str
    dataset_name: str
    problem: str | None
    figures: dict[str, RunFigure]


class RunList(BaseModel):
    """The runs that match, and what they can be filtered by."""

    runs: list[RunRow]
    total: int
    metrics: list[str]
    """Shown, in this order."""
    all_metrics: list[str]
    datasets: dict[str, str]
    best: dict[str, list[str]]
    """Metric → the runs with the best figure, one for each dataset with several runs."""


class QueryExample(BaseModel):
    """A query with its values in both runs."""

    query: str
    baseline: float | None
    other: float | None


class MetricRow(BaseModel):
    """A metric of two runs; ``difference`` is other − baseline."""

    metric: str
    unit: str
    higher_is_better: bool
    baseline: float | None
    other: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    adjusted_p: float | None
    queries: int
    wins: int
    losses: int
    ties: int
    largest_gains: list[QueryExample]
    largest_losses: list[QueryExample]


class ComparisonView(BaseModel):
    """Two runs on the same queries, metric by metric."""

    baseline: RunRow
    other: RunRow
    level: float
    permutations: int
    correction: str
    metrics: list[MetricRow]
    notes: list[str]


class ItemView(BaseModel):
    """An item: an image, or a caption with its ``text`` and the ``image`` it belongs to."""

    item: str
    rank: int | None
    score: float | None
    relevant: bool
    image: str | None
    text: str | None
    has_picture: bool = False


class QueryRow(BaseModel):
    """A query in the list of a run."""

    query: str
    text: str | None
    image: str | None
    has_picture: bool
    outcome: Outcome
    rank: int | None
    """Of the first relevant item."""
    values: dict[str, float | None]
    expected: ItemView | None
    """The first ranked relevant item."""
    top: list[ItemView]


class QueryList(BaseModel):
    """A page of the queries of a run."""

    run: str
    direction: str
    directions: list[str]
    queries: int
    matching: int
    offset: int
    limit: int
    metrics: list[str]
    groups: list[str]
    """Columns that queries can be filtered by."""
    group_values: dict[str, int]
    """Of the chosen column: value → queries."""
    rows: list[QueryRow]


class RunResult(BaseModel):
    """What one run retrieves for a query."""

    run: str
    name: str
    outcome: Outcome
    rank: int | None
    values: dict[str, float | None]
    items: list[ItemView]


class QueryView(BaseModel):
    """A query, what is relevant to it, and what several runs over the same dataset retrieve."""

    dataset: str
    direction: str
    query: str
    text: str | None
    image: str | None
    has_picture: bool
    captions: list[str]
    """Of an image query."""
    columns: dict[str, str]
    relevant: list[ItemView]
    results: list[RunResult]
    other_runs: dict[str, str]
    """Runs over the same dataset that are not shown."""
    notes: list[str]


class LikelyPositive(BaseModel):
    """An item outside the ground truth that its captions say is relevant."""

    item: str
    phi: float


class LikelyPositives(BaseModel):
    """Items of the top lists whose φ reaches the threshold."""

    phi: str
    threshold: float
    quantile: float
    items: list[LikelyPositive]


class EditSpan(BaseModel):
    """A stretch of a caption; where ``before`` and ``after`` are equal it was left alone."""

    before: str
    after: str


class PerturbationRow(BaseModel):
    """A query under a perturbation."""

    study: str
    model: str
    perturbation: str
    applied: bool
    rank_before: int | None
    rank_after: int | None
    spans: list[EditSpan]


class PerturbationList(BaseModel):
    """What perturbations do to a query, over all robustness studies of its dataset in the folder."""

    rows: list[PerturbationRow]


class DatasetRow(BaseModel):
    """A dataset with the runs over it."""

    id: str
    name: str
    runs: list[str]
    images: int | None
    captions: int | None
    problem: str | None


class SpreadView(BaseModel):
    """The smallest, mean, median and largest of some counts."""

    min: float
    mean: float
    median: float
    max: float


class GroupView(BaseModel):
    """A column of a dataset that groups its items, with the most frequent values."""

    column: str
    values: int
    counts: dict[str, int]


class DatasetView(BaseModel):
    """What a dataset is like."""

    id: str
    name: str
    runs: dict[str, str]
    images: int
    captions: int
    objects: int
    captions_per_image: SpreadView
    words: SpreadView
    word_counts: dict[int, int]
    """Words of a caption → captions; the last may stand for all longer ones."""
    groups: list[GroupView]
    problems: list[str]
    card: dict[str, str]


class ImageRow(BaseModel):
    """An image of a dataset with its captions."""

    image: str
    has_picture: bool
    captions: list[str]


class ImageList(BaseModel):
    """A page of the images of a dataset."""

    dataset: str
    images: int
    matching: int
    offset: int
    limit: int
    rows: list[ImageRow]


class CaptionView(BaseModel):
    """A caption of an image, and by run the rank at which it retrieves the image."""

    caption: str
    text: str
    ranks: dict[str, int | None]


class WrongQuery(BaseModel):
    """A query that retrieves an image it does not belong to."""

    query: str
    text: str | None
    rank: int


class ImageView(BaseModel):
    """An image with all captions, and who retrieves it."""

    dataset: str
    dataset_name: str
    image: str
    has_picture: bool
    columns: dict[str, str]
    captions: list[CaptionView]
    objects: list[str]
    runs: dict[str, str]
    image_ranks: dict[str, int | None]
    """By run: the rank of the first of its captions when the image is the query."""
    retrieved_wrongly: dict[str, list[WrongQuery]]
    """By run: caption queries of other images with this image in their top list, the highest ranks first."""
    wrong_counts: dict[str, int]
