"""Lemmas that the pipeline gets wrong, mended.

It takes a verb's ending off and stops at the first verb it knows: *riding* becomes *rid*. But a short verb that ends in
one consonant doubles it before *-ing* and *-ed* (*ridding*), and takes *-s*, not *-es*, unless it ends in a hiss or in
*o*. Where a form breaks these rules, the verb ends in *e*. And it leaves some plurals as they are, such as *geese*:
WordNet's list of irregular forms knows them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from crosslens.language.wordnet import wordnet

_DOUBLES = re.compile(r"(?:qu|[^aeiou])*[aeiou][^aeiouwxy]")
_TAKES_ES = ("s", "x", "z", "ch", "sh", "o")


@lru_cache(maxsize=1 << 16)
def mended_lemma(word: str, lemma: str, tag: str) -> str:
    """The lemma in lower case, given the word, the pipeline's lemma, and the Penn Treebank tag."""
    word, lemma = word.lower(), lemma.lower()
    if tag in ("NN", "NNS") and word == lemma:
        return wordnet().morphy(word, "n") or lemma
    if not tag.startswith("VB"):
        return lemma
    undoubled = word in (lemma + "ing", lemma + "ed") and _DOUBLES.fullmatch(lemma)
    misjoined = word == lemma + "es" and not lemma.endswith(_TAKES_ES)
    return lemma + "e" if undoubled or misjoined else lemma
