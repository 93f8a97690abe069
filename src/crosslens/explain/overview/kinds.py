"""From a concept to the kind of thing it is: a synset of WordNet, lifted up the tree of hypernyms."""

from __future__ import annotations

from functools import lru_cache

from crosslens.core.errors import UsageError
from crosslens.language.wordnet import wordnet


@lru_cache(maxsize=1 << 16)
def way_up(synset: str) -> tuple[str, ...]:
    """The synset, its hypernym, and so on to the top, by the longest way; of equally long ones, WordNet's first.

    The longest way names the most kinds: by it a dog is a canine and a carnivore, by the shortest a domestic animal.
    """
    net = wordnet()
    found = [net.synset(synset)]
    while (above := net.hypernyms(found[-1])).size:
        found.append(int(above[int(net.max_depth(above).argmax())]))
    return tuple(net.name(one) for one in found)


def lifted(synset: str, depth: int | None) -> str:
    """The kind that stands ``depth`` steps below the top; the synset itself where it stands higher, or without one."""
    if depth is None:
        return synset
    if depth < 0:
        raise UsageError(f"depth {depth}", fix="use 0 (the top: entity) or more; animal stands at 6, vehicle at 7")
    chain = way_up(synset)
    return chain[max(0, len(chain) - 1 - depth)]
