"""The keywords of the functions that take options, for editors and type checkers.

What they mean, their defaults and their bounds are declared by the options classes, which have the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from crosslens.encode import EncodeKeywords

if TYPE_CHECKING:
    from crosslens.encode import Summariser, TextOnly
    from crosslens.similarity import CacheChoice

Directions = str | Sequence[str] | None


class EvaluateKeywords(TypedDict, total=False):
    """Those of :class:`EvaluateArguments`, but ``metrics``."""

    directions: Directions
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


class SignificanceKeywords(TypedDict, total=False):
    """Those that robustness studies and comparisons of caption sets share."""

    correction: str
    permutations: int
    resamples: int
    level: float
    seed: int
    threads: int | None
    command: Sequence[str] | None
    score: str | None
    shared_images: bool


class ListStudyKeywords(SignificanceKeywords, total=False):
    """Those of :class:`RobustnessOptions`."""

    seeds: int
    options: Mapping[str, Any] | None
    image_text: str | Summariser | None
    query_caption: int | str
    directions: Directions
    protocol: str | None
    listed: int
    match_by: str
    skip_unknown: bool
    name: str | None
    dataset_name: str | None


class RobustnessKeywords(ListStudyKeywords, EncodeKeywords, total=False):
    """Those of :class:`RobustnessOptions`, and how a model encodes."""


class CaptionSetKeywords(SignificanceKeywords, EncodeKeywords, total=False):
    """Those of :class:`CaptionSetOptions`, and how a model encodes."""

    ties: str
    folds: int
    granularity: bool | None
