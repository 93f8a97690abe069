"""What a person may bring to an evaluation, brought into one form: scores or lists, relevance, clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UsageError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.ids import Ids, positions
from crosslens.core.lists import RankedLists
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Relevance
from crosslens.rank import ScoreMatrix, Scorer, scorer_of

Array = np.ndarray[Any, Any]

TEXT_TO_TEXT = "t2t"
"""Text-only retrieval: the captions ask, and the images' vectors come from other captions."""

DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE, TEXT_TO_TEXT)
DEFAULT_SCORES = {"single": "cosine", "multi": "max", "probabilistic": "csd"}


@dataclass(frozen=True)
class Scores:
    """Something that scores images against captions: ``restricted`` gives the scorer of a part of them."""

    restricted: Callable[[Array | slice, Array | slice], Scorer]
    description: Mapping[str, Any] = field(default_factory=dict)


def scores_from(
    dataset: Dataset, images: Any, captions: Any, scores: Any, score: str | None
) -> tuple[Scores, str | None]:
    """The scores that embeddings or a matrix give, and the name of the score function."""
    if scores is not None:
        if images is not None or captions is not None:
            raise UsageError("both embeddings and a score matrix", fix="pass one or the other")
        return _from_matrix(dataset, as_array(scores, "scores")), None
    if images is None or captions is None:
        missing = "image" if images is None else "caption"
        raise UsageError(f"no {missing} embeddings", fix="pass both images= and captions=, or scores=, or run=")
    left = aligned(images, dataset.image_ids, "image")
    right = aligned(captions, dataset.caption_ids, "caption")
    kinds = {left.kind, right.kind}
    kind = next(one for one in ("probabilistic", "multi", "single") if one in kinds)
    name = score or DEFAULT_SCORES[kind]
    scorer_of(_head(left), _head(right), name)  # a wrong name or mismatched dimensions should not cost the wait

    def restricted(rows: Array | slice, columns: Array | slice) -> Scorer:
        return scorer_of(_part(left, rows), _part(right, columns), name)

    described = {
        what: {"model": one.model, "kind": one.kind, "shape": list(one.vectors.shape), "fingerprint": one.fingerprint}
        for what, one in (("images", left), ("captions", right))
    }
    return Scores(restricted, described), name


def aligned(vectors: Any, ids: Ids, what: str) -> Embeddings:
    """Embeddings in the order of ``ids``: arrays must have that order already, Embeddings are matched by id."""
    if not isinstance(vectors, Embeddings):
        array = as_array(vectors, f"{what} embeddings")
        if array.ndim < 2 or len(array) != len(ids):
            raise InputError(
                f"{what} embeddings of shape {array.shape} for {len(ids)} {what}s",
                expected=f"one row per {what}, in the order of the dataset's {what} ids",
                fix="encode the same split, or pass Embeddings with ids",
            )
        return Embeddings(ids, array)
    if vectors.ids == ids:
        return vectors
    try:
        order = positions(ids, vectors.ids, what)
    except InputError as error:
        raise InputError(
            f"no embedding for {what} {ids[error.row] if isinstance(error.row, int) else ''!r}",
            expected=f"a vector for each of the {len(ids)} {what}s of the dataset",
            fix="encode the missing items, or select the images that have one",
        ) from error
    return Embeddings(
        ids,
        vectors.vectors[order],
        None if vectors.variance is None else vectors.variance[order],
        vectors.model,
    )


def as_array(values: Any, what: str) -> Array:
    """A numpy array from whatever holds numbers: lists, memory maps (left on disk), torch tensors on any device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    try:
        return np.asanyarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be read as an array: {error}", expected="a table of numbers") from error


def _from_matrix(dataset: Dataset, matrix: Array) -> Scores:
    shape = (len(dataset.image_ids), len(dataset.caption_ids))
    if matrix.shape != shape:
        turned = matrix.shape == shape[::-1]
        raise InputError(
            f"score matrix of shape {matrix.shape}",
            expected=f"{shape[0]} images × {shape[1]} captions, in the dataset's order",
            fix="transpose it" if turned else "check that scores and dataset are of the same split",
        )

    def restricted(rows: Array | slice, columns: Array | slice) -> Scorer:
        if isinstance(rows, slice) or isinstance(columns, slice):
            return ScoreMatrix(matrix[rows, columns])
        return ScoreMatrix(matrix[np.ix_(rows, columns)])

    described = {"shape": list(matrix.shape), "fingerprint": fingerprint("scores", {"scores": matrix})}
    return Scores(restricted, {"scores": described})


def relevance_from(
    dataset: Dataset, relevance: Relevance | Mapping[str, Any] | None
) -> tuple[dict[str, Relevance], dict[str, Any]]:
    """Relevance of both directions over all of the dataset's ids, and a description of where it came from."""
    if relevance is None:
        forward = Relevance.from_dataset(dataset)
        return {IMAGE_TO_TEXT: forward, TEXT_TO_IMAGE: forward.flip()}, {"source": forward.source}
    given = judgements(relevance)
    given = given if isinstance(given, dict) else {_direction_of(given, dataset): given}
    both = {direction: over(one, *gallery_of(dataset, direction)) for direction, one in given.items()}
    for one, other in ((IMAGE_TO_TEXT, TEXT_TO_IMAGE), (TEXT_TO_IMAGE, IMAGE_TO_TEXT)):
        if one not in both:
            both[one] = both[other].flip()
    described = {name: {"source": one.source, "fingerprint": one.fingerprint} for name, one in both.items()}
    return both, described


def judgements(relevance: Relevance | Mapping[str, Any]) -> Relevance | dict[str, Relevance]:
    """Judgements, by direction if they are given so; plain ``{query: [item, …]}`` will do."""
    if isinstance(relevance, Relevance):
        return relevance
    if relevance and set(relevance) <= set(DIRECTIONS):
        return {one: two if isinstance(two, Relevance) else Relevance.of(two) for one, two in relevance.items()}
    return Relevance.of(relevance)


def gallery_of(dataset: Dataset, direction: str) -> tuple[Ids, Ids]:
    """The query ids and the item ids of a direction."""
    if direction == IMAGE_TO_TEXT:
        return dataset.image_ids, dataset.caption_ids
    if direction in (TEXT_TO_IMAGE, TEXT_TO_TEXT):
        return dataset.caption_ids, dataset.image_ids
    raise UsageError(f"unknown direction {direction!r}", fix="use 'i2t' or 't2i'; 't2t' for text-only retrieval")


def over(relevance: Relevance, query_ids: Ids, item_ids: Ids) -> Relevance:
    """The same judgements among these queries and items; a judged id that is not among them raises."""
    if (relevance.query_ids, relevance.item_ids) == (query_ids, item_ids):
        return relevance
    rows = positions(relevance.query_ids, query_ids, "query")
    columns = positions(relevance.item_ids, item_ids, "item")
    return Relevance.from_indices(
        query_ids, item_ids, rows[relevance.rows], columns[relevance.items], relevance.grades, relevance.source
    )


def lists_by_direction(
    dataset: Dataset | None, run: RankedLists | Mapping[str, Any], directions: Sequence[str] | None
) -> dict[str, RankedLists]:
    """Ready-made lists under the direction they are of; plain ``{query: [item, …]}`` will do."""
    if isinstance(run, Mapping) and run and set(run) <= set(DIRECTIONS):
        return {one: lists if isinstance(lists, RankedLists) else RankedLists.of(lists) for one, lists in run.items()}
    if isinstance(run, Mapping):
        run = RankedLists.of(run)
    if directions:
        if len(directions) != 1:
            raise UsageError(f"one run, but {len(directions)} directions", fix="pass run={'i2t': …, 't2i': …} for both")
        return {directions[0]: run}
    return {IMAGE_TO_TEXT if dataset is None else _direction_of(run, dataset): run}


def _direction_of(value: Relevance | RankedLists, dataset: Dataset) -> str:
    """Told from the ids: which side the queries are on."""
    images, captions = set(dataset.image_ids), set(dataset.caption_ids)
    queries, items = set(value.query_ids), set(value.item_ids)
    sides = {IMAGE_TO_TEXT: (images, captions), TEXT_TO_IMAGE: (captions, images)}
    # A stray id is for the check of that direction to name; here only the sides matter.
    fits = [one for one, (left, right) in sides.items() if queries & left and (items & right or not items)]
    whole = [one for one in fits if queries <= sides[one][0] and items <= sides[one][1]]
    what = "judgements" if isinstance(value, Relevance) else "run"
    if not fits:
        odd = next(iter(queries - images - captions), None) or next(iter(items - images - captions), "")
        raise InputError(
            f"the ids of the {what} are not those of the dataset (such as {odd!r})",
            expected="queries and items among the dataset's image and caption ids",
            fix="check that both are of the same split and use the same ids",
        )
    if len(whole) == 1 or len(fits) == 1:
        return (whole or fits)[0]
    raise UsageError(
        f"the {what} fit both directions: image ids and caption ids overlap",
        fix="say which: a mapping such as {'i2t': …}, or the direction on the command line",
    )


def _head(embeddings: Embeddings) -> Embeddings:
    return _part(embeddings, slice(0, 1))


def _part(embeddings: Embeddings, rows: Array | slice) -> Embeddings:
    if isinstance(rows, slice) and rows == slice(None):
        return embeddings
    ids = embeddings.ids[rows] if isinstance(rows, slice) else tuple(embeddings.ids[row] for row in rows)
    variance = None if embeddings.variance is None else embeddings.variance[rows]
    return Embeddings(ids, embeddings.vectors[rows], variance, embeddings.model)
