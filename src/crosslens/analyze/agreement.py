"""Does a relevance function agree with people? φ against their scores, on all pairs and outside the ground truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze.agreement_result import ALL, BINARY, OUTSIDE, UNREAD, Agreement, Subset
from crosslens.analyze.ground_truth import ground_truth_of
from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.progress import Progress
from crosslens.core.relevance import Relevance
from crosslens.data.judgements import Judgements, read_judgements
from crosslens.similarity import Phi, load_similarity, references_of
from crosslens.similarity.similarity import KnowsIds
from crosslens.statistics.correlation import COEFFICIENTS, Correlations, correlations
from crosslens.statistics.correlation_judges import judge_agreement

Array = np.ndarray[Any, Any]


def agreement(
    dataset: Dataset,
    judgements: Judgements | str | Path,
    phi: Phi | Sequence[Phi] | Mapping[str, Phi] = ("cider",),
    *,
    ground_truth: Relevance | None = None,
    without_references: bool = False,
    pooled: bool = False,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Agreement:
    """How well each φ agrees with people: Pearson, Spearman, Kendall τ-b and τ-c, with intervals that resample images.

    ``judgements`` are read ones or a file (see :func:`crosslens.data.read_judgements`). ``phi`` is one or several of:
    a name (``cider``, ``semantic``), a matrix or its file, a function φ(references, caption), or one number per judged
    pair; a mapping gives them names. The ground truth itself (``binary``) always stands first.

    Figures come for all pairs and for pairs outside the ground truth, which is each caption's own image unless
    ``ground_truth`` says more. ``without_references`` adds the pairs whose caption is not word for
    word one of the image's references: a φ that sees the answer among its references has an easy task there.
    ``pooled`` takes every judge's score as an observation of its own, as some papers do, not the mean of a pair.
    """
    if not isinstance(judgements, Judgements):
        judgements = read_judgements(judgements, dataset)
    judgements.check(dataset)
    truth = judgements.is_relevant(ground_truth_of(dataset, ground_truth))
    values = {BINARY: truth.astype(np.float64)}
    for name, one in named(phi).items():
        values[name] = _pair_values(dataset, judgements, name, one, truth, threads, progress)
    parts = {ALL: np.ones(len(judgements), np.bool_), OUTSIDE: ~truth}
    if without_references:
        parts[UNREAD] = ~judgements.among_references(dataset)
    subsets = {
        part: _subset(judgements, values, rows, pooled, resamples, level, seed, threads) for part, rows in parts.items()
    }
    return Agreement(
        dataset.name, judgements, values, truth, subsets, judge_agreement(judgements.judges), pooled=pooled, level=level
    )


def named(phi: Phi | Sequence[Phi] | Mapping[str, Phi]) -> dict[str, Phi]:
    """Every φ under the name that it has in results."""
    if isinstance(phi, Mapping):
        return {str(name): one for name, one in phi.items()}
    several = list(phi) if isinstance(phi, Sequence) and not isinstance(phi, str) else [phi]
    found: dict[str, Phi] = {}
    for number, one in enumerate(several, start=1):
        name = one if isinstance(one, str) else getattr(one, "name", None) or getattr(one, "__name__", None)
        name = f"phi {number}" if not isinstance(name, str) or isinstance(one, np.ndarray) else name
        if name in found:
            raise UsageError(f"two φ are named {name!r}", fix="drop one, or give them names: {'first': …, 'second': …}")
        found[name] = one
    return found


def _pair_values(
    dataset: Dataset,
    judgements: Judgements,
    name: str,
    phi: Phi,
    truth: Array,
    threads: int | None,
    progress: Progress | None,
) -> Array:
    """φ of every judged pair."""
    if isinstance(phi, str) and phi == BINARY:
        return truth.astype(np.float64)
    if isinstance(phi, np.ndarray) and phi.ndim == 1:
        values = np.asarray(phi, np.float64)
        if len(values) != len(judgements):
            raise InputError(
                f"{name}: {len(values):,} numbers for {len(judgements):,} judged pairs", expected="one each"
            )
    else:
        values = pair_similarity(dataset, judgements, phi, threads, progress)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        image = dataset.image_ids[judgements.images[row]]
        raise InputError(f"{name} of judged pair {row} (image {image!r}) is {values[row]}", expected="finite numbers")
    return values


def pair_similarity(
    dataset: Dataset, judgements: Judgements, phi: Phi, threads: int | None = None, progress: Progress | None = None
) -> Array:
    """φ of every judged pair, from the image's captions as references."""
    similarity = load_similarity(phi)
    if isinstance(similarity, KnowsIds):
        if judgements.others:
            raise UsageError(
                f"{len(judgements.others):,} judged captions are not in the dataset: a matrix has no φ for them",
                fix="use a φ that reads texts, such as cider, or add the captions to the dataset",
            )
        prepared = similarity.prepare_ids(dataset)
        return np.asarray(prepared.pairs(judgements.images, judgements.captions), np.float64)
    # Only the judged captions: there are often far fewer than the dataset has.
    judged, places = np.unique(judgements.captions, return_inverse=True)
    known = (*dataset.texts, *judgements.others)
    texts = [known[caption] for caption in judged.tolist()]
    prepared = similarity.prepare(references_of(dataset), texts, progress=progress, threads=threads)
    return np.asarray(prepared.pairs(judgements.images, places.reshape(-1)), np.float64)


def _subset(
    judgements: Judgements,
    values: Mapping[str, Array],
    rows: Array,
    pooled: bool,
    resamples: int,
    level: float,
    seed: int,
    threads: int | None,
) -> Subset:
    pairs = np.flatnonzero(rows)
    scores = judgements.scores[pairs]
    if pooled:
        given = np.isfinite(judgements.judges[pairs])
        pairs, scores = np.repeat(pairs, given.sum(axis=1)), judgements.judges[pairs][given]
    found: dict[str, Correlations] = {
        name: correlations(
            one[pairs], scores, judgements.images[pairs], resamples=resamples, seed=seed, threads=threads
        )
        for name, one in values.items()
    }
    return Subset(
        int(rows.sum()),
        len(pairs),
        len(np.unique(judgements.images[pairs])),
        {name: {key: one.estimate(key, level) for key in COEFFICIENTS} for name, one in found.items()},
        {
            (second, first): {key: found[second].less(found[first], key, level) for key in COEFFICIENTS}
            for first, second in combinations(found, 2)
        },
    )
