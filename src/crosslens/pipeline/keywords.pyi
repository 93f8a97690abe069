# Written by scripts/generate_reference.py from what @accepts_options names: change that, run `make docs`.

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from crosslens.core import Notify
from crosslens.encode import Cache, Summariser, TextOnly
from crosslens.engine import Progress
from crosslens.similarity import CacheChoice
from crosslens.values import Relevance

class AgreementKeywords(TypedDict, total=False):
    ground_truth: Relevance | None
    without_references: bool
    pooled: bool
    resamples: int
    level: float
    seed: int
    threads: int | None
    progress: Progress | None

class CaptionSetKeywords(TypedDict, total=False):
    correction: str
    permutations: int
    resamples: int
    level: float
    seed: int
    primary: str | None
    shared_images: bool
    score: str | None
    ties: str
    folds: int
    granularity: bool | None
    threads: int | None
    command: Sequence[str] | None
    device: str | None
    precision: str
    batch_size: int | None
    cache: Cache | str | Path | bool | None
    offline: bool
    image_folder: str | Path | None
    skip_bad: bool
    notify: Notify

class EvaluateKeywords(TypedDict, total=False):
    directions: str | Sequence[str] | None
    protocol: str | None
    score: str | None
    ties: str
    complete_lists: bool
    skip_unknown: bool
    folds: int
    depth: int
    queries: int | None
    seed: int
    resamples: int
    level: float
    backend: str
    device: str | None
    tile: int | None
    threads: int | None
    name: str | None
    phi: Mapping[str, Any] | None
    scores_from: Mapping[str, Any] | None
    cache: CacheChoice
    texts: TextOnly | None
    recipe: str | Callable[[Iterable[str]], str]
    command: Sequence[str] | None

class GroupTestKeywords(TypedDict, total=False):
    primary: str | None
    correction: str
    permutations: int
    seed: int

class IntervalKeywords(TypedDict, total=False):
    resamples: int
    level: float
    seed: int

class ListStudyKeywords(TypedDict, total=False):
    correction: str
    permutations: int
    resamples: int
    level: float
    seed: int
    seeds: int
    options: Mapping[str, Any] | None
    image_text: str | Summariser | None
    query_caption: int | str
    shared_images: bool
    directions: str | Sequence[str] | None
    protocol: str | None
    score: str | None
    listed: int
    match_by: str
    skip_unknown: bool
    threads: int | None
    name: str | None
    dataset_name: str | None
    command: Sequence[str] | None

class RobustnessKeywords(TypedDict, total=False):
    correction: str
    permutations: int
    resamples: int
    level: float
    seed: int
    seeds: int
    options: Mapping[str, Any] | None
    image_text: str | Summariser | None
    query_caption: int | str
    shared_images: bool
    directions: str | Sequence[str] | None
    protocol: str | None
    score: str | None
    listed: int
    match_by: str
    skip_unknown: bool
    threads: int | None
    name: str | None
    dataset_name: str | None
    command: Sequence[str] | None
    device: str | None
    precision: str
    batch_size: int | None
    cache: Cache | str | Path | bool | None
    offline: bool
    image_folder: str | Path | None
    skip_bad: bool
    notify: Notify

class SignificanceKeywords(TypedDict, total=False):
    correction: str
    permutations: int
    resamples: int
    level: float
    seed: int
