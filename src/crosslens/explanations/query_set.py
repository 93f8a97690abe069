"""Queries and the gallery of images they search, encoded by a model that can encode other texts too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crosslens.core import InputError, UnknownNameError, UsageError, argument
from crosslens.encode import (
    IMAGES,
    TEXTS,
    EncodeOptions,
    Encoder,
    StoredEmbeddings,
    encode_dataset,
    encode_texts,
    require_modality,
    text_only,
)
from crosslens.engine import Progress
from crosslens.explanations.counterfactual_options import RIGHT, CounterfactualOptions
from crosslens.explanations.failures import TEXT_TO_TEXT
from crosslens.rank import default_score, rank_both, scorer_of
from crosslens.storage import Array, random_stream
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Dataset, Embeddings, Ids, Relevance


@dataclass(frozen=True)
class QueryResult:
    """What a text retrieves: ``top`` is the top-1 image, ``rank`` and ``score`` are those of its own image.

    ``rival`` is the best of the other images. Ties are ranked in the order of the dataset.
    """

    text: str
    top: str
    rank: int
    score: float
    rival: str
    rival_score: float

    @property
    def right(self) -> bool:
        """Whether its own image comes first."""
        return self.rank == 1

    @property
    def margin(self) -> float:
        """How far its own image is ahead of the best other one; below 0 where it is behind."""
        return self.score - self.rival_score

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "margin": self.margin}


@dataclass(frozen=True, eq=False)
class ImageGallery:
    """The vectors of all images, and how a text's vector is compared with them."""

    images: Embeddings
    score: str

    def __post_init__(self) -> None:
        if len(self.images.ids) < 2:
            raise InputError(
                "the gallery has one image", expected="two or more: a single image is always first", fix="add images"
            )

    def results(self, texts: Sequence[str], vectors: Array, own_rows: Sequence[int]) -> list[QueryResult]:
        """For each text, given as its vector, the result with its own image in row ``own_rows``."""
        names = tuple(str(number) for number in range(len(texts)))
        scorer = scorer_of(self.images, Embeddings(names, vectors), self.score)
        columns, rows = np.arange(len(texts)), np.asarray(own_rows, np.int64)
        truth = Relevance.from_indices(self.images.ids, names, rows, columns)
        ranking = rank_both(scorer, {IMAGE_TO_TEXT: truth, TEXT_TO_IMAGE: truth.flip()}, depth=2)[TEXT_TO_IMAGE]
        scores = scorer.exact(rows, columns)
        ranks = 1 + ranking.above + ranking.tied_before
        # The best other image is the first of the list, or the second where the first is its own.
        second = (ranking.top_items[:, 0] == rows).astype(np.int64)
        rivals = ranking.top_items[columns, second]
        rival_scores = scorer.exact(rivals, columns)
        ids = self.images.ids
        return [
            QueryResult(text, ids[top], int(rank), float(score), ids[rival], float(rival_score))
            for text, top, rank, score, rival, rival_score in zip(
                texts, ranking.top_items[:, 0], ranks, scores, rivals, rival_scores, strict=True
            )
        ]


@dataclass(frozen=True, eq=False)
class QuerySet:
    """Queries (ids, and the row of each one's own image), their results, and the model that encodes other texts."""

    direction: str
    gallery: ImageGallery
    ids: Ids
    own_rows: tuple[int, ...]
    before: tuple[QueryResult, ...]
    encode: Callable[[Sequence[str]], Array]

    def results(self, texts: Sequence[str], rows: Sequence[int]) -> list[QueryResult]:
        """The results of texts, each instead of the query of that row."""
        return self.gallery.results(texts, self.encode(texts), [self.own_rows[row] for row in rows])


def query_set_of(
    dataset: Dataset,
    encoder: Encoder,
    queries: Sequence[str] | None,
    options: CounterfactualOptions,
    encoding: EncodeOptions,
    progress: Progress | None,
) -> QuerySet:
    """Encode the gallery and the queries: the named ones or all, or a sample of them."""
    if isinstance(encoder, StoredEmbeddings):
        raise UsageError(f"{encoder.name} holds vectors, not a model", fix="name the model that made them")
    require_modality(encoder, TEXTS)
    quiet, visible = encoding.stream(None, unasked_cache=False), encoding.stream(progress, unasked_cache=False)
    sample = None if options.only else options.sample  # which are right is known after encoding

    def encode(texts: Sequence[str]) -> Array:
        return encode_texts(encoder, texts, **quiet).rows

    if options.image_text is None:
        require_modality(encoder, IMAGES)
        rows = _rows(dataset, queries, sample, options.seed)
        subset = replace(dataset, captions=dataset.captions[rows])
        folder = encoding.image_folder
        encoded = encode_dataset(subset, encoder, image_folder=folder, skip_bad=encoding.skip_bad, **visible)
        subset, images, captions = encoded.dataset, encoded.images, encoded.captions
        if images is None or captions is None:
            raise InputError("no query is left", expected="captions of readable images", fix="repair the images")
    else:
        number = options.query_caption
        texts = text_only(dataset, encoder, query=number, image_text=options.image_text, **visible)
        hint = f"; caption number {number} of each image is its query"
        rows = _rows(texts.dataset, queries, sample, options.seed, hint)
        subset = replace(texts.dataset, captions=texts.dataset.captions[rows])
        images, captions = texts.images, Embeddings(subset.caption_ids, texts.captions.vectors[rows])
    gallery = ImageGallery(images, options.score or default_score(images.kind))
    own_rows = tuple(subset.caption_image.tolist())
    before = gallery.results(subset.texts, np.asarray(captions.vectors), own_rows)
    direction = TEXT_TO_IMAGE if options.image_text is None else TEXT_TO_TEXT
    selected = list(range(len(before)))
    if options.only is not None:
        selected = [row for row, result in enumerate(before) if result.right == (options.only == RIGHT)]
        if not selected:
            expected = f"such a query, among {len(before):,}"
            raise InputError(f"no query is {options.only}", expected=expected, fix=f"drop {argument('only')}")
        selected = _sample(selected, options.sample, options.seed)
    ids, images_of = tuple(subset.caption_ids[row] for row in selected), tuple(own_rows[row] for row in selected)
    return QuerySet(direction, gallery, ids, images_of, tuple(before[row] for row in selected), encode)


def _sample(rows: Sequence[int], count: int | None, seed: int) -> list[int]:
    """So many of the rows, drawn by the seed, in their order; all of them where there are no more."""
    if count is None or count >= len(rows):
        return list(rows)
    picks = random_stream(seed, "counterfactual queries").choice(len(rows), count, replace=False)
    return [rows[index] for index in sorted(picks.tolist())]


def _rows(dataset: Dataset, queries: Sequence[str] | None, sample: int | None, seed: int, hint: str = "") -> list[int]:
    """The rows of the query captions, each once."""
    if not dataset.caption_ids:
        raise InputError("the dataset has no captions", expected="query captions", fix="check the reader's options")
    rows = list(range(len(dataset.caption_ids)))
    if queries is not None:
        row_of = dataset.caption_rows
        for query in map(str, queries):
            if query not in row_of:
                near = UnknownNameError("query", query, dataset.caption_ids[:100_000]).suggestions
                raise InputError(
                    f"no query has the id {query!r}",
                    expected=f"the id of one of {len(row_of):,} captions, such as {dataset.caption_ids[0]!r}{hint}",
                    fix=f"did you mean {near[0]!r}?" if near else "see the ids with crosslens data describe",
                    code="unknown-id",
                    subject=query,
                )
        rows = list(dict.fromkeys(row_of[str(query)] for query in queries))
    return _sample(rows, sample, seed)
