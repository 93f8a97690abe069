"""What the graded metrics of a request need: the φ and encoders that they name, and how deep lists must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from crosslens.core import Relevance
from crosslens.metrics.families.rank_metrics import RSUM_CUTOFFS
from crosslens.metrics.family import family_of
from crosslens.metrics.request import MetricRequest


def option_values(requests: Sequence[MetricRequest], option: str) -> list[str]:
    """The values of ``option`` in the graded metrics among ``requests``, each once."""
    return list(dict.fromkeys(value for value, _ in requests_naming(requests, option)))


def requests_naming(requests: Sequence[MetricRequest], option: str) -> Iterator[tuple[str, MetricRequest]]:
    """The graded metrics that name a value of ``option``, each with that value."""
    for request in graded_requests(requests):
        value = family_of(request.spec).value_of(request.spec, option)
        if value is not None:
            yield value, request


def graded_requests(requests: Sequence[MetricRequest]) -> list[MetricRequest]:
    """The graded metrics among ``requests``."""
    return [request for request in requests if family_of(request.spec).graded]


def list_depth(requests: Sequence[MetricRequest], relevance: Mapping[str, Relevance]) -> int:
    """How much of each retrieved list the graded metrics among ``requests`` need; 0 without any."""
    return max((_cutoff(request) + _removed(request, relevance) for request in graded_requests(requests)), default=0)


def ideal_depth(requests: Sequence[MetricRequest], relevance: Mapping[str, Relevance]) -> int:
    """How much of each ideal list the graded metrics among ``requests`` need."""
    return max(
        (int(request.spec.setting("m") or _cutoff(request)) + _removed(request, relevance)
         for request in graded_requests(requests)), default=1,
    )  # fmt: skip


def _cutoff(request: MetricRequest) -> int:
    return request.spec.cutoff or RSUM_CUTOFFS[-1]


def _removed(request: MetricRequest, relevance: Mapping[str, Relevance]) -> int:
    """The most ground-truth items that are taken out of a list."""
    if not request.spec.has("non-gt"):
        return 0
    counts = [np.bincount(judged.rows[judged.grades > 0], minlength=1).max(initial=0) for judged in relevance.values()]
    return int(max(counts, default=0))
