"""The senses of words, the words of synsets, and the base forms of words.

A *member* is one word of one synset. ``pos`` is one or several of the letters ``n v a r s``: noun, verb, adjective
(satellites included), adverb, satellite. Base forms come from WordNet's irregular forms, else from its rules of
detachment, those of morphy(7WN), applied once. Like nltk's reader this looks at the whole word only: ``hot dogs`` loses
its last letter, ``attorneys general`` is left alone unless the exceptions list it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from crosslens.core import UsageError
from crosslens.language.wordnet.tables import PARTS, Array, Links, Tables

RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "n": (
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
        ("men", "man"), ("ies", "y"),
    ),
    "v": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}  # fmt: skip


FILED = "nvar"
"""The parts of speech that senses are numbered within, and the order in which they are listed."""
SATELLITE = PARTS.index("s")


def filed_under(part: str) -> str:
    """Satellites are numbered among the adjectives."""
    return "a" if part == "s" else part


def plain(word: str) -> str:
    """As WordNet's index writes a word."""
    return word.strip().lower().replace(" ", "_")


def letters(pos: str | None) -> str:
    """The letters of ``pos``, checked; None: all but satellites."""
    if pos is None:
        return FILED
    if not pos or set(pos) - set(PARTS):
        raise UsageError(f"unknown part of speech {pos!r}", fix=f"one or several of the letters {' '.join(PARTS)}")
    return pos


class Lexicon:
    """Lookup in both directions between words and synsets."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.members = Links.counted(tables.member_counts, tables.member_words)
        self.rows = dict(zip(tables.words, range(len(tables.words)), strict=True))
        exceptions = (line.split(" ") for line in tables.exceptions)
        self._exceptions = {(part, form): bases for part, form, *bases in exceptions}

    @cached_property
    def member_synsets(self) -> Array:
        """The synset of every member."""
        return self.members.sources()

    @cached_property
    def _senses(self) -> Links:
        """Members by ``4 · word + part``, in the order of their senses."""
        parts = np.where(self.tables.parts == SATELLITE, FILED.index("a"), self.tables.parts)
        keys = 4 * self.tables.member_words.astype(np.int64) + parts[self.member_synsets]
        order = np.lexsort((self.tables.member_senses, keys))
        keys, synsets = keys[order], self.member_synsets[order]
        # A word that a synset lists twice, with capitals and without, has one sense there.
        new = np.append(True, (keys[1:] != keys[:-1]) | (synsets[1:] != synsets[:-1]))
        return Links.counted(np.bincount(keys[new], minlength=4 * len(self.rows)), order[new].astype(np.int32))

    def forms(self, word: str, part: str) -> list[str]:
        """The forms of ``word`` that the index lists for ``part``, itself first; none where WordNet knows none."""
        word, part = plain(word), filed_under(part)
        bases = self._exceptions.get((part, word))
        if bases is None:
            bases = [word.removesuffix(ending) + new for ending, new in RULES[part] if word.endswith(ending)]
        return [form for form in dict.fromkeys((word, *bases)) if self.sense_members_as_written(form, part).size]

    def irregular_forms(self, part: str) -> dict[str, tuple[str, ...]]:
        """The exceptions of one part of speech, turned round: base form → its irregular forms."""
        forms: dict[str, tuple[str, ...]] = {}
        for (filed, form), bases in self._exceptions.items():
            if filed == part:
                forms.update({base: (*forms.get(base, ()), form) for base in bases})
        return forms

    def sense_members(self, word: str, pos: str | None) -> Array:
        """For every sense of the word and of its base forms, in order, the member that is the word in that synset."""
        senses = [self.sense_members_as_written(form, part) for part in letters(pos) for form in self.forms(word, part)]
        return np.concatenate(senses) if senses else np.empty(0, dtype=np.int32)

    def name_of(self, member: int) -> str:
        """The member as WordNet writes it: ``Persian_cat``."""
        return self._cased.get(member) or self.tables.words[self.tables.member_words[member]]

    def members_of(self, synset: int) -> range:
        """The members of a synset."""
        return range(int(self.members.starts[synset]), int(self.members.starts[synset + 1]))

    def sense_members_as_written(self, word: str, part: str) -> Array:
        row = self.rows.get(word)
        if row is None:
            return np.empty(0, dtype=np.int32)
        members = self._senses[4 * row + FILED.index(filed_under(part))]
        return members[self.tables.parts[self.member_synsets[members]] == SATELLITE] if part == "s" else members

    @cached_property
    def _cased(self) -> dict[int, str]:
        return dict(zip(self.tables.cased_members.tolist(), self.tables.cased_names, strict=True))
