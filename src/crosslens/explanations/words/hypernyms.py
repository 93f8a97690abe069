"""What nouns mean in WordNet: their senses, the hypernyms above a synset, and the shortest path between two."""

from __future__ import annotations

from functools import lru_cache

from crosslens.core import UsageError
from crosslens.explanations.concepts.lexicon import synset_of_name
from crosslens.language import SIDES, load_wordnet

PERSON = "person.n.01"
"""Annotators call every human a person: it is what a query's *man* or *girl* is annotated as."""
PHYSICAL = "physical_entity.n.01"
_IMAGE_NOUNS = frozenset(
    {
        *("air", "area", "background", "corner", "distance", "foreground", "image", "part", "photo", "photograph"),
        *("picture", "scene", "shot", "snapshot", "something", "stuff", "thing", "view"),
        *SIDES,
    }
)


def meaning(name: str) -> str | None:
    """The synset that a query's noun means; WordNet's *people* is a folk, a caption's are persons."""
    return PERSON if name == "people" else synset_of_name(name)


def is_tangible(name: str) -> bool:
    """Whether a noun names something visible in the image: not the image itself, nor its left side."""
    synset = meaning(name)
    return name not in _IMAGE_NOUNS and synset is not None and is_hyponym(synset, PHYSICAL)


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
    frontier = [start]
    while frontier:
        reached = []
        for name in frontier:
            for above in sorted(net.name(int(row)) for row in net.hypernyms(name)):
                if above not in paths:
                    paths[above] = (*paths[name], above)
                    reached.append(above)
        frontier = reached
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
