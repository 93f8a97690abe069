"""Random pictures: objects with synsets, boxes and attributes, any of which may be absent."""

from __future__ import annotations

import numpy as np

from crosslens.language import load_wordnet
from tests.explanations.slow_concepts import WORDS, Object

NOUNS = ("zebra", "dog", "cat", "car", "tree", "person", "field", "sky", "grass", "hill", "horse", "boat")
COMMON = [f"{word}.n.01" for word in NOUNS]
LISTED = [word for words in WORDS.values() for word in words]


def rare_nouns(count: int, seed: int = 0) -> list[str]:
    """Nouns from anywhere in WordNet."""
    wn = load_wordnet()
    rows = np.random.default_rng(seed).choice(len(wn), 3 * count, replace=False)
    return [wn.name(int(row)) for row in rows if wn.part(int(row)) == "n"][:count]


def pick(rng: np.random.Generator, words: list[str]) -> str:
    return words[int(rng.integers(len(words)))]


def random_objects(rng: np.random.Generator, nouns: list[str], most: int) -> list[Object]:
    """Up to ``most`` objects, at most five of a kind."""
    objects: list[Object] = []
    while len(objects) < most and rng.random() < 0.93:
        if rng.random() < 0.08:
            alike: list[Object] = [{"name": pick(rng, ["qwx", "zzgrom", "vlork"])}]
        else:
            alike = [{"synset": pick(rng, nouns)} for _ in range(int(rng.integers(1, 4)))]
        for item in alike:
            item["name"] = str(item.get("name", "thing"))
            if rng.random() < 0.8:
                item["box"] = [float(side) for side in (*rng.uniform(0, 400, 2), *rng.uniform(5, 200, 2))]
            if rng.random() < 0.5:
                item["attributes"] = [pick(rng, LISTED) for _ in range(int(rng.integers(1, 4)))]
        objects += alike
    kept: list[Object] = []
    for item in objects:  # the reference tries all matchings
        if sum(kept_item.get("synset") == item.get("synset") for kept_item in kept) < 5:
            kept.append(item)
    return kept
