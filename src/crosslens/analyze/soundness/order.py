"""Do rows belong together? A ranking at chance level, and vectors that stand in the rows of other items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crosslens.analyze.soundness.firsts import Firsts
from crosslens.analyze.subject import Planted, Subject
from crosslens.core import STATED_SIZE, Effect, Figure, Observation, finding_kind
from crosslens.metrics import format_count
from crosslens.rank import scorer_of
from crosslens.statistics import Bootstrap, Estimate, sum_of_means
from crosslens.storage import Array, BoolArray, FloatArray, IntArray
from crosslens.values import TEXT_TO_IMAGE

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
_MOST_EXCHANGED = 0.8
"""Of the images; where more have moved, the whole ranking is at chance level."""
_LOST = 0.75
"""Of the captions of an image; by chance a few of them have it among the first ten."""
_NEARLY_ALL = 0.8
"""Neighbours in a space of few dimensions name each other: up to three in four are named."""
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
    rows = np.arange(len(subject.dataset.image_ids))
    moved = stream.choice(rows, round(strength * len(rows)), replace=False)
    rows[np.sort(moved)] = moved
    return _moved(subject, rows)


@finding_kind(
    "misaligned",
    "{share} of the captions are compared with the vectors of another image: {where}, what stands {offset} {fits}.",
    stage="soundness", strengths=(0.05, 0.1, 0.3, 1.0), strength_words="{:.0%} of the image rows shifted",
    silences=("*", "chance", "blank-vectors"), unsound=True, causes=("chance", "blank-vectors"),
)  # fmt: skip
def plant_misaligned(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """A block of image rows, rotated."""
    rows = np.arange(len(subject.dataset.image_ids))
    size = max(2, round(strength * len(rows)))
    start = int(stream.integers(0, len(rows) - size + 1))
    rows[start : start + size] = np.roll(rows[start : start + size], int(stream.integers(1, size)))
    return _moved(subject, rows)


def _moved(subject: Subject, rows: IntArray) -> Planted:
    """The images with the vectors of these rows."""
    if subject.images is None or subject.captions is None:
        return Planted(subject)
    moved = rows != np.arange(len(rows))
    changed = subject.with_vectors(subject.images.vectors[rows])
    return Planted.at(changed, images=np.flatnonzero(moved), captions=np.flatnonzero(moved[subject.owner]))


def chance(subject: Subject, firsts: Mapping[str, Firsts]) -> Iterator[Observation]:
    """Whether the ranking is no better than a random one: both hits and places in the list are bounded from above."""
    parts, levels = [], []
    for direction in firsts.values():
        rows = np.flatnonzero(direction.answerable)
        images = direction.images[rows]
        if len(np.unique(images)) >= 2:
            columns = (direction.right, direction.within(_FAR), direction.places)
            parts.append(
                (Bootstrap(images, 1000, subject.seed), [column[rows].astype(np.float64) for column in columns])
            )
            share = direction.ranking.relevant_counts[rows] / direction.gallery
            levels.append((float(share.mean()), float(1 - ((1 - share) ** _FAR).mean()), 0.5))
    if not parts:
        return
    by_chance = np.mean(levels, axis=0)
    gallery = min(direction.gallery for direction in firsts.values() if direction.answerable.any())

    def mean_of(column: int, confidence: float) -> Estimate:
        bounds = (0.0, float(len(parts))) if column < 2 else None
        figure = sum_of_means([(draws, values[column]) for draws, values in parts], confidence, bounds)
        ends = (figure.mean if np.isnan(end) else end for end in figure.interval)
        return Estimate(*(end / len(parts) for end in (figure.mean, *ends)))

    hits, places = mean_of(0, 0.95), mean_of(2, 0.95)
    margin = max(STATED_SIZE, _STATED_RANKS / gallery)
    bounded = hits.high <= by_chance[0] + margin and places.high <= 0.5 + _STATED_PLACES
    # What is weak is not absent: nothing may be surely better than chance.
    better = any(mean_of(column, _SURE).low > level + 1e-9 for column, level in enumerate(by_chance))
    words = {
        "directions": " and ".join({"t2i": "images by captions", "i2t": "captions by images"}[name] for name in firsts),
        "hits": Figure.share(hits.mean, *hits.interval),
        "chance": Figure.share(by_chance[0]),
        "places": Figure.share(1 - places.mean, 1 - places.high, 1 - places.low),
    }
    effect = Effect.of("share of queries", hits.mean, *hits.interval)
    yield Observation("chance", words, effect, weight=1.0, bounded=bool(bounded and not better))


class _Votes(NamedTuple):
    """What each asked query says of where its image is: its image, the one it finds, whether its own is far down.

    ``captions`` are the rows of the queries where they are captions, in ascending order; else None.
    """

    images: IntArray
    firsts: IntArray
    far: BoolArray
    captions: IntArray | None
    ids: list[str]


class _Offset(NamedTuple):
    """One distance between the row that a query asks for and the row that it finds.

    Per image: the share of its queries that find the image there (which is not found by what belongs to it), of those
    that find their own, and whether its own is far down for all; no queries where the offset changes nothing. ``moved``
    are the queries that it moves.
    """

    words: str
    away: FloatArray
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

    @property
    def rows(self) -> slice:
        return slice(self.start, self.stop)


class _Shift(NamedTuple):
    """Rows that are shifted, and how many of the queries that concerns, with the least and the most that is likely."""

    p: float = 1.0
    where: str = "in no rows"
    offset: str = "elsewhere"
    fits: str = "is never first"
    shares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    queries: Sequence[str] = ()


def misaligned(subject: Subject, firsts: Mapping[str, Firsts]) -> Iterator[Observation]:
    """Rows whose queries find, or fit, the item at a constant distance better than their own.

    Or the item in the mirrored row, or in the row of the own image in the order of sorted ids.

    A bet per image: it pays where the queries of an image find the image ``offset`` rows away, and costs as much where
    they find their own. Where rows are not shifted nobody can win by it, however alike neighbouring images are: those
    are confused both ways. Where the own image is not even among the first ten, one certain other is first in at most
    one case of ten. What a bet has won in a contiguous part of the rows is a product whose chance to pass x anywhere is
    at most 1/x for each start (Ville 1939); p counts all starts, offsets and stakes.

    Where no offset explains it, rows may stand in any other order, or be exchanged two by two.
    """
    ids = subject.dataset.image_ids
    votes = _votes(subject, firsts)
    shifts = [shift for shift in (_found_elsewhere(subject, votes), _fits_elsewhere(subject)) if shift is not None]
    if len(ids) < 2 * _FEWEST_ROWS or not shifts:
        return
    sure = [shift for shift in shifts if shift.p < _CLEAR]
    shifts.append(_exchanged(subject, firsts.get(TEXT_TO_IMAGE)))
    best = max(sure, key=lambda shift: shift.shares[0]) if sure else min(shifts, key=lambda shift: shift.p)
    p = min(1.0, len(shifts) * best.p)
    effect = Effect.of("share of captions", *(best.shares if p < 0.05 else (0.0,)))
    words = {"share": Figure.share(*effect[:3]), "where": best.where, "offset": best.offset, "fits": best.fits}
    evidence = [{"query": query} for query in best.queries] if p < 0.05 else ()
    yield Observation("misaligned", words, effect, weight=effect.value, p=p, evidence=evidence)


def _shift(
    segment: _Segment,
    offset: _Offset,
    starts: float,
    images: IntArray,
    queries: Sequence[str],
    fits: str,
    ids: Sequence[str],
) -> _Shift:
    """A segment with its p; ``images`` and ``queries`` are those that ask, ``ids`` those of all images."""
    if segment.stop - segment.start < _FEWEST_ROWS:
        return _Shift()
    concerned, *reach = (
        offset.moved & (images >= start) & (images < stop)
        for start, stop in (segment[1:3], segment.inside, segment.outside)
    )
    away, right = (float(column[segment.rows].mean()) for column in (offset.away, offset.right))
    p = min(1.0, starts * float(np.exp(-segment.evidence))) if away > right else 1.0
    words = fits.format(away=Figure.share(away), right=Figure.share(right))
    shares = (float(concerned.mean()), float(reach[0].mean()), float(reach[1].mean()))
    first, last = ids[segment.start], ids[segment.stop - 1]
    rows = f"in the rows of images {segment.start + 1:,} to {segment.stop:,} ({first} to {last})"
    where = "in all rows" if segment.stop - segment.start == len(ids) else rows
    return _Shift(p, where, offset.words, words, shares, [queries[row] for row in np.flatnonzero(concerned).tolist()])


def _exchanged(subject: Subject, direction: Firsts | None) -> _Shift:
    """Rows that stand in an order of their own: each lost image is found by the captions of just one other.

    Lost is an image that is far down for nearly all of its captions. Each names the lost image that comes first for
    them. Where nearly all name another one, the vectors have changed places. What a model cannot place it confuses at
    random, both ways or with the same few: p is the chance that as many random names are as many different ones.
    """
    ids = subject.dataset.image_ids
    if direction is None or len(ids) < _SMALLEST_GALLERY:
        return _Shift()
    ranking, images = direction.ranking, direction.images
    asking = direction.answerable & (ranking.known >= _FAR)
    far = np.bincount(images[asking], ~direction.within(_FAR)[asking], len(ids))
    is_lost = far >= _LOST * np.maximum(np.bincount(images[asking], minlength=len(ids)), 1)
    lost = np.flatnonzero(is_lost)
    if not _FEWEST_ROWS <= len(lost) <= _MOST_EXCHANGED * len(ids):
        return _Shift()
    rows = np.flatnonzero(asking & is_lost[images])
    position = np.full(len(ids) + 1, -1)
    position[lost] = np.arange(len(lost))
    of_items = np.array([subject.dataset.image_rows.get(item, -1) for item in ranking.item_ids])
    top = ranking.top_items[rows, :_FAR]
    retrieved = position[np.where(top < 0, -1, of_items[top])]
    votes = np.zeros((len(lost), len(lost)))
    asked, ranks = np.nonzero(retrieved >= 0)
    np.add.at(votes, (position[images[rows]][asked], retrieved[asked, ranks]), 1 / (1 + ranks))
    moved = (votes.argmax(axis=1) != np.arange(len(lost))) | ~votes.any(axis=1)  # the others name themselves
    lost, votes = lost[moved], votes[np.ix_(moved, moved)]
    if not len(lost):
        return _Shift()
    names = np.where(votes.max(axis=1) > 0, votes.argmax(axis=1), -1)
    claimed = np.unique(names[names >= 0])
    if len(claimed) <= _NEARLY_ALL * len(lost):
        return _Shift()
    p = _so_many_different(len(claimed), len(lost))
    # An image that none of the others names may be one that the model cannot place.
    exchanged = rows[np.isin(images[rows], lost[claimed])]
    away = direction.retrieved[exchanged] == lost[names[np.searchsorted(lost, images[exchanged])]]
    share, most = (float(len(part) / asking.sum()) for part in (exchanged, rows))
    first = ", ".join(ids[row] for row in lost[claimed[:3]])
    return _Shift(
        p, f"in the rows of {len(claimed):,} images ({first}, …)", "in another of these rows",
        f"is first for {Figure.share(float(away.mean()))}, what belongs there for "
        f"{Figure.share(float(direction.right[exchanged].mean()))}", (share, share, most),
        [ranking.query_ids[row] for row in exchanged],
    )  # fmt: skip


def _so_many_different(different: int, items: int) -> float:
    """The chance that as many draws as there are items, with replacement, show so many different ones or more."""
    new = 1 - np.arange(items + 1) / items
    chances = np.append(1.0, np.zeros(items))  # of having seen so many
    for _ in range(items):
        chances = chances * (1 - new) + np.append(0.0, (chances * new)[:-1])
    return float(chances[different:].sum())


def _found_elsewhere(subject: Subject, votes: _Votes | None) -> _Shift | None:
    """By what comes first."""
    images = len(subject.dataset.image_ids)
    if votes is None:
        return None
    captions_of = int(np.bincount(votes.images, minlength=1).max())
    starts = 4 * len(_STAKES) * images * (captions_of + _FAR) * captions_of
    fits = "is first for {away}, what belongs there for {right}"
    shifts: list[tuple[float, _Segment, _Shift]] = []
    for offset in _offsets(subject, votes, images):
        gains = offset.away - offset.right
        far = offset.far & (images >= _SMALLEST_GALLERY)
        segment = _best_segment(gains, np.where(far, _FAR * offset.away - 1, gains))
        explained = offset.away * np.bincount(votes.images, offset.moved, images)
        shift = _shift(segment, offset, starts, votes.images, votes.ids, fits, subject.dataset.image_ids)
        shifts.append((float(explained[segment.rows].sum()), segment, shift))
    # What is shifted by an image is shifted for the last of its captions by one caption too: what explains most counts.
    sure = sorted((entry for entry in shifts if entry[2].p < _CLEAR), key=lambda entry: -entry[0])
    if not sure:
        return min((shift for *_, shift in shifts), key=lambda shift: shift.p, default=_Shift())
    apart: list[tuple[_Segment, _Shift]] = []  # rows in an order of their own may be many shifts, each of its rows
    for _, segment, shift in sure:
        if all(segment.start >= other.stop or segment.stop <= other.start for other, _ in apart):
            apart.append((segment, shift))
    first = apart[0][1]
    if len(apart) == 1:
        return first
    low, high = (min(1.0, sum(shift.shares[end] for _, shift in apart)) for end in (1, 2))
    queries = [query for _, shift in apart for query in shift.queries]
    share = sum(shift.shares[0] for _, shift in apart)
    return first._replace(where=f"{first.where}, among others", shares=(share, low, high), queries=queries)


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
    own_scores = scores[owner, np.arange(len(rows))]
    counts = np.maximum(np.bincount(owner, minlength=count), 1)
    placed = np.bincount(owner, (scores < own_scores).mean(axis=0), count) / counts < _PLACED
    all_rows = np.ones(len(rows), np.bool_)

    def offset(distance: int) -> _Offset:
        target = (owner + distance) % count
        target_scores = scores[target, np.arange(len(rows))]
        columns = ((target_scores > own_scores) & placed[target], target_scores <= own_scores)
        away, right = (np.bincount(owner, column, count) / counts for column in columns)
        return _Offset(_rows_away(distance, count, "row"), away, right, ~all_rows, all_rows)

    def gains(distance: int) -> FloatArray:
        away, right = offset(distance)[1:3]
        return away - right

    if count < 2:
        return _Shift()
    segment, distance = max(((_best_segment(gains(d)), d) for d in range(1, count)), key=lambda pair: pair[0].evidence)
    if segment.stop == segment.start:
        return _Shift()
    peak, *beside = (gains((distance + step) % count)[segment.rows].mean() for step in (0, -2, -1, 1, 2))
    starts = len(_STAKES) * 2.0 * count * count if peak > 2 * max(beside) else np.inf
    fits = "scores higher than what belongs there for {away} (chance: 50 %)"
    queries = [subject.dataset.caption_ids[row] for row in rows]
    return _shift(segment, offset(distance), starts, owner, queries, fits, subject.dataset.image_ids)


def _votes(subject: Subject, firsts: Mapping[str, Firsts]) -> _Votes | None:
    """Of the captions, or where only images asked, of these."""
    direction = firsts.get(TEXT_TO_IMAGE) or next(iter(firsts.values()), None)
    if direction is None:
        return None
    rows, captions = np.flatnonzero(direction.answerable & (direction.retrieved >= 0)), None
    ids = direction.ranking.query_ids
    if direction.direction == TEXT_TO_IMAGE:
        captions = np.array([subject.dataset.caption_rows[ids[row]] for row in rows], np.int64)
        order = np.argsort(captions)
        rows, captions = rows[order], captions[order]
    far = ~direction.within(_FAR)[rows] & (direction.ranking.known[rows] >= _FAR)
    votes = _Votes(direction.images[rows], direction.retrieved[rows], far, captions, [ids[row] for row in rows])
    return votes if len(rows) else None


def _offsets(subject: Subject, votes: _Votes, images: int) -> Iterator[_Offset]:
    """Where most queries find something: in sorted or reverse order, at distances in rows of images or of captions."""
    is_own = votes.firsts == votes.images
    missed = np.flatnonzero(~is_own)

    def offset(words: str, away: Array, moved: BoolArray) -> _Offset:
        """The shares of each image over the queries that the offset would move."""
        counts = np.maximum(np.bincount(votes.images, moved, images), 1)
        away, right, far = (np.bincount(votes.images, moved * c, images) / counts for c in (away, is_own, votes.far))
        return _Offset(words, away, right, far == 1, moved)

    # An image that its own queries find has not moved, whoever else finds it: a copy, or a hub.
    counts = np.bincount(votes.images, minlength=images)
    unclaimed = 1 - np.bincount(votes.images, is_own, images) / np.maximum(counts, 1)
    rows, sums = np.arange(images), (votes.firsts + votes.images) % images
    places = np.empty(images, np.int64)
    places[np.argsort(subject.dataset.image_ids, kind="stable")] = rows
    targets = [("in the order of sorted ids", places)]
    targets += [("in reverse order", (total - rows) % images) for total in _frequent(sums[missed], images)]
    distances = (votes.firsts - votes.images) % images
    for distance in _frequent(distances[missed], images):
        targets.append((_rows_away(distance, images, "row"), (rows + distance) % images))
    for words, target in targets:
        away = (~is_own & (votes.firsts == target[votes.images])) * unclaimed[votes.firsts]
        yield offset(words, away, (target != rows)[votes.images])
    owner, captions = subject.owner, len(subject.owner)
    if votes.captions is None or np.array_equal(owner, np.arange(images)):
        return
    hits = np.zeros(captions, np.bool_)  # by row of the caption
    hits[votes.captions] = is_own
    order = np.argsort(owner, kind="stable")
    members = np.split(order, np.searchsorted(owner[order], np.arange(1, images)))
    steps = [members[votes.firsts[row]] - votes.captions[row] for row in missed]
    for distance in _frequent(np.concatenate([*steps, order[:0]]) % captions, captions):
        target, second = ((votes.captions + step * distance) % captions for step in (1, 2))
        moved = owner[target] != votes.images
        stays = hits[target] & (owner[second] != owner[target])
        yield offset(_rows_away(distance, captions, "caption"), moved & (votes.firsts == owner[target]) & ~stays, moved)


def _frequent(distances: IntArray, rows: int) -> IntArray:
    counts = np.bincount(distances, minlength=rows)
    frequent = np.argsort(-counts, kind="stable")[:_SEARCHED]
    return frequent[(counts[frequent] >= _FEWEST_ROWS) & (frequent > 0)]


def _rows_away(distance: int, rows: int, noun: str) -> str:
    forwards = distance <= rows / 2
    return (
        f"{format_count(int(distance if forwards else rows - distance), noun)} further {'down' if forwards else 'up'}"
    )


def _best_segment(*bets: FloatArray) -> _Segment:
    """The contiguous rows that win most, of any bet at any stake, and between which ends rows are as likely."""
    sums = [np.append(0.0, np.log1p(stake * gains).cumsum()) for gains in bets for stake in _STAKES]
    won = max(sums, key=lambda total: float((total - np.minimum.accumulate(total)).max()))
    stop = int(np.argmax(won - np.minimum.accumulate(won)))
    start = int(np.argmin(won[: stop + 1]))
    evidence = float(won[stop] - won[start])
    starts = np.flatnonzero(won[stop] - won[: stop + 1] >= evidence - _LIKELY)
    stops = start + np.flatnonzero(won[start:] - won[start] >= evidence - _LIKELY)
    inside = int(starts.max()), int(stops.min())
    return _Segment(evidence, start, stop, (inside[0], max(inside)), (int(starts.min()), int(stops.max())))
