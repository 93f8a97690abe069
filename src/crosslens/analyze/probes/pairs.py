"""Minimal pairs: does an image score lower with a caption of it that one edit has made false?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from crosslens.analyze.probes.edits import FACTS, ImageWords
from crosslens.analyze.probes.orders import swaps
from crosslens.analyze.subject import Subject
from crosslens.core import Evidence
from crosslens.language import BETWEEN, Words
from crosslens.rank import Scorer, scorer_of
from crosslens.statistics import Estimate, estimate, share_of_sums
from crosslens.storage import Array, BoolArray, IntArray, random_stream
from crosslens.values import Embeddings

LEAST_CAPTIONS = 40
"""Of fewer edited captions nothing is concluded; nor of those of fewer images than three quarters of it."""
UNREAD_SIZE = 0.2
"""A share of facts below which a model hardly reads them.

A model that reads a fact in the share r of captions, and guesses in the others, notices (1 + r) / 2 of the edits. Below
one in five it notices fewer than six of ten, where chance is five: no query can count on it. Two points, the size that
is stated of Hit@1, would take ten thousand captions to show.
"""
_READ = (1 + UNREAD_SIZE) / 2
_ALL_ALIKE = 15
LEAST_CONTROL = 0.75
"""What a model must notice where another image's caption is put in: below, it knows too little of these images for its
silence about one fact to mean anything."""
_UNSTEADY = 0.02
"""Beyond this share of the spread of scores, what differs from one encoding of a text to the next is no rounding."""
_OTHERS, _REPEATED, _COUNTED = 100, 48, 1000
_MOST_LISTED = 40
"""Captions of a fact that are kept with their texts."""


@dataclass(frozen=True)
class EditedCaption:
    """A caption (row), its text, and the text that an edit has made false.

    ``sort``: which kind of edit it is. ``control``: a text that a model must notice for its silence about this edit to
    mean anything.
    """

    row: int
    text: str
    edited: str
    sort: str = ""
    control: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.text, self.edited, self.control)))


@dataclass(frozen=True)
class Edited:
    """What was edited in one fact: the captions, and in which share of those that were looked at it can be."""

    name: str
    plural: str
    changed: str
    captions: tuple[EditedCaption, ...]
    editable: Estimate
    sort: str = ""

    def within(self, words: int) -> Edited:
        """Those that are edited in the first ``words`` words alone."""

        def is_within(pair: EditedCaption) -> bool:
            before, after = pair.text.split(), pair.edited.split()
            behind = max(len(before) - words, 0)
            return before[len(before) - behind :] == after[len(after) - behind :]

        return replace(self, captions=tuple(filter(is_within, self.captions)))


def visited(subject: Subject, seed: int, most: int) -> list[int]:
    """Captions (rows) in the order in which they are looked at: one of each image, then a second one of each."""
    stream = random_stream(seed, "probes", "visited")
    order = stream.permutation(len(subject.owner))
    turn: Counter[int] = Counter()
    turns = np.empty(len(order), np.int64)
    for position, row in enumerate(order):
        turns[position] = turn[int(subject.owner[row])]
        turn[int(subject.owner[row])] += 1
    return [int(row) for row in order[np.argsort(turns, kind="stable")][:most]]


def edit_captions(subject: Subject, *, most: int, scanned: int, seed: int) -> list[Edited]:
    """At most so many captions made false in each fact, of the first ``scanned`` that are looked at."""
    texts: Sequence[str] = subject.dataset.texts
    of_image: defaultdict[int, list[int]] = defaultdict(list)
    for row, image in enumerate(subject.owner):
        of_image[int(image)].append(row)
    rows = visited(subject, seed, scanned)
    parsed: dict[int, Words] = {}
    image_words_of: dict[int, ImageWords] = {}

    def words(row: int) -> Words:
        if row not in parsed:
            parsed[row] = Words(texts[row])
        return parsed[row]

    def image_words(row: int) -> ImageWords:
        image = int(subject.owner[row])
        if image not in image_words_of:
            image_words_of[image] = frozenset(word for caption in of_image[image] for word in words(caption).lower)
        return image_words_of[image]

    edits: list[tuple[str, str, str, Callable[[int, np.random.Generator], tuple[str, ...] | None]]] = []
    for fact in FACTS:
        counts = Counter(value for row in rows[:_COUNTED] for value in fact.values(words(row)))

        def make_false(
            row: int,
            stream: np.random.Generator,
            edit: Callable[..., tuple[str, ...] | None] = fact.edited,
            counts: Counter[str] = counts,
        ) -> tuple[str, ...] | None:
            return edit(words(row), image_words(row), counts, stream)

        edits.append((fact.name, fact.plural, fact.changed, make_false))

    def exchange(row: int, stream: np.random.Generator) -> tuple[str, ...] | None:
        pairs = swaps(words(row))
        return pairs[int(stream.integers(len(pairs)))] if pairs else None

    edits.insert(3, ("order", "the order of words", "the order of words", exchange))
    results = []
    for name, plural, changed, edit in edits:
        stream = random_stream(seed, "probes", name)
        captions: list[EditedCaption] = []
        looked_at = 0
        for row in rows:
            edited = edit(row, stream)
            looked_at += 1
            if edited is not None and edited[0] != texts[row]:
                captions.append(EditedCaption(row, texts[row], *edited))
                if len(captions) == most:
                    break
        examined = np.array(rows[:looked_at], np.int64)
        images = np.unique(subject.owner[examined], return_inverse=True)[1]
        for sort in ("", BETWEEN) if name == "position" else ("",):
            of_sort = tuple(caption for caption in captions if sort in ("", caption.sort))
            can = np.bincount(images, np.isin(examined, [caption.row for caption in of_sort]))
            wordings = f"{plural} {sort}".strip(), f"{changed} {sort}".strip()
            results.append(Edited(name, *wordings, of_sort, share_of_sums(can, np.bincount(images)), sort))
    return results


class Encodings:
    """Vectors of all texts that are compared, and how exactly they repeat.

    Encoders of text round differently from batch to batch: some texts are encoded twice, in other company, and what
    differs then is no difference.
    """

    def __init__(self, subject: Subject, texts: Sequence[str], seed: int) -> None:
        assert subject.encode is not None
        self.subject = subject
        self.encode = subject.encode
        self.rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self.vectors = self.encode(list(self.rows))
        repeated = random_stream(seed, "probes", "repeated").permutation(len(self.rows))[:_REPEATED]
        names = list(self.rows)
        again = self.encode([names[row] for row in repeated])
        self.differences = lengths(again - self.vectors[repeated])
        size = float(np.median(lengths(self.vectors))) if len(self.vectors) else 0.0
        self.rounding = max(3 * float(self.differences.max(initial=0.0)), 2e-6 * size)
        """Vectors that are closer are the same vector."""

    def of(self, texts: Sequence[str]) -> Array:
        return np.asarray(self.vectors[[self.rows[text] for text in texts]])

    def scores(self, images: IntArray, texts: Sequence[str]) -> Array:
        """The score of each image (row) with the text beside it."""
        distinct, at = np.unique(images, return_inverse=True)
        scorer = self._scorer(distinct, self.of(texts))
        return np.asarray(scorer.exact(at.astype(np.int64), np.arange(len(texts))), np.float64)

    def all_scores(self, images: IntArray, texts: Sequence[str]) -> Array:
        """The scores of all these images (rows) with all these texts."""
        scorer = self._scorer(images, self.of(texts))
        return np.array(scorer.tile(slice(0, len(images)), slice(0, len(texts))), np.float64)

    def _scorer(self, images: IntArray, vectors: Array) -> Scorer:
        assert self.subject.images is not None
        pictures = Embeddings(range(len(images)), self.subject.images.rows(images))
        return scorer_of(pictures, Embeddings(range(len(vectors)), vectors), self.subject.score)


def lengths(vectors: Array) -> Array:
    """The length of each vector, or of all vectors of a text together."""
    flat = np.asarray(vectors, np.float64).reshape(len(vectors), -1)
    return np.asarray(np.sqrt((flat**2).sum(axis=1)))


class Noticed(NamedTuple):
    """Of each pair, whether the image scores lower with the false caption: 1, 0, or a half where it cannot tell.

    ``beside_others``: whether the score falls more with this image than with others on average, which do not care what
    is true of this one. It tells a model that reads a fact, but likes some words more than others, from one that does
    not. ``same``: the two texts have one vector.
    """

    scores: Array
    beside_others: Array
    same: BoolArray


def compare(encodings: Encodings, pairs: Sequence[EditedCaption], seed: int) -> Noticed:
    """Score every image with its caption and with the edited one."""
    subject = encodings.subject
    images = subject.owner[[pair.row for pair in pairs]]
    texts, edited = [pair.text for pair in pairs], [pair.edited for pair in pairs]
    falls = encodings.scores(images, texts) - encodings.scores(images, edited)
    usual, spread = _usual_falls(encodings, texts, edited, seed)
    same = lengths(encodings.of(texts) - encodings.of(edited)) <= encodings.rounding
    least = 1e-6 * max(spread, 1e-30)

    def noticed(changes: Array) -> Array:
        return np.where(same | (np.abs(changes) <= least), 0.5, (changes > 0).astype(np.float64))

    return Noticed(noticed(falls), noticed(falls - usual), same)


def is_steady(encodings: Encodings) -> bool:
    """Whether a text has the same vector each time, but for rounding beside what tells texts apart."""
    centred = encodings.vectors - encodings.vectors.mean(axis=0)
    return float(encodings.differences.max(initial=0.0)) <= _UNSTEADY * float(np.median(lengths(centred)))


class FalseCaption(NamedTuple):
    """A caption and its image, its text, and the text that an edit has made false."""

    query: str
    image: str
    text: str
    edited: str


@dataclass(frozen=True)
class Probe:
    """How often a model notices that one fact of a caption is false.

    ``evidence`` are captions of which it does not, ``unnoticed`` the first of them with their texts; ``example`` is one
    of them, if there are any. ``missed`` is the share of these captions whose own image is not first in the whole
    gallery.
    """

    name: str
    plural: str
    changed: str
    n: int
    images: int
    editable: Estimate
    noticed: Estimate
    beside_others: Estimate
    same: float
    missed: float
    unread: bool
    example: FalseCaption | None
    sort: str = ""
    unnoticed: tuple[FalseCaption, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def weight(self) -> float:
        """The share of all queries that state such a fact and are missed, as far as it is not read: at most so many
        points of Hit@1 can depend on it."""
        unread = min(max(2 * (1 - self.noticed.mean), 0.0), 1.0) if self.n else 0.0
        return max(float(np.nan_to_num(self.editable.mean * self.missed * unread)), 0.0)


def probe(encodings: Encodings, edited: Edited, *, trusted: bool, seed: int) -> Probe:
    """Measure one fact. ``trusted``: the model knows enough of these images that its silence means something."""
    subject, pairs = encodings.subject, edited.captions
    if any(pair.control for pair in pairs):
        pairs = _with_read_words(encodings, pairs, seed)
    if not pairs:
        nothing = Estimate(float("nan"))
        return Probe(
            edited.name, edited.plural, edited.changed, 0, 0, edited.editable, nothing, nothing, 0.0, 0.0, False, None,
            edited.sort,
        )  # fmt: skip
    rows = np.array([pair.row for pair in pairs])
    images = subject.owner[rows]
    noticed = compare(encodings, pairs, seed)
    sorts = np.array([pair.sort for pair in pairs])
    groups = [np.ones(len(pairs), np.bool_), *(sorts == sort for sort in np.unique(sorts))]
    estimates = [
        [share(values[group], images[group]) for values in (noticed.scores, noticed.beside_others)]
        for group in groups
        if group.sum() >= min(LEAST_CAPTIONS, len(pairs))
    ]
    enough = len(pairs) >= LEAST_CAPTIONS and len(np.unique(images)) >= 0.75 * LEAST_CAPTIONS
    # Of each kind of edit, and both ways of noticing, so that a model that reads some of them is not accused.
    unread = enough and trusted and all(figure.high < _READ for figure in estimates[0])
    unread = unread and all(figure.mean < _READ for part in estimates[1:] for figure in part)
    # Of so many images, all with two captions of one vector: fewer than one in five has captions that differ (95 %).
    unread = unread or (trusted and bool(noticed.same.all()) and len(np.unique(images)) >= _ALL_ALIKE)
    hits = subject.caption_hits[rows]
    ids, image_ids = subject.dataset.caption_ids, subject.dataset.image_ids
    missed = np.flatnonzero(noticed.scores < 1)
    evidence = tuple({"query": ids[rows[at]], "item": image_ids[images[at]]} for at in missed)
    false = [FalseCaption(ids[rows[at]], image_ids[images[at]], pairs[at].text, pairs[at].edited)
             for at in (*missed[:_MOST_LISTED], 0)]  # fmt: skip
    return Probe(
        edited.name, edited.plural, edited.changed, len(pairs), len(np.unique(images)), edited.editable,
        noticed=estimates[0][0], beside_others=estimates[0][1],
        same=float(noticed.same.mean()),
        missed=1 - float(np.nanmean(hits)) if np.isfinite(hits).any() else 1.0,
        unread=bool(unread), example=false[0], sort=edited.sort, unnoticed=tuple(false[:-1]), evidence=evidence,
    )  # fmt: skip


def _with_read_words(encodings: Encodings, pairs: Sequence[EditedCaption], seed: int) -> tuple[EditedCaption, ...]:
    """Those whose controls the model notices: where it does not read the words at all, their order cannot matter."""
    noticed = compare(encodings, [replace(pair, edited=pair.control) for pair in pairs], seed)
    sorts = np.array([pair.sort for pair in pairs])
    read_sorts = {sort for sort in np.unique(sorts) if noticed.scores[sorts == sort].mean() >= _READ}
    return tuple(pair for pair, same in zip(pairs, noticed.same, strict=True) if pair.sort in read_sorts and not same)


def share(values: Array, images: IntArray) -> Estimate:
    """A share with its interval by images."""
    return estimate(np.asarray(values, np.float64), np.asarray(images), bounds=(0, 1))


def control(encodings: Encodings, texts: Sequence[tuple[int, str]], seed: int) -> tuple[Estimate, int]:
    """How often an image scores lower with another image's caption than with its own, and of how many pairs.

    Where long vectors score higher with all images, it counts beside those, if that is more.
    """
    subject = encodings.subject
    stream = random_stream(seed, "probes", "control")
    sample = [texts[at] for at in stream.permutation(len(texts))[:400]]
    rows = np.array([row for row, _ in sample], np.int64)
    images = subject.owner[rows]
    partner = np.roll(np.arange(len(sample)), 1)
    differ = np.flatnonzero(images != images[partner])
    texts_own, texts_other = [sample[at][1] for at in differ], [sample[partner[at]][1] for at in differ]
    falls = encodings.scores(images[differ], texts_own) - encodings.scores(images[differ], texts_other)
    usual = _usual_falls(encodings, texts_own, texts_other, seed)[0]
    shares = (share(np.sign(change) / 2 + 0.5, images[differ]) for change in (falls, falls - usual))
    return max(shares, key=lambda figure: figure.low), len(differ)


def _usual_falls(encodings: Encodings, texts: Sequence[str], others: Sequence[str], seed: int) -> tuple[Array, float]:
    """How far scores fall from each text to the other one over many images, and how far scores are spread."""
    count = len(encodings.subject.dataset.image_ids)
    images = random_stream(seed, "probes", "others").permutation(count)[:_OTHERS]
    scores = encodings.all_scores(images, [*texts, *others])
    spread = float(scores.std()) if scores.size else 0.0
    return (scores[:, : len(texts)] - scores[:, len(texts) :]).mean(axis=0), spread
