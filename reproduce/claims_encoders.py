"""Models of the worlds in which findings are proven: what each of them reads and does not read is so by design.

:class:`Reader` binds the facts of a small grammar, :class:`Memory` knows every caption of a dataset and lowers the
score of whatever differs from it, :class:`Hashing` reads any text as trigrams of letters and pairs of words. The
functions below take one ability away from any of them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from crosslens.synth import COLOUR_WORDS

Array = np.ndarray[Any, Any]
Encode = Callable[[Sequence[str]], Array]
WORD = re.compile(r"[^\W_]+(?:'\w+)?")


def words_in(text: str) -> tuple[str, ...]:
    """A list of words, written in a line."""
    return tuple(text.split())


COLOURS = frozenset(
    words_in(
        "red orange yellow green blue purple pink brown black white grey gray beige turquoise violet "
        "golden gold silver tan maroon crimson navy teal magenta cyan olive indigo lavender cream khaki "
        "scarlet blond blonde colored coloured dark light"
    )
) | {word for colour, (other, _) in COLOUR_WORDS.items() for word in (colour, other)}
NUMBERS = frozenset(
    words_in(
        "one two three four five six seven eight nine ten eleven twelve dozen single lone pair couple "
        "trio quartet several many some both half few"
    )
)
POSITIONS = frozenset(
    words_in(
        "left right above below under over beneath underneath top bottom upper lower behind front beside "
        "near inside outside between on in next atop up down off across around against along middle "
        "centre center corner of to the at by into onto out through toward towards away from"
    )
)
SMALL_WORDS = frozenset(words_in("a an the of is are there it its and with this that as to be was in at on"))


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, in order."""
    return WORD.findall(text.lower())


@lru_cache(maxsize=400_000)
def hashed(name: str, dimension: int) -> Array:
    """The direction that a name has, the same in every process."""
    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
    vector = np.random.default_rng(seed).standard_normal(dimension)
    vector /= np.linalg.norm(vector)
    vector.flags.writeable = False
    return vector


def unit(vectors: Array) -> Array:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths))


def is_typo(word: str, other: str) -> bool:
    """Whether one word is the other with one letter changed, added, left out, or two neighbours swapped."""
    if abs(len(word) - len(other)) > 1 or word == other or min(len(word), len(other)) < 3:
        return False
    short, long = sorted((word, other), key=len)
    at = next((place for place, letter in enumerate(short) if letter != long[place]), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    return short[at + 1 :] == long[at + 1 :] or short[at:] == long[at + 1 : at + 2] + long[at : at + 1] + long[at + 2 :]


class Reader:
    """Reads sentences of the small grammar: the role of a word follows from what it is and where it stands.

    ``roles`` maps each word to its role. The first noun is the subject, the second is what it is beside.
    """

    def __init__(self, roles: Mapping[str, str], dimension: int = 64) -> None:
        self.roles, self.dimension = roles, dimension
        self.understood: dict[str, str] = {}

    def meant(self, written: str) -> str:
        """The word of the grammar that a written word is; empty if it is none."""
        if written not in self.understood:
            near = next((word for word in self.roles if is_typo(written, word)), "")
            self.understood[written] = written if written in self.roles else near
        return self.understood[written]

    def facts(self, text: str) -> dict[str, str]:
        """What a text says, by role; a misspelt word is understood."""
        facts: dict[str, str] = {}
        for written in words_of(text):
            word = self.meant(written)
            role = self.roles.get(word, "")
            if role == "noun":
                role = "noun" if "noun" not in facts else "other noun"
            if role:
                facts.setdefault(role, word)
        return facts

    def vector(self, facts: Mapping[str, str]) -> Array:
        """The sum of the directions of the facts."""
        return np.sum([hashed(f"{role} {word}", self.dimension) for role, word in facts.items()], axis=0)

    def __call__(self, texts: Sequence[str]) -> Array:
        blank = hashed("nothing", self.dimension)
        vectors = [self.vector(facts) if (facts := self.facts(text)) else blank for text in texts]
        return unit(np.array(vectors) + 0.5 * np.array([hashed(f"said as {text}", self.dimension) for text in texts]))


class Memory:
    """Knows every caption: its vector is its image's, and less of it the more of the caption is changed.

    A misspelt word is understood; another word, a missing word and another order of the same words lower the score.
    """

    def __init__(self, texts: Sequence[str], owner: Array, images: Array, spread: float = 0.3) -> None:
        self.dimension = images.shape[1]
        owners: dict[str, list[int]] = defaultdict(list)
        for text, image in zip(texts, owner, strict=True):
            owners[" ".join(words_of(text))].append(int(image))
        self.known: dict[str, Array] = {}
        for text, rows in owners.items():
            mean = unit(np.mean(images[sorted(set(rows))], axis=0))
            self.known[text] = unit(mean + spread * hashed(f"said as {text}", self.dimension))
        self.with_word: dict[str, set[str]] = defaultdict(set)
        for text in self.known:
            for word in text.split():
                self.with_word[word].add(text)

    def nearest(self, words: Sequence[str]) -> str | None:
        """The known caption that shares the largest part of its words with these."""
        shared: Counter[str] = Counter()
        for word in set(words) - SMALL_WORDS or set(words):
            candidates = self.with_word.get(word, ())
            weight = 1 / (1 + len(candidates))
            for text in candidates:
                shared[text] += 1 + weight
        if not shared:
            return None
        return max(shared.items(), key=lambda entry: entry[1] / (len(set(words)) + len(set(entry[0].split()))))[0]

    def vector(self, text: str) -> Array:
        words = words_of(text)
        key = " ".join(words)
        if key in self.known:
            return self.known[key]
        near = self.nearest(words)
        if near is None:
            return hashed(f"unknown {key}", self.dimension)
        added, missing = Counter(words) - Counter(near.split()), Counter(near.split()) - Counter(words)
        for word in [*added.elements()]:
            meant = next((other for other in missing if missing[other] and is_typo(word, other)), None)
            if meant is not None:
                added[word] -= 1
                missing[meant] -= 1
        changes = max(sum((+added).values()), sum((+missing).values()))
        if not changes and sorted(words) == sorted(near.split()) and words != near.split():
            changes = 1  # the same words in another order
        if not changes:
            return self.known[near]
        kept = max(0.1, 0.92 - 0.05 * changes)
        away = hashed(f"changed to {key}", self.dimension)
        return np.asarray(kept * self.known[near] + (1 - kept**2) ** 0.5 * away)

    def __call__(self, texts: Sequence[str]) -> Array:
        return unit(np.array([self.vector(text) for text in texts]))


class Hashing:
    """Reads any text: words as bundles of their trigrams, so that a typo costs little, and pairs of neighbours."""

    def __init__(self, dimension: int = 256, order: float = 0.6) -> None:
        self.dimension, self.order = dimension, order
        self.read: dict[str, Array] = {}

    def word(self, word: str) -> Array:
        """The direction of a word and of its trigrams."""
        if word not in self.read:
            self.read[word] = self._direction(word)
        return self.read[word]

    def _direction(self, word: str) -> Array:
        padded = f"<{word}>"
        parts = [padded[at : at + 3] for at in range(len(padded) - 2)]
        vector = hashed(f"word {word}", self.dimension) + np.sum(
            [hashed(part, self.dimension) for part in parts], axis=0
        )
        return np.asarray(vector / np.linalg.norm(vector) * (0.3 if word in SMALL_WORDS else 1.0))

    def vector(self, text: str) -> Array:
        words = words_of(text) or ["-"]
        total = np.sum([self.word(word) for word in words], axis=0)
        content = [word for word in words if word not in SMALL_WORDS]
        for first, second in pairwise(content):
            total = total + self.order * hashed(f"{first} before {second}", self.dimension)
        return np.asarray(total)

    def __call__(self, texts: Sequence[str]) -> Array:
        return unit(np.array([self.vector(text) for text in texts]))


# What a model may be unable to read


def _without(words: frozenset[str], instead: str, plural: bool = False) -> Callable[[str], str]:
    def rewrite(text: str) -> str:
        kept = [instead if word in words or (plural and word.isdigit()) else word for word in words_of(text)]
        if plural:
            kept = [re.sub(r"(?<=[^s])(es|s)$", "", word) if len(word) > 3 else word for word in kept]
            kept = [word for word in kept if word not in ("a", "an", instead, "is", "are", "exactly")]
        return " ".join(kept) or instead

    return rewrite


_DONE = (
    "run sit stand walk sleep jump climb swim eat drink read ride fly lie kneel dance sing crawl play wait lean rest "
    "throw catch kick push pull hold carry chase paint smile laugh cry talk fight cook cut write draw drive skate ski"
)
_ACTION = re.compile(
    r"\b(?:(?:is|are) )?(?:"
    + "|".join(
        f"{verb}s?|{verb.removesuffix('e') if verb != 'ski' else verb}(?:{verb[-1]})?ing" for verb in words_in(_DONE)
    )
    + r"|lying|lies|flies|flying)\b",
    re.IGNORECASE,
)
_WRITTEN = re.compile(r"[\"“][^\"”]*[\"”]")

BLIND: Mapping[str, Callable[[str], str]] = {
    "colour": _without(COLOURS, "coloured"),
    "count": _without(NUMBERS, "some", plural=True),
    "position": _without(POSITIONS, "near"),
    "order": lambda text: " ".join(sorted(words_of(text))),
    "action": lambda text: _ACTION.sub("is", text),
    "text": lambda text: _WRITTEN.sub("something", text),
}
"""Texts that differ in nothing but this are the same text after it."""


def blind(encode: Encode, ability: str) -> Encode:
    """The same model without an ability: its vectors cannot depend on it."""
    rewrite = BLIND[ability]
    return lambda texts: encode([rewrite(text) for text in texts])


def truncating(encode: Encode, words: int) -> Encode:
    """The same model, which reads so many words of a text."""
    return lambda texts: encode([" ".join(text.split()[:words]) for text in texts])


def brittle(encode: Encode, vocabulary: frozenset[str]) -> Encode:
    """The same model, which understands nothing of a text with a word that it does not know."""

    def encode_known(texts: Sequence[str]) -> Array:
        vectors = np.array(encode(texts))
        for row, text in enumerate(texts):
            unknown = [word for word in words_of(text) if word not in vocabulary]
            if unknown:
                vectors[row] = hashed(f"unknown {' '.join(unknown)}", vectors.shape[1])
        return vectors

    return encode_known
