"""Pairs of pictures that differ in one fact: does each of their captions get its own, or both the same one?

A model that does not see the fact gives both captions of a pair the same picture. Coin flips would give both their own
in a quarter of the pairs, the same one in half, and each other's in a quarter.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from difflib import SequenceMatcher
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.analyze.near_duplicates import words_of
from crosslens.analyze.subject import Planted, Subject, analysis
from crosslens.core import (
    STATED_SIZE,
    Effect,
    EvidenceList,
    Figure,
    Observation,
    PairedBar,
    PairedBars,
    PictureCard,
    Presented,
    QueryCard,
    QueryCards,
    Section,
    Text,
    Tone,
    finding_kind,
)
from crosslens.language import COLOURS, STOP_WORDS, is_number, word_set
from crosslens.metrics import format_count
from crosslens.rank import scorer_of
from crosslens.statistics import Estimate, share_of_sums
from crosslens.storage import FloatArray, IntArray
from crosslens.values import Dataset

CHANCE = 0.25
"""How often coin flips give both captions of a pair their own picture."""
_FEWEST_PAIRS = 10
_FEWEST_WORDS, _COMMON = 5, 12
"""Captions that are compared word by word have so many; what more captions than this share is no pair's own."""
_POSITIONS = word_set("left right above below over under beneath underneath behind front top bottom inside beside")
_FACTS = {"relation": "position", "location": "position"}
_PUNCTUATION = ".,;:!?\"'“”‘’()[]"
_LEVELS: tuple[tuple[str, Tone], ...] = (
    ("both their own picture", "good"), ("the same picture for both", "bad"), ("each other's", "unsure")
)  # fmt: skip
_MOST_FACTS, _MOST_CARDS, _MOST_LISTED = 3, 3, 200
"""Facts in a heading; pairs with pictures, and pairs in a list, behind a bar."""
_MOST_CHANGED = 4
"""Words that a sentence quotes on either side."""
TWIN, _VARIANT = "its near-twin", "a variant of it"
_FACT_COLUMNS = ("task", "changed", "fact", "category", "type")


class Twins(NamedTuple):
    """Captions of two images that differ in one fact, as rows: the first of each belongs to the first image."""

    fact: str
    images: tuple[int, int]
    captions: tuple[tuple[int, int], ...]


def find_twins(dataset: Dataset) -> list[Twins]:
    """Pairs from a column of images that names another image, else from captions that differ in a word or two."""
    of_image: list[list[int]] = [[] for _ in dataset.image_ids]
    for caption, image in enumerate(dataset.caption_image):
        of_image[int(image)].append(caption)
    words = [words_of(text) for text in dataset.texts]
    from_column = _named_pairs(dataset)
    pairs = from_column or _worded_pairs(words, dataset.caption_image, of_image)
    columns = [name for name in _FACT_COLUMNS if name in dataset.images.columns] if from_column else []
    table = dataset.images.select(pl.col(columns).cast(pl.String)).to_dicts() if columns else []
    twins = []
    for first, second in sorted(pairs):
        aligned = _aligned(of_image[first], of_image[second], words)
        if aligned:
            column_facts = (table[row][name] for name in columns for row in (first, second))
            fact = next((value for value in column_facts if value), None) or _fact_of(aligned, words)
            twins.append(Twins(_FACTS.get(fact, fact), (first, second), aligned))
    return twins


def named_images(dataset: Dataset) -> dict[int, int]:
    """Rows of images → the row of another image that a column, such as ``original``, names; empty where none does."""
    rows = dataset.image_rows
    for values in dataset.images.iter_columns():
        if values.name == "image" or values.dtype != pl.String or not set(values.drop_nulls()) <= set(rows):
            continue
        other_rows = {row: rows[value] for row, value in enumerate(values) if value is not None and rows[value] != row}
        if other_rows:
            return other_rows
    return {}


def _named_pairs(dataset: Dataset) -> set[tuple[int, int]]:
    """The pairs with captions that a column of images names."""
    bare = dataset.without_captions
    pairs = ((min(pair), max(pair)) for pair in named_images(dataset).items())
    return {pair for pair in pairs if not any(bare[row] for row in pair)}


def _worded_pairs(words: list[tuple[str, ...]], owner: IntArray, of_image: list[list[int]]) -> set[tuple[int, int]]:
    """Images of which at least half of the captions have one of the other that differs in a word, or a swap of two."""
    alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for caption, text in enumerate(words):
        if len(text) >= _FEWEST_WORDS:
            for width in (1, 2):
                for start in range(len(text) + 1 - width):
                    alike[start, width, *text[:start], *text[start + width :]].append(caption)
            alike["swap", *sorted(text)].append(caption)
    matched: dict[tuple[int, int], set[int]] = defaultdict(set)
    for captions in alike.values():
        for first, second in combinations(captions, 2) if len(captions) <= _COMMON else ():
            left, right = sorted((int(owner[first]), int(owner[second])))
            if left != right and _is_one_fact(words[first], words[second]):
                matched[left, right] |= {first, second}
    return {
        (left, right)
        for (left, right), captions in matched.items()
        if 2 * len(captions) >= len(of_image[left]) + len(of_image[right])
    }


def _changed(first: tuple[str, ...], second: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(a, b) for a, b in zip(first, second, strict=True) if a != b] if len(first) == len(second) else []


def _is_one_fact(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether the captions differ in one or two words that say something, on both sides."""
    changed = _changed(first, second)
    return 1 <= len(changed) <= 2 and not any(word in STOP_WORDS - _POSITIONS for pair in changed for word in pair)


def _aligned(first: list[int], second: list[int], words: list[tuple[str, ...]]) -> tuple[tuple[int, int], ...]:
    """Captions of two images that say the same but for the fact: those most alike, each once, none that are equal."""

    def distance(a: int, b: int) -> float:
        return 1 - len(set(words[a]) & set(words[b])) / max(len(set(words[a]) | set(words[b])), 1)

    if len(first) == len(second):
        pairs = list(zip(first, second, strict=True))  # written in the same order
    else:
        pairs, paired = [], set[int]()
        for _, a, b in sorted((distance(a, b), a, b) for a in first for b in second):
            if not {a, b} & paired:
                pairs.append((a, b))
                paired |= {a, b}
    return tuple(pair for pair in pairs if words[pair[0]] != words[pair[1]])


def _fact_of(pairs: Iterable[tuple[int, int]], words: list[tuple[str, ...]]) -> str:
    """What the words that differ are about."""
    for first, second in pairs:
        changed = _changed(words[first], words[second])
        different = {word for pair in changed for word in pair}
        if not 1 <= len(changed) <= 2:
            continue
        if different <= _POSITIONS:
            return "position"
        if all(map(is_number, different)):
            return "count"
        if different <= set(COLOURS):
            return "colour"
        if sorted(a for a, _ in changed) == sorted(b for _, b in changed):
            return "word order"
    return "a word"


def changed_words(first: str, second: str) -> tuple[tuple[str, str], ...]:
    """Two texts word by word, as a :class:`TextDiff` has them: stretches of both; the same twice where they agree.

    Words are what blanks part; their case and the punctuation around them change nothing. Texts of equally many words
    are compared place by place where that leaves no more of them changed: a swap is two changes.
    """
    mine, theirs = (re.findall(r"\S+\s*", text) for text in (first, second))
    before, after = ([word.strip().strip(_PUNCTUATION).casefold() for word in side] for side in (mine, theirs))
    spans = []
    matched = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    operations = [(kind == "equal", start, stop, at, to) for kind, start, stop, at, to in matched]
    in_place = [a == b for a, b in zip(before, after, strict=False)]
    if len(mine) == len(theirs) and sum(in_place) >= sum(stop - start for same, start, stop, *_ in operations if same):
        runs = [list(group) for _, group in groupby(range(len(mine)), in_place.__getitem__)]
        operations = [(in_place[run[0]], run[0], run[-1] + 1, run[0], run[-1] + 1) for run in runs]
    for same, start, stop, at, to in operations:
        stretch = "".join(mine[start:stop])
        spans.append((stretch, stretch if same else "".join(theirs[at:to])))
    return tuple(spans)


def quoted_change(first: str, second: str) -> tuple[str, str]:
    """What either text says where they differ; ``…`` stands for what is between two changes."""
    spans = [[side.strip().strip(_PUNCTUATION) for side in span] for span in changed_words(first, second)
             if span[0] != span[1]]  # fmt: skip
    mine, theirs = (" … ".join(filter(None, (span[side] for span in spans))) for side in (0, 1))
    return mine, theirs


def changed_sentence(mine: str, theirs: str) -> str:
    """``: “below”, not “above”``; nothing where more than a few words differ, or some are only in one of the texts."""
    spans = changed_words(mine, theirs)
    old, new = quoted_change(mine, theirs)
    one_sided = any(not (before.strip() and after.strip()) for before, after in spans)
    if one_sided or not old or not new or max(len(old.split()), len(new.split())) > _MOST_CHANGED:
        return ""
    return f": “{new}”, not “{old}”"


class RelatedPictures:
    """Pictures of a dataset that differ in a known fact: near-twins, and variants that a column names."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.origin = named_images(dataset)
        self.twins: dict[tuple[int, int], tuple[str, dict[int, int]]] = {}
        for twins in find_twins(dataset):
            for side in (0, 1):
                captions = {pair[side]: pair[1 - side] for pair in twins.captions}
                self.twins[twins.images[side], twins.images[1 - side]] = twins.fact, captions

    def seen_from(self, row: Mapping[str, Any], by_images: bool) -> tuple[str, str, str]:
        """What came first, seen from the right picture; the fact in which it differs; and a sentence that says so.

        Empty where it is neither a near-twin nor a variant.
        """
        rows, captions = self.dataset.image_rows, self.dataset.caption_rows
        right, retrieved = rows[row["ground_truth"]], rows[row["retrieved"]]
        if (right, retrieved) in self.twins:
            fact, pairs = self.twins[right, retrieved]
            query = {theirs: mine for mine, theirs in pairs.items()}.get(captions[row["item"]]) if by_images else None
            query = query if by_images else captions[row["query"]]
            noun = "caption" if by_images else "picture"
            sentence = ""
            if query in pairs:
                sentence = changed_sentence(self.dataset.texts[query], self.dataset.texts[pairs[query]])
            return TWIN, fact, f"The {noun} that came first differs in {fact}{sentence}."
        if right != retrieved and self.origin.get(right, right) == self.origin.get(retrieved, retrieved):
            column = next((name for name in ("changed", "fact") if name in self.dataset.images.columns), None)
            facts = [] if column is None else [self.dataset.images[column][image] for image in (right, retrieved)]
            differs = " and ".join(dict.fromkeys(fact.replace("_", " ") for fact in facts if fact))
            reason = f"The picture that came first differs in {differs}." if differs else ""
            return _VARIANT, differs, reason
        return "", "", ""


class CaptionPair(NamedTuple):
    """Both captions of a pair of pictures, each with its own picture, and by how much that scores above the other."""

    images: tuple[str, str]
    queries: tuple[str, str]
    texts: tuple[str, str]
    margins: tuple[float, float]

    @property
    def outcome(self) -> str:
        """Which of the shares of a fact it counts in; equal scores prefer neither picture."""
        right, wrong = (all(sign * margin > 0 for margin in self.margins) for sign in (1, -1))
        return "own" if right else "swapped" if wrong else "same"

    @property
    def text(self) -> str:
        """Both captions in one: ``a dog [left ⇄ right] of a cat``."""
        text = ""
        for mine, theirs in changed_words(*self.texts):
            core = mine.strip().strip(_PUNCTUATION)
            head, _, tail = mine.partition(core) if core else ("", "", " " * theirs.endswith(" "))
            text += mine if mine == theirs else f"{head}[{core} ⇄ {theirs.strip().strip(_PUNCTUATION)}]{tail}"
        return text

    def card(self) -> QueryCard:
        """A caption, its own picture and the twin's; below, what the twin's caption gets."""
        side = int(self.margins[1] < self.margins[0])  # the one that is further from its own picture
        other = 1 - side
        gets = {"own": "its own picture", "same": "the same picture", "swapped": "this one's"}[self.outcome]
        pictures = (
            PictureCard("the twin", (f"“{self.texts[other]}” gets {gets}.",), self.images[other], "wrong"),
            PictureCard("its own", (), self.images[side], "right"),
        )
        behind = Figure(abs(self.margins[side]), digits=3)
        line = f"Its own picture scores {behind} less than the twin." if self.margins[side] else "Both score the same."
        return QueryCard(self.queries[side], self.texts[side], pictures, (line,), self.queries)


@dataclass(frozen=True, eq=False)
class TwinOutcome:
    """Of the caption pairs of one fact: how often each gets its own picture, both the same one, or each other's.

    ``pairs`` are pairs of pictures; ``weight`` is the share of all caption queries that get the other picture;
    ``caption_pairs`` begins with those that say most about the fact first.
    """

    fact: str
    pairs: int
    captions: int
    own: Estimate
    same: Estimate
    swapped: Estimate
    weight: float
    caption_pairs: tuple[CaptionPair, ...] = ()

    @property
    def shares(self) -> dict[str, Estimate]:
        return {"own": self.own, "same": self.same, "swapped": self.swapped}

    @property
    def blind(self) -> bool:
        """Whether coin flips would do as well: what the interval leaves of a better result is less than is stated."""
        return self.pairs >= _FEWEST_PAIRS and self.own.high <= CHANCE + STATED_SIZE

    def observation(self) -> Observation:
        own_share = Figure(self.own.mean, *self.own.interval, scale=100, digits=0, unit=" %")
        same = own_share.write(self.same.mean)
        words = {"n": f"{self.pairs:,}", "fact": self.fact, "own": own_share, "same": same}
        effect = Effect.of("pairs", self.own.mean, *self.own.interval)
        wrong = {
            (pair.queries[side], pair.images[1 - side])
            for pair in self.caption_pairs for side in (0, 1) if pair.margins[side] <= 0
        }  # fmt: skip
        evidence = [{"query": query, "item": item} for query, item in sorted(wrong)]
        return Observation(
            "twins", words, effect, self.weight, bounded=self.blind, evidence=evidence, subject=self.fact
        )

    def bar(self) -> PairedBar:
        """How often each outcome occurred, an example, and the pairs behind each."""
        by_outcome = {name: [pair for pair in self.caption_pairs if pair.outcome == name] for name in self.shares}
        counts = tuple(map(len, by_outcome.values()))
        # The pair that shows the fact with the fewest words; those behind the bar are of different pictures.
        example = min(self.caption_pairs, key=lambda pair: (len("".join(quoted_change(*pair.texts))), pair.queries))
        failed = {pair.images: pair for pair in reversed(self.caption_pairs) if pair.outcome != "own"}
        cards = tuple(pair.card() for pair in list(failed.values())[: -_MOST_CARDS - 1 : -1])
        lists = [
            EvidenceList(
                f"twins-{re.sub(r'[^a-z0-9]+', '-', self.fact.lower())}-{outcome}",
                f"{format_count(len(pairs), 'pair')}: {name}"
                + (f", the first {_MOST_LISTED:,}" if len(pairs) > _MOST_LISTED else ""),
                tuple((" · ".join(pair.queries), pair.text) for pair in pairs[:_MOST_LISTED]),
            )
            for (outcome, pairs), (name, _) in zip(by_outcome.items(), _LEVELS, strict=True)
        ]
        return PairedBar(
            self.fact, counts, Figure.percent(*astuple(self.own)), changed=quoted_change(*example.texts),
            pictures=example.images,
            details=(*([QueryCards(cards)] if cards else []), *(pairs for pairs in lists if pairs.entries)),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        ends = ("value", "low", "high")
        shares = {name: dict(zip(ends, share.cells, strict=True)) for name, share in self.shares.items()}
        return {"fact": self.fact, "pairs": self.pairs, "captions": self.captions, **shares, "weight": self.weight}


@dataclass(frozen=True, eq=False)
class NearTwins(Presented):
    """What becomes of pairs of pictures that differ in one fact, the worst fact first."""

    facts: tuple[TwinOutcome, ...]

    title = "Pictures that differ in one fact"

    @property
    def claim(self) -> str:
        """What the bars show, as a heading."""
        blind = [fact.fact for fact in self.facts if fact.blind]
        if blind:
            more = f" and {len(blind) - _MOST_FACTS} more" if len(blind) > _MOST_FACTS else ""
            return f"The model cannot tell apart pictures that differ in {' or '.join(blind[:_MOST_FACTS])}{more}"
        worst = self.facts[0]
        share = f"get their own picture in {Figure.share(worst.own.mean)} of the pairs"
        if worst.own.low > 1 - CHANCE:
            return f"The model tells near-twins apart: even of those that differ in {worst.fact}, both captions {share}"
        return f"Near-twins are hardest where they differ in {worst.fact}: both captions {share}"

    def sections(self) -> Iterator[Section]:
        if not self.facts:
            yield Section(self.title, (Text(("No two images have captions that differ in one fact.",), note=True),))
            return
        intro = (
            "Of both captions of a pair, between its two pictures alone: each its own, both the same one, or each the "
            "other's. Behind a bar: how often each gets its own, with the 95 % interval over pairs of pictures; coin "
            f"flips reach {Figure.share(CHANCE)}."
        )
        bars = PairedBars(
            title=self.title, about=intro, levels=_LEVELS, rows=tuple(fact.bar() for fact in self.facts), chance=CHANCE,
            heading="differ in", measure="both their own", noun="pairs of captions",
        )  # fmt: skip
        yield Section(self.claim, (bars,), target="twins")

    def findings(self) -> Iterator[Observation]:
        return (fact.observation() for fact in self.facts)

    def as_dict(self) -> dict[str, Any]:
        return {"facts": [fact.as_dict() for fact in self.facts]}


@analysis("twins", order=36, needs=("caption queries for images",), cost=(0.2, 0.1))
def look_at_twins(subject: Subject) -> NearTwins:
    """Of pairs of images whose captions differ in one fact: how often each caption is given its own picture."""
    twins = find_twins(subject.dataset)
    if subject.images is None or subject.captions is None or not twins:
        return NearTwins(())
    scorer = scorer_of(subject.images, subject.captions, subject.score)
    clusters = _clusters(twins, len(subject.dataset.image_ids))
    image_ids, caption_ids, texts = subject.dataset.image_ids, subject.dataset.caption_ids, subject.dataset.texts
    queries = max(int(np.isfinite(subject.caption_hits).sum()), 1)
    by_fact: dict[str, list[int]] = defaultdict(list)
    for number, pair in enumerate(twins):
        by_fact[pair.fact].append(number)
    facts = []
    for fact, numbers in by_fact.items():
        rows = [(*twins[n].images, *captions, n) for n in numbers for captions in twins[n].captions]
        first, second, *captions, number = np.array(rows, np.int64).T
        sides = (first, second, captions[0]), (second, first, captions[1])
        margins = [scorer.exact(mine, caption) - scorer.exact(other, caption) for mine, other, caption in sides]
        hits, swapped = (margins[0] > 0) & (margins[1] > 0), (margins[0] < 0) & (margins[1] < 0)
        weights = 1 / np.bincount(number)[number]  # each pair of pictures counts once
        groups = np.unique(clusters[number], return_inverse=True)[1]
        total = np.bincount(groups, weights)
        own_share, same, swaps = (
            share_of_sums(np.bincount(groups, weights * part), total) for part in (hits, ~(hits | swapped), swapped)
        )
        lost = {
            int(query) for margin, (_, _, caption) in zip(margins, sides, strict=True) for query in caption[margin <= 0]
        }
        pairs = tuple(
            CaptionPair(
                (image_ids[left], image_ids[right]), (caption_ids[mine], caption_ids[theirs]),
                (texts[mine], texts[theirs]), (float(before), float(after)),
            )
            for (left, right, mine, theirs, _), before, after in zip(rows, *margins, strict=True)
        )  # fmt: skip
        pairs = tuple(sorted(pairs, key=lambda pair: (min(pair.margins), pair.queries)))
        facts.append(TwinOutcome(fact, len(numbers), len(rows), own_share, same, swaps, len(lost) / queries, pairs))
    return NearTwins(tuple(sorted(facts, key=lambda outcome: (outcome.own.mean, -outcome.pairs, outcome.fact))))


def _clusters(twins: list[Twins], images: int) -> IntArray:
    """Pairs that share a picture belong together."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first, second = np.array([pair.images for pair in twins]).T
    graph = coo_array((np.ones(len(twins)), (first, second)), shape=(images, images))
    return np.asarray(connected_components(graph, directed=False)[1][first], np.int64)


@finding_kind(
    "twins",
    "Where two pictures differ in {fact} alone ({n} pairs), their captions both get the right one in {own} "
    "(coin flips: 25 %), and both the same one in {same}.",
    stage="twins", strengths=(0.8, 0.9, 1.0), strength_words="both captions of a pair alike in {:.0%} of the pairs",
    causes=("group",),
)  # fmt: skip
def plant_equal_twins(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Nearly the same vector for both captions of a pair, in one fact; nothing where there are no such pairs."""
    by_fact: Mapping[str, list[Twins]] = defaultdict(list)
    for pair in find_twins(subject.dataset):
        by_fact[pair.fact].append(pair)
    usual = [pairs for _, pairs in sorted(by_fact.items()) if len(pairs) >= _FEWEST_PAIRS]
    if subject.captions is None or not subject.has_vectors or not usual:
        return Planted(subject)
    pairs = usual[int(stream.integers(len(usual)))]
    values: FloatArray = np.array(subject.captions.vectors, np.float64)
    for number in stream.permutation(len(pairs))[: round(strength * len(pairs))]:
        for rows in map(list, pairs[number].captions):
            length = np.linalg.norm(values[rows], axis=1).mean()
            mean = values[rows].sum(axis=0)
            mean *= length / max(float(np.linalg.norm(mean)), 1e-9)
            values[rows] = mean + 0.02 * length * stream.standard_normal((2, len(mean))) / len(mean) ** 0.5
    captions = (row for pair in pairs for rows in pair.captions for row in rows)
    return Planted.at(subject.with_vectors(captions=values.astype(np.float32)), captions=captions)
