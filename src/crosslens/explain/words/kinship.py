"""How two concepts are related in WordNet: what is a kind of what, and the shortest way between them."""

from __future__ import annotations

from functools import lru_cache

from crosslens.language.wordnet import wordnet


@lru_cache(maxsize=1 << 16)
def kinds_above(synset: str) -> frozenset[str]:
    """The synset and everything that it is a kind of."""
    net = wordnet()
    return frozenset({net.name(synset), *(net.name(int(one)) for one in net.hypernym_closure(synset))})


def is_kind_of(one: str, other: str) -> bool:
    """Whether ``one`` is ``other`` or a kind of it: every poodle is a dog."""
    return other in kinds_above(one)


def are_kin(one: str, other: str) -> bool:
    """Whether one of the two is a kind of the other: what is annotated as a person may well be a man."""
    return is_kind_of(one, other) or is_kind_of(other, one)


@lru_cache(maxsize=1 << 14)
def shortest_path(one: str, other: str) -> tuple[tuple[str, ...], str | None]:
    """The synsets from ``one`` to ``other`` over their nearest common hypernym, and that hypernym.

    Of several shortest paths it is that with the most special hypernym, then the first by name. Empty where there is
    none, as between a noun and a verb.
    """
    net = wordnet()
    left, right = _ways_up(one), _ways_up(other)
    shared = left.keys() & right.keys()
    if not shared:
        return (), None
    depths = dict(zip(shared, net.max_depth([net.synset(name) for name in shared]).tolist(), strict=True))
    top = min(shared, key=lambda name: (len(left[name]) + len(right[name]), -depths[name], name))
    return (*left[top], *right[top][-2::-1]), top


@lru_cache(maxsize=1 << 14)
def _ways_up(synset: str) -> dict[str, tuple[str, ...]]:
    """Every hypernym with a shortest way to it, both ends included; the synset itself first."""
    net = wordnet()
    start = net.name(synset)
    ways: dict[str, tuple[str, ...]] = {start: (start,)}
    edge = [start]
    while edge:
        further = []
        for name in edge:
            for above in sorted(net.name(int(one)) for one in net.hypernyms(name)):
                if above not in ways:
                    ways[above] = (*ways[name], above)
                    further.append(above)
        edge = further
    return ways


def plain_word(synset: str) -> str:
    """How people call a synset: its first word, with spaces."""
    return synset.rsplit(".", 2)[0].replace("_", " ")
