"""Are the vectors those of the items? Blank, equal and copied vectors, and lengths that decide."""

from __future__ import annotations

import filecmp
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from crosslens.analyze.soundness.firsts import Firsts
from crosslens.analyze.subject import Planted, Subject
from crosslens.core import STATED_SIZE, Effect, Figure, InputError, Observation, finding_kind
from crosslens.encode import as_picture
from crosslens.statistics import paired_permutation
from crosslens.storage import Array, FloatArray, IntArray, random_stream
from crosslens.values import Embeddings

_NOTICEABLE = 0.005
"""The share of blank vectors from which on it is said for certain; fewer are worth a look."""
_OUTSTANDING = 5
"""A blank vector is that of so many items, and of so many times as many as the next that several have."""
_RELATED = 0.25
"""How far from unrelated to equal the texts of two items may be that have one vector for no reason."""
_TEMPLATE = 0.6
"""Where two items drawn at random have more in common, nobody can tell what is related."""
_PAIRS = 300
_ROUNDING, _BESIDE = 1e-3, 3
"""How far apart vectors may be that are one, as a share of their length; neighbours that are compared."""
_NEARLY = 0.05
"""How far apart vectors may be that are nearly one, as a share of the distance of two drawn at random."""
_MOST_COPIED = 0.5
"""Of an encoder that tells few things apart most vectors are repeated: none is a copy, if nobody can ask it."""
_LEVEL_LENGTHS = 1e-3
_PERMUTATIONS = 2000


@finding_kind(
    "blank-vectors",
    "{share} of the {side} have {what}.",
    stage="soundness", strengths=(0.01, 0.05, 0.1), strength_words="{:.0%} of the images with one blank vector",
    unsound=True, causes=("hub", "ties", "norms"),
    silences=("hub", "ties", "norms", "group"),  # a vector of many takes captions as a hub does
)  # fmt: skip
def plant_blank_vectors(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Images with the mean vector, or with zeros where these have a score."""
    if subject.images is None or subject.captions is None:
        return Planted(subject)
    vectors = np.array(subject.images.vectors)
    rows = np.sort(stream.choice(len(vectors), max(1, round(strength * len(vectors))), replace=False))
    vectors[rows] = 0 if subject.score == "dot" else vectors.mean(axis=0)
    return Planted.at(subject.with_vectors(vectors), images=rows)


def blank_vectors(subject: Subject) -> Iterator[Observation]:
    """Vectors of equal numbers, one vector of many items, and vectors of other items; counted, not estimated.

    Encoders that ignore or cut off a part of their input give equal vectors to items that have much in common. What
    counts has as little in common as two items drawn at random, and of captions is not what the model makes of them.
    """
    dataset = subject.dataset
    texts = [re.findall(r"\w+", text.lower()) for text in dataset.texts]
    of_image: list[list[str]] = [[] for _ in dataset.image_ids]
    for caption, image in enumerate(subject.owner):
        of_image[image] += texts[caption]

    def caption_likeness(left: int, right: int) -> float:
        half = max(1, min(len(texts[left]), len(texts[right])) // 2)
        return 1.0 if texts[left][:half] == texts[right][:half] else _overlap(texts[left], texts[right])

    def image_likeness(left: int, right: int) -> float:
        first, second = (subject.pictures.get(dataset.image_ids[row]) for row in (left, right))
        if first is not None and second is not None and _same_picture(first, second):
            return 1.0
        return _overlap(of_image[left], of_image[right])

    sides = (
        ("images", subject.images, dataset.image_ids, image_likeness, "although their captions differ"),
        ("captions", subject.captions, dataset.caption_ids, caption_likeness, "although they differ"),
    )
    for side, embeddings, ids, likeness, despite in sides:
        if embeddings is None or not len(embeddings) or (side == "images" and dataset.corpus is not None):
            continue  # where texts stand for the images, equal texts have equal vectors
        encodes = side == "captions" and subject.encode is not None
        level, equal, nearly, copied = _blank_rows(embeddings, likeness, subject.seed, 1.0 if encodes else _MOST_COPIED)
        if copied and encodes:  # a model that tells them not apart: no mistake
            assert subject.encode is not None
            again = np.asarray(subject.encode([dataset.texts[row] for row in copied]), np.float64)
            stored = embeddings.vectors[copied]
            if again.shape == stored.shape:
                apart = np.linalg.norm(again - stored, axis=1) > _ROUNDING * np.linalg.norm(stored, axis=1)
                copied = [row for row, differs in zip(copied, apart.tolist(), strict=True) if differs]
        for name, rows, defect in (
            ("level", level, "a vector of zeros, or of one number everywhere"),
            ("equal", equal, f"{'nearly ' if nearly else ''}one and the same vector, {despite}"),
            ("copied", copied, f"a vector that another has too, {despite}"),
        ):
            if not len(rows) and name != "level":
                continue
            share = len(rows) / len(ids)
            # Without pictures nobody can tell whether an image is there twice.
            certain = share >= _NOTICEABLE and (name != "copied" or side == "captions" or bool(subject.pictures))
            p = (0.0 if certain else None) if len(rows) else 1.0
            words = {"share": f"{Figure.share(share)} ({len(rows):,})", "side": side, "what": defect}
            evidence = [{"item" if side == "images" else "query": ids[row]} for row in rows]
            effect = Effect(share, share, share, f"share of {side}")
            yield Observation(
                "blank-vectors", words, effect, share, p, worth_a_look=p is None, evidence=evidence,
                subject=f"{side}: {name}",
            )  # fmt: skip


def _blank_rows(
    embeddings: Embeddings, likeness: Callable[[int, int], float], seed: int, most: float
) -> tuple[Sequence[int], Sequence[int], bool, Sequence[int]]:
    """Rows of equal numbers, rows of one vector that outnumber all others, and rows that repeat some vector.

    Vectors are one up to the rounding of half precision: an encoder that gets the same twice need not say so exactly.
    Where many have nearly one vector, the third is true: a constant and a little noise.
    """
    flat = np.ascontiguousarray(embeddings.vectors).reshape(len(embeddings), -1)
    is_level = (flat == flat[:, :1]).all(axis=1) if flat.shape[1] > 1 else (flat[:, 0] == 0)
    level: list[int] = np.flatnonzero(is_level).tolist()
    stream = random_stream(seed, "blank vectors")
    pairs = stream.integers(0, len(flat), (_PAIRS, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    usual = float(np.median(np.linalg.norm(np.subtract(*flat[pairs.T]), axis=1))) if len(pairs) else 0.0
    varied_rows = np.flatnonzero(~is_level)
    repeated, close = (
        sorted(_repeated(flat, varied_rows, stream, least), key=len, reverse=True) for least in (0.0, _NEARLY * usual)
    )
    # A chain of neighbours is no vector that all of them have.
    close = [
        rows for rows in close if np.linalg.norm(flat[rows] - flat[rows].mean(axis=0), axis=1).max() <= _NEARLY * usual
    ]
    if not repeated and not close:
        return level, (), False, ()
    at_random = float(np.mean([likeness(left, right) for left, right in pairs.tolist()] or [0.0]))

    def unrelated(rows: Sequence[int]) -> bool:
        if at_random > _TEMPLATE:
            return False
        every = list(combinations(rows[: _OUTSTANDING * 5], 2))
        sample = stream.permutation(len(every))[:_PAIRS]
        return float(np.mean([likeness(*every[pair]) for pair in sample])) <= at_random + _RELATED * (1 - at_random)

    def outstanding(groups: Sequence[Sequence[int]]) -> Sequence[int]:
        following = len(groups[1]) if len(groups) > 1 else 1
        return groups[0] if groups and len(groups[0]) >= _OUTSTANDING * following and unrelated(groups[0]) else []

    equal = outstanding(repeated)
    nearly = not equal
    if nearly:
        equal = outstanding(close)
    copied = [rows for rows in repeated if not set(rows) & set(equal)]
    few = sum(map(len, copied)) <= most * len(flat)
    return level, equal, nearly, [row for rows in copied if few and unrelated(rows) for row in rows]


def _repeated(flat: Array, rows: IntArray, stream: np.random.Generator, least: float) -> Iterator[list[int]]:
    """These rows by what is one vector, where several are: such vectors are next to each other in any direction.

    They are one where they differ by no more than rounding, or than ``least``.
    """
    lengths = np.linalg.norm(flat[rows].astype(np.float64), axis=1)
    places = flat[rows] @ stream.standard_normal(flat.shape[1])
    order = np.argsort(places, kind="stable")
    edges: list[IntArray] = []
    for step in range(1, min(_BESIDE, len(rows) - 1) + 1):
        pairs = np.stack([order[:-step], order[step:]])
        allowed = np.maximum(_ROUNDING * np.maximum(*lengths[pairs]), least)
        near = np.abs(np.subtract(*places[pairs])) <= 5 * allowed  # of a normal distribution
        pairs, allowed = pairs[:, near], allowed[near]
        apart = np.linalg.norm(np.subtract(*(flat[rows[side]].astype(np.float64) for side in pairs)), axis=1)
        edges.append(pairs[:, apart <= allowed])
    first, second = np.concatenate([np.zeros((2, 0), np.int64), *edges], axis=1)
    links = coo_array((np.ones(len(first)), (first, second)), shape=(len(rows), len(rows)))
    labels = connected_components(links, directed=False)[1]
    together = np.argsort(labels, kind="stable")
    for members in np.split(rows[together], np.flatnonzero(np.diff(labels[together])) + 1):
        if len(members) > 1:
            yield members.tolist()


def _overlap(left: Sequence[str], right: Sequence[str]) -> float:
    """The share of the words of either that both have."""
    return len(set(left) & set(right)) / max(len(set(left) | set(right)), 1)


def _same_picture(left: str, right: str) -> bool:
    """Whether two files hold the same bytes, or the same pixels."""
    try:
        if filecmp.cmp(left, right, shallow=False):
            return True
        return np.array_equal(np.asarray(as_picture(left)), np.asarray(as_picture(right)))
    except (OSError, InputError):
        return False


@finding_kind(
    "norms",
    "The lengths of the vectors cost {points} of {metric}: {right} by their inner product, {unit} by cosine. Of the "
    "queries that are lost, {longest} retrieve one of the {items} with the longest tenth of the vectors.",
    stage="soundness", strengths=(0.2, 0.5, 1.0), strength_words="lengths that vary by a factor of e^{:.1f}",
    unsound=True, causes=("hub",),
)  # fmt: skip
def plant_norms(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Images whose vectors are multiplied with log-normal factors; nothing where the score ignores lengths."""
    if subject.images is None or subject.score != "dot" or len(subject.images.shape) != 2:
        return Planted(subject)
    factors = np.exp(strength * stream.standard_normal(len(subject.images)))
    vectors = subject.images.vectors * factors[:, None].astype(subject.images.dtype)
    return Planted.at(subject.with_vectors(vectors), images=_longest(factors))


def _longest(lengths: FloatArray) -> IntArray:
    """The tenth of the rows with the longest vectors."""
    return np.argsort(-lengths)[: max(1, len(lengths) // 10)]


def norms(subject: Subject, firsts: Mapping[str, Firsts]) -> Iterator[Observation]:
    """Hit@1 of the same vectors at length 1 minus Hit@1 of the inner product, in both directions."""
    images, captions = subject.images, subject.captions
    if subject.score != "dot" or images is None or captions is None or not subject.has_vectors:
        return
    lengths_of, units = {}, []
    for name, side in (("image", images), ("caption", captions)):
        lengths_of[name] = np.linalg.norm(np.asarray(side.vectors, np.float64), axis=1)
        unit = side.vectors / np.where(lengths_of[name] > 0, lengths_of[name], 1)[:, None]
        units.append(unit.astype(np.float32))
    by_cosine = Firsts.of(subject.with_vectors(*units))
    for direction, first in firsts.items():
        cosine, ids = by_cosine[direction].ranking, first.ranking
        if ids.item_ids != cosine.item_ids or ids.query_ids != cosine.query_ids:
            continue
        lengths = lengths_of[first.item]
        rows = np.flatnonzero(first.answerable)
        by_unit, by_product = (side.right[rows].astype(np.float64) for side in (by_cosine[direction], first))
        test = paired_permutation(
            by_unit, by_product, first.images[rows], permutations=_PERMUTATIONS, bounds=(0, 1), seed=subject.seed
        )
        effect = Effect.of("points", test.difference, *test.interval)
        level = bool(np.ptp(lengths) <= _LEVEL_LENGTHS * lengths.mean())
        lost = rows[by_unit > by_product]
        by_long = np.isin(first.items[lost], _longest(lengths))
        words = {
            "points": Figure.share(*effect[:3], unit=" points"), "metric": f"{direction}/Hit@1",
            "right": Figure.share(float(by_product.mean())), "unit": Figure.share(float(by_unit.mean())),
            "items": f"{first.item}s", "longest": Figure.share(float(by_long.mean()) if len(by_long) else 0.0),
        }  # fmt: skip
        p = float(test.p_value) if test.difference >= STATED_SIZE and not level else 1.0
        evidence = first.evidence(lost[np.argsort(~by_long, kind="stable")]) if p < 0.05 else ()
        yield Observation("norms", words, effect, max(effect.value, 0.0), p, evidence=evidence, subject=direction)
