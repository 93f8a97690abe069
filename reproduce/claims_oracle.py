"""What is true in a world: counted, measured with edits of its own, or looked up in what a scene was drawn from.

Nothing here uses the code that is judged. A finding is true if its kind is true in the world and nine of ten ids of its
evidence are affected.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import crosslens as cl
from claims_encoders import SMALL_WORDS, words_in, words_of
from crosslens.core import Finding
from crosslens.storage import random_stream
from crosslens.synth import SyntheticScene
from crosslens.synth.tasks import EVERY_TASK

if TYPE_CHECKING:
    from claims_worlds import World

Array = np.ndarray[Any, Any]


def scene_fits(scenes: Mapping[str, SyntheticScene], dataset: cl.Dataset, seed: int) -> Callable[[str, str], bool]:
    """Whether a caption is true of another scene: written anew from that scene's facts, it has the same words."""
    written: dict[tuple[str, str], tuple[str, ...]] = {}
    image_of = dict(zip(dataset.caption_ids, dataset.captions["image"], strict=True))
    texts = dict(zip(dataset.caption_ids, dataset.texts, strict=True))

    def fits(caption: str, image: str) -> bool:
        own = image_of.get(caption, "")
        if own not in scenes or image not in scenes:
            return False
        said, there = scenes[own], scenes[image]
        name = said.source.partition(":")[0]
        if name != there.source.partition(":")[0]:
            return False
        if (own, image) not in written:
            random = random_stream(seed, "scene", (said.of or said.number) - 1, name, "captions")
            lines = EVERY_TASK[name].describe(there.facts, there.objects, random)
            written[own, image] = tuple(line.text for line in lines)
        return texts[caption] in written[own, image]

    return fits


# What an encoder reads, by edits of our own

_EDITS: Mapping[str, Sequence[str]] = {
    "colour": words_in("red orange yellow green blue purple pink brown black white grey"),
    "count": words_in("two three four five six seven eight nine ten"),
    "action": words_in(
        "running sleeping jumping waiting dancing swimming fighting singing eating resting walking sitting standing "
        "riding climbing reading flying kicking throwing playing"
    ),
}
_OPPOSITES = {
    a: b
    for pair in ("left right", "above below", "top bottom", "under on", "over under", "inside outside", "front back")
    for a, b in (pair.split(), pair.split()[::-1])
}


_SIZES = {"small": "large", "large": "small", "big": "little", "little": "big", "tiny": "huge", "huge": "tiny"}
_RELATIONS = frozenset(
    words_in("on under above below left right over behind chasing riding carrying holding inside in")
)


def _decisive(plain: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of words after whose exchange a caption says something else: two colours, two numbers, or the last words
    of the phrases before and after a relation.
    """
    pairs = [
        (first, second)
        for options in _EDITS.values()
        for first, word in enumerate(plain)
        for second, other in enumerate(plain)
        if first < second and word in options and other in options and word != other
    ]
    skipped = SMALL_WORDS | _RELATIONS | {"side", "some", "from"}
    for at, word in enumerate(plain):
        if word in _RELATIONS:
            before = next(
                (
                    place
                    for place in range(at - 1, -1, -1)
                    if plain[place] not in skipped and plain[place][-3:] != "ing"
                ),
                None,
            )
            after = next((place for place in range(at + 1, len(plain)) if plain[place] not in skipped), None)
            while after is not None and after + 1 < len(plain) and plain[after + 1] not in skipped | {"near", ""}:
                after += 1
            if before is not None and after is not None and plain[before] != plain[after]:
                pairs.append((before, after))
    return pairs


def edited(text: str, ability: str, random: np.random.Generator) -> str | None:
    """The text with one such fact changed; None where it states none."""
    words = text.split()
    plain = [re.sub(r"\W", "", word.lower()) for word in words]
    if ability == "order":
        pairs = _decisive(plain)
        if not pairs:
            return None
        first, second = pairs[int(random.integers(len(pairs)))]
        words[first], words[second] = plain[second], plain[first]
        return " ".join(words)
    if ability == "text":
        written = re.search(r'"(\w+)"', text)
        other = str(random.choice(words_in("OPEN CLOSED HOTEL MARKET SCHOOL water mountain tiger")))
        return None if written is None or written[1] == other else text.replace(written[1], other)
    opposites = _SIZES if ability == "size" else _OPPOSITES
    options = _EDITS.get(ability)
    places = [at for at, word in enumerate(plain) if word in (options or opposites)]
    if not places:
        return None
    at = places[int(random.integers(len(places)))]
    other = opposites[plain[at]] if options is None else str(random.choice([w for w in options if w != plain[at]]))
    words[at] = re.sub(re.escape(plain[at]), other, words[at].lower())
    return " ".join(words)


def noticed(world: World, ability: str, most: int = 600) -> tuple[float, int]:
    """How often an edit lowers the score of the caption's own image (an unchanged score counts a half), of how many."""
    if world.encode is None:
        return 1.0, 0
    random = random_stream(world.seed, "oracle", ability)
    rows, texts = [], []
    for row in random.permutation(len(world.dataset.texts)).tolist():
        text = edited(world.dataset.texts[row], ability, random)
        if text is not None and len(texts) < most:
            rows.append(row)
            texts.append(text)
    if not texts:
        return 1.0, 0
    own = world.images[world.owner[rows]]
    change = np.einsum(
        "ij,ij->i", own, np.asarray(world.encode([world.dataset.texts[row] for row in rows]))
    ) - np.einsum("ij,ij->i", own, np.asarray(world.encode(texts)))
    return float(np.where(np.abs(change) < 1e-6, 0.5, change > 0).mean()), len(texts)


def misspelt(text: str, random: np.random.Generator) -> str:
    """The text with a typing error in one word: two letters swapped, one missing, one too many, or another one."""
    words = text.split()
    long = [at for at, word in enumerate(words) if len(word) > 2 and word.isalpha()]
    if long:
        at = long[int(random.integers(len(long)))]
        word, letter = words[at], int(random.integers(0, len(words[at]) - 1))
        other = "abcdefghijklmnopqrstuvwxyz"[int(random.integers(26))]
        before, after = word[:letter], word[letter + 1 :]
        words[at] = (
            before + after[:1] + word[letter] + after[1:], before + after, before + other + word[letter:],
            before + other + after,
        )[int(random.integers(4))]  # fmt: skip
    return " ".join(words)


def hits(world: World, captions: Array | None = None) -> Array:
    """Whether each caption finds its image first."""
    if captions is None:
        scores = world.similarity
    elif world.score == "dot":
        scores = world.images @ captions.T
    else:
        lengths = np.linalg.norm(world.images, axis=1, keepdims=True)
        scores = (world.images / np.where(lengths == 0, 1, lengths)) @ captions.T
    own = scores[world.owner, np.arange(len(world.owner))]
    return np.asarray((scores > own).sum(axis=0) == 0)


def typo_cost(world: World) -> float:
    """What a typo in every caption costs of the captions' Hit@1."""
    if world.encode is None:
        return 0.0
    random = random_stream(world.seed, "oracle", "typos")
    before = hits(world, np.asarray(world.encode(world.dataset.texts))).mean()
    after = []
    for _ in range(3):
        texts = [misspelt(text, random) for text in world.dataset.texts]
        after.append(hits(world, np.asarray(world.encode(texts))).mean())
    return float(before - np.mean(after))


def unread_tail(world: World) -> float:
    """The share of captions whose last words do not change their vector."""
    if world.encode is None:
        return 0.0
    rows = [row for row, text in enumerate(world.dataset.texts) if len(text.split()) >= 6]
    if not rows:
        return 0.0
    texts = [world.dataset.texts[row] for row in rows]
    whole = np.asarray(world.encode(texts))
    cut = np.asarray(world.encode([" ".join([*text.split()[:-2], "somebody", "else"]) for text in texts]))
    return float((np.abs(whole - cut).max(axis=1) < 1e-5).mean())


# What can be counted


def first_items(world: World) -> tuple[Array, Array]:
    """The first image of each caption, the first caption of each image."""
    return world.similarity.argmax(axis=0), world.similarity.argmax(axis=1)


def hubs(world: World) -> set[str]:
    """Items that are first for at least one query in fifty, and six times as often as the mean item."""
    found: set[str] = set()
    ids = (world.dataset.image_ids, world.dataset.caption_ids)
    for names, first, queries in zip(ids, first_items(world), (len(ids[1]), len(ids[0])), strict=True):
        counts = np.bincount(first, minlength=len(names))
        least = max(5.0, 0.02 * queries, 6 * queries / len(names))
        found |= {names[row] for row in np.flatnonzero(counts >= least)}
    return found


def tied_queries(world: World) -> set[str]:
    """Queries whose first place is shared, or whose right item is tied with another."""
    scores = world.similarity.astype(np.float32)
    own = scores[world.owner, np.arange(len(world.owner))]
    top = scores.max(axis=0)
    captions = ((scores == top).sum(axis=0) > 1) | ((scores == own).sum(axis=0) > 1)
    images = (scores == scores.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return {world.dataset.caption_ids[row] for row in np.flatnonzero(captions)} | {
        world.dataset.image_ids[row] for row in np.flatnonzero(images)
    }


def blanks(world: World) -> set[str]:
    """Ids of rows of zeros, and of equal rows of different images or differently worded captions."""
    if world.scores is not None:
        return set()
    found: set[str] = set()
    for ids, vectors, texts in (
        (world.dataset.image_ids, world.images, None), (world.dataset.caption_ids, world.captions, world.dataset.texts),
    ):  # fmt: skip
        groups: dict[bytes, list[int]] = defaultdict(list)
        for row, vector in enumerate(np.ascontiguousarray(vectors, np.float32)):
            groups[vector.tobytes()].append(row)
            if not vector.any():
                found.add(ids[row])
        for rows in groups.values():
            different = len(rows)
            if texts is not None:  # the same words have the same vector
                different = min(
                    len({" ".join(words_of(texts[row])) for row in rows}), len(set(world.owner[rows].tolist()))
                )
            if different > 1:
                found |= {ids[row] for row in rows}
    return found


def lengths_decide(world: World) -> float:
    """The share of queries whose first item changes when vectors are scaled to length 1."""
    if world.score != "dot" or world.scores is not None:
        return 0.0
    plain = world.similarity
    images = world.images / np.maximum(np.linalg.norm(world.images, axis=1, keepdims=True), 1e-12)
    captions = world.captions / np.maximum(np.linalg.norm(world.captions, axis=1, keepdims=True), 1e-12)
    scaled = images @ captions.T
    return max(float((plain.argmax(axis=axis) != scaled.argmax(axis=axis)).mean()) for axis in (0, 1))


def same_captions(world: World) -> set[str]:
    """Captions that another image has in the same words."""
    owners: dict[str, set[int]] = defaultdict(set)
    for text, image in zip(world.dataset.texts, world.owner, strict=True):
        owners[" ".join(words_of(text))].add(int(image))
    return {
        caption
        for caption, text in zip(world.dataset.caption_ids, world.dataset.texts, strict=True)
        if len(owners[" ".join(words_of(text))]) > 1
    }


def at_chance(world: World) -> bool:
    """Whether captions find their image no more often than at random, as far as a binomial can tell."""
    from scipy.stats import binom

    number, queries = len(world.dataset.image_ids), len(world.owner)
    return int(hits(world).sum()) <= binom.ppf(0.999, queries, 1 / number)


# The truth of a case

ABILITIES = ("colour", "count", "position", "order", "action", "size", "text")
UNREAD = 0.65
"""An ability is truly missing where edits are noticed at most so often; a half is chance."""


@dataclass
class Truth:
    """What is true of a case: the ids that each true kind affects (None: any), kinds that are not judged."""

    affected: dict[str, set[str] | None] = field(default_factory=dict)
    unjudged: set[str] = field(default_factory=set)
    measured: dict[str, float] = field(default_factory=dict)
    planted: str = ""

    def of(self, finding: Finding, world: World) -> bool | None:
        """Whether a finding is true; None where nobody can know."""
        kind = finding.kind
        if kind in self.unjudged:
            return None
        if kind == "group":
            return group_is_true(finding, self.affected.get("group"))
        if kind == "twins":
            return twins_are_confused(finding, world)
        if kind == "missing-positives":
            return pairs_fit(finding, world, self.affected.get(kind))
        if kind not in self.affected:
            return False
        affected = self.affected[kind]
        ids = [evidence_ids(entry) for entry in finding.evidence]
        if affected is None or not ids:
            return True
        return float(np.mean([any(name in affected for name in entry) for entry in ids])) >= 0.9


def evidence_ids(entry: Mapping[str, Any]) -> list[str]:
    """The ids of one entry of evidence, what is judged first."""
    if "items" in entry:
        return [str(name) for name in entry["items"]]
    return [str(entry[key]) for key in ("query", "item") if key in entry]


def pairs_fit(finding: Finding, world: World, planted: set[str] | None) -> bool:
    """Whether nine of ten pairs of the evidence fit: the caption is true of the image."""
    rows = world.dataset.caption_rows
    fitting = []
    for entry in finding.evidence:
        ids = evidence_ids(entry)
        if len(ids) < 2:
            fitting.append(bool(planted and ids[0] in planted))
            continue
        caption, image = (ids[0], ids[1]) if ids[0] in rows else (ids[1], ids[0])
        fitting.append(world.fits(caption, image) or bool(planted and caption in planted and image in planted))
    return bool(fitting) and float(np.mean(fitting)) >= 0.9


def twins_are_confused(finding: Finding, world: World) -> bool:
    """Whether both captions of these pairs get their own picture no more often than by coin flips (and 5 points).

    Captions of both pictures stand in the same order; pairs that the evidence does not name are taken to be right.
    """
    rows, images = world.dataset.caption_rows, world.dataset.image_rows
    pairs: dict[tuple[int, int], list[bool]] = {}
    wrong = []
    for caption, image in map(evidence_ids, finding.evidence):
        own, other = int(world.owner[rows[caption]]), images[image]
        wrong.append(world.similarity[other, rows[caption]] >= world.similarity[own, rows[caption]])
        pairs[min(own, other), max(own, other)] = []
    for (first, second), right in pairs.items():
        for one, two in zip(*(np.flatnonzero(world.owner == image) for image in (first, second)), strict=False):
            if words_of(world.dataset.texts[one]) != words_of(world.dataset.texts[two]):
                scores = world.similarity[[first, second, first, second], [one, one, two, two]]
                right.append(bool(scores[0] > scores[1] and scores[3] > scores[2]))
    number = re.search(r"Of (\d+) pairs", finding.text)
    assert number is not None
    share = (int(number[1]) - len(pairs) + sum(float(np.mean(right)) for right in pairs.values())) / int(number[1])
    return bool(wrong) and bool(np.all(wrong)) and share <= 0.3


def is_random(text: str, world: World) -> bool:
    """Whether a sentence is about a column that depends on nothing."""
    return any(re.search(rf"\b{re.escape(name.replace('_', ' '))}\b", text) for name in world.random_columns)


def group_is_true(finding: Finding, planted: set[str] | None) -> bool:
    """Whether the group of the evidence is the planted one."""
    ids = {evidence_ids(entry)[0] for entry in finding.evidence}
    return bool(planted and ids and np.mean([name in planted for name in ids]) >= 0.9)


def members_of(text: str, world: World) -> Array | None:
    """The queries of a group that a sentence names, in its direction; None where the sentence names none."""
    captions, images = world.dataset.captions, world.dataset.images
    of_images = "i2t/" in text
    lengths = np.array([len(words_of(caption)) for caption in world.dataset.texts])
    words = re.search(r"captions of (\d+)(?: to (\d+))? words", text)
    numbers = re.sub(r"queries where “([\w ]+?)” is ([\d. to]+)", r"\1 \2", text)  # as a group of any other column
    column = re.search(r"[Ff]or ([\w ]+?) (?:“(.+?)”|(\d[^“]*?)) \(\d", numbers)
    value = (column[2] or column[3]) if column else ""
    if words or (column and column[1] == "caption length"):
        low, high = (words[1], words[2] or words[1]) if words else (value, value)
        members = (lengths >= int(low)) & (lengths <= int(high))
    elif re.search("objects are small|small objects", text) and world.dataset.objects is not None:
        limit = re.search(r"less than ([\d.]+) ?%", text)
        parts = object_parts(world)
        rows = parts < (float(limit[1]) / 100 if limit else float(np.nanquantile(parts, 1 / 3)))
        return rows if of_images else np.asarray(rows[world.owner])
    elif column and column[1].replace(" ", "_") in (*captions.columns, *images.columns):
        name = column[1].replace(" ", "_")
        table = captions if name in captions.columns else images
        run = re.fullmatch(r"(\d[\d.]*) to (\d[\d.]*)", value)
        if run and table[name].dtype.is_numeric():
            members = table[name].is_between(float(run[1]), float(run[2])).fill_null(False).to_numpy()
        else:
            members = np.array([str(cell) == value for cell in table[name].to_list()])
        if table is images:
            return members if of_images else np.asarray(members[world.owner])
    else:
        return None
    if of_images:
        return np.array([members[world.owner == row].any() for row in range(images.height)])
    return members


def compared_with(text: str, world: World) -> Array:
    """The queries that the group of a sentence is compared with: the others, but for a group that it leaves out."""
    members = members_of(text, world)
    direction = "i2t/" if "i2t/" in text else "t2i/"
    left_out = re.search(r"the rest \(without (.+?)\)", text)
    assert members is not None
    compared = ~members
    for group in left_out[1].split("; ") if left_out else ():
        without = members_of(f"{direction} for {group} (1", world)
        compared &= True if without is None else ~without
    return np.asarray(compared)


def object_parts(world: World) -> Array:
    """Of each image, which part of it its largest object takes; NaN where it has none."""
    assert world.dataset.objects is not None
    objects, images = world.dataset.objects, world.dataset.images
    largest: dict[str, float] = {}
    for image, width, height in objects.select("image", "w", "h").iter_rows():
        largest[image] = max(largest.get(image, 0.0), width * height) if width and height else largest.get(image, 0.0)
    known = {"width", "height"} <= set(images.columns)
    sizes = images["width"] * images["height"] if known else [1.0] * images.height
    return np.array([
        largest.get(image, np.nan) / float(size) for image, size in zip(world.dataset.image_ids, sizes, strict=True)
    ])  # fmt: skip


def image_hits(world: World) -> Array:
    """Whether the first caption of each image is its own: 1 or 0; NaN where it has none and does not ask."""
    right = world.owner[world.similarity.argmax(axis=1)] == np.arange(len(world.dataset.image_ids))
    return np.where(world.dataset.without_captions, np.nan, right)


def truth_of(world: World, planted: str, ids: set[str] | None, also: Mapping[str, set[str] | None]) -> Truth:
    """All that is true of a world, planted or not."""
    truth = Truth(dict(also), planted=planted)
    if planted:
        truth.affected[planted] = ids
    counted: Mapping[str, Callable[[World], set[str]]] = {
        "hub": hubs, "ties": tied_queries, "blank-vectors": blanks, "same-caption": same_captions
    }  # fmt: skip
    for kind, count in counted.items():
        names = count(world)
        if names and truth.affected.get(kind, names) is not None:
            truth.affected[kind] = names | (truth.affected.get(kind) or set())
    if at_chance(world):
        truth.affected["chance"] = None
    decided = lengths_decide(world)
    if decided >= 0.02:
        truth.affected["norms"] = None
    truth.measured["lengths decide"] = decided
    for ability in ABILITIES:
        share, number = noticed(world, ability)
        truth.measured[ability] = share
        if number >= 10 and share <= UNREAD:
            truth.affected.setdefault(ability, None)
    cost = typo_cost(world)
    truth.measured["typos"] = cost
    if cost >= 0.01:
        truth.affected.setdefault("typos", None)
    tail = unread_tail(world)
    truth.measured["truncation"] = tail
    if tail >= 0.05:
        truth.affected.setdefault("truncation", None)
    return truth


def dumped(truth: Truth) -> dict[str, Any]:
    """For the record of a case."""
    sizes = {kind: None if ids is None else len(ids) for kind, ids in truth.affected.items()}
    return json.loads(json.dumps({"planted": truth.planted, "true": sizes, "measured": truth.measured}))


def counted_words(texts: Sequence[str]) -> Counter[str]:
    """How often each word occurs."""
    return Counter(word for text in texts for word in words_of(text))
