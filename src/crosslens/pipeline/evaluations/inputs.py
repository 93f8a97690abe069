"""What an evaluation can be given, brought into one form: scores, ranked lists, relevance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from crosslens.core import InputError, UnknownNameError, UsageError, argument
from crosslens.data import existing_file, read_array, where_coco_ids_are
from crosslens.encode import require_one_source
from crosslens.rank import ScoreMatrix, Scorer, default_score, scorer_of
from crosslens.storage import Array, fingerprint
from crosslens.values import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    Dataset,
    Embeddings,
    Ids,
    RankedLists,
    Relevance,
    align_embeddings,
    as_array,
    match_ids,
    spelled_as,
)

TEXT_TO_TEXT = "t2t"
"""Text-only retrieval: captions are the queries, and the images' vectors come from other captions."""

SAME_SPLIT = "check that both are of the same split and use the same ids"
_FEW = 0.01
"""The share of unknown ids that is skipped unasked: published files differ by a few captions, another split by most."""
_LARGER_GALLERY = f", and {argument('extra_images')} adds images without captions to it"
_CLEARLY = 2.0
"""How many times better one direction must fit than the other, where ids of images and captions overlap."""


def direction_ids(dataset: Dataset, direction: str) -> tuple[Ids, Ids]:
    """The query ids and the item ids of a direction."""
    if direction == IMAGE_TO_TEXT:
        return dataset.image_ids, dataset.caption_ids
    if direction in (TEXT_TO_IMAGE, TEXT_TO_TEXT):
        return dataset.caption_ids, dataset.image_ids
    raise UsageError(f"unknown direction {direction!r}", fix="use 'i2t' or 't2i'; 't2t' for text-only retrieval")


def direction_of(value: Relevance | RankedLists, dataset: Dataset) -> str:
    """The direction whose query ids and item ids these are: clearly more of them than of the other direction's."""
    shares = {}
    for direction in (IMAGE_TO_TEXT, TEXT_TO_IMAGE):
        queries, items = direction_ids(dataset, direction)
        shares[direction] = _share_known(value.query_ids, queries), _share_known(value.item_ids, items)
    what = "judgements" if isinstance(value, Relevance) else "run"
    fits = {name: sum(parts) for name, parts in shares.items() if all(parts)}
    if not fits:
        dataset_ids = {*dataset.image_ids, *dataset.caption_ids}
        unknown = next((name for name in (*value.query_ids, *value.item_ids) if name not in dataset_ids), "")
        raise InputError(
            f"the ids of the {what} are not those of the dataset (such as {unknown!r})",
            expected="queries and items among the dataset's image and caption ids",
            fix=where_coco_ids_are(unknown, dataset.caption_ids) or SAME_SPLIT,
            code="unknown-id",
            subject=unknown,
        )
    best, *others = sorted(fits, key=lambda name: -fits[name])
    only_complete = min(shares[best]) == 1 and not any(min(shares[other]) == 1 for other in others)
    if others and not only_complete and fits[best] < _CLEARLY * fits[others[0]]:
        raise UsageError(
            f"the {what} fit both directions: image ids and caption ids overlap",
            fix="name the direction: i2t (image to text) or t2i (text to image)",
        )
    return best


def _share_known(names: Ids, ids: Ids) -> float:
    """Which share of the names is among the ids; all of them where there are none."""
    return float((match_ids(names, ids) >= 0).mean()) if names else 1.0


def lists_over(
    dataset: Dataset, lists: RankedLists, direction: str, *, skip_unknown: bool = False
) -> tuple[RankedLists, Ids, list[str]]:
    """The lists in the dataset's ids; its items and, behind them, those that only the lists name; and notes.

    Queries that the dataset lacks are left out. Items that it lacks keep their ranks: they count as irrelevant, and the
    figures are those of the lists as they are; with ``skip_unknown`` they are taken out, and the ranks are those among
    the dataset's items. More than a few of either raise unless ``skip_unknown``.
    """
    queries, items = direction_ids(dataset, direction)
    lists = replace(lists, query_ids=spelled_as(queries, lists.query_ids), item_ids=spelled_as(items, lists.item_ids))
    notes = []
    unknown = _unknown(lists.query_ids, queries)
    if unknown.any():
        names = [lists.query_ids[row] for row in np.flatnonzero(unknown)]
        _refuse_many("query", names, unknown.mean(), queries, skip_unknown)
        entries = np.repeat(~unknown, np.diff(lists.offsets))
        listed = np.zeros(len(lists.item_ids), np.bool_)
        listed[lists.items[entries]] = True
        lists = replace(
            lists, query_ids=tuple(query for query, gone in zip(lists.query_ids, unknown, strict=True) if not gone),
            offsets=np.concatenate([[0], np.cumsum(np.diff(lists.offsets)[~unknown])]), items=lists.items[entries],
            scores=lists.scores[entries],
        )  # fmt: skip
        lists = _with_items(lists, listed)
        notes.append(f"{direction}: {_left_out(len(names), len(unknown), 'queries', names[0])}")
    unknown = _unknown(lists.item_ids, items)
    if not unknown.any():
        return lists, items, notes
    entries = unknown[lists.items]
    names = [lists.item_ids[column] for column in np.flatnonzero(unknown)]
    larger = _LARGER_GALLERY if direction == TEXT_TO_IMAGE else ""
    _refuse_many("item", names, entries.mean() if len(entries) else 0.0, items, skip_unknown, larger)
    if skip_unknown:
        notes.append(f"{direction}: {_left_out(int(entries.sum()), len(entries), 'list entries', names[0])}")
        offsets = np.concatenate([[0], np.cumsum(~entries)])[lists.offsets]
        lists = replace(lists, offsets=offsets, items=lists.items[~entries], scores=lists.scores[~entries])
        return _with_items(lists, ~unknown), items, notes
    notes.append(
        f"{direction}: {entries.sum():,} of {len(entries):,} list entries are not in the dataset (such as "
        f"{names[0]!r}); they keep their ranks and count as irrelevant"
    )
    return lists, (*items, *names), notes


def judgements_over(
    dataset: Dataset, relevance: Relevance, direction: str, *, skip_unknown: bool = False
) -> tuple[Relevance, list[str]]:
    """The judgements over all queries and items of the dataset, without pairs that it lacks.

    More than a few such pairs raise unless ``skip_unknown``.
    """
    queries, items = direction_ids(dataset, direction)
    if (relevance.query_ids, relevance.item_ids) == (queries, items):
        return relevance, []
    rows, columns = match_ids(relevance.query_ids, queries), match_ids(relevance.item_ids, items)
    outside = (rows[relevance.rows] < 0) | (columns[relevance.items] < 0)
    for what, ids, dataset_ids, places in (("query", relevance.query_ids, queries, rows),
                                     ("item", relevance.item_ids, items, columns)):  # fmt: skip
        names = [ids[row] for row in np.flatnonzero(places < 0)]
        if names:
            _refuse_many(what, names, outside.mean() if len(outside) else 0.0, dataset_ids, skip_unknown)
    notes = []
    if outside.any():
        first = int(np.argmax(outside))
        row, column = relevance.rows[first], relevance.items[first]
        name = relevance.query_ids[row] if rows[row] < 0 else relevance.item_ids[column]
        notes.append(f"{direction}: {_left_out(int(outside.sum()), len(outside), 'judged pairs', name)}")
    inside = ~outside
    over = Relevance.from_indices(
        queries, items, rows[relevance.rows[inside]], columns[relevance.items[inside]], relevance.grades[inside],
        relevance.source,
    )  # fmt: skip
    return over, notes


def _unknown(names: Ids, ids: Ids) -> Array:
    id_set = set(ids)
    return np.fromiter((name not in id_set for name in names), np.bool_, len(names))


def _left_out(count: int, total: int, what: str, example: str) -> str:
    return f"{count:,} of {total:,} {what} are left out, as the dataset does not have them (such as {example!r})"


def _with_items(lists: RankedLists, keep: Array) -> RankedLists:
    column_of = np.cumsum(keep) - 1
    ids = tuple(item for item, stays in zip(lists.item_ids, keep, strict=True) if stays)
    return replace(lists, item_ids=ids, items=column_of[lists.items])


def _refuse_many(
    what: str, unknown: Sequence[str], share: float, dataset_ids: Ids, skip_unknown: bool, otherwise: str = ""
) -> None:
    """Raise where more than a few ids are unknown, unless they are to be skipped; and always where all are."""
    if share <= _FEW or (skip_unknown and share < 1):
        return
    near = UnknownNameError(what, unknown[0], dataset_ids[:20_000]).suggestions
    skip = f"{argument('skip_unknown', True)} leaves out what the dataset does not have{otherwise}"
    fix = f"did you mean {near[0]!r}? If not, {skip}" if near and len(unknown) == 1 else f"{SAME_SPLIT}; {skip}"
    raise InputError(
        f"unknown {what} id {unknown[0]!r}" + (f", and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""),
        expected="ids of the dataset",
        fix=where_coco_ids_are(unknown[0], dataset_ids) or fix,
        code="unknown-id",
        subject=unknown[0],
    )


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
        return self.restricted(slice(None), slice(None))


def check_dataset(dataset: Any) -> None:
    """Raise for anything but a dataset or None."""
    if dataset is not None and not isinstance(dataset, Dataset):
        raise UsageError(f"not a dataset: {dataset!r}", fix="pass what load_dataset returns")


def score_source(
    dataset: Dataset, images: Any = None, captions: Any = None, scores: Any = None, score: str | None = None
) -> ScoreSource:
    """The scores that embeddings or a matrix give."""
    if require_one_source(embeddings=(images, captions), scores=scores) == "scores":
        matrix = as_array(scores, "scores")
        _check_shape(dataset, matrix.shape)
        if matrix.dtype.kind not in "fiu":
            fix = "convert them with .astype('float32')"
            raise InputError(f"scores of type {matrix.dtype}", expected="real numbers", fix=fix)

        def of_matrix(rows: Array | slice, columns: Array | slice) -> Scorer:
            if isinstance(rows, slice) or isinstance(columns, slice):
                return ScoreMatrix(matrix[rows, columns])
            return ScoreMatrix(matrix[np.ix_(rows, columns)])

        facts = {"shape": list(matrix.shape), "fingerprint": fingerprint("scores", {"scores": matrix})}
        return ScoreSource(of_matrix, {"scores": facts})
    image_vectors, caption_vectors = align_both(dataset, images, captions)
    name = score or default_score(image_vectors.kind, caption_vectors.kind)
    # A wrong name or mismatched dimensions should be found before the long work.
    scorer_of(image_vectors.part(slice(0, 1)), caption_vectors.part(slice(0, 1)), name)

    def restricted(rows: Array | slice, columns: Array | slice) -> Scorer:
        return scorer_of(image_vectors.part(rows), caption_vectors.part(columns), name)

    described = {
        side: {
            "model": vectors.model,
            "kind": vectors.kind,
            "shape": list(vectors.shape),
            "fingerprint": vectors.fingerprint,
        }
        for side, vectors in (("images", image_vectors), ("captions", caption_vectors))
    }
    return ScoreSource(restricted, described, name)


def align_both(dataset: Dataset, images: Any, captions: Any) -> tuple[Embeddings, Embeddings]:
    """The embeddings of both sides in the dataset's order; the wrong number of rows is explained."""
    sides = {"image": images, "caption": captions}
    arrays = {
        side: vectors if hasattr(vectors, "block") else as_array(vectors, f"{side} embeddings")
        for side, vectors in sides.items()
    }
    counts = {
        side: array.shape[0] for side, array in arrays.items() if not isinstance(array, Embeddings) and array.shape
    }
    for side, other in (("image", "caption"), ("caption", "image")):
        if side in counts:
            check_row_count(side, counts[side], dataset, counts.get(other))
    image_vectors = align_embeddings(arrays["image"], dataset.image_ids, "image")
    return image_vectors, align_embeddings(arrays["caption"], dataset.caption_ids, "caption")


def read_scores(dataset: Dataset, file: str | Path) -> Array:
    """The score matrix in a file; one of another shape is not unpacked."""
    return read_array(existing_file(file), fits=lambda shape: _check_shape(dataset, shape))


def _check_shape(dataset: Dataset, actual: tuple[int, ...]) -> None:
    shape = (len(dataset.image_ids), len(dataset.caption_ids))
    if actual != shape:
        raise InputError(
            f"score matrix of shape {actual}",
            expected=f"{shape[0]} images × {shape[1]} captions, in the dataset's order",
            fix="transpose it" if actual == shape[::-1] else "check that scores and dataset are of the same split",
        )


def relevance_by_direction(
    dataset: Dataset, relevance: Relevance | Mapping[str, Any] | None, *, skip_unknown: bool = False
) -> tuple[dict[str, Relevance], dict[str, Any], list[str]]:
    """Relevance of both directions over all of a dataset's ids, where it came from, and notes on what was left out.

    Without judgements a caption is relevant to its image; a direction that is missing is the other, flipped.
    """
    if relevance is None:
        forward = Relevance.from_dataset(dataset)
        return {IMAGE_TO_TEXT: forward, TEXT_TO_IMAGE: forward.flip()}, {"source": forward.source}, []
    parsed = parse_by_direction(relevance, Relevance)
    by_direction = parsed if isinstance(parsed, dict) else {direction_of(parsed, dataset): parsed}
    both, notes = {}, []
    for name, judgements in by_direction.items():
        both[name], skipped = judgements_over(dataset, judgements, name, skip_unknown=skip_unknown)
        notes += skipped
    for direction, opposite in ((IMAGE_TO_TEXT, TEXT_TO_IMAGE), (TEXT_TO_IMAGE, IMAGE_TO_TEXT)):
        if direction not in both:
            both[direction] = both[opposite].flip()
    return both, relevance_facts(both), notes


def relevance_facts(relevance: Mapping[str, Relevance]) -> dict[str, Any]:
    """Per direction, where judgements came from and their hash."""
    return {name: {"source": part.source, "fingerprint": part.fingerprint} for name, part in relevance.items()}


def parse_by_direction(values: Lists | Mapping[str, Any], kind: type[Lists]) -> Lists | dict[str, Lists]:
    """Judgements or ranked lists, by direction if they are given so; from plain ``{query: [item, …]}`` too."""
    if isinstance(values, kind):
        return values
    if not isinstance(values, Mapping):
        reader = "read_judgements" if kind is Relevance else "read_run"
        raise UsageError(
            f"{values!r:.60} is neither {kind.__name__} nor {{query: [item, …]}}", fix=f"pass what {reader} returns"
        )
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
