"""Do rows belong together? A ranking at chance level, and vectors that stand in the rows of other items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from crosslens.analyze.soundness.firsts import MOST_EVIDENCE, Firsts, effect_of, percent
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
from crosslens.rank import scorer_of
from crosslens.statistics import Bootstrap, Estimate, sum_of_means

_STATED_PLACES = 0.1
"""What the mean place in the list may be better than the middle, as a share of the list, to be called chance."""
_STATED_RANKS = 10
"""In a small gallery, chance is hit as often as by drawing so many items rather than one."""
_SURE = 0.98
_STAKES = (0.9, 0.5, 0.2)
_FEWEST_ROWS = 5
_FAR, _SMALLEST_GALLERY = 10, 40
"""The own image is far down where it is not among the first ten of at least forty."""
_SEARCHED = 60
"""Offsets that are looked at, those with the most queries first: p allows for all of them."""
_MOST_SCORES = 30_000_000
_PLACED = 0.9
_CLEAR = 1e-3
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
    "{share} of the captions are compared with the vectors of another image: {where}, what stands {offset} {fits}.",
    stage="soundness", strengths=(0.05, 0.1, 0.3, 1.0), strength_words="{:.0%} of the image rows shifted",
    silences=("*", "chance"), unsound=True, causes=("chance",),
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
    """Rows whose queries find, or fit, the item at a constant distance better than their own.

    A bet per image: it pays where the queries of an image find the image ``offset`` rows away, and costs as much where
    they find their own. Where rows are not shifted nobody can win by it, however alike neighbouring images are: those
    are confused both ways. Where the own image is not even among the first ten, one certain other is first in at most
    one case of ten. What a bet has won in a contiguous part of the rows is a product whose chance to pass x anywhere is
    at most 1/x for each start (Ville 1939); p counts all starts, offsets and stakes.
    """
    ids = subject.dataset.image_ids
    if len(ids) < 2 * _FEWEST_ROWS:
        return
    shifts = [shift for shift in (_found_elsewhere(subject, firsts), _fits_elsewhere(subject)) if shift is not None]
    if not shifts:
        return
    sure = [shift for shift in shifts if shift.p < _CLEAR]
    best = max(sure, key=lambda shift: shift.share) if sure else min(shifts, key=lambda shift: shift.p)
    p = min(1.0, len(shifts) * best.p)
    effect = (
        Effect(best.share, *best.reach, "share of captions")
        if p < 0.05
        else Effect(0.0, None, None, "share of captions")
    )
    start, stop = best.rows
    rows = f"in the rows of images {start + 1:,} to {stop:,} ({ids[start]} to {ids[stop - 1]})"
    words = {
        "share": percent(effect), "where": "in all rows" if stop - start == len(ids) else rows,
        "offset": best.offset, "fits": best.fits,
    }  # fmt: skip
    evidence = [{"query": query} for query in best.queries[:MOST_EVIDENCE]] if p < 0.05 else ()
    yield Observation("misaligned", words, effect, weight=effect.value, p=p, evidence=evidence)


class _Shift(NamedTuple):
    """Rows that are shifted, and how many of the queries that concerns, with the least and the most that is likely."""

    p: float
    rows: tuple[int, int]
    offset: str
    fits: str
    share: float
    reach: tuple[float, float]
    queries: list[str]


_NO_SHIFT = _Shift(1.0, (0, 1), "elsewhere", "is never first", 0.0, (0.0, 0.0), [])


def _shift(
    segment: _Segment, starts: float, images: IntArray, moved: BoolArray, ids: Sequence[str], fits: str
) -> _Shift:
    """A segment with its p; ``images`` are those of the queries, ``moved`` the queries that the offset moves."""
    if segment.stop - segment.start < _FEWEST_ROWS:
        return _NO_SHIFT

    def queries(start: int, stop: int) -> BoolArray:
        return moved & (images >= start) & (images < stop)

    reach = [float(queries(*ends).mean()) for ends in (segment.inside, segment.outside)]
    rows = (segment.start, segment.stop)
    concerned = np.flatnonzero(queries(*rows))
    shown = slice(segment.start, segment.stop)
    there, right = (float(column[shown].mean()) for column in (segment.offset.there, segment.offset.right))
    p = min(1.0, starts * float(np.exp(-segment.evidence))) if there > right else 1.0
    words = fits.format(there=percent(there), right=percent(right))
    share = len(concerned) / len(images)
    return _Shift(
        p, rows, segment.offset.words, words, share, (reach[0], reach[1]), [ids[int(row)] for row in concerned]
    )


def _found_elsewhere(subject: Subject, firsts: Mapping[str, Firsts]) -> _Shift | None:
    """By what comes first."""
    votes, images = _votes(subject, firsts), len(subject.dataset.image_ids)
    if votes is None:
        return None
    captions_of = int(np.bincount(votes.images, minlength=1).max())
    starts = 2 * len(_STAKES) * images * (captions_of + _FAR) * captions_of
    fits = "is first for {there}, what belongs there for {right}"
    shifts: list[tuple[float, _Shift]] = []
    for offset in _offsets(subject, votes, images):
        best: _Segment | None = None
        for use_far in (False, True):
            far = offset.far & use_far & (images >= _SMALLEST_GALLERY)
            best = _better(best, np.where(far, _FAR * offset.there - 1, offset.there - offset.right), offset)
        if best is not None:
            shift = _shift(best, starts, votes.images, offset.moved, votes.ids, fits)
            explained = offset.there * np.bincount(votes.images, offset.moved, images)
            shifts.append((float(explained[best.start : best.stop].sum()), shift))
    # What is shifted by an image is shifted for the last of its captions by one caption too: what explains most counts.
    sure = [(explained, shift) for explained, shift in shifts if shift.p < _CLEAR]
    if sure:
        return max(sure, key=lambda pair: pair[0])[1]
    return min((shift for _, shift in shifts), key=lambda shift: shift.p, default=_NO_SHIFT)


def _fits_elsewhere(subject: Subject) -> _Shift | None:
    """By all scores: what a weak model cannot put first may still score higher than what is there.

    Each image's scores are brought to the same mean and deviation, as some images score higher with everything. An
    image whose own captions find it in the first tenth has not moved. One row further nothing may fit as well.
    """
    images, captions, count = subject.images, subject.captions, len(subject.dataset.image_ids)
    if images is None or captions is None:
        return None
    rows = np.arange(len(captions))
    if count * len(rows) > _MOST_SCORES:
        rows = np.sort(np.unique(subject.owner, return_index=True)[1])
    if count * len(rows) > _MOST_SCORES:
        return None
    owner = subject.owner[rows]
    scores = np.array(scorer_of(images, captions.part(rows), subject.score).tile(slice(0, count), slice(0, len(rows))))
    scores -= scores.mean(axis=1, keepdims=True)
    scores /= np.maximum(scores.std(axis=1, keepdims=True), 1e-12)
    own = scores[owner, np.arange(len(rows))]
    asked = np.maximum(np.bincount(owner, minlength=count), 1)
    placed = np.bincount(owner, (scores < own).mean(axis=0), count) / asked < _PLACED
    nothing = np.zeros(count, np.bool_)

    def gains(distance: int) -> tuple[FloatArray, FloatArray]:
        target = (owner + distance) % count
        other = scores[target, np.arange(len(rows))]
        there = np.bincount(owner, (other > own) & placed[target], count) / asked
        return there, np.bincount(owner, other <= own, count) / asked

    best: _Segment | None = None
    distances: list[int] = [0]
    for distance in range(1, count):
        there, right = gains(distance)
        offset = _Offset(_rows_away(distance, count, "row"), there, right, nothing, nothing)
        segment = _better(best, there - right, offset)
        if segment is not best:
            best, distances[0] = segment, distance
    if best is None or best.stop == best.start:
        return _NO_SHIFT
    rows_there = slice(best.start, best.stop)
    beside = [np.subtract(*gains((distances[0] + step) % count))[rows_there].mean() for step in (-2, -1, 1, 2)]
    peak = (best.offset.there - best.offset.right)[rows_there].mean()
    starts = len(_STAKES) * 2.0 * count * count if peak > 2 * max(beside) else np.inf
    fits = "scores higher than what belongs there for {there} (chance: 50 %)"
    ids = [subject.dataset.caption_ids[row] for row in rows]
    return _shift(best, starts, owner, np.ones(len(rows), np.bool_), ids, fits)


def _better(best: _Segment | None, gains: FloatArray, offset: _Offset) -> _Segment | None:
    """The segment that wins most, at the best stake."""
    for stake in _STAKES:
        segment = _best_segment(np.log1p(stake * gains), offset)
        if best is None or segment.evidence > best.evidence:
            best = segment
    return best


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
