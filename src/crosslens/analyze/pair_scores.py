"""Scores of single pairs of an image and a caption: from vectors, a model, a model of pairs, φ, or a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError, argument, reading
from crosslens.data import RowName, by_row, check_ids, format_suffix, read_records, read_table, writing_bytes
from crosslens.encode import (
    IMAGES,
    TEXTS,
    EncodeOptions,
    Encoder,
    PairScorer,
    SecondStage,
    StoredEmbeddings,
    caption_rows,
    encode_dataset,
    require_modality,
)
from crosslens.engine import Progress
from crosslens.rank import default_score, scorer_of
from crosslens.similarity import IdSimilarity, Phi, load_similarity
from crosslens.storage import FloatArray, IntArray, for_spreadsheets, parquet_bytes
from crosslens.values import Dataset, Embeddings, Relevance, is_inexact, match_ids, positions, spelled_as


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


@dataclass(frozen=True, eq=False)
class ImageCaptionPairs:
    """Pairs of an image and a caption of a dataset, by their positions in it. Every method gives a score per pair."""

    dataset: Dataset
    images: IntArray
    captions: IntArray

    @staticmethod
    def of_captions(dataset: Dataset) -> ImageCaptionPairs:
        """Every caption with its own image."""
        return ImageCaptionPairs(dataset, dataset.caption_image, np.arange(len(dataset.caption_ids)))

    @staticmethod
    def relevant(dataset: Dataset, relevance: Relevance | None = None) -> ImageCaptionPairs:
        """Every pair of the ground truth, in the order of the captions."""
        truth = ground_truth_of(dataset, relevance).relevant()
        order = np.lexsort((truth.rows, truth.items))
        return ImageCaptionPairs(dataset, truth.rows[order], truth.items[order])

    def __len__(self) -> int:
        return len(self.images)

    @property
    def ids(self) -> list[tuple[str, str]]:
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
        encoded = encode_dataset(self.dataset, encoder, **sources, **options.stream(progress, unasked_cache=False))
        assert encoded.images is not None
        assert encoded.captions is not None
        return self.from_vectors(encoded.images, encoded.captions, score)

    def from_pair_model(
        self, scorer: PairScorer, options: EncodeOptions, progress: Progress | None = None
    ) -> FloatArray:
        """The scores of a model that takes a picture and a text together; every picture must be readable."""
        folder, keywords = options.image_folder, options.stream(progress, unasked_cache=False)
        stage = SecondStage.over(self.dataset, scorer, image_folder=folder, **keywords)
        return np.asarray(stage.score(self.ids, progress), np.float64)

    def from_similarity(self, phi: Phi, progress: Progress | None = None) -> FloatArray:
        """φ of every caption against the image's other captions; NaN where there is no other one.

        The caption itself is not among its references, or φ would find it there. A matrix is taken as it is.
        """
        similarity = load_similarity(phi)
        if isinstance(similarity, IdSimilarity):
            return np.asarray(similarity.prepare_ids(self.dataset).pairs(self.images, self.captions), np.float64)
        captions_of = caption_rows(self.dataset)
        texts = self.dataset.texts
        others = [
            [texts[other] for other in captions_of[image] if other != caption]
            for image, caption in zip(self.images.tolist(), self.captions.tolist(), strict=True)
        ]
        rows = np.flatnonzero([bool(references) for references in others])
        scores = np.full(len(self), np.nan)
        if len(rows):
            captions = [texts[self.captions[row]] for row in rows]
            prepared = similarity.prepare([others[row] for row in rows], captions, progress=progress)
            scores[rows] = prepared.pairs(np.arange(len(rows)), np.arange(len(rows)))
        return scores

    def from_matrix(self, scores: Any, model: str = "the model", *, finite: bool = False) -> FloatArray:
        """Cells of a matrix of images × captions in the dataset's order, or of a scorer of that shape.

        With ``finite``, a score that is NaN or infinite raises.
        """
        matrix: Any = scores if hasattr(scores, "exact") else np.asanyarray(scores)
        shape = len(self.dataset.image_ids), len(self.dataset.caption_ids)
        if matrix.shape != shape:
            raise InputError(
                f"scores of {model} of shape {'×'.join(map(str, matrix.shape))}",
                expected=f"{shape[0]} images × {shape[1]} captions, in the dataset's order",
                fix="transpose them"
                if matrix.shape == shape[::-1]
                else "check that scores and dataset are of the same split",
            )
        pairs = self.images, self.captions
        cells = matrix.exact(*pairs) if hasattr(matrix, "exact") else matrix[pairs]
        if cells.dtype.kind not in "fiu":
            raise InputError(f"scores of {model} are of type {cells.dtype}", expected="real numbers")
        values = np.asarray(cells, np.float64)
        if finite:
            self._require(np.isfinite(values), values, model)
        return values

    def from_given(self, scores: Any, model: str, *, missing: bool = False) -> FloatArray:
        """One number per pair, or cells of a matrix; infinity raises, and NaN unless pairs may be ``missing``."""
        if not isinstance(scores, np.ndarray | list | tuple) or np.asarray(scores).ndim != 1:
            values = self.from_matrix(scores, model)
        else:
            values = np.asarray(scores, np.float64)
            if len(values) != len(self):
                problem = f"{len(values):,} scores of {model} for {len(self):,} pairs"
                raise InputError(problem, expected="one score per pair", fix="score every pair of the dataset")
        self._require(~np.isinf(values) if missing else np.isfinite(values), values, model)
        return values

    def _require(self, valid: Any, values: FloatArray, model: str) -> None:
        if not valid.all():
            row = int(np.argmin(valid))
            image, caption = self.ids[row]
            more = f" (and {int((~valid).sum()) - 1:,} more)" if (~valid).sum() > 1 else ""
            problem = f"{model} scores image {image!r} and caption {caption!r} as {values[row]}{more}"
            raise InputError(problem, expected="finite scores", fix="find out why the model gave NaN or infinity")

    def from_table(self, source: pl.DataFrame | str | Path) -> FloatArray:
        """Scores from a table with the columns image, caption and score; NaN for a pair that it does not have."""
        with rows_of(source, ("caption", "score"), "the columns image, caption, score") as (frame, row_name):
            return self.from_rows(frame, row_name)

    def from_rows(self, frame: pl.DataFrame, row_name: RowName, *, strict: bool = False) -> FloatArray:
        """Scores from the columns caption, score and, if it is there, image; NaN for a pair without a row.

        With ``strict``, where the pairs are those of cases, a row of another pair raises.
        """
        captions = check_ids(frame["caption"].to_list(), "caption", row_name)
        images: Sequence[str | None] = [None] * len(captions)
        keys: list[tuple[str | None, str]] = [*self.ids]
        if "image" in frame.columns:
            images = spelled_as(self.dataset.image_ids, check_ids(frame["image"].to_list(), "image", row_name))
        else:
            keys = [(None, caption) for _, caption in keys]
        case_pairs = set(keys)
        scores: dict[tuple[str | None, str], float] = {}
        for row, (image, caption) in enumerate(zip(images, captions, strict=True)):
            value = frame["score"][row]
            try:
                score = float(value)
            except (TypeError, ValueError):
                score = float("nan")
            if not np.isfinite(score) or is_inexact(value):
                raise InputError(
                    f"the score is {value!r}", row=row_name(row), expected="a finite number; whole ones up to 2⁵³",
                    fix="score this pair again",
                )  # fmt: skip
            pair = f"caption {caption!r}" + (f" and image {image!r}" if image is not None else "")
            if strict and (image, caption) not in case_pairs:
                problem, fix = f"{pair} are in no case together", "correct or remove the row"
                raise InputError(problem, row=row_name(row), expected="pairs of one case", fix=fix)
            if (image, caption) in scores:
                problem, fix = f"a second score of {pair}", "keep one of the two"
                raise InputError(problem, row=row_name(row), expected="one score per pair", fix=fix)
            scores[image, caption] = score
        return np.array([scores.get(key, np.nan) for key in keys], np.float64)


@contextmanager
def rows_of(
    source: pl.DataFrame | str | Path, required: Sequence[str] = (), expected: str = "", fix: str = "rename or add it"
) -> Iterator[tuple[pl.DataFrame, RowName]]:
    """A table in memory or of a .csv, .tsv, .parquet or .jsonl file, and what its rows are called; errors name both.

    A table without one of the ``required`` columns raises.
    """
    row_name: RowName = by_row
    with nullcontext() if isinstance(source, pl.DataFrame) else reading(source):
        if isinstance(source, pl.DataFrame):
            frame = source
        elif format_suffix(source) == ".jsonl":
            records = read_records(source)
            names = dict.fromkeys(key for row in records.rows for key in row)
            columns = {  # lists and mappings as text
                name: [str(value) if isinstance(value, list | dict) else value for value in records.optional(name)]
                for name in names
            }
            frame, row_name = pl.DataFrame(columns, strict=False), records.row_name
        else:
            table = read_table(source)
            frame, row_name = table.frame, table.row_name
        for name in required:
            if name not in frame.columns:
                problem = f"no column {name!r} (columns: {', '.join(frame.columns) or 'none'})"
                raise InputError(problem, expected=expected or f"the columns {', '.join(required)}", fix=fix)
        yield frame, row_name


def check_table_file(path: str | Path, endings: Sequence[str] = (".parquet", ".csv")) -> str:
    """The ending of a table's file; raises for one that cannot be written."""
    suffix = format_suffix(Path(path))
    if suffix not in endings:
        ending = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise UsageError(f"{path} is neither {' nor '.join(endings)}", fix=f"end the name in {ending}", option="output")
    return suffix


def write_table(
    table: pl.DataFrame,
    path: str | Path,
    metadata: Mapping[str, str] | None = None,
    endings: Sequence[str] = (".parquet", ".csv"),
) -> Path:
    """Write a table as .parquet, with its metadata, as .csv or as .jsonl (.gz too); an existing file is replaced."""
    suffix = check_table_file(path, endings)
    with writing_bytes(path) as out:
        if suffix == ".parquet":
            out.write(parquet_bytes(table, metadata=dict(metadata or {})))
        elif suffix == ".csv":
            for_spreadsheets(table).write_csv(out)
        else:
            table.write_ndjson(out)
    return Path(path)


def exact_scores(images: Embeddings, captions: Embeddings, name: str, rows: IntArray, columns: IntArray) -> FloatArray:
    """The score of each pair of positions; NaN where one is −1."""
    present = (rows >= 0) & (columns >= 0)
    scores = np.full(len(rows), np.nan)
    scores[present] = scorer_of(images, captions, name).exact(rows[present], columns[present])
    return scores
