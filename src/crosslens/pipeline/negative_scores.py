"""The score of every caption of a case with every picture of it: from vectors, from captions alone, or from nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UnknownNameError
from crosslens.core.ids import Ids
from crosslens.core.progress import Progress
from crosslens.data.hard_negatives import HardNegatives
from crosslens.data.judgements_matching import image_names
from crosslens.encode import Cache, Encoder, PairScorer, SecondStage, encode_dataset, encode_texts
from crosslens.encode.encoder import IMAGES, TEXTS, demand
from crosslens.encode.own import StoredEncoder
from crosslens.pipeline.sources import DEFAULT_SCORES
from crosslens.rank import scorer_of

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

BLIND: Mapping[str, Callable[[str], float]] = {
    "shorter": lambda text: -float(len(text)),
    "longer": lambda text: float(len(text)),
}
"""Scores that never look at a picture: a set on which one of them does well is no test of looking."""


@dataclass(frozen=True)
class Making:
    """How a model's vectors are made."""

    image_folder: str | Path | None = None
    cache: Cache | None = None
    batch_size: int | None = None
    precision: str = "fp32"
    progress: Progress | None = None

    @property
    def texts(self) -> dict[str, Any]:
        return {
            "cache": self.cache,
            "batch_size": self.batch_size,
            "precision": self.precision,
            "progress": self.progress,
        }


def blind_scores(negatives: HardNegatives, name: str) -> FloatArray:
    """Scores that depend on the captions alone."""
    if name not in BLIND:
        raise UnknownNameError("blind score", name, BLIND)
    values = np.array([BLIND[name](text) for text in negatives.dataset.texts], np.float64)
    scores: FloatArray = values[negatives.pairs["caption"].to_numpy()]
    return scores


def vector_scores(
    negatives: HardNegatives, images: Embeddings, captions: Embeddings, score: str | None = None
) -> FloatArray:
    """The scores of vectors found by id; NaN for a pair that lacks one."""
    kinds = {images.kind, captions.kind}
    name = score or DEFAULT_SCORES[next(one for one in ("probabilistic", "multi", "single") if one in kinds)]
    pairs = negatives.pairs
    rows = _found(negatives.dataset.image_ids, images.ids)[pairs["image"].to_numpy()]
    columns = _found(negatives.dataset.caption_ids, captions.ids)[pairs["caption"].to_numpy()]
    there = (rows >= 0) & (columns >= 0)
    if not there.any():
        raise InputError(
            "the vectors are of none of the cases",
            expected=f"images such as {negatives.dataset.image_ids[0]!r} and captions such as "
            f"{negatives.dataset.caption_ids[0]!r}",
            fix="encode the dataset that --write-dataset writes",
        )
    scores = np.full(pairs.height, np.nan)
    scores[there] = scorer_of(images, captions, name).exact(rows[there], columns[there])
    return scores


def _found(wanted: Ids, ids: Ids) -> np.ndarray[Any, np.dtype[np.int64]]:
    where = {one: place for place, one in enumerate(ids)}
    return np.array([where.get(one, -1) for one in wanted], np.int64)


def model_scores(
    negatives: HardNegatives, encoder: Encoder, how: Making, *, score: str | None = None, skip_missing: bool = False
) -> FloatArray:
    """The scores of a model that takes pictures and texts; pictures that cannot be read raise, or score NaN."""
    for ability in (IMAGES, TEXTS):
        demand(encoder, ability)
    if isinstance(encoder, StoredEncoder):
        return vector_scores(negatives, encoder.stored[IMAGES], encoder.stored[TEXTS], score)
    found = encode_dataset(
        negatives.dataset, encoder, image_folder=how.image_folder, skip_bad=skip_missing, **how.texts
    )
    assert found.images is not None
    assert found.captions is not None
    return vector_scores(negatives, found.images, found.captions, score)


def pair_model_scores(negatives: HardNegatives, scorer: PairScorer, how: Making) -> FloatArray:
    """The scores of a model that looks at a picture and a text together; every picture must be there."""
    dataset = negatives.dataset
    stage = SecondStage.over(dataset, scorer, image_folder=how.image_folder, **how.texts)
    pairs = negatives.pairs.select("image", "caption").iter_rows()
    found = stage.score([(dataset.image_ids[one], dataset.caption_ids[two]) for one, two in pairs], how.progress)
    return np.asarray(found, np.float64)


def text_only_scores(
    negatives: HardNegatives, encoder: Encoder, described: Dataset, how: Making, score: str | None = None
) -> FloatArray:
    """The scores of a text encoder: a picture is the mean of its captions' vectors, without the right one's.

    ``described`` has the pictures' captions; one that says what the case's right caption says is left out. A picture
    that ``described`` does not have, or that has no other caption, scores NaN.
    """
    demand(encoder, TEXTS)
    shown = list(dict.fromkeys(negatives.pairs.select("case", "image").iter_rows()))
    others = _other_captions(negatives, described, shown)
    used = sorted({row for rows in others for row in rows})
    if not used:
        raise InputError(
            f"{described.name} describes none of the images of {negatives.name}",
            expected=f"images such as {negatives.dataset.image_ids[0]!r}, found {described.image_ids[0]!r}",
            fix="check that the dataset has the captions of these images",
        )
    texts = [*(described.texts[row] for row in used), *negatives.dataset.texts]
    vectors = encode_texts(encoder, texts, **how.texts).rows
    place = {row: at for at, row in enumerate(used)}
    there = [at for at, rows in enumerate(others) if rows]
    means = np.stack([vectors[[place[row] for row in others[at]]].mean(axis=0) for at in there])
    spot = {shown[at]: row for row, at in enumerate(there)}
    captions = Embeddings.of(vectors[len(used) :])
    rows = np.array([spot.get(one, -1) for one in negatives.pairs.select("case", "image").iter_rows()], np.int64)
    scores = np.full(len(rows), np.nan)
    columns = negatives.pairs["caption"].to_numpy()
    name = score or DEFAULT_SCORES["single"]
    scores[rows >= 0] = scorer_of(Embeddings.of(means), captions, name).exact(rows[rows >= 0], columns[rows >= 0])
    return scores


def _other_captions(negatives: HardNegatives, described: Dataset, shown: list[tuple[int, int]]) -> list[list[int]]:
    """For each case and picture, the captions of the picture that do not say what the case's right one says."""
    own = negatives.dataset
    names = image_names(described)
    captions: dict[int, list[int]] = {}
    for row, image in enumerate(described.caption_image.tolist()):
        captions.setdefault(image, []).append(row)
    plain = [_plain(text) for text in described.texts]
    right: dict[tuple[int, int], str] = {}
    for case, caption, image, is_right in negatives.pairs.iter_rows():
        if is_right:
            right[case, image] = _plain(own.texts[caption])
    wanted = _spoken_names(own)
    found = []
    for case, image in shown:
        place = next((names[one] for one in wanted[image] if one in names), None)
        rows = [] if place is None else captions.get(place, [])
        found.append([row for row in rows if plain[row] != right[case, image]])
    return found


def _spoken_names(dataset: Dataset) -> list[tuple[str, ...]]:
    """What each image may be called elsewhere: its id, its photo, the name of its file."""
    columns = [name for name in ("image", "photo", "file") if name in dataset.images.columns]
    return [
        tuple(dict.fromkeys(part for one in row if one for part in (one, Path(one).name)))
        for row in dataset.images.select(columns).iter_rows()
    ]


def _plain(text: str) -> str:
    """A caption without what nobody hears: case, runs of white space, the mark at the end."""
    return " ".join(text.casefold().split()).rstrip(" .!")
