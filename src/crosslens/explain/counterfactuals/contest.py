"""Queries and the gallery they search: what a model makes of a dataset, ready to be asked about other texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UnknownNameError, UsageError
from crosslens.core.ids import Ids
from crosslens.core.relevance import TEXT_TO_IMAGE
from crosslens.core.seeds import stream
from crosslens.encode.dataset import encode_dataset
from crosslens.encode.encoder import IMAGES, TEXTS, Array, Encoder, demand
from crosslens.encode.own import StoredEncoder
from crosslens.encode.stream import encode_texts
from crosslens.encode.summaries import Summariser
from crosslens.encode.text_only import text_only
from crosslens.explain.counterfactuals.gallery import Gallery, Standing

TEXT_TO_TEXT = "t2t"
_DEFAULT_SCORES = {"single": "cosine", "multi": "max"}


@dataclass(frozen=True, eq=False)
class Contest:
    """Queries (ids, and the row of each one's own image), how they stand, and a model to ask about other texts."""

    direction: str
    gallery: Gallery
    ids: Ids
    own: tuple[int, ...]
    before: tuple[Standing, ...]
    encode: Callable[[Sequence[str]], Array]

    def standings(self, texts: Sequence[str], rows: Sequence[int]) -> list[Standing]:
        """How texts stand, each in the place of the query of that row."""
        return self.gallery.standings(texts, self.encode(texts), [self.own[row] for row in rows])

    def select(self, rows: Sequence[int]) -> Contest:
        """The same with these queries only."""
        ids, own, before = (tuple(part[row] for row in rows) for part in (self.ids, self.own, self.before))
        return replace(self, ids=ids, own=own, before=before)  # type: ignore[arg-type]


def contest_of(
    dataset: Dataset,
    encoder: Encoder,
    queries: Sequence[str] | None,
    *,
    sample: int | None,
    seed: int,
    image_text: str | Summariser | None,
    query_caption: int,
    image_folder: str | Path | None,
    score: str | None,
    skip_bad: bool,
    how: Mapping[str, Any],
) -> Contest:
    """Encode the gallery and the queries: the named ones or all, or a sample of them."""
    if isinstance(encoder, StoredEncoder):
        raise UsageError(f"{encoder.name} holds vectors, not a model", fix="name the model that made them")
    demand(encoder, TEXTS)
    quiet = {**how, "progress": None}  # a search encodes again and again: one bar for all of it is enough

    def encode(texts: Sequence[str]) -> Array:
        return encode_texts(encoder, texts, **quiet).rows

    if image_text is None:
        demand(encoder, IMAGES)
        rows = _rows(dataset, queries, sample, seed)
        asking = replace(dataset, captions=dataset.captions[rows])
        found = encode_dataset(asking, encoder, image_folder=image_folder, skip_bad=skip_bad, **how)
        asking, images, captions = found.dataset, found.images, found.captions
        if images is None or captions is None:
            raise InputError("no query is left", expected="captions of readable images", fix="repair the images")
    else:
        texts = text_only(dataset, encoder, query=query_caption, image_text=image_text, **how)
        rows = _rows(texts.dataset, queries, sample, seed, f"; caption number {query_caption} of each image asks")
        asking = replace(texts.dataset, captions=texts.dataset.captions[rows])
        images, captions = texts.images, Embeddings(asking.caption_ids, texts.captions.vectors[rows])
    gallery = Gallery(images, score or _DEFAULT_SCORES[images.kind])
    own = tuple(asking.caption_image.tolist())
    before = gallery.standings(asking.texts, np.asarray(captions.vectors), own)
    direction = TEXT_TO_IMAGE if image_text is None else TEXT_TO_TEXT
    return Contest(direction, gallery, asking.caption_ids, own, tuple(before), encode)


def sampled(rows: Sequence[int], count: int | None, seed: int) -> list[int]:
    """So many of the rows, drawn by the seed, in their order; all of them where there are no more."""
    if count is None or count >= len(rows):
        return list(rows)
    chosen = stream(seed, "counterfactual queries").choice(len(rows), count, replace=False)
    return [rows[place] for place in sorted(chosen.tolist())]


def _rows(dataset: Dataset, queries: Sequence[str] | None, sample: int | None, seed: int, hint: str = "") -> list[int]:
    """The rows of the captions that ask, each once."""
    if not dataset.caption_ids:
        raise InputError(
            "the dataset has no captions", expected="a caption to ask with", fix="check the reader's options"
        )
    rows = list(range(len(dataset.caption_ids)))
    if queries is not None:
        place = {one: row for row, one in enumerate(dataset.caption_ids)}
        for one in queries:
            if str(one) not in place:
                near = UnknownNameError("query", str(one), dataset.caption_ids[:100_000]).suggestions
                raise InputError(
                    f"no query has the id {str(one)!r}",
                    expected=f"the id of one of {len(place):,} captions, such as {dataset.caption_ids[0]!r}{hint}",
                    fix=f"did you mean {near[0]!r}?" if near else "see the ids with crosslens data describe",
                )
        rows = list(dict.fromkeys(place[str(one)] for one in queries))
    return sampled(rows, sample, seed)
