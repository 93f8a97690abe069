"""The opposite of an adjective, in the sense in which captions use it.

WordNet proposes: its direct antonyms, then those of the adjectives a word is similar to. But *green* has *ripe* for an
antonym, and *open* has forty. A table read by hand, ``antonyms.txt``, says which of WordNet's opposites captions mean,
beside which nouns. Words that it does not have are settled by kind: the first sense of the word and the sense of its
opposite must be values of the same attribute (*size*, *age*, *wetness* …), and the opposite an everyday word.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from crosslens.language.wordnet import wordnet
from crosslens.perturb.description import kinds_of, word_set

TABLE = Path(__file__).with_name("antonyms.txt")
COLOURED = "+coloured"
"""Of nouns that have a colour as such: whether they do is for the caption to say."""

_LISTS = {
    "openable": """door window mouth box umbrella book laptop gate suitcase container drawer oven
    refrigerator fridge lid eye bag case trunk hood toilet cabinet cupboard closet curtain
    blind shutter jar bottle magazine notebook computer briefcase luggage store shop
    restaurant microwave dishwasher envelope doorway hatch garage newspaper purse beak jaw
    parasol freezer""",
    "container": """glass plate bowl cup lot stadium room bus basket bottle bucket cart refrigerator tray
    shelf house theater theatre box bag bin can jar mug container crate truck wagon suitcase
    pot pan vase train fridge rack drawer dish tank trailer auditorium arena restaurant
    classroom pool bookshelf bookcase pitcher""",
    "waters": "water sea ocean wave lake river surf pond stream",
    "juvenile": """baby boy calf child cub foal girl infant kid kitten lad lamb puppy pup schoolboy
    schoolgirl teen teenager toddler youngster youth""",
}
_NOUNS = {name: word_set(words) for name, words in _LISTS.items()}
_FEWEST_USES = 2
"""How often WordNet's tagged texts must use an opposite for it to count as an everyday word."""


class Line(NamedTuple):
    """A line of the table: these opposites, beside these nouns (all, where none are named), not beside those."""

    opposites: tuple[str, ...]
    nouns: frozenset[str]
    refused: frozenset[str]

    def suits(self, noun: str, between: frozenset[str], coloured: bool) -> bool:
        """Whether the line is about this noun, with these words between the adjective and it."""
        kinds = {noun, *(f"+{kind}" for kind in kinds_of(noun))} | ({COLOURED} if coloured else set())
        kinds |= {f"+{name}" for name, nouns in _NOUNS.items() if noun in nouns}
        return not (kinds | between) & self.refused and (not self.nouns or bool(kinds & self.nouns))


@lru_cache(maxsize=1 << 14)
def opposites_of(
    adjective: str, noun: str = "", *, between: frozenset[str] = frozenset(), coloured: bool = False
) -> tuple[str, ...]:
    """What a caption could say instead to mean the contrary, of this noun (empty: of one not named).

    ``between`` are words that stand between the two; ``coloured``: the adjective is the one colour of the noun.
    """
    lines = table().get(adjective)
    if lines is None:
        return by_kind(adjective)
    return next((line.opposites for line in lines if line.suits(noun, between, coloured)), ())


@lru_cache(maxsize=1)
def table() -> dict[str, tuple[Line, ...]]:
    """The table read by hand, by adjective."""
    found: dict[str, tuple[Line, ...]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        adjectives, opposites, nouns = (part.split() for part in line.split("|"))
        entry = Line(
            tuple(one for one in opposites if one != "-"),
            frozenset(noun for noun in nouns if not noun.startswith("-")),
            frozenset(noun[1:] for noun in nouns if noun.startswith("-")),
        )
        for adjective in adjectives:
            found[adjective] = (*found.get(adjective, ()), entry)
    return found


@lru_cache(maxsize=1 << 12)
def by_kind(adjective: str) -> tuple[str, ...]:
    """The antonyms of its first sense that are values of the same attribute as it.

    Where it has none of its own, those of the adjective it is similar to; but similar words stray (*puffy* is filed
    under *large*), so only a word of one sense may go that way, and only for attributes in which few do.
    """
    net = wordnet()
    senses = net.synsets(adjective, "a")
    if not senses.size or adjective not in (lemma.lower() for lemma in net.lemmas(int(senses[0]))):
        return ()
    first = int(senses[0])
    direct = [synset for number, _, synset in net.opposites(adjective, "a") if number == 1]
    if direct:
        return _of_kind(direct, set(net.attributes(first).tolist()))
    if senses.size > 1 or net.part(first) != "s":
        return ()
    head = int(net.similar_to(first)[0])
    return _of_kind(net.antonym_synsets(head).tolist(), set(net.attributes(head).tolist()) & _steady())


def _of_kind(synsets: list[int], attributes: set[int]) -> tuple[str, ...]:
    found = [one for one in synsets if attributes & set(wordnet().attributes(one).tolist())]
    return tuple(dict.fromkeys(word for one in found for word in _everyday(one)))


@lru_cache(maxsize=1)
def _steady() -> frozenset[int]:
    """Attributes whose words mean the same thing more or less strongly."""
    return frozenset(wordnet().synset(name) for name in ("size.n.01", "beauty.n.01", "cleanness.n.01"))


def _everyday(synset: int) -> list[str]:
    """The word that a synset is best known by, if it is one word and often used."""
    used = zip(wordnet().uses(synset), wordnet().lemmas(synset), strict=True)
    count, word = max(used, key=lambda pair: pair[0])
    return [word] if count >= _FEWEST_USES and word.isalpha() and word.islower() else []
