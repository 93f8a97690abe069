"""What each distinct word of many captions is: looked up once, however often it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.language.wordnet import wordnet

Array = np.ndarray[Any, Any]

ARTICLES = frozenset({"a", "an", "the"})
QUANTIFIERS = frozenset(
    {
        "all", "another", "any", "both", "each", "either", "enough", "every", "few", "fewer", "half", "less", "many",
        "more", "most", "much", "neither", "no", "none", "plenty", "several", "some",
    }
)  # fmt: skip
"""Quantifying determiners and pronouns. Without *little*, which in captions nearly always means small."""
QUANTIFYING_TAGS = frozenset({"DT", "PDT", "JJ", "JJR", "JJS"})
"""How the tagger calls a quantifier; as an adverb (*more slowly*), a noun (*cut in half*) or a conjunction (*both …
and*) the same word quantifies nothing."""
QUANTIFYING_NOUNS = frozenset({"none", "plenty"})
"""Quantifiers that are tagged as nouns."""

_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class WordFacts:
    """Facts about distinct words in lower case, one row each.

    ``is_word``      whether it has a letter or a digit; otherwise it is punctuation
    ``is_article``   a, an or the
    ``quantifies``   whether it is among the quantifiers
    ``depth``        the largest ``min_depth`` among its synsets of any part of speech; NaN where WordNet has none
    ``noun_depth``   the same among its noun synsets
    ``lemmas``       the lemma names of all its synsets as numbers; those of w are ``lemmas[starts[w]:starts[w+1]]``
    """

    is_word: Array
    is_article: Array
    quantifies: Array
    depth: Array
    noun_depth: Array
    starts: Array
    lemmas: Array


def word_facts(words: Sequence[str]) -> WordFacts:
    """Look up distinct words, given in lower case."""
    known = wordnet()
    depths = known.min_depth()
    numbers: dict[str, int] = {}
    depth, noun_depth, lemmas = [], [], []
    for word in words:
        synsets = known.synsets(word)
        depth.append(_deepest(depths, synsets))
        noun_depth.append(_deepest(depths, known.synsets(word, "n")))
        names = dict.fromkeys(name for synset in synsets for name in known.lemmas(int(synset)))
        lemmas.append([numbers.setdefault(name, len(numbers)) for name in names])
    return WordFacts(
        np.array([_WORD.search(word) is not None for word in words], np.bool_),
        np.array([word in ARTICLES for word in words], np.bool_),
        np.array([word in QUANTIFIERS for word in words], np.bool_),
        np.array(depth, np.float64),
        np.array(noun_depth, np.float64),
        np.concatenate([[0], np.cumsum([len(one) for one in lemmas])]).astype(np.int64),
        np.array([number for one in lemmas for number in one], np.int64),
    )


def _deepest(depths: Array, synsets: Array) -> float:
    return float(depths[synsets].max()) if synsets.size else float("nan")
