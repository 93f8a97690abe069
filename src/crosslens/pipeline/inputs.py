"""What an evaluation can be given, brought into one form: scores, ranked lists, relevance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crosslens.core import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    Dataset,
    Embeddings,
    InputError,
    RankedLists,
    Relevance,
    UsageError,
    align_embeddings,
    argument,
    as_array,
    fingerprint,
)
from crosslens.data import existing_file, read_array
from crosslens.pipeline.known_ids import TEXT_TO_TEXT, direction_of, judgements_over
from crosslens.rank import ScoreMatrix, Scorer, default_score, scorer_of

Array = np.ndarray[Any, Any]

DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE, TEXT_TO_TEXT)

Lists = TypeVar("Lists", Relevance, RankedLists)
_SAME_SPLIT = "encode the same split, or pass Embeddings with ids"


@dataclass(frozen=True)
class ScoreSource:
    """Something that scores images against captions: ``restricted`` gives the scorer of a part of them."""

    restricted: Callable[[Array | slice, Array | slice], Scorer]
    description: Mapping[str, Any]
    score: str | None = None
    """The name of the score function; none for a matrix."""

    @property
    def scorer(self) -> Scorer:
        """The scorer of all images and captions."""
        return self.restricted(slice(None), slice(None))


def check_dataset(dataset: Any) -> None:
    """Raise for anything but a dataset or None."""
    if dataset is not None and not isinstance(dataset, Dataset):
        raise UsageError(f"not a dataset: {dataset!r}", fix="pass what load_dataset returns")


def score_source(
    dataset: Dataset, images: Any = None, captions: Any = None, scores: Any = None, score: str | None = None
) -> ScoreSource:
    """The scores that embeddings or a matrix give."""
    if scores is not None:
        if images is not None or captions is not None:
            raise UsageError("both embeddings and a score matrix", fix="pass one or the other")
        return _matrix_source(dataset, as_array(scores, "scores"))
    if images is None or captions is None:
        inputs = f"both {argument('images')} and {argument('captions')}, or {argument('scores')}, or {argument('run')}"
        raise UsageError(f"no {'image' if images is None else 'caption'} embeddings", fix=f"pass {inputs}")
    left, right = align_both(dataset, images, captions)
    name = score or default_score(left.kind, right.kind)
    # A wrong name or mismatched dimensions should be found before the long work.
    scorer_of(left.part(slice(0, 1)), right.part(slice(0, 1)), name)

    def restricted(rows: Array | slice, columns: Array | slice) -> Scorer:
        return scorer_of(left.part(rows), right.part(columns), name)

    return ScoreSource(restricted, {"images": _facts(left), "captions": _facts(right)}, name)


def _facts(vectors: Embeddings) -> dict[str, Any]:
    shape = list(vectors.shape)
    return {"model": vectors.model, "kind": vectors.kind, "shape": shape, "fingerprint": vectors.fingerprint}


def align_both(dataset: Dataset, images: Any, captions: Any) -> tuple[Embeddings, Embeddings]:
    """The embeddings of both sides in the dataset's order; the wrong number of rows is explained."""
    sides = {"image": images, "caption": captions}
    arrays = {
        what: vectors if hasattr(vectors, "block") else as_array(vectors, f"{what} embeddings")
        for what, vectors in sides.items()
    }
    counts = {
        what: array.shape[0] for what, array in arrays.items() if not isinstance(array, Embeddings) and array.shape
    }
    for what, other in (("image", "caption"), ("caption", "image")):
        if what in counts:
            check_row_count(what, counts[what], dataset, counts.get(other))
    left = align_embeddings(arrays["image"], dataset.image_ids, "image")
    return left, align_embeddings(arrays["caption"], dataset.caption_ids, "caption")


def read_scores(dataset: Dataset, file: str | Path) -> Array:
    """The score matrix in a file; one of another shape is not unpacked."""
    return read_array(existing_file(file), fits=lambda shape: _check_shape(dataset, shape))


def _check_shape(dataset: Dataset, given: tuple[int, ...]) -> None:
    shape = (len(dataset.image_ids), len(dataset.caption_ids))
    if given != shape:
        raise InputError(
            f"score matrix of shape {given}",
            expected=f"{shape[0]} images × {shape[1]} captions, in the dataset's order",
            fix="transpose it" if given == shape[::-1] else "check that scores and dataset are of the same split",
        )


def _matrix_source(dataset: Dataset, matrix: Array) -> ScoreSource:
    _check_shape(dataset, matrix.shape)
    if matrix.dtype.kind not in "fiu":
        fix = "convert them with .astype('float32')"
        raise InputError(f"scores of type {matrix.dtype}", expected="real numbers", fix=fix)

    def restricted(rows: Array | slice, columns: Array | slice) -> Scorer:
        if isinstance(rows, slice) or isinstance(columns, slice):
            return ScoreMatrix(matrix[rows, columns])
        return ScoreMatrix(matrix[np.ix_(rows, columns)])

    facts = {"shape": list(matrix.shape), "fingerprint": fingerprint("scores", {"scores": matrix})}
    return ScoreSource(restricted, {"scores": facts})


class DatasetRelevance(NamedTuple):
    """Relevance of both directions over all of a dataset's ids, where it came from, and what was left out of it."""

    by_direction: dict[str, Relevance]
    facts: dict[str, Any]
    notes: list[str]


def relevance_by_direction(
    dataset: Dataset, relevance: Relevance | Mapping[str, Any] | None, *, skip_unknown: bool = False
) -> DatasetRelevance:
    """The given judgements, or those that come with the dataset; a direction that is missing is the other, flipped."""
    if relevance is None:
        forward = Relevance.from_dataset(dataset)
        return DatasetRelevance({IMAGE_TO_TEXT: forward, TEXT_TO_IMAGE: forward.flip()}, {"source": forward.source}, [])
    parsed = parse_by_direction(relevance, Relevance)
    given = parsed if isinstance(parsed, dict) else {direction_of(parsed, dataset): parsed}
    both, notes = {}, []
    for name, judged in given.items():
        both[name], skipped = judgements_over(dataset, judged, name, skip_unknown=skip_unknown)
        notes += skipped
    for direction, opposite in ((IMAGE_TO_TEXT, TEXT_TO_IMAGE), (TEXT_TO_IMAGE, IMAGE_TO_TEXT)):
        if direction not in both:
            both[direction] = both[opposite].flip()
    return DatasetRelevance(both, relevance_facts(both), notes)


def relevance_facts(relevance: Mapping[str, Relevance]) -> dict[str, Any]:
    """Per direction, where judgements came from and their hash."""
    return {name: {"source": judged.source, "fingerprint": judged.fingerprint} for name, judged in relevance.items()}


def parse_by_direction(values: Lists | Mapping[str, Any], kind: type[Lists]) -> Lists | dict[str, Lists]:
    """Judgements or ranked lists, by direction if they are given so; from plain ``{query: [item, …]}`` too."""
    if not isinstance(values, Mapping):
        return values
    if values and set(values) <= set(DIRECTIONS):
        return {name: value if isinstance(value, kind) else kind.of(value) for name, value in values.items()}
    return kind.of(values)


def lists_by_direction(
    dataset: Dataset | None, run: RankedLists | Mapping[str, Any], directions: Sequence[str] | None
) -> dict[str, RankedLists]:
    """Ranked lists by their direction; from plain ``{query: [item, …]}`` too."""
    lists = parse_by_direction(run, RankedLists)
    if isinstance(lists, dict):
        return lists
    if not directions:
        return {IMAGE_TO_TEXT if dataset is None else direction_of(lists, dataset): lists}
    if len(directions) != 1:
        raise UsageError(f"one run, but {len(directions)} directions", fix="pass run={'i2t': …, 't2i': …} for both")
    return {directions[0]: lists}


def check_row_count(what: str, rows: int, dataset: Dataset, other_rows: int | None = None) -> None:
    """Raise unless an array of ``what`` (image, caption) has a row for each of the dataset's.

    ``other_rows`` is the number of rows of the other array, where it is known.
    """
    count = len(dataset.image_ids if what == "image" else dataset.caption_ids)
    if rows != count:
        raise InputError(
            f"{rows:,} rows of {what} embeddings for {count:,} {what}s",
            expected=f"one row per {what}, in the order of the dataset's {what} ids",
            fix=_likely_mistake(what, rows, dataset, other_rows) or _SAME_SPLIT,
        )


def _likely_mistake(what: str, rows: int, dataset: Dataset, other_rows: int | None) -> str | None:
    images, captions = len(dataset.image_ids), len(dataset.caption_ids)
    captioned = images - int(dataset.without_captions.sum())
    if what == "image" and rows == captioned:
        return f"{rows:,} is the number of images with captions: encode the {images - captioned:,} others, too"
    other, count = ("caption", captions) if what == "image" else ("image", images)
    if rows != count:
        return None
    number = f"{rows:,} is the number of {other}s"
    if other_rows in (None, images if what == "image" else captions):
        return f"{number}: are the arrays swapped?"
    if other_rows != rows:
        return f"{number}: check both arrays"
    if what == "caption":
        return f"{number}: encode every caption, not one per image"
    example = f", such as images[::{captions // images}]" if captions % images == 0 else ""
    return f"{number}: is each image repeated for its captions? keep one row per image{example}"
