"""What the captions of each image say, word by word, and in which caption: the second witness beside annotations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from crosslens.core.dataset import Dataset
from crosslens.core.progress import Progress
from crosslens.explain.words.kinship import are_kin
from crosslens.explain.words.query_words import meaning
from crosslens.language.parse import Parse
from crosslens.language.parsing import parse_texts
from crosslens.language.wordnet import wordnet

_PART = {"NOUN": "n", "PROPN": "n", "VERB": "v", "AUX": "v", "ADJ": "a", "ADV": "r", "NUM": "a"}


@dataclass(frozen=True)
class Said:
    """The words of one image's captions: (part of speech, lemma) → the captions that say it."""

    words: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def says(self, part: str, word: str, besides: str | None = None) -> bool:
        """Whether a caption (other than ``besides``) says the word, a synonym or, of a noun, a kind of it."""
        exact = self.words.get((part, word))
        if exact is not None and exact - {besides}:
            return True
        return any(
            other == part and captions - {besides} and alike(part, word, lemma)
            for (other, lemma), captions in self.words.items()
        )


def caption_words(dataset: Dataset, images: Iterable[str], progress: Progress | None = None) -> dict[str, Said]:
    """Per image, what its captions say; parses are kept between runs."""
    wanted = set(images)
    rows = [row for row, image in enumerate(dataset.captions["image"]) if image in wanted]
    found = {image: Said() for image in wanted}
    captions, owners = dataset.caption_ids, dataset.captions["image"].to_list()
    for row, parse in zip(rows, parse_texts([dataset.texts[row] for row in rows], progress=progress), strict=True):
        words = found[owners[row]].words
        for key in _content(parse):
            words.setdefault(key, set()).add(captions[row])
    return found


def _content(parse: Parse) -> set[tuple[str, str]]:
    """The content words; participles are actions and adjectives both: *seated*, *parked*."""
    found = set()
    for lemma, pos, tag in zip(parse.lemmas, parse.pos, parse.tags, strict=True):
        if (part := _PART.get(pos)) is not None:
            found.add((part, lemma))
            if tag in ("VBN", "VBG"):
                found.add(("a", lemma))
    return found


@lru_cache(maxsize=1 << 18)
def alike(part: str, one: str, other: str) -> bool:
    """Whether two words may say the same: equal, synonyms in any sense or, of nouns, one a kind of the other."""
    if one == other:
        return True
    return (part == "n" and _kin(one, other)) or bool(_senses(part, one) & _senses(part, other))


def _kin(one: str, other: str) -> bool:
    left, right = meaning(one), meaning(other)
    return left is not None and right is not None and are_kin(left, right)


@lru_cache(maxsize=1 << 16)
def _senses(part: str, word: str) -> frozenset[int]:
    return frozenset(wordnet().synsets(word, part).tolist())
