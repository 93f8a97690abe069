"""What words mean: the WordNet synset of a noun, the hypernyms above it, and colours, sizes and materials."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from crosslens.core import UsageError
from crosslens.language import COLOURS, SIDES, SIZES, STOP_WORDS, load_wordnet
from crosslens.storage import Array

TABLES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
"""Words read by hand; the file says what each table is for."""
COCO_SYNSETS = TABLES["coco"]


def plain_name(name: str) -> str:
    """In lower case, with single spaces: how names are compared."""
    return " ".join(name.replace("_", " ").lower().split())


@lru_cache(maxsize=1 << 16)
def synset_of_name(name: str) -> str | None:
    """The synset that a name means, or None.

    One of COCO's category names means what COCO means by it; any other name its first noun sense. Of a name of several
    words that WordNet does not list, leading words are dropped until it lists the rest: a *red fire truck* is a fire
    truck.
    """
    words = plain_name(name).split()
    for start in range(len(words)):
        rest = " ".join(words[start:])
        if reviewed := COCO_SYNSETS.get(rest):
            return reviewed
        synsets = load_wordnet().synsets(rest, "n")
        if synsets.size:
            return load_wordnet().name(int(synsets[0]))
    return None


@lru_cache(maxsize=1 << 16)
def canonical_synset(synset: str) -> str:
    """The canonical name of a synset, whichever of its words it was named by; InputError where WordNet has none."""
    return load_wordnet().name(synset)


PERSON = "person.n.01"
"""Annotators call every human a person: it is what a query's *man* or *girl* is annotated as."""
PHYSICAL = "physical_entity.n.01"
PLACE = "location.n.01"
_OBJECTS = ("object.n.01", "matter.n.03", "sign.n.02")
"""What can be seen; WordNet files street signs and posters under communication."""
_FREQUENT = 11
"""A sense is frequent with one in so many of the word's uses in WordNet's tagged texts."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_IMAGE_NOUNS = word_set(TABLES["nouns"]["image"]).union(SIDES)
GENERIC_NOUNS = word_set(TABLES["nouns"]["generic"])
"""Nouns that no image can lack."""


def meaning(name: str) -> str | None:
    """The synset that a query's noun means; WordNet's *people* is a folk, a caption's are persons."""
    return PERSON if name == "people" else synset_of_name(name)


def is_object_word(name: str) -> bool:
    """Whether a word can name an object: WordNet knows it as a noun, and it is no *down*, *standing* or *Spain*."""
    if meaning(name) is None or name in STOP_WORDS or (name.endswith("ing") and not is_tangible(name)):
        return False
    # A name of places and nothing else: a jersey is a garment, too.
    places = (is_hyponym(synset, PLACE) and load_wordnet().lemmas(synset)[0][0].isupper() for synset in senses(name))
    return len(senses(name)) == 0 or not all(places)


def is_tangible(name: str) -> bool:
    """Whether a noun names something visible in the image: not the image itself, nor its left side."""
    synset = meaning(name)
    return name not in _IMAGE_NOUNS and synset is not None and is_hyponym(synset, PHYSICAL)


@lru_cache(maxsize=1 << 14)
def is_visible(name: str) -> bool:
    """Whether a noun can name something visible: its usual meaning is tangible, or a frequent sense is an object.

    WordNet's first *donkey* is a party's emblem, its first *table* an array. Where a word has fewer uses than it takes
    to tell, its first two senses count as frequent.
    """
    if is_tangible(name) or name in _IMAGE_NOUNS or name in GENERIC_NOUNS:
        return is_tangible(name)
    net, word, usual = load_wordnet(), name.replace(" ", "_"), meaning(name)
    synsets = net.synsets(name, "n").tolist()
    uses = [dict(zip(map(str.lower, net.lemmas(row)), net.uses(row), strict=True)).get(word, 0) for row in synsets]
    enough = sum(uses) >= _FREQUENT
    frequent = [row for at, row in enumerate(synsets) if (_FREQUENT * uses[at] >= sum(uses) if enough else at < 2)]
    kinds = map(hypernyms_of, [*map(net.name, frequent), *([usual] if usual else [])])
    return any(PLACE not in kind and not kind.isdisjoint(_OBJECTS) for kind in kinds)


@lru_cache(maxsize=1 << 14)
def senses(name: str) -> frozenset[str]:
    """Everything that a name can mean as a noun, first senses and rare ones."""
    net = load_wordnet()
    synsets = {net.name(int(row)) for row in net.synsets(name, "n")}
    synset = meaning(name)
    return frozenset(synsets | {synset} if synset else synsets)


@lru_cache(maxsize=1 << 18)
def same_meaning(part: str, word: str, other: str) -> bool:
    """Whether two words may mean the same: equal, synonyms in any sense or, of nouns, one a hyponym of the other."""
    if word == other:
        return True
    if part == "n":
        left, right = meaning(word), meaning(other)
        if left is not None and right is not None and are_related(left, right):
            return True
    return bool(_synset_rows(part, word) & _synset_rows(part, other))


@lru_cache(maxsize=1 << 16)
def _synset_rows(part: str, word: str) -> frozenset[int]:
    return frozenset(load_wordnet().synsets(word, part).tolist())


@lru_cache(maxsize=1 << 16)
def hypernyms_of(synset: str) -> frozenset[str]:
    """The synset and all its direct and indirect hypernyms."""
    net = load_wordnet()
    return frozenset({net.name(synset), *(net.name(int(row)) for row in net.hypernym_closure(synset))})


def is_hyponym(synset: str, other: str) -> bool:
    """Whether ``synset`` is ``other`` or a kind of it: every poodle is a dog."""
    return other in hypernyms_of(synset)


def are_related(synset: str, other: str) -> bool:
    """Whether one of the two is a hyponym of the other: what is annotated as a person may well be a man."""
    return is_hyponym(synset, other) or is_hyponym(other, synset)


@lru_cache(maxsize=1 << 14)
def shortest_path(start: str, end: str) -> tuple[tuple[str, ...], str | None]:
    """The synsets from ``start`` to ``end`` over their nearest common hypernym, and that hypernym.

    Of several shortest paths it is that with the most specific hypernym, then the first by name. Empty where there is
    none, as between a noun and a verb.
    """
    net = load_wordnet()
    left, right = _paths_up(start), _paths_up(end)
    shared = left.keys() & right.keys()
    if not shared:
        return (), None
    depths = dict(zip(shared, net.max_depth([net.synset(name) for name in shared]).tolist(), strict=True))
    top = min(shared, key=lambda name: (len(left[name]) + len(right[name]), -depths[name], name))
    return (*left[top], *right[top][-2::-1]), top


@lru_cache(maxsize=1 << 14)
def _paths_up(synset: str) -> dict[str, tuple[str, ...]]:
    """Every hypernym with a shortest path to it, both ends included; the synset itself first."""
    net = load_wordnet()
    start = net.name(synset)
    paths: dict[str, tuple[str, ...]] = {start: (start,)}
    queue = [start]
    for name in queue:
        for above in sorted(net.name(int(row)) for row in net.hypernyms(name)):
            if above not in paths:
                paths[above] = (*paths[name], above)
                queue.append(above)
    return paths


@lru_cache(maxsize=1 << 16)
def hypernym_path(synset: str) -> tuple[str, ...]:
    """The synset, its hypernym, and so on to the root, by the longest path; of equally long ones, WordNet's first.

    The longest path names the most hypernyms: by it a dog is a canine and a carnivore, by the shortest a domestic
    animal.
    """
    net = load_wordnet()
    path = [net.synset(synset)]
    while (above := net.hypernyms(path[-1])).size:
        path.append(int(above[int(net.max_depth(above).argmax())]))
    return tuple(net.name(row) for row in path)


def ancestor_at(synset: str, depth: int | None) -> str:
    """The hypernym ``depth`` steps below the root; the synset itself where it is higher, or without a depth."""
    if depth is None:
        return synset
    if depth < 0:
        raise UsageError(f"depth {depth}", fix="use 0 (the root: entity) or more; animal is at 6, vehicle at 7")
    path = hypernym_path(synset)
    return path[max(0, len(path) - 1 - depth)]


def synset_word(synset: str) -> str:
    """The first word of a synset, with spaces."""
    return synset.rsplit(".", 2)[0].replace("_", " ")


# Attributes: colours, sizes and materials

ATTRIBUTE_FAMILIES = ("colour", "size", "material")

_SAME_COLOUR = {"gray": "grey", "blonde": "blond", "golden": "gold"}

_WORDS = {
    **{word: (0, _SAME_COLOUR.get(word, word)) for word in COLOURS},
    **{word: (1, word) for word in SIZES},
    **{word: (1, size) for size, words in TABLES["sizes"].items() for word in words.split()},
    **{word: (2, material) for material, words in TABLES["materials"].items() for word in words.split()},
}
"""Every word → its family and its canonical value."""
_VALUES = tuple(tuple(sorted({value for at, value in _WORDS.values() if at == family})) for family in range(3))
"""Per family; no family has more than the 64 that fit into the bits of one number."""


@lru_cache(maxsize=1 << 16)
def attribute_values(attributes: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The colours, sizes and materials among an object's attributes; *dark brown* is brown."""
    words = re.findall(r"[^\W\d_]+", "\n".join(attributes).lower())
    values = [_WORDS[word] for word in words if word in _WORDS]
    colours, sizes, materials = (frozenset(value for at, value in values if at == family) for family in range(3))
    return colours, sizes, materials


def attribute_bits(attributes: Sequence[tuple[str, ...]]) -> Array:
    """Per object and family its values as the bits of one number: n × 3, uint64."""
    number: dict[tuple[str, ...], int] = {}
    rows = [number.setdefault(words, len(number)) for words in attributes]
    distinct = [
        [sum(1 << _VALUES[family].index(value) for value in values) for family, values in enumerate(families)]
        for families in map(attribute_values, number)
    ]
    return np.array(distinct, dtype=np.uint64).reshape(-1, len(ATTRIBUTE_FAMILIES))[rows]
