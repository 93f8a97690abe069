"""Are the vectors those of the items? Blank, equal and copied vectors, and lengths that decide."""

from __future__ import annotations

import filecmp
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from crosslens.analyze.soundness.firsts import ITEMS, MOST_EVIDENCE, Firsts, percent
from crosslens.analyze.subject import Planted, Subject
from crosslens.core import (
    STATED_SIZE,
    TEXT_TO_IMAGE,
    Array,
    Effect,
    Embeddings,
    InputError,
    IntArray,
    Observation,
    finding_kind,
    random_stream,
)
from crosslens.encode import as_picture
from crosslens.statistics import paired_permutation

_NOTICEABLE = 0.005
"""The share of blank vectors from which on it is said for certain; fewer are worth a look."""
_OUTSTANDING = 5
"""A blank vector is that of so many items, and of so many times as many as the next that several have."""
_RELATED = 0.25
"""How far from unrelated to equal the texts of two items may be that have one vector for no reason."""
_TEMPLATE = 0.6
"""Where two items drawn at random have more in common, nobody can tell what is related."""
_PAIRS = 300
_WORD = re.compile(r"\w+")
_LEVEL_LENGTHS = 1e-3
_PERMUTATIONS = 2000


@finding_kind(
    "blank-vectors",
    "{share} of the {side} have {what}.",
    stage="soundness", strengths=(0.01, 0.05, 0.1), strength_words="{:.0%} of the images with one blank vector",
    unsound=True, causes=("hub", "ties", "norms"),
)  # fmt: skip
def plant_blank_vectors(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Images with the mean vector, or with zeros where these have a score."""
    if subject.images is None or subject.captions is None:
        return Planted(subject, frozenset())
    rows = np.sort(stream.choice(len(subject.images), max(2, round(strength * len(subject.images))), replace=False))
    vectors = subject.images.vectors
    blank = np.zeros_like(vectors[0]) if subject.score == "dot" else vectors.mean(axis=0)
    images = subject.images.with_rows(rows, np.repeat(blank[None], len(rows), axis=0))
    ids = frozenset(subject.dataset.image_ids[row] for row in rows)
    return Planted(replace(subject, images=images).ranked(), ids)


def blank_vectors(subject: Subject) -> Iterator[Observation]:
    """Vectors of equal numbers, one vector of many items, and vectors of other items; counted, not estimated.

    Encoders that ignore or cut off a part of their input give equal vectors to items that have much in common. What
    counts has as little in common as two items drawn at random.
    """
    dataset = subject.dataset
    spelled = [_WORD.findall(text.lower()) for text in dataset.texts]
    words = [frozenset(text) for text in spelled]
    of_image: list[set[str]] = [set() for _ in dataset.image_ids]
    for caption, image in enumerate(subject.owner):
        of_image[image] |= words[caption]

    def caption_likeness(left: int, right: int) -> float:
        half = max(1, min(len(spelled[left]), len(spelled[right])) // 2)
        return 1.0 if spelled[left][:half] == spelled[right][:half] else _overlap(words[left], words[right])

    def image_likeness(left: int, right: int) -> float:
        files = [subject.pictures.get(dataset.image_ids[row]) for row in (left, right)]
        if files[0] is not None and files[1] is not None and _same_picture(files[0], files[1]):
            return 1.0
        return _overlap(of_image[left], of_image[right])

    sides = (
        ("images", subject.images, dataset.image_ids, image_likeness, "although their captions differ"),
        ("captions", subject.captions, dataset.caption_ids, caption_likeness, "although they differ"),
    )
    for side, embeddings, ids, likeness, despite in sides:
        if embeddings is None or not len(embeddings) or (side == "images" and dataset.corpus is not None):
            continue  # where texts stand for the images, equal texts have equal vectors
        level, one, copied = _blank_rows(embeddings, likeness, subject.seed)
        kinds = (
            (level, "a vector of zeros, or of one number everywhere"),
            (one, f"one and the same vector, {despite}"),
            (copied, f"a vector that another has too, {despite}"),
        )
        for number, (rows, what) in enumerate(kinds):
            if number and not len(rows):
                continue
            share = len(rows) / len(ids)
            effect = Effect(share, share, share, f"share of {side}")
            text = {"share": f"{percent(share)} ({len(rows):,})", "side": side, "what": what}
            evidence = [{"item" if side == "images" else "query": ids[row]} for row in rows[:MOST_EVIDENCE]]
            # Without pictures nobody can tell whether an image is there twice.
            certain = share >= _NOTICEABLE and (number < 2 or side == "captions" or bool(subject.pictures))
            p = (0.0 if certain else None) if len(rows) else 1.0
            yield Observation(
                "blank-vectors", text, effect, share, p, worth_a_look=p is None, evidence=evidence,
                subject=f"{side}: {('level', 'equal', 'copied')[number]}",
            )  # fmt: skip


def _blank_rows(
    embeddings: Embeddings, likeness: Callable[[int, int], float], seed: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Rows of equal numbers, rows of one vector that outnumber all others, and rows that repeat some vector."""
    flat = np.ascontiguousarray(embeddings.vectors).reshape(len(embeddings), -1)
    level = (flat == flat[:, :1]).all(axis=1) if flat.shape[1] > 1 else (flat[:, 0] == 0)
    groups: dict[bytes, list[int]] = {}
    for row in np.flatnonzero(~level):
        groups.setdefault(flat[row].tobytes(), []).append(int(row))
    repeated = sorted((rows for rows in groups.values() if len(rows) > 1), key=len, reverse=True)
    one: list[int] = []
    copied: list[int] = []
    if repeated:
        stream = random_stream(seed, "blank vectors")
        pairs = stream.integers(0, len(flat), (_PAIRS, 2))
        at_random = float(np.mean([likeness(*map(int, pair)) for pair in pairs if pair[0] != pair[1]] or [0.0]))
        limit = at_random + _RELATED * (1 - at_random)

        def unrelated(rows: Sequence[int]) -> bool:
            if at_random > _TEMPLATE:
                return False
            every = list(combinations(rows[: _OUTSTANDING * 5], 2))
            drawn = stream.permutation(len(every))[:_PAIRS]
            return float(np.mean([likeness(*every[pair]) for pair in drawn])) <= limit

        next_largest = len(repeated[1]) if len(repeated) > 1 else 1
        if len(repeated[0]) >= _OUTSTANDING * next_largest and unrelated(repeated[0]):
            one = repeated.pop(0)
        # Of an encoder that tells few things apart most vectors are repeated: none is a copy.
        if sum(map(len, repeated)) <= len(flat) / 2:
            copied = [row for rows in repeated if unrelated(rows) for row in rows]
    return np.flatnonzero(level), np.array(one, np.int64), np.array(copied, np.int64)


def _overlap(left: frozenset[str] | set[str], right: frozenset[str] | set[str]) -> float:
    return len(left & right) / max(len(left | right), 1)


def _same_picture(left: str, right: str) -> bool:
    """Whether two files hold the same bytes, or the same pixels."""
    try:
        if filecmp.cmp(left, right, shallow=False):
            return True
        first, second = (np.asarray(as_picture(file)) for file in (left, right))
    except (OSError, InputError):
        return False
    return first.shape == second.shape and bool((first == second).all())


@finding_kind(
    "norms",
    "The lengths of the vectors cost {points} of {metric}: {right} by their inner product, {unit} by cosine. The "
    "longest tenth of the {items} comes first for {longest} of what is lost.",
    stage="soundness", strengths=(0.2, 0.5, 1.0), strength_words="lengths that vary by a factor of e^{:.1f}",
    unsound=True, causes=("hub",),
)  # fmt: skip
def plant_norms(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Images whose vectors are multiplied with log-normal factors; nothing where the score ignores lengths."""
    if subject.images is None or subject.score != "dot" or len(subject.images.shape) != 2:
        return Planted(subject, frozenset())
    factors = np.exp(strength * stream.standard_normal(len(subject.images)))
    rows = np.arange(len(factors))
    images = subject.images.with_rows(rows, subject.images.vectors * factors[:, None].astype(subject.images.dtype))
    longest = np.argsort(-factors)[: max(1, len(factors) // 10)]
    return Planted(
        replace(subject, images=images).ranked(), frozenset(subject.dataset.image_ids[row] for row in longest)
    )


def norms(subject: Subject, firsts: Mapping[str, Firsts]) -> Iterator[Observation]:
    """Hit@1 of the same vectors at length 1 minus Hit@1 of the inner product, in both directions."""
    images, captions = subject.images, subject.captions
    if subject.score != "dot" or images is None or captions is None or "single" not in (images.kind, captions.kind):
        return
    lengths, units = {}, {}
    for name, side in (("image", images), ("caption", captions)):
        vectors = np.asarray(side.vectors, np.float32)
        lengths[name] = np.linalg.norm(vectors.astype(np.float64), axis=1)
        units[name] = (vectors / np.where(lengths[name] > 0, lengths[name], 1)[:, None]).astype(np.float32)
    for direction, first in firsts.items():
        item, query = ITEMS[direction], "caption" if direction == TEXT_TO_IMAGE else "image"
        ids = {"image": subject.dataset.image_ids, "caption": subject.dataset.caption_ids}
        if first.ranking.item_ids != ids[item] or first.ranking.query_ids != ids[query]:
            continue
        found = _first_items(units[query], units[item])
        owner = np.arange(len(ids["image"])) if item == "image" else subject.owner
        asked = np.flatnonzero(first.asked)
        by_unit = (owner[found] == first.images)[asked].astype(np.float64)
        by_product = first.right[asked].astype(np.float64)
        level = bool(np.ptp(lengths[item]) <= _LEVEL_LENGTHS * lengths[item].mean())
        test = paired_permutation(
            by_unit, by_product, first.images[asked], permutations=_PERMUTATIONS, bounds=(0, 1), seed=subject.seed
        )
        low, high = (None if np.isnan(end) else end for end in test.interval)
        effect = Effect(test.difference, low, high, "points")
        noticeable = not level and test.difference >= STATED_SIZE
        lost = asked[(by_unit == 1) & (by_product == 0)]
        longest = np.argsort(-lengths[item])[: max(1, len(lengths[item]) // 10)]
        taken = np.isin(first.items[lost], longest)
        words = {
            "points": percent(effect, " points"), "metric": f"{direction}/Hit@1",
            "right": percent(float(by_product.mean())), "unit": percent(float(by_unit.mean())), "items": f"{item}s",
            "longest": percent(float(taken.mean()) if len(taken) else 0.0),
        }  # fmt: skip
        p = float(test.p_value) if noticeable else 1.0
        evidence = first.evidence(lost[np.argsort(~taken, kind="stable")]) if p < 0.05 else ()
        yield Observation("norms", words, effect, max(effect.value, 0.0), p, evidence=evidence, subject=direction)


def _first_items(queries: Array, items: Array) -> IntArray:
    """The row of the item with the largest inner product, by query."""
    first = np.empty(len(queries), np.int64)
    step = max(1, 20_000_000 // max(len(items), 1))
    for start in range(0, len(queries), step):
        first[start : start + step] = np.argmax(queries[start : start + step] @ items.T, axis=1)
    return first
