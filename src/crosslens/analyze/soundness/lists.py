"""What comes first too often or by chance: hubs, and ties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosslens.analyze.soundness.firsts import Firsts, share_of
from crosslens.analyze.subject import Planted, Subject
from crosslens.core import STATED_SIZE, Effect, Figure, Observation, finding_kind
from crosslens.metrics import format_count
from crosslens.storage import Array

_MOST_HUBS = 3
_TAIL = 40
_FEWEST_QUERIES = 10
_SMALLEST_HUB = 0.01
_RATIO = 2.25
"""A hub comes first, without being right, for so many queries and so many times as often as the next item."""


@finding_kind(
    "hub",
    "{items} first for {share} of the {queries} without being right; the next item, for {next}.",
    stage="soundness", strengths=(0.02, 0.05, 0.1),
    strength_words="an image that comes first for {:.0%} of the captions", unsound=True, causes=("norms",),
    silences=("group",),  # whose captions the hub takes is no property of the groups
)  # fmt: skip
def plant_hub(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """An image that scores highest for captions drawn at random, and as before for the others.

    Captions get two further dimensions, those drawn the first and the others the second, so that all become longer
    alike; only the image has something in the first.
    """
    images, captions, encode = subject.images, subject.captions, subject.encode
    if images is None or captions is None or len(images.shape) != 2 or subject.score not in ("cosine", "dot"):
        return Planted(subject)
    row = int(stream.integers(len(images)))
    misled = stream.permutation(len(captions)) < max(1, round(strength * len(captions)))

    def longer(vectors: Array, column: Array | int) -> Array:
        """By four times their length: the image then wins, whatever the angle to the others."""
        extra = np.zeros((len(vectors), 2))
        extra[np.arange(len(vectors)), column] = 4 * np.linalg.norm(vectors.astype(np.float64), axis=1)
        return np.concatenate([vectors, extra], axis=1).astype(np.float32)

    def encode_longer(texts: Sequence[str]) -> Array:
        assert encode is not None
        return longer(encode(texts), 1)

    wide = np.pad(images.vectors, ((0, 0), (0, 2))).astype(np.float32)
    wide[row, -2] = np.linalg.norm(images.vectors.astype(np.float64), axis=1).max()
    changed = subject.with_vectors(wide, longer(captions.vectors, np.where(misled, 0, 1)))
    return Planted.at(replace(changed, encode=encode and encode_longer), images=[row])


def hubs(firsts: Mapping[str, Firsts]) -> Iterator[Observation]:
    """Items that come first without being right far more often than any other.

    Every model has items that come first too often. Their counts fall off at least as fast as an exponential
    distribution, whose largest exceeds the next by β on average; β is estimated from the items below those
    that may be hubs, of which is known that they come at least as often; p allows for how few they are (the ratio of
    the two has an F distribution). β is at least the Poisson deviation of the next count, which is no surer than that.
    """
    for direction, first in firsts.items():
        answerable, wrong = first.answerable, first.answerable & ~first.right & (first.items >= 0)
        counts = np.bincount(first.items[wrong], minlength=len(first.ranking.item_ids))
        order = np.argsort(-counts, kind="stable")
        top = counts[order[: _TAIL + _MOST_HUBS + 1]].astype(np.float64)
        number, p = _hubs_in(top, int(answerable.sum()))
        concerned = wrong & np.isin(first.items, order[:number])
        effect = share_of(concerned[answerable], first.images[answerable], "share of queries")
        names = ", ".join(first.ranking.item_ids[item].rpartition("/")[2] for item in order[:number])
        many = f"{format_count(number, first.item)} ({names}) come"
        following = float(top[number] / max(answerable.sum(), 1)) if number < len(top) else 0.0
        words = {
            "items": f"The {first.item} {names} comes" if number == 1 else many, "queries": f"{first.query}s",
            "share": Figure.share(*effect[:3]), "next": Figure.share(following),
        }  # fmt: skip
        evidence = first.evidence(np.flatnonzero(concerned)) if p < 0.05 else ()
        yield Observation("hub", words, effect, effect.value, p, evidence=evidence, subject=direction)


def _hubs_in(top: Array, queries: int) -> tuple[int, float]:
    """How many of the most frequent items are hubs, and p for that many: the least of one, two and three."""
    best, tail = (1, 1.0), top[_MOST_HUBS:]  # other hubs are no sample of what is usual
    below = len(tail) - 1
    if below < 2:
        return best
    spread = max(float((tail[:-1] - tail[-1]).sum() + _MOST_HUBS * (tail[0] - tail[-1])) / below, 1.0)
    for number in range(1, _MOST_HUBS + 1):
        last, following = top[number - 1], top[number]
        if last >= max(_FEWEST_QUERIES, _SMALLEST_HUB * queries, _RATIO * following):
            gaps = float(last - following) / max(spread, float(np.sqrt(following)))
            p = min(1.0, _MOST_HUBS * (1 + gaps / below) ** -below)
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
        return Planted(subject)
    vectors = np.array(subject.images.vectors)
    pairs = stream.permutation(len(vectors))[: 2 * max(1, round(strength * len(vectors) / 2))].reshape(-1, 2)
    vectors[pairs[:, 1]] = vectors[pairs[:, 0]]
    return Planted.at(subject.with_vectors(vectors), captions=np.flatnonzero(np.isin(subject.owner, pairs)))


def ties(firsts: Mapping[str, Firsts]) -> Iterator[Observation]:
    """What the rule for equal scores decides of Hit@1: counted, not estimated."""
    for direction, first in firsts.items():
        ranking, answerable = first.ranking, first.answerable
        if not answerable.any():
            continue
        at_top = ranking.above == 0
        relevant = np.bincount(ranking.rows, at_top, len(answerable))
        tied_items = np.zeros(len(answerable), np.int64)
        np.maximum.at(tied_items, ranking.rows[at_top], ranking.tied[at_top])
        lost = (relevant > 0) & (tied_items + 1 > relevant)  # else all items of the highest score are relevant
        share, best = float(lost[answerable].mean()), float((relevant > 0)[answerable].mean())
        words = {
            "points": Figure.share(share, unit=" points"), "metric": f"{direction}/Hit@1",
            "worst": Figure.share(best - share), "best": Figure.share(best),
        }  # fmt: skip
        p = 0.0 if share >= STATED_SIZE else 1.0
        evidence = () if p else first.evidence(np.flatnonzero(lost & answerable))
        effect = Effect(share, share, share, "points")
        yield Observation("ties", words, effect, share, p, evidence=evidence, subject=direction)
