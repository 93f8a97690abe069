"""What comes first too often or by chance: hubs, and ties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosslens.analyze.soundness.firsts import ITEMS, QUERIES, Firsts, count, effect_of, interval_of, percent
from crosslens.analyze.subject import Planted, Subject
from crosslens.core import Array, Effect, Embeddings, Observation, finding_kind

_MOST_HUBS = 3
_TAIL = 20
_FEWEST_QUERIES = 10
_SMALLEST_HUB = 0.01
_RATIO = 2.0
"""A hub comes first, without being right, for so many queries and so many times as often as the next item."""
_NOTICEABLE_TIES = 0.005


@finding_kind(
    "hub",
    "{items} first for {share} of the {queries} without being right; the next item, for {next}.",
    stage="soundness", strengths=(0.02, 0.05, 0.1),
    strength_words="an image that comes first for {:.0%} of the captions", unsound=True, causes=("norms",),
)  # fmt: skip
def plant_hub(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """An image that scores highest for captions drawn at random, and as before for the others.

    Captions get two further dimensions, those drawn the first and the others the second, so that all become longer
    alike; only the image has something in the first.
    """
    images, captions = subject.images, subject.captions
    if images is None or captions is None or len(images.shape) != 2 or subject.score not in ("cosine", "dot"):
        return Planted(subject, frozenset())
    row = int(stream.integers(len(images)))
    drawn = stream.permutation(len(captions)) < max(1, round(strength * len(captions)))

    def longer(vectors: Array, column: Array | int) -> Array:
        """By four times their length: the image then wins, whatever the angle to the others."""
        extra = np.zeros((len(vectors), 2))
        extra[np.arange(len(vectors)), column] = 4 * np.linalg.norm(vectors.astype(np.float64), axis=1)
        return np.concatenate([vectors, extra], axis=1).astype(np.float32)

    def encode(texts: Sequence[str]) -> Array:
        assert subject.encode is not None
        return longer(subject.encode(texts), 1)

    wide = np.concatenate([images.vectors, np.zeros((len(images), 2))], axis=1).astype(np.float32)
    wide[row, -2] = np.linalg.norm(images.vectors.astype(np.float64), axis=1).max()
    changed = replace(
        subject, images=Embeddings(images.ids, wide),
        captions=Embeddings(captions.ids, longer(captions.vectors, np.where(drawn, 0, 1))),
        encode=None if subject.encode is None else encode,
    )  # fmt: skip
    return Planted(changed.ranked(), frozenset([subject.dataset.image_ids[row]]))


def hubs(firsts: Mapping[str, Firsts]) -> Iterator[Observation]:
    """Items that come first without being right far more often than any other.

    Every model has items that come first too often. Their counts fall off at least as fast as an exponential
    distribution, whose largest exceeds the next by β on average; β is estimated from the items below.
    """
    for direction, first in firsts.items():
        wrong = np.flatnonzero(first.asked & ~first.right & (first.items >= 0))
        counts = np.bincount(first.items[wrong], minlength=len(first.ranking.item_ids))
        order = np.argsort(-counts, kind="stable")
        top = counts[order[: _TAIL + _MOST_HUBS + 1]].astype(np.float64)
        number, p = _hubs_in(top, int(first.asked.sum()))
        concerned = np.isin(first.items, order[:number]) & first.asked & ~first.right
        asked = first.asked
        effect = effect_of(interval_of(concerned[asked], first.images[asked]), "share of queries")
        names = ", ".join(first.ranking.item_ids[item] for item in order[:number])
        noun = ITEMS[direction]
        following = float(top[number] / max(asked.sum(), 1)) if number < len(top) else 0.0
        words = {
            "items": f"The {noun} {names} comes" if number == 1 else f"{count(number, noun)} ({names}) come",
            "share": percent(effect), "queries": QUERIES[direction], "next": percent(following),
        }  # fmt: skip
        evidence = first.evidence(np.flatnonzero(concerned)) if p < 0.05 else ()
        yield Observation("hub", words, effect, effect.value, p, evidence=evidence, subject=direction)


def _hubs_in(top: Array, queries: int) -> tuple[int, float]:
    """How many of the most frequent items are hubs, and p for that many: the least of one, two and three."""
    best = (1, 1.0)
    for number in range(1, min(_MOST_HUBS, len(top) - 2) + 1):
        last, following, tail = top[number - 1], top[number], top[number:]
        if last < max(_FEWEST_QUERIES, _SMALLEST_HUB * queries, _RATIO * following):
            continue
        spread = max(float((tail[:-1] - tail[-1]).mean()), np.sqrt(following), 1.0)
        p = min(1.0, _MOST_HUBS * float(np.exp(-(last - following) / spread)))
        best = min(best, (number, p), key=lambda pair: pair[1])
    return best


@finding_kind(
    "ties",
    "Ties decide {points} of {metric}: it is {worst} if they are all lost and {best} if they are all won.",
    stage="soundness", strengths=(0.02, 0.1, 0.3),
    strength_words="{:.0%} of the images with the vector of another", unsound=True, causes=("blank-vectors",),
)  # fmt: skip
def plant_ties(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Images with the vector of another, in pairs."""
    if subject.images is None or subject.captions is None or len(subject.images.shape) != 2:
        return Planted(subject, frozenset())
    images = len(subject.images)
    pairs = stream.permutation(images)[: 2 * max(1, round(strength * images / 2))].reshape(-1, 2)
    vectors = subject.images.vectors[pairs[:, 0]]
    moved = subject.images.with_rows(pairs[:, 1], vectors)
    tied = np.isin(subject.owner, pairs)
    ids = [subject.dataset.caption_ids[row] for row in np.flatnonzero(tied)]
    return Planted(replace(subject, images=moved).ranked(), frozenset(ids))


def ties(firsts: Mapping[str, Firsts]) -> Iterator[Observation]:
    """What the rule for equal scores decides of Hit@1: counted, not estimated."""
    for direction, first in firsts.items():
        ranking, asked = first.ranking, first.asked
        at_top = ranking.above == 0
        won = np.bincount(ranking.rows, at_top, len(asked)) > 0
        # All items of the highest score are relevant.
        others = np.zeros(len(asked), np.int64)
        np.maximum.at(others, ranking.rows[at_top], ranking.tied[at_top])
        lost = won & (others + 1 > np.bincount(ranking.rows, at_top, len(asked)))
        if not asked.any():
            continue
        effect = effect_of(interval_of(lost[asked], first.images[asked]), "points")
        effect = Effect(effect.value, effect.value, effect.value, "points")  # of these queries it is exact
        optimistic = float(won[asked].mean())
        words = {
            "points": percent(effect.value, " points"), "metric": f"{direction}/Hit@1",
            "worst": percent(optimistic - effect.value), "best": percent(optimistic),
        }  # fmt: skip
        rows = np.flatnonzero(lost & asked)
        p = 0.0 if effect.value > _NOTICEABLE_TIES else 1.0
        evidence = first.evidence(rows) if p == 0 else ()
        yield Observation("ties", words, effect, effect.value, p, evidence=evidence, subject=direction)
