"""Pairs that nobody annotated although they match: as relevant as annotated ones, and outside the ground truth.

What is as relevant as an annotated pair? Each image gives up one of its captions, and φ compares it with those that
are left: so high is φ for a caption that people really wrote about the picture. A quantile of these values (half of
them are above the median) is the threshold for all other pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.analyze.ground_truth import ground_truth_of
from crosslens.analyze.missing_result import Level, MissingPositives
from crosslens.analyze.verification import Tally, Verifier
from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.progress import Progress, Silent, stage
from crosslens.core.relevance import Relevance
from crosslens.core.seeds import stream
from crosslens.similarity import Phi, Prepared, Similarity, load_similarity, prepare_dataset, references_of
from crosslens.similarity.similarity import KnowsIds

Array = np.ndarray[Any, Any]

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Thresholds at which figures are given beside the chosen one."""
_CELLS = 1 << 22


def missing_positives(
    dataset: Dataset,
    phi: Phi = "semantic",
    *,
    quantile: float = 0.5,
    threshold: float | None = None,
    ground_truth: Relevance | None = None,
    verified: Relevance | Mapping[str, Relevance] | None = None,
    most: int | None = 1_000_000,
    resamples: int = 1000,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> MissingPositives:
    """Pairs outside the ground truth with φ as high as annotated pairs', the highest first.

    ``quantile`` of the annotated pairs' φ, each caption compared with the image's others, is the threshold, unless
    ``threshold`` names one. The ground truth is each caption's own image unless ``ground_truth`` says otherwise.
    ``verified`` are positives that people confirmed, such as :func:`crosslens.data.read_eccv` gives:
    precision and recall are measured against them. At most ``most`` pairs are kept.

    φ is computed a few rows at a time: memory does not grow with images × captions.
    """
    if not 0 < quantile < 1:
        raise UsageError(f"quantile {quantile}", fix="use a number between 0 and 1, such as 0.5")
    similarity = load_similarity(phi)
    truth = ground_truth_of(dataset, ground_truth)
    annotated = left_out_similarity(dataset, similarity, seed, threads=threads, progress=progress)
    if threshold is not None and not np.isfinite(threshold):
        raise UsageError(f"a threshold of {threshold}", fix="name a finite number, or leave it out")
    if most is not None and most < 0:
        raise UsageError(f"at most {most} pairs", fix="ask for none or more")
    if threshold is None:
        threshold = _quantile(annotated, quantile, similarity)
    prepared = prepare_dataset(dataset, similarity, progress=progress, threads=threads)
    verifier = None if verified is None else Verifier.of(verified, truth, prepared)
    usual = [float(np.quantile(annotated, one)) for one in QUANTILES] if len(annotated) else []
    thresholds = list(dict.fromkeys([threshold, *usual]))  # the chosen one first
    kept = _Best(threshold, most)
    tally = Tally(thresholds, verifier)
    with stage(progress or Silent(), f"looking for missing positives by {similarity.name}", prepared.shape[0]) as bar:
        for rows, values in _outside(prepared, truth):
            kept.add(rows.start, values)
            tally.add(rows, values)
            bar.advance(rows.stop - rows.start)
    images, captions, found = kept.ranked()
    return MissingPositives(
        dataset,
        similarity.name,
        truth,
        images,
        captions,
        found,
        threshold,
        annotated,
        tuple(Level(one, int(total)) for one, total in zip(thresholds, tally.totals, strict=True)),
        None if verifier is None else tally.verification(resamples, seed),
    )


def left_out_similarity(
    dataset: Dataset,
    similarity: Similarity,
    seed: int = 0,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """φ of one caption of each image, drawn by the seed, against the image's other captions.

    Images with a single caption have no others and give none; neither does a matrix, which knows no texts.
    """
    if isinstance(similarity, KnowsIds):
        return np.empty(0, np.float32)
    references = references_of(dataset)
    giving = np.array([row for row, texts in enumerate(references) if len(texts) > 1], np.int64)
    if not len(giving):
        return np.empty(0, np.float32)
    chances = stream(seed, "left-out caption").random(len(references))
    given = []
    for row in giving.tolist():
        texts = references[row]
        place = int(chances[row] * len(texts))
        given.append(texts[place])
        references[row] = texts[:place] + texts[place + 1 :]
    prepared = similarity.prepare(references, given, progress=progress, threads=threads)
    return prepared.pairs(giving, np.arange(len(giving)))


def _quantile(annotated: Array, quantile: float, similarity: Similarity) -> float:
    if not len(annotated):
        why = "a matrix does not say" if isinstance(similarity, KnowsIds) else "no image has two captions to tell"
        raise UsageError(f"{why} how high φ of an annotated pair is", fix="pass a threshold (--threshold)")
    return float(np.quantile(annotated, quantile))


def _outside(prepared: Prepared, truth: Relevance) -> Iterator[tuple[slice, Array]]:
    """φ a few rows at a time, the pairs of the ground truth blotted out."""
    images, captions = prepared.shape
    step = max(1, _CELLS // max(captions, 1))
    relevant = truth.relevant()
    for start in range(0, images, step):
        rows = slice(start, min(start + step, images))
        values = np.array(prepared.block(rows), np.float32)
        if np.isnan(values).any():
            row, column = np.argwhere(np.isnan(values))[0]
            raise InputError(
                f"φ of image {truth.query_ids[start + row]!r} and caption {truth.item_ids[column]!r} is not a number",
                expected="finite numbers",
                fix="compute φ again",
            )
        inside = slice(relevant.offsets[rows.start], relevant.offsets[rows.stop])
        values[relevant.rows[inside] - start, relevant.items[inside]] = -np.inf
        yield rows, values


@dataclass
class _Best:
    """The pairs above a threshold, thinned out to the best whenever they become too many."""

    threshold: float
    most: int | None

    def __post_init__(self) -> None:
        self._parts: list[tuple[Array, Array, Array]] = []
        self._size = 0

    def add(self, start: int, values: Array) -> None:
        rows, columns = np.nonzero(values >= np.float32(self.threshold))
        self._parts.append((rows + start, columns, values[rows, columns]))
        self._size += len(rows)
        if self.most is not None and self._size > 2 * max(self.most, 1):
            self._parts = [self.ranked()]
            self._size = len(self._parts[0][0])

    def ranked(self) -> tuple[Array, Array, Array]:
        """Highest φ first, equal ones by image and caption."""
        images, captions, values = (_joined([part[one] for part in self._parts]) for one in range(3))
        order = np.lexsort((captions, images, -values))[: self.most]
        return images[order], captions[order], values[order]


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0)
