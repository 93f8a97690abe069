"""What words mean: the WordNet synset of a noun, the hypernyms above it, and colours, sizes and materials.

COCO's 80 category names are mapped by hand, from reading the glosses of all senses: the first one is often wrong (a
*mouse* is no rodent here, a *kite* no bank cheque, a *cake* no bar of soap). Food is the food, not its plant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from crosslens.core import UsageError
from crosslens.language import COLOURS, SIDES, SIZES, STOP_WORDS, load_wordnet
from crosslens.storage import Array

COCO_SYNSETS = {
    "person": "person.n.01", "bicycle": "bicycle.n.01", "car": "car.n.01", "motorcycle": "motorcycle.n.01",
    "airplane": "airplane.n.01", "bus": "bus.n.01", "train": "train.n.01", "truck": "truck.n.01", "boat": "boat.n.01",
    "traffic light": "traffic_light.n.01", "fire hydrant": "fireplug.n.01", "stop sign": "street_sign.n.01",
    "parking meter": "parking_meter.n.01", "bench": "bench.n.01", "bird": "bird.n.01", "cat": "cat.n.01",
    "dog": "dog.n.01", "horse": "horse.n.01", "sheep": "sheep.n.01", "cow": "cow.n.01", "elephant": "elephant.n.01",
    "bear": "bear.n.01", "zebra": "zebra.n.01", "giraffe": "giraffe.n.01", "backpack": "backpack.n.01",
    "umbrella": "umbrella.n.01", "handbag": "bag.n.04", "tie": "necktie.n.01", "suitcase": "bag.n.06",
    "frisbee": "frisbee.n.01", "skis": "ski.n.01", "snowboard": "snowboard.n.01", "sports ball": "ball.n.01",
    "kite": "kite.n.03", "baseball bat": "baseball_bat.n.01", "baseball glove": "baseball_glove.n.01",
    "skateboard": "skateboard.n.01", "surfboard": "surfboard.n.01", "tennis racket": "tennis_racket.n.01",
    "bottle": "bottle.n.01", "wine glass": "wineglass.n.01", "cup": "cup.n.01", "fork": "fork.n.01",
    "knife": "knife.n.01", "spoon": "spoon.n.01", "bowl": "bowl.n.01", "banana": "banana.n.02", "apple": "apple.n.01",
    "sandwich": "sandwich.n.01", "orange": "orange.n.01", "broccoli": "broccoli.n.02", "carrot": "carrot.n.03",
    "hot dog": "hotdog.n.02", "pizza": "pizza.n.01", "donut": "doughnut.n.02", "cake": "cake.n.03",
    "chair": "chair.n.01", "couch": "sofa.n.01", "potted plant": "pot_plant.n.01", "bed": "bed.n.01",
    "dining table": "dining_table.n.01", "toilet": "toilet.n.02", "tv": "television_receiver.n.01",
    "laptop": "laptop.n.01", "mouse": "mouse.n.04", "remote": "remote_control.n.01",
    "keyboard": "computer_keyboard.n.01", "cell phone": "cellular_telephone.n.01", "microwave": "microwave.n.02",
    "oven": "oven.n.01", "toaster": "toaster.n.02", "sink": "sink.n.01", "refrigerator": "refrigerator.n.01",
    "book": "book.n.02", "clock": "clock.n.01", "vase": "vase.n.01", "scissors": "scissors.n.01",
    "teddy bear": "teddy.n.01", "hair drier": "hand_blower.n.01", "toothbrush": "toothbrush.n.01",
}  # fmt: skip
"""WordNet has no stop sign: the nearest is a street sign."""


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


_IMAGE_NOUNS = word_set(
    """air area background corner distance foreground image midair part photo photograph picture scene shot snapshot
    something stuff thing view"""
).union(SIDES)


GENERIC_NOUNS = word_set(
    """air anything area background back bunch center choice couple everything foreground frame front group image inside
    kind lot middle number one other outside pair part photo photograph picture scene shot side something stuff thing
    top type variety view way"""
)
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

_SAME_SIZE = {
    "large": "big colossal enormous giant gigantic grand great huge immense large massive oversized vast",
    "small": "compact little mini miniature minuscule petite small tiny",
    "tall": "high tall towering",
    "short": "low short",
    "wide": "broad wide",
    "narrow": "narrow slim",
}

_MATERIALS = {
    "wood": "wood wooden timber oak pine bamboo",
    "metal": "metal metallic steel iron aluminum aluminium chrome tin brass",
    "stone": "stone rock rocky granite marble cobblestone slate",
    "brick": "brick bricks",
    "concrete": "concrete cement paved asphalt",
    "glass": "glass glassy",
    "plastic": "plastic vinyl",
    "rubber": "rubber",
    "leather": "leather",
    "fabric": "fabric cloth cotton denim linen wool woolen woollen silk velvet fleece knit knitted",
    "paper": "paper cardboard",
    "ceramic": "ceramic porcelain china clay terracotta tile tiled",
    "wicker": "wicker straw rattan",
    "fur": "fur furry fluffy feathered",
}

_WORDS = {
    **{word: (0, _SAME_COLOUR.get(word, word)) for word in COLOURS},
    **{word: (1, word) for word in SIZES},
    **{word: (1, size) for size, words in _SAME_SIZE.items() for word in words.split()},
    **{word: (2, material) for material, words in _MATERIALS.items() for word in words.split()},
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
