"""Pairs that nobody annotated although they match: as relevant as annotated ones, and outside the ground truth.

What is as relevant as an annotated pair? One caption of each image is held out, and φ compares it with the others (over
two text sets, with the corpus): so high is φ for a caption that people wrote about the image. A quantile of these
values (half of them are above the median) is the threshold for all other pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.ground_truth import ground_truth_of
from crosslens.analyze.missing_positives.sections import missing_sections
from crosslens.analyze.missing_positives.verification import ThresholdCounter, Verification, VerifiedPairs
from crosslens.core import (
    Dataset,
    InputError,
    Presented,
    Progress,
    Relevance,
    Section,
    SilentProgress,
    UsageError,
    argument,
    json_form,
    random_stream,
    stage,
)
from crosslens.data import writing_bytes
from crosslens.similarity import (
    IdSimilarity,
    Phi,
    PreparedSimilarity,
    Similarity,
    load_similarity,
    prepare_dataset,
    references_of,
)

Array = np.ndarray[Any, Any]

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Of annotated pairs' φ: thresholds at which counts are reported beside the chosen one."""
_CELLS = 1 << 22


@dataclass(frozen=True)
class ThresholdCount:
    """How many pairs outside the ground truth reach a threshold."""

    threshold: float
    pairs: int


@dataclass(frozen=True, eq=False)
class MissingPositives(Presented):
    """Pairs outside the ground truth that are as relevant as annotated ones, the highest φ first; prints as a summary.

    ``images`` and ``captions`` are rows of the dataset. ``annotated`` is φ of captions that people wrote about an
    image, each against the image's others. ``levels`` begin with the threshold itself.
    """

    dataset: Dataset
    phi: str
    truth: Relevance
    images: Array
    captions: Array
    values: Array
    threshold: float
    annotated: Array
    levels: tuple[ThresholdCount, ...]
    verification: Verification | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def title(self) -> str:
        """The heading of a page."""
        return f"Missing positives: {self.dataset.name}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """A summary, the counts at several thresholds, and the first pairs."""
        return missing_sections(self)

    @property
    def left_out(self) -> int:
        """How many pairs reach the threshold and were not kept."""
        return self.levels[0].pairs - len(self)

    def relevance(self, *, extra_only: bool = False) -> Relevance:
        """The ground truth and the missing pairs, as judgements to evaluate with; or the missing pairs alone."""
        truth = self.truth.relevant()
        images, captions = self.images, self.captions
        grades = np.ones(len(images), np.float32)
        if not extra_only:
            images, captions = np.concatenate([truth.rows, images]), np.concatenate([truth.items, captions])
            grades = np.concatenate([truth.grades, grades])
        source = f"{self.phi} ≥ {self.threshold:.4g}"
        source = source if extra_only else f"{truth.source} + {source}"
        return Relevance.from_indices(truth.query_ids, truth.item_ids, images, captions, grades, source)

    @property
    def table(self) -> pl.DataFrame:
        """One row per pair: image, caption, φ, the caption's text and its own image, and a caption of the image."""
        first = [next(iter(texts), "") for texts in references_of(self.dataset)]
        columns: dict[str, Any] = {
            "image": [self.dataset.image_ids[row] for row in self.images],
            "caption": [self.dataset.caption_ids[row] for row in self.captions],
            "phi": self.values,
            "text": [self.dataset.texts[row] for row in self.captions],
            "caption_of": [self.dataset.image_ids[self.dataset.caption_image[row]] for row in self.captions],
            "image_caption": [first[row] for row in self.images],
        }
        return pl.DataFrame(columns, schema_overrides={"phi": pl.Float32, "image": pl.String, "caption": pl.String})

    def write_table(self, path: str | Path) -> Path:
        """Write the table as a CSV file (.gz too); an existing file is replaced."""
        with writing_bytes(path) as out:
            self.table.write_csv(out)
        return Path(path)

    def as_dict(self) -> dict[str, Any]:
        """The counts, without the pairs."""
        quantiles = {f"q{100 * q:g}": float(np.quantile(self.annotated, q)) for q in QUANTILES if len(self.annotated)}
        content: dict[str, Any] = {
            "dataset": self.dataset.name,
            "phi": self.phi,
            "threshold": self.threshold,
            "pairs": self.levels[0].pairs,
            "kept": len(self),
            "annotated": {"pairs": len(self.annotated), **quantiles},
            "levels": [asdict(level) for level in self.levels],
        }
        if self.verification is not None:
            content["verification"] = self.verification.as_dict()
        return dict(json_form(content))


def find_missing_positives(
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
    _check(quantile, threshold, most)
    similarity = load_similarity(phi)
    truth = ground_truth_of(dataset, ground_truth)
    annotated = held_out_similarity(dataset, similarity, seed, threads=threads, progress=progress)
    if threshold is None:
        threshold = _quantile(annotated, quantile, similarity)
    prepared = prepare_dataset(dataset, similarity, progress=progress, threads=threads)
    pairs = None if verified is None else VerifiedPairs.of(verified, truth, prepared)
    usual = [float(np.quantile(annotated, q)) for q in QUANTILES] if len(annotated) else []
    thresholds = list(dict.fromkeys([threshold, *usual]))  # the chosen one first
    kept = _Best(threshold, most)
    counter = ThresholdCounter(thresholds, pairs)
    with stage(
        progress or SilentProgress(), f"looking for missing positives by {similarity.name}", prepared.shape[0]
    ) as bar:
        for rows, values in _outside(prepared, truth):
            kept.add(rows.start, values)
            counter.add(rows, values)
            bar.advance(rows.stop - rows.start)
    images, captions, values = kept.ranked()
    return MissingPositives(
        dataset,
        similarity.name,
        truth,
        images,
        captions,
        values,
        threshold,
        annotated,
        tuple(ThresholdCount(level, int(total)) for level, total in zip(thresholds, counter.totals, strict=True)),
        None if pairs is None else counter.verification(),
    )


def _check(quantile: float, threshold: float | None, most: int | None) -> None:
    if not 0 < quantile < 1:
        raise UsageError(f"quantile = {quantile}", fix="use a number between 0 and 1, such as 0.5", option="quantile")
    if threshold is not None and not np.isfinite(threshold):
        raise UsageError(f"threshold = {threshold}", fix="use a finite number, or leave it out", option="threshold")
    if most is not None and most < 0:
        raise UsageError(f"most = {most}", fix="use 0 or more", option="most")


def held_out_similarity(
    dataset: Dataset,
    similarity: Similarity,
    seed: int = 0,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """φ of one caption of each image, drawn by the seed, against the image's other captions, or its corpus without it.

    Images without another text are left out; a matrix, which has no texts, gives none.
    """
    if isinstance(similarity, IdSimilarity):
        return np.empty(0, np.float32)
    references, captions = references_of(dataset), references_of(replace(dataset, corpus=None))
    chances = random_stream(seed, "left-out caption").random(len(references))
    held_out: dict[int, str] = {}
    for row, own in enumerate(captions):
        chosen, others = own[int(chances[row] * len(own))] if own else "", references[row].copy()
        if chosen in others:
            others.remove(chosen)
        if own and others:
            held_out[row], references[row] = chosen, others
    if not held_out:
        return np.empty(0, np.float32)
    prepared = similarity.prepare(references, list(held_out.values()), progress=progress, threads=threads)
    return prepared.pairs(np.array(list(held_out)), np.arange(len(held_out)))


def _quantile(annotated: Array, quantile: float, similarity: Similarity) -> float:
    if not len(annotated):
        reason = "a matrix has no captions" if isinstance(similarity, IdSimilarity) else "no image has two captions"
        raise UsageError(
            f"{reason} to derive the threshold from", fix=f"pass {argument('threshold')}", option="threshold"
        )
    return float(np.quantile(annotated, quantile))


def _outside(prepared: PreparedSimilarity, truth: Relevance) -> Iterator[tuple[slice, Array]]:
    """φ a few rows at a time, the pairs of the ground truth set to −∞."""
    images, captions = prepared.shape
    step = max(1, _CELLS // max(captions, 1))
    relevant = truth.relevant()
    for start in range(0, images, step):
        rows = slice(start, min(start + step, images))
        values = np.array(prepared.block(rows), np.float32)
        if np.isnan(values).any():
            row, column = np.argwhere(np.isnan(values))[0]
            problem = f"φ of image {truth.query_ids[start + row]!r} and caption {truth.item_ids[column]!r} is NaN"
            raise InputError(problem, expected="finite numbers", fix="compute φ again")
        inside = slice(relevant.offsets[rows.start], relevant.offsets[rows.stop])
        values[relevant.rows[inside] - start, relevant.items[inside]] = -np.inf
        yield rows, values


@dataclass
class _Best:
    """The pairs above a threshold, reduced to the best whenever they become too many."""

    threshold: float
    most: int | None
    _parts: list[tuple[Array, Array, Array]] = field(default_factory=list)
    _size: int = 0

    def add(self, start: int, values: Array) -> None:
        rows, columns = np.nonzero(values >= np.float32(self.threshold))
        self._parts.append((rows + start, columns, values[rows, columns]))
        self._size += len(rows)
        if self.most is not None and self._size > 2 * max(self.most, 1):
            self._parts = [self.ranked()]
            self._size = len(self._parts[0][0])

    def ranked(self) -> tuple[Array, Array, Array]:
        """Highest φ first, equal ones by image and caption."""
        empty = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        images, captions, values = map(np.concatenate, zip(empty, *self._parts, strict=True))
        order = np.lexsort((captions, images, -values))[: self.most]
        return images[order], captions[order], values[order]
