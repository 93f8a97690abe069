"""WordNet: from words to synset ids, and from ids to words, relations and similarities.

A synset is its row number, an ``int``; its name (``"dog.n.01"``) is accepted as well. Words may be
written in any case, with spaces or ``_``. ``pos`` is one or several of the letters ``n v a r s`` (noun, verb,
adjective, adverb, satellite adjective; ``a`` includes satellites); None means ``nvar``, in that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crosslens.core import InputError
from crosslens.language.wordnet.tables import (
    FILED,
    NO_PATH,
    PARTS,
    SATELLITE,
    Lexicon,
    Links,
    Tables,
    filed_under,
    letters,
    plain,
    read_tables,
)
from crosslens.storage import Array

if TYPE_CHECKING:
    from scipy import sparse

    from crosslens.language.wordnet.hierarchy import Hierarchy

COMPILED = Path(__file__).with_name("wordnet-3.0.npz")
Synset = int | str
Synsets = Sequence[int] | Sequence[str] | Array

_SIMILARITIES = np.append(1.0 / np.arange(1, NO_PATH + 1), 0.0)
"""By distance; no path is infinitely far."""


@lru_cache(maxsize=1)
def load_wordnet() -> WordNet:
    """The WordNet that crosslens carries, read once per process."""
    return WordNet(read_tables(COMPILED))


class WordNet:
    """Words, synsets and what connects them. Nothing in it changes."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._lexicon = Lexicon(tables)

    def __len__(self) -> int:
        return int(self._tables.parts.size)

    def __repr__(self) -> str:
        return f"<WordNet: {len(self):,} synsets, {len(self._tables.words):,} words>"

    # Synsets and their names

    def synset(self, name: Synset) -> int:
        """The id of ``dog.n.01``; any word of a synset names it, with the number of that sense of the word."""
        if not isinstance(name, str):
            return self._existing(index(name))
        words, _, number = name.strip().lower().replace(" ", "_").rpartition(".")
        word, _, part = words.rpartition(".")  # the word itself may hold dots
        if not word or part not in (*FILED, "s") or not number.isdecimal():
            raise InputError(f"not the name of a synset: {name!r}", expected="word.part.number, such as 'dog.n.01'")
        members = self._lexicon.sense_members_as_written(word, filed_under(part))
        if not 1 <= int(number) <= members.size:
            have = f"{members.size} senses" if members.size else "no sense"
            senses = [self.name(int(synset)) for synset in self.synsets(word)[:4]]
            fix = (
                f"its senses: {', '.join(senses)}" if senses else "WordNet does not list this word: check its spelling"
            )
            raise InputError(f"no synset {name!r}: {word!r} has {have} as {part!r}", fix=fix)
        synset = int(self._lexicon.member_synsets[members[int(number) - 1]])
        if part == "s" and self._tables.parts[synset] != SATELLITE:
            raise InputError(f"no synset {name!r}: that sense is no satellite", fix=f"write {self.name(synset)!r}")
        return synset

    def ids(self, synsets: Synsets) -> Array:
        """Names or ids as an array of ids, checked."""
        if isinstance(synsets, str):
            raise InputError(f"one name, {synsets!r}", expected="a list of names or ids", fix=f"write [{synsets!r}]")
        if not (isinstance(synsets, np.ndarray) and synsets.dtype.kind in "iu"):
            return np.array([self.synset(synset) for synset in synsets], dtype=np.int64)
        if synsets.ndim != 1:
            raise InputError(f"an array of shape {synsets.shape}", expected="a list of synsets")
        for extreme in (synsets.min(initial=0), synsets.max(initial=0)):
            self._existing(int(extreme))
        return synsets.astype(np.int64, copy=False)

    def name(self, synset: Synset) -> str:
        """The name of a synset: its first word, its part of speech, the number of that sense."""
        row = self.synset(synset)
        first = int(self._lexicon.members.starts[row])
        word = self._tables.words[self._tables.member_words[first]]
        return f"{word}.{self.part(row)}.{self._tables.member_senses[first]:02d}"

    def part(self, synset: Synset) -> str:
        """The letter of its part of speech; ``s`` for a satellite."""
        return PARTS[self._tables.parts[self.synset(synset)]]

    def offset(self, synset: Synset) -> int:
        """Its position in its data file: for a noun, the digits of its ImageNet id."""
        return int(self._tables.offsets[self.synset(synset)])

    def synset_at(self, part: str, offset: int) -> int:
        """The synset with this part of speech and offset: ``synset_at("n", 2084071)`` is ImageNet's n02084071."""
        if (synset := self._at.get((filed_under(part), offset))) is None:
            raise InputError(f"no synset of part {part!r} has the offset {offset}")
        return synset

    # Words

    def synsets(self, word: str, pos: str | None = None) -> Array:
        """The senses of a word and of its base forms, in WordNet's order; empty where it has none."""
        return self._lexicon.member_synsets[self._lexicon.sense_members(word, pos)]

    def lemmas(self, synset: Synset) -> list[str]:
        """The words of a synset as WordNet writes them: ``_`` for a space, capitals kept."""
        return [self._lexicon.name_of(member) for member in self._lexicon.members_of(self.synset(synset))]

    def uses(self, synset: Synset) -> list[int]:
        """For each of its lemmas, how often this sense of it was counted in WordNet's tagged texts."""
        members = self._lexicon.members_of(self.synset(synset))
        return [int(count) for count in self._tables.member_uses[members.start : members.stop]]

    def sense_numbers(self, synset: Synset) -> list[int]:
        """For each of its lemmas, which of the lemma's senses (of this part of speech) it is: 1 for the first."""
        members = self._lexicon.members_of(self.synset(synset))
        return [int(number) for number in self._tables.member_senses[members.start : members.stop]]

    def opposites(self, word: str, pos: str) -> list[tuple[int, str, int]]:
        """Each opposite of a word as written: the number of the word's sense, the opposite, and its synset."""
        members = self._lexicon.sense_members_as_written(plain(word), pos)
        return [
            (number, self._lexicon.name_of(int(other)), int(self._lexicon.member_synsets[other]))
            for number, member in enumerate(members, 1)
            for other in self._antonyms[member]
        ]

    def synonyms(self, word: str, pos: str | None = None) -> list[str]:
        """All other words that share a synset with it, first senses first."""
        forms = {form for part in letters(pos) for form in self._lexicon.forms(word, part)}
        lemmas = (lemma for synset in self.synsets(word, pos) for lemma in self.lemmas(int(synset)))
        return [lemma for lemma in dict.fromkeys(lemmas) if lemma.lower() not in forms]

    def antonyms(self, word: str, pos: str | None = None, *, indirect: bool = False) -> list[str]:
        """Words that WordNet opposes to it, first senses first.

        With ``indirect``, these are followed by the opposites of the adjectives that it is a satellite of: ``tiny`` is
        grouped around ``small``, whose opposites are ``large`` and ``big``.
        """
        members = self._lexicon.sense_members(word, pos)
        antonyms = [int(other) for member in members for other in self._antonyms[member]]
        if indirect:
            synsets = self._lexicon.member_synsets[members]
            satellites = synsets[self._tables.parts[synsets] == SATELLITE]
            heads = (head for satellite in satellites for head in self._similar[satellite])
            similar = (member for head in heads for member in self._lexicon.members_of(int(head)))
            antonyms += [int(other) for member in similar for other in self._antonyms[member]]
        return list(dict.fromkeys(self._lexicon.name_of(other) for other in antonyms))

    def morphy(self, word: str, pos: str | None = None) -> str | None:
        """The first base form that WordNet lists: ``dogs`` → ``dog``; None where it lists none."""
        return next((form for part in letters(pos) for form in self._lexicon.forms(word, part)), None)

    def irregular_forms(self, part: str) -> dict[str, tuple[str, ...]]:
        """Base form → the forms of it that no rule makes, as WordNet lists them for one part of speech."""
        return self._lexicon.irregular_forms(part)

    def lemmatise(self, word: str, pos: str = "n") -> str:
        """The shortest base form that WordNet lists, or the word itself where it lists none."""
        return min((form for part in letters(pos) for form in self._lexicon.forms(word, part)), key=len, default=word)

    def synonym_pairs(self, words: Sequence[str], others: Sequence[str] | None = None) -> tuple[Array, Array]:
        """Rows and columns of all pairs of a word and another that share a synset of any part of speech, sorted.

        ``others`` None: the pairs among ``words``, each with itself included. Base forms count: ``dogs`` shares a
        synset with ``domestic dog``. A word that WordNet does not list shares none, not even with itself.
        """
        left = self._incidence(words)
        right = left if others is None else self._incidence(others)
        shared = (left @ right.T).tocsr()
        shared.sort_indices()
        rows = np.repeat(np.arange(len(words)), np.diff(shared.indptr))
        return rows, shared.indices.astype(np.int64)

    def share_synset(self, words: Sequence[str], others: Sequence[str]) -> Array:
        """Whether ``words[i]`` and ``others[j]`` share a synset, as a matrix; see :meth:`synonym_pairs`."""
        shared = np.zeros((len(words), len(others)), dtype=bool)
        shared[self.synonym_pairs(words, others)] = True
        return shared

    # Relations

    def hypernyms(self, synset: Synset) -> Array:
        """The kinds it belongs to; for an instance (a city, a person), what it is an instance of."""
        return self._hierarchy.hypernyms[self.synset(synset)]

    def hyponyms(self, synset: Synset) -> Array:
        """The kinds, and instances, of it."""
        return self._hyponyms[self.synset(synset)]

    def hypernym_closure(self, synset: Synset) -> Array:
        """Everything above it, nearest first, itself not included."""
        return self._hierarchy.closure(self.synset(synset))

    def is_a(self, synset: Synset, kind: Synset) -> bool:
        """Whether a synset is a kind, or somewhere below it."""
        return self.synset(kind) in (self.synset(synset), *self.hypernym_closure(synset))

    def similar_to(self, synset: Synset) -> Array:
        """The satellites around a head adjective, or the head of a satellite."""
        return self._similar[self.synset(synset)]

    def attributes(self, synset: Synset) -> Array:
        """The noun that an adjective is a value of (``large`` → ``size``), or the values of such a noun."""
        return self._attributes[self.synset(synset)]

    def antonym_synsets(self, synset: Synset) -> Array:
        """The synsets of the opposites of its words."""
        members = self._lexicon.members_of(self.synset(synset))
        others = [other for member in members for other in self._antonyms[member]]
        return np.array(list(dict.fromkeys(self._lexicon.member_synsets[others].tolist())), dtype=np.int64)

    # The hierarchy of hypernyms

    def min_depth(self, synsets: Synsets | None = None) -> Array:
        """For each synset, the fewest steps up to a top; None: for all, in the order of ids."""
        return self._hierarchy.min_depths[slice(None) if synsets is None else self.ids(synsets)]

    def max_depth(self, synsets: Synsets | None = None) -> Array:
        """For each synset, the most steps up to a top; None: for all, in the order of ids."""
        return self._hierarchy.max_depths[slice(None) if synsets is None else self.ids(synsets)]

    def path_similarity(self, synset: Synset, other: Synset, *, simulate_root: bool = True) -> float:
        """1 / (1 + steps of the shortest path over a common hypernym); 0 where there is no path.

        ``simulate_root``: as in nltk, verbs, adjectives and adverbs, whose hierarchies share no top, are given one, so
        that there always is a path.
        """
        left, right = [self.synset(synset)], [self.synset(other)]
        return float(self.path_similarities(left, right, simulate_root=simulate_root)[0, 0])

    def path_similarities(self, synsets: Synsets, others: Synsets, *, simulate_root: bool = True) -> Array:
        """:meth:`path_similarity` of every synset (rows) and every other (columns), as float64."""
        steps = self._hierarchy.distances(self.ids(synsets), self.ids(others), simulate_root=simulate_root)
        return _SIMILARITIES[steps]

    def paired_path_similarities(self, synsets: Synsets, others: Synsets, *, simulate_root: bool = True) -> Array:
        """:meth:`path_similarity` of ``synsets[p]`` and ``others[p]``, as float64."""
        left, right = self.ids(synsets), self.ids(others)
        if left.size != right.size:
            raise InputError(f"{left.size} synsets against {right.size}", expected="two lists of the same length")
        return _SIMILARITIES[self._hierarchy.paired_distances(left, right, simulate_root=simulate_root)]

    # Computed on first use

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        from crosslens.language.wordnet.hierarchy import Hierarchy

        edges = np.concatenate([self._tables.hypernyms, self._tables.instance_hypernyms], axis=1)
        return Hierarchy(Links.of(edges[0], edges[1], len(self)), self._tables.parts == PARTS.index("n"))

    @cached_property
    def _hyponyms(self) -> Links:
        return self._hierarchy.hypernyms.reversed()

    @cached_property
    def _similar(self) -> Links:
        return Links.of(self._tables.similar[0], self._tables.similar[1], len(self))

    @cached_property
    def _attributes(self) -> Links:
        return Links.of(self._tables.attributes[0], self._tables.attributes[1], len(self))

    @cached_property
    def _antonyms(self) -> Links:
        return Links.of(self._tables.antonyms[0], self._tables.antonyms[1], self._tables.member_words.size)

    @cached_property
    def _at(self) -> dict[tuple[str, int], int]:
        parts = (filed_under(PARTS[part]) for part in self._tables.parts)
        return {key: row for row, key in enumerate(zip(parts, self._tables.offsets.tolist(), strict=True))}

    def _incidence(self, words: Iterable[str]) -> sparse.csr_array:
        """Words × synsets, 1 where the word is in the synset."""
        from scipy import sparse

        senses = [np.unique(self.synsets(word)) for word in words]
        starts = np.concatenate([[0], np.cumsum([synsets.size for synsets in senses])])
        columns = np.concatenate([*senses, np.empty(0, dtype=np.int32)])
        return sparse.csr_array(
            (np.ones(columns.size, dtype=np.int32), columns, starts), shape=(len(senses), len(self))
        )

    def _existing(self, row: int) -> int:
        if not 0 <= row < len(self):
            raise InputError(f"no synset has the id {row}", expected=f"0 to {len(self) - 1}")
        return row
