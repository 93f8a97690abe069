"""Do rows belong together? A ranking at chance level, and vectors that stand in the rows of other items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from crosslens.analyze.soundness.firsts import MOST_EVIDENCE, Firsts, effect_of, interval_of, percent
from crosslens.analyze.subject import Planted, Subject
from crosslens.core import (
    STATED_SIZE,
    TEXT_TO_IMAGE,
    Array,
    BoolArray,
    Effect,
    FloatArray,
    IntArray,
    Observation,
    finding_kind,
)
from crosslens.statistics import Bootstrap, Estimate, sum_of_means

_STATED_PLACES = 0.1
"""What the mean place in the list may be better than the middle, as a share of the list, to be called chance."""
_STATED_RANKS = 5
"""In a small gallery, chance is hit as often as by drawing so many items rather than one."""
_SURE = 0.98
_PERIODS = 3
_STAKES = (0.9, 0.5, 0.2)
_FEWEST_ROWS = 5
_FAR, _SMALLEST_GALLERY = 10, 40
"""The own image is far down where it is not among the first ten of at least forty."""
_SEARCHED = 60
"""Offsets that are looked at, those with the most queries first: p allows for all of them."""
_LIKELY = 1.92
"""How far below the best the log-likelihood may be inside a 95 % interval."""


@finding_kind(
    "chance",
    "The ranking of {directions} is at chance level: the right item is first for {hits} (chance: {chance}), and on "
    "average it stands {places} down the list.",
    stage="soundness", strengths=(1.0,), strength_words="{:.0%} of the image vectors in random order",
    silences=("*",), unsound=True,
)  # fmt: skip
def plant_chance(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Vectors of images in random order."""
    if subject.images is None or subject.captions is None:
        return Planted(subject, frozenset())
    rows = np.arange(len(subject.images))
    moved = stream.choice(rows, round(strength * len(rows)), replace=False)
    rows[np.sort(moved)] = moved
    return Planted(_with_images(subject, rows), _concerned(subject, rows))


@finding_kind(
    "misaligned",
    "{share} of the captions are compared with the vectors of another image: {where}, what stands {offset} is first for "
    "{there}, what belongs there for {right}.",
    stage="soundness", strengths=(0.05, 0.1, 0.3, 1.0), strength_words="{:.0%} of the image rows shifted",
    silences=("*",), unsound=True, causes=("chance",),
)  # fmt: skip
def plant_misaligned(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """A block of image rows, rotated."""
    if subject.images is None or subject.captions is None:
        return Planted(subject, frozenset())
    rows = np.arange(len(subject.images))
    size = max(2, round(strength * len(rows)))
    start = int(stream.integers(0, len(rows) - size + 1))
    rows[start : start + size] = np.roll(rows[start : start + size], int(stream.integers(1, size)))
    return Planted(_with_images(subject, rows), _concerned(subject, rows))


def _with_images(subject: Subject, rows: IntArray) -> Subject:
    """The subject whose images have the vectors of these rows."""
    assert subject.images is not None
    return replace(subject, images=subject.images.part(rows, subject.images.ids)).ranked()


def _concerned(subject: Subject, rows: IntArray) -> frozenset[str]:
    moved = rows != np.arange(len(rows))
    captions = np.flatnonzero(moved[subject.owner])
    return frozenset([subject.dataset.caption_ids[row] for row in captions]) | frozenset(
        subject.dataset.image_ids[row] for row in np.flatnonzero(moved)
    )


def chance(subject: Subject, firsts: Mapping[str, Firsts]) -> Iterator[Observation]:
    """Whether the ranking is no better than a random one: both hits and places in the list are bounded from above."""
    parts, levels = [], []
    for direction in firsts.values():
        rows = np.flatnonzero(direction.asked)
        images = direction.images[rows]
        if not len(rows) or len(np.unique(images)) < 2:
            continue
        columns = [direction.right[rows], direction.within_ten[rows], direction.places[rows]]
        parts.append((Bootstrap(images, 1000, subject.seed), [column.astype(np.float64) for column in columns]))
        share = direction.ranking.relevant_counts[rows] / direction.gallery
        levels.append((float(share.mean()), float(1 - ((1 - share) ** 10).mean()), direction.gallery))
    if not parts:
        return
    directions = len(parts)
    level, ten, _ = (float(column) for column in np.mean(levels, axis=0))
    gallery = min(size for *_, size in levels)

    def both(column: int, confidence: float) -> Estimate:
        bounds = (0.0, float(directions)) if column < 2 else None
        figure = sum_of_means([(draws, values[column]) for draws, values in parts], confidence, bounds)
        ends = (figure.mean if np.isnan(end) else end for end in figure.interval)
        return Estimate(figure.mean / directions, *(end / directions for end in ends))

    hits, places = both(0, 0.95), both(2, 0.95)
    stated = max(STATED_SIZE, _STATED_RANKS / gallery)
    bounded = hits.high <= level + stated and places.high <= 0.5 + _STATED_PLACES
    # What is weak is not absent: nothing may be surely better than chance.
    better = any(
        both(column, _SURE).low > expected + 1e-9 for column, expected in ((0, level), (1, ten), (2, 0.5))
    )  # fmt: skip
    effect = effect_of(hits, "share of queries")
    down = Effect(1 - places.mean, 1 - places.high, 1 - places.low, "share of the list")
    words = {
        "directions": " and ".join({"t2i": "images by captions", "i2t": "captions by images"}[name] for name in firsts),
        "hits": percent(effect), "chance": percent(level), "places": percent(down),
    }  # fmt: skip
    yield Observation("chance", words, effect, weight=1.0, bounded=bool(bounded and not better))


class _Votes(NamedTuple):
    """What each asked query says of where its image is: its image, the one it finds, whether its own is far down.

    ``captions`` are the rows of the queries where they are captions, in ascending order; else None.
    """

    images: IntArray
    seen: IntArray
    far: BoolArray
    captions: IntArray | None
    ids: list[str]


@dataclass(frozen=True, eq=False)
class _Offset:
    """One distance between the row that a query asks for and the row that it finds.

    Per image: the share of its queries that find the image there (which is not found by what belongs to it), and of
    those that find their own; 0 and 0 where the offset changes nothing. ``moved`` are the queries that it moves.
    """

    words: str
    there: FloatArray
    right: FloatArray
    far: BoolArray
    moved: BoolArray


class _Segment(NamedTuple):
    """Rows ``start`` to ``stop`` (not included), how sure it is, and how far they may reach."""

    evidence: float
    start: int
    stop: int
    inside: tuple[int, int]
    outside: tuple[int, int]
    offset: _Offset


def misaligned(subject: Subject, firsts: Mapping[str, Firsts]) -> Iterator[Observation]:
    """Rows whose queries find the item at a constant distance rather than their own.

    A bet per image: it pays where the queries of an image find the image ``offset`` rows away, and costs as much where
    they find their own. Where rows are not shifted nobody can win by it, however alike neighbouring images are: those
    are confused both ways. Where the own image is not even among the first ten, one certain other is first in at most
    one case of ten. What a bet has won in a contiguous part of the rows is a product whose chance to pass x anywhere is
    at most 1/x for each start (Ville 1939); p counts all starts, offsets and stakes.
    """
    images = len(subject.dataset.image_ids)
    votes = _votes(subject, firsts)
    if votes is None or images < 2 * _FEWEST_ROWS:
        return
    captions_of = int(np.bincount(votes.images, minlength=1).max())
    best: _Segment | None = None
    for offset in _offsets(subject, votes, images):
        for use_far in (False, True):
            far = offset.far & use_far & (images >= _SMALLEST_GALLERY)
            gains = np.where(far, _FAR * offset.there - 1, offset.there - offset.right)
            for stake in _STAKES:
                segment = _best_segment(np.log1p(stake * gains), offset)
                if best is None or segment.evidence > best.evidence:
                    best = segment
    p, share, there, right = 1.0, Effect(0.0, 0.0, 0.0, "share of captions"), 0.0, 0.0
    words = {"share": "0 %", "where": "nowhere", "offset": "elsewhere", "there": "0 %", "right": "0 %"}
    evidence: list[Mapping[str, str]] = []
    if best is not None and best.stop - best.start >= _FEWEST_ROWS:
        rows, moved = slice(best.start, best.stop), best.offset.moved
        there, right = (float(column[rows].mean()) for column in (best.offset.there, best.offset.right))
        starts = 2 * len(_STAKES) * images * (captions_of + _FAR) * captions_of
        p = min(1.0, starts * float(np.exp(-best.evidence))) if there > right else 1.0

        def queries(start: int, stop: int) -> BoolArray:
            return moved & (votes.images >= start) & (votes.images < stop)

        reach = (queries(*ends).mean() for ends in ((best.start, best.stop), best.inside, best.outside))
        share = Effect(*(float(value) for value in reach), "share of captions")
        concerned = queries(best.start, best.stop)
        in_those = interval_of(votes.seen[concerned] == votes.images[concerned], votes.images[concerned])
        ids = subject.dataset.image_ids
        all_rows = (best.start, best.stop) == (0, images)
        words = {
            "share": percent(share),
            "where": "in all rows" if all_rows else f"in the rows of images {best.start + 1:,} to {best.stop:,} "
            f"({ids[best.start]} to {ids[best.stop - 1]})",
            "offset": best.offset.words, "there": percent(there), "right": percent(float(in_those.mean)),
        }  # fmt: skip
        if p < 0.05:
            evidence = [{"query": votes.ids[row]} for row in np.flatnonzero(concerned)[:MOST_EVIDENCE]]
    yield Observation("misaligned", words, share, weight=share.value, p=p, evidence=evidence)


def _votes(subject: Subject, firsts: Mapping[str, Firsts]) -> _Votes | None:
    """Of the captions, or where only images asked, of these."""
    direction = firsts.get(TEXT_TO_IMAGE) or next(iter(firsts.values()), None)
    if direction is None:
        return None
    rows = np.flatnonzero(direction.asked & (direction.seen >= 0))
    captions = None
    if direction.direction == TEXT_TO_IMAGE:
        positions = subject.dataset.caption_rows
        captions = np.array([positions[direction.ranking.query_ids[row]] for row in rows], np.int64)
        order = np.argsort(captions)
        rows, captions = rows[order], captions[order]
    far = ~direction.within_ten[rows] & (direction.ranking.known[rows] >= _FAR)
    ids = [direction.ranking.query_ids[row] for row in rows]
    return _Votes(direction.images[rows], direction.seen[rows], far, captions, ids) if len(rows) else None


def _offsets(subject: Subject, votes: _Votes, images: int) -> Iterator[_Offset]:
    """The distances that most queries find something at: in rows of images, and in rows of captions."""
    own = votes.seen == votes.images
    missed = np.flatnonzero(~own)
    asked = np.bincount(votes.images, minlength=images)
    # An image that its own queries find has not moved, whoever else finds it: a copy, or a hub.
    unclaimed = 1 - np.bincount(votes.images, own, images) / np.maximum(asked, 1)
    distances = (votes.seen[missed] - votes.images[missed]) % images
    everything = np.ones(len(own), np.bool_)
    for distance in _frequent(distances, images):
        there = ~own & ((votes.seen - votes.images) % images == distance)
        yield _offset(
            _rows_away(distance, images, "row"), votes, there * unclaimed[votes.seen], own, everything, images
        )
    owner = subject.owner
    captions = len(owner)
    if votes.captions is None or (captions == images and (owner == np.arange(images)).all()):
        return
    hits = np.zeros(captions, np.bool_)  # by row of the caption
    hits[votes.captions] = own
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(images + 1))
    sizes = np.diff(starts)[votes.seen[missed]]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    targets = order[np.repeat(starts[votes.seen[missed]], sizes) + within]
    for distance in _frequent((targets - np.repeat(votes.captions[missed], sizes)) % captions, captions):
        target, second = ((votes.captions + step * distance) % captions for step in (1, 2))
        moved = owner[target] != votes.images
        kept = hits[target] & (owner[second] != owner[target])
        there = moved & (votes.seen == owner[target]) & ~kept
        yield _offset(_rows_away(distance, captions, "caption"), votes, there, own, moved, images)


def _offset(words: str, votes: _Votes, there: Array, own: BoolArray, moved: BoolArray, images: int) -> _Offset:
    """The shares of each image over the queries that the offset would move."""
    asked = np.maximum(np.bincount(votes.images, moved, images), 1)
    shares = [np.bincount(votes.images, moved * column, images) / asked for column in (there, own, votes.far)]
    return _Offset(words, shares[0], shares[1], shares[2] == 1, moved)


def _frequent(distances: IntArray, rows: int) -> IntArray:
    counts = np.bincount(distances, minlength=rows)
    frequent = np.argsort(-counts, kind="stable")[:_SEARCHED]
    return frequent[(counts[frequent] >= _FEWEST_ROWS) & (frequent > 0)]


def _rows_away(distance: int, rows: int, noun: str) -> str:
    forwards = distance <= rows / 2
    size = int(distance if forwards else rows - distance)
    return f"{size:,} {noun}{'' if size == 1 else 's'} {'further down' if forwards else 'further up'}"


def _best_segment(gains: FloatArray, offset: _Offset) -> _Segment:
    """The contiguous rows that win most, and between which ends the rows may lie that are as likely."""
    sums = np.concatenate([[0.0], np.cumsum(gains)])
    lowest = np.minimum.accumulate(sums)
    stop = int(np.argmax(sums - lowest))
    start = int(np.argmin(sums[: stop + 1]))
    evidence = float(sums[stop] - sums[start])
    starts = np.flatnonzero(sums[stop] - sums[: stop + 1] >= evidence - _LIKELY)
    stops = start + np.flatnonzero(sums[start:] - sums[start] >= evidence - _LIKELY)
    inside = (int(starts.max(initial=start)), int(stops.min(initial=stop)))
    outside = (int(starts.min(initial=start)), int(stops.max(initial=stop)))
    return _Segment(evidence, start, stop, (inside[0], max(inside)), outside, offset)
