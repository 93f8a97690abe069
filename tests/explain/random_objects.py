"""Random pictures: objects with synsets, boxes and attributes, any of which may be absent."""

from __future__ import annotations

import numpy as np

from crosslens.language.wordnet import wordnet
from tests.explain.slow_concepts import WORDS, Object

NOUNS = ("zebra", "dog", "cat", "car", "tree", "person", "field", "sky", "grass", "hill", "horse", "boat")
COMMON = [f"{word}.n.01" for word in NOUNS]
LISTED = [word for words in WORDS.values() for word in words]


def rare_nouns(count: int, seed: int = 0) -> list[str]:
    """Nouns from anywhere in WordNet."""
    wn = wordnet()
    rows = np.random.default_rng(seed).choice(len(wn), 3 * count, replace=False)
    return [wn.name(int(row)) for row in rows if wn.part(int(row)) == "n"][:count]


def pick(rng: np.random.Generator, words: list[str]) -> str:
    return words[int(rng.integers(len(words)))]


def random_objects(rng: np.random.Generator, nouns: list[str], most: int) -> list[Object]:
    """Up to ``most`` objects, at most five of a kind."""
    found: list[Object] = []
    while len(found) < most and rng.random() < 0.93:
        if rng.random() < 0.08:
            alike: list[Object] = [{"name": pick(rng, ["qwx", "zzgrom", "vlork"])}]
        else:
            alike = [{"synset": pick(rng, nouns)} for _ in range(int(rng.integers(1, 4)))]
        for one in alike:
            one["name"] = str(one.get("name", "thing"))
            if rng.random() < 0.8:
                one["box"] = [float(side) for side in (*rng.uniform(0, 400, 2), *rng.uniform(5, 200, 2))]
            if rng.random() < 0.5:
                one["attributes"] = [pick(rng, LISTED) for _ in range(int(rng.integers(1, 4)))]
        found += alike
    kept: list[Object] = []
    for one in found:  # the reference tries all matchings
        if sum(other.get("synset") == one.get("synset") for other in kept) < 5:
            kept.append(one)
    return kept
