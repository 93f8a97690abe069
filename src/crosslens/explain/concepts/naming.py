"""From the name of an object to the WordNet synset that it means, and back to one spelling of that synset."""

from __future__ import annotations

from functools import lru_cache

from crosslens.explain.concepts.coco_synsets import COCO_SYNSETS
from crosslens.language.wordnet import wordnet


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
        senses = wordnet().synsets(rest, "n")
        if senses.size:
            return wordnet().name(int(senses[0]))
    return None


@lru_cache(maxsize=1 << 16)
def canonical_synset(synset: str) -> str:
    """The one name of a synset, whichever of its words it was called by; InputError where WordNet has none such."""
    return wordnet().name(synset)
