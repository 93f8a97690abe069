"""Scores of single pairs of an image and a caption: from vectors, a model, a model of pairs, φ, or a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    Dataset,
    Embeddings,
    InputError,
    Progress,
    Relevance,
    UsageError,
    argument,
    is_inexact,
    match_ids,
    positions,
    reading,
)
from crosslens.data import RowName, by_row, check_ids, format_suffix, read_records, read_table
from crosslens.encode import (
    IMAGES,
    TEXTS,
    Cache,
    EncodeOptions,
    Encoder,
    PairScorer,
    SecondStage,
    StoredEmbeddings,
    encode_dataset,
    require_modality,
)
from crosslens.rank import Scorer, default_score, scorer_of
from crosslens.similarity import IdSimilarity, Phi, load_similarity


def ground_truth_of(dataset: Dataset, relevance: Relevance | None) -> Relevance:
    """Images × captions of the dataset: each caption's own image, or ``relevance`` with images as queries.

    ``relevance`` may name a part of the images and captions, in either direction, as a qrels file does.
    """
    if relevance is None:
        return Relevance.from_dataset(dataset)
    sides = [(match_ids(ids, dataset.image_ids) >= 0).any() for ids in (relevance.query_ids, relevance.item_ids)]
    if sides == [False, True]:
        relevance = relevance.flip()
    try:
        images = positions(relevance.query_ids, dataset.image_ids, "image", any_ending=True)
        captions = positions(relevance.item_ids, dataset.caption_ids, "caption")
    except InputError as error:
        raise UsageError(
            f"the ground truth is not over the images and captions of the dataset: {error.problem}",
            fix="check that both are of the same collection and split",
        ) from error
    ids = (dataset.image_ids, dataset.caption_ids)
    return Relevance.from_indices(
        *ids, images[relevance.rows], captions[relevance.items], relevance.grades, relevance.source
    )


FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class ImageCaptionPairs:
    """Pairs of an image and a caption of a dataset, by their positions in it. Every method gives a score per pair."""

    dataset: Dataset
    images: IntArray
    captions: IntArray

    @staticmethod
    def own(dataset: Dataset) -> ImageCaptionPairs:
        """Every caption with its own image."""
        return ImageCaptionPairs(dataset, dataset.caption_image, np.arange(len(dataset.caption_ids)))

    def __len__(self) -> int:
        return len(self.images)

    @property
    def named(self) -> list[tuple[str, str]]:
        """The ids of every pair's image and caption."""
        ids = self.dataset.image_ids, self.dataset.caption_ids
        return [(ids[0][image], ids[1][caption]) for image, caption in zip(self.images, self.captions, strict=True)]

    def from_vectors(self, images: Embeddings, captions: Embeddings, score: str | None = None) -> FloatArray:
        """The scores of vectors matched by id; NaN for a pair without vectors."""
        rows = match_ids(self.dataset.image_ids, images.ids, any_ending=images.has_names)[self.images]
        columns = match_ids(self.dataset.caption_ids, captions.ids)[self.captions]
        if not ((rows >= 0) & (columns >= 0)).any():
            raise InputError(
                "the vectors belong to none of the pairs",
                expected=f"images such as {self.dataset.image_ids[0]!r} and captions such as "
                f"{self.dataset.caption_ids[0]!r}",
                fix=f"encode the dataset of these pairs ({argument('write_dataset')} writes it)",
            )
        return exact_scores(images, captions, score or default_score(images.kind, captions.kind), rows, columns)

    def from_model(
        self, encoder: Encoder, options: EncodeOptions, score: str | None = None, progress: Progress | None = None
    ) -> FloatArray:
        """The scores of a model of pictures and texts; unreadable pictures raise, or score NaN with ``skip_bad``."""
        for modality in (IMAGES, TEXTS):
            require_modality(encoder, modality)
        if isinstance(encoder, StoredEmbeddings):
            return self.from_vectors(encoder.stored[IMAGES], encoder.stored[TEXTS], score)
        sources: dict[str, Any] = {"image_folder": options.image_folder, "skip_bad": options.skip_bad}
        encoded = encode_dataset(self.dataset, encoder, **sources, **encoding_keywords(options, progress))
        assert encoded.images is not None
        assert encoded.captions is not None
        return self.from_vectors(encoded.images, encoded.captions, score)

    def from_pair_model(
        self, scorer: PairScorer, options: EncodeOptions, progress: Progress | None = None
    ) -> FloatArray:
        """The scores of a model that takes a picture and a text together; every picture must be readable."""
        keywords = encoding_keywords(options, progress)
        stage = SecondStage.over(self.dataset, scorer, image_folder=options.image_folder, **keywords)
        return np.asarray(stage.score(self.named, progress), np.float64)

    def from_similarity(self, phi: Phi, threads: int | None = None, progress: Progress | None = None) -> FloatArray:
        """φ of every caption against the image's other captions; NaN where there is no other one.

        The caption itself is not among its references, or φ would find it there. A matrix is taken as it is.
        """
        similarity = load_similarity(phi)
        if isinstance(similarity, IdSimilarity):
            return np.asarray(similarity.prepare_ids(self.dataset).pairs(self.images, self.captions), np.float64)
        captions_of: dict[int, list[int]] = {}
        for caption, image in enumerate(self.dataset.caption_image.tolist()):
            captions_of.setdefault(image, []).append(caption)
        texts = self.dataset.texts
        others = [
            [texts[other] for other in captions_of.get(image, ()) if other != caption]
            for image, caption in zip(self.images.tolist(), self.captions.tolist(), strict=True)
        ]
        known = np.flatnonzero([bool(references) for references in others])
        scores = np.full(len(self), np.nan)
        if len(known):
            own = [texts[self.captions[row]] for row in known]
            prepared = similarity.prepare([others[row] for row in known], own, progress=progress, threads=threads)
            scores[known] = prepared.pairs(np.arange(len(known)), np.arange(len(known)))
        return scores

    def from_matrix(self, scores: Any, name: str = "the matrix") -> FloatArray:
        """Cells of a matrix of images × captions in the dataset's order, or of a scorer of that shape."""
        matrix: Any = scores if hasattr(scores, "exact") else np.asanyarray(scores)
        expected = len(self.dataset.image_ids), len(self.dataset.caption_ids)
        if matrix.shape != expected:
            raise InputError(
                f"{name} has the shape {' × '.join(map(str, matrix.shape))}",
                expected=f"{expected[0]:,} images × {expected[1]:,} captions, in the dataset's order",
                fix="transpose it" if matrix.shape == expected[::-1] else "check that it belongs to this dataset",
            )
        scorer: Scorer | None = matrix if hasattr(matrix, "exact") else None
        cells = matrix[self.images, self.captions] if scorer is None else scorer.exact(self.images, self.captions)
        return np.asarray(cells, np.float64)

    def from_table(self, source: pl.DataFrame | str | Path) -> FloatArray:
        """Scores from a table with the columns image, caption and score; NaN for a pair that it does not have."""
        with rows_of(source) as (frame, row_name):
            scores = self._scores_by_pair(frame, row_name)
        with_images, ids = "image" in frame.columns, self.dataset.caption_ids
        values = [
            scores.get((image if with_images else None, ids[caption]), np.nan)
            for image, caption in zip(self.images.tolist(), self.captions.tolist(), strict=True)
        ]
        return np.array(values, np.float64)

    def _scores_by_pair(self, frame: pl.DataFrame, row_name: RowName) -> dict[tuple[Any, str], float]:
        """By the image's position (None without images) and the caption's id."""
        for column in ("caption", "score"):
            if column not in frame.columns:
                problem = f"no column {column!r} (columns: {', '.join(frame.columns)})"
                raise InputError(problem, expected="the columns image, caption, score", fix="rename or add it")
        captions = check_ids(frame["caption"].to_list(), "caption", row_name)
        images: list[Any] = [None] * len(captions)
        if "image" in frame.columns:
            listed = check_ids(frame["image"].to_list(), "image", row_name)
            rows = match_ids(listed, self.dataset.image_ids)
            images = [row if row >= 0 else name for row, name in zip(rows.tolist(), listed, strict=True)]
        scores: dict[tuple[Any, str], float] = {}
        for row, pair in enumerate(zip(images, captions, strict=True)):
            if pair in scores:
                problem = f"a second score of caption {captions[row]!r}"
                raise InputError(problem, row=row_name(row), expected="one score per pair", fix="keep one of the two")
            scores[pair] = finite_score(frame["score"][row], row_name(row))
        return scores


@contextmanager
def rows_of(source: pl.DataFrame | str | Path) -> Iterator[tuple[pl.DataFrame, RowName]]:
    """A table in memory or of a .csv, .tsv, .parquet or .jsonl file, and what its rows are called; errors name both."""
    if isinstance(source, pl.DataFrame):
        yield source, by_row
        return
    with reading(source):
        if format_suffix(source) == ".jsonl":
            records = read_records(source)
            yield pl.DataFrame(records.rows, infer_schema_length=None), records.row_name
        else:
            table = read_table(source)
            yield table.frame, table.row_name


def finite_score(value: Any, row: Any) -> float:
    """A cell of a column of scores as a number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number) or is_inexact(value):
        raise InputError(
            f"the score is {value!r}",
            row=row,
            expected="a finite number; whole ones up to 2⁵³",
            fix="score this pair again",
        )
    return number


def exact_scores(images: Embeddings, captions: Embeddings, name: str, rows: IntArray, columns: IntArray) -> FloatArray:
    """The score of each pair of positions; NaN where one is −1."""
    known = (rows >= 0) & (columns >= 0)
    scores = np.full(len(rows), np.nan)
    scores[known] = scorer_of(images, captions, name).exact(rows[known], columns[known])
    return scores


def encoding_keywords(options: EncodeOptions, progress: Progress | None) -> Mapping[str, Any]:
    """What functions that encode or score take of these options; without a folder nothing is cached."""
    cache = options.cache
    if not isinstance(cache, Cache):
        cache = None if cache is None or cache is False else Cache(None if cache is True else cache)
    return {"cache": cache, "progress": progress, "batch_size": options.batch_size, "precision": options.precision}
