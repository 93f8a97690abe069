"""An adjective replaced by its opposite, in the sense in which captions use it.

WordNet proposes: its direct antonyms, then those of the adjectives a word is similar to. But *green* has *ripe* for an
antonym, and *open* has forty. A table read by hand, ``antonyms.txt``, says which of WordNet's opposites captions mean,
beside which nouns. Words that it does not have are settled by kind: the first sense of the word and the sense of its
opposite must be values of the same attribute (*size*, *age*, *wetness* …), and the opposite an everyday word.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from crosslens.language import inflected, load_wordnet, word_set
from crosslens.perturbations.caption import Caption, Edits, Token, replaced
from crosslens.perturbations.draws import Draws
from crosslens.perturbations.registry import CannotApply, perturbation
from crosslens.perturbations.text.colours import colour_uses
from crosslens.perturbations.text.described_nouns import TABLES, described_noun, noun_kinds

TABLE = Path(__file__).with_name("antonyms.txt")
COLOURED = "+coloured"
"""Of nouns that have a colour as such: whether they do depends on the caption."""

_LISTS = {f"+{name}": word_set(nouns) for name, nouns in TABLES["lists"].items()}
_STEADY = ("size.n.01", "beauty.n.01", "cleanness.n.01")
"""Attributes whose words mean the same thing more or less strongly."""
_FEWEST_USES = 2
"""How often WordNet's tagged texts must use an opposite for it to count as an everyday word."""


@perturbation("antonym", level="adversarial", tags=True, order=14)
def antonym(caption: Caption, draws: Draws, *, every: bool = False) -> Edits:
    """Replace an adjective by its opposite: *a young man* becomes *an old man*.

    every: replace every adjective that has an opposite, not one of them
    """
    return _substituted(caption, draws, _opposed_adjectives(caption), every, "no adjective that has an opposite here")


@perturbation("antonym[any]", level="adversarial", tags=True, order=24)
def any_antonym(caption: Caption, draws: Draws, *, every: bool = False) -> Edits:
    """Replace an adjective by any word that WordNet opposes to it, in whatever sense, as the EXPL paper says.

    The words are antonyms of the adjective itself, not of those similar to it, and any adjective counts: *a dark horse*
    becomes *a light horse*, and *a green field* *a ripe field*.

    every: replace every adjective that has an antonym, not one of them
    """
    adjectives = (position for position, token in enumerate(caption.tokens) if token.pos == "ADJ")
    opposed = ((position, _any_opposites(caption.tokens[position])) for position in adjectives)
    candidates = [(position, words) for position, words in opposed if words]
    return _substituted(caption, draws, candidates, every, "no adjective that has an antonym in WordNet")


def _substituted(
    caption: Caption, draws: Draws, candidates: list[tuple[int, tuple[str, ...]]], every: bool, reason: str
) -> Edits:
    if not candidates:
        raise CannotApply(reason)
    chosen = candidates if every else [draws.choice(candidates)]
    return sum((replaced(caption, position, draws.choice(words)) for position, words in chosen), ())


def _any_opposites(token: Token) -> tuple[str, ...]:
    """WordNet's antonyms of an adjective, of every sense, in the degree that it has."""
    base, tag = _base_form(token)
    forms = (inflected(word.replace("_", " "), tag) for word in load_wordnet().antonyms(base, "a"))
    return tuple(dict.fromkeys(form for form in forms if form.lower() != token.text.lower()))


def _opposed_adjectives(caption: Caption) -> list[tuple[int, tuple[str, ...]]]:
    """The adjectives with an opposite, each with its opposites in its own form."""
    coloured = {use.first for use in colour_uses(caption) if not use.beside and not use.plain}
    opposed: list[tuple[int, int, tuple[str, ...]]] = []
    for position, token in enumerate(caption.tokens):
        if token.pos != "ADJ" or (noun := described_noun(caption, position)) is None:
            continue
        base, tag = _base_form(token)
        between = frozenset(word.text.lower() for word in caption.tokens[position + 1 : noun])
        words = opposites_of(base, caption.tokens[noun].lemma, between=between, coloured=position in coloured)
        if tag != "JJ":
            words = tuple(inflected(word, tag) for word in words if word != "little")
        if words:
            opposed.append((position, noun, words))
    # Beside a word of the same meaning the opposite would be a contradiction: a small tiny dog.
    return [
        (position, words)
        for position, noun, words in opposed
        if not any(noun == other and position != at and set(words) & set(same) for at, other, same in opposed)
    ]


def _base_form(token: Token) -> tuple[str, str]:
    """An adjective as the table has it, and the tag of the degree to put its opposite into: taggers overlook some."""
    word = token.text.lower()
    if word in antonym_table():
        return word, "JJ"
    if token.tag == "JJ" and word.endswith(("er", "est")):
        base = load_wordnet().morphy(word, "a")
        if base not in (None, word):
            return base or word, "JJR" if word.endswith("er") else "JJS"
    return (word, "JJ") if token.tag == "JJ" else (token.lemma, token.tag)


class TableRow(NamedTuple):
    """A row of the table: these opposites, beside these nouns (all, where none are named), not beside those."""

    opposites: tuple[str, ...]
    nouns: frozenset[str]
    refused: frozenset[str]

    def suits(self, noun: str, between: frozenset[str], coloured: bool) -> bool:
        """Whether the row is about this noun, with these words between the adjective and it."""
        kinds = {noun, *(f"+{kind}" for kind in noun_kinds(noun))} | ({COLOURED} if coloured else set())
        kinds |= {name for name, nouns in _LISTS.items() if noun in nouns}
        return not (kinds | between) & self.refused and (not self.nouns or bool(kinds & self.nouns))


@lru_cache(maxsize=1 << 14)
def opposites_of(
    adjective: str, noun: str = "", *, between: frozenset[str] = frozenset(), coloured: bool = False
) -> tuple[str, ...]:
    """What a caption could say instead to mean the contrary, of this noun (empty: of one not named).

    ``between`` are the words between the two; ``coloured``: the adjective is the one colour of the noun.
    """
    rows = antonym_table().get(adjective)
    if rows is None:
        return attribute_antonyms(adjective)
    return next((row.opposites for row in rows if row.suits(noun, between, coloured)), ())


@lru_cache(maxsize=1)
def antonym_table() -> dict[str, tuple[TableRow, ...]]:
    """The table read by hand, by adjective."""
    rows: dict[str, tuple[TableRow, ...]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        adjectives, opposites, nouns = (part.split() for part in line.split("|"))
        row = TableRow(
            tuple(word for word in opposites if word != "-"),
            frozenset(noun for noun in nouns if not noun.startswith("-")),
            frozenset(noun[1:] for noun in nouns if noun.startswith("-")),
        )
        for adjective in adjectives:
            rows[adjective] = (*rows.get(adjective, ()), row)
    return rows


@lru_cache(maxsize=1 << 12)
def attribute_antonyms(adjective: str) -> tuple[str, ...]:
    """The antonyms of its first sense that are values of the same attribute as it.

    Where it has none of its own, those of the adjective it is similar to; but similar words stray (*puffy* is filed
    under *large*), so only a word of one sense may go that way, and only for attributes in which few do.
    """
    net = load_wordnet()
    senses = net.synsets(adjective, "a")
    if not senses.size or adjective not in (lemma.lower() for lemma in net.lemmas(int(senses[0]))):
        return ()
    first = int(senses[0])
    direct = [synset for number, _, synset in net.opposites(adjective, "a") if number == 1]
    if direct:
        return _sharing_attributes(direct, set(net.attributes(first).tolist()))
    if senses.size > 1 or net.part(first) != "s":
        return ()
    head = int(net.similar_to(first)[0])
    steady = {net.synset(name) for name in _STEADY}
    return _sharing_attributes(net.antonym_synsets(head).tolist(), set(net.attributes(head).tolist()) & steady)


def _sharing_attributes(synsets: list[int], attributes: set[int]) -> tuple[str, ...]:
    sharing = [synset for synset in synsets if attributes & set(load_wordnet().attributes(synset).tolist())]
    return tuple(dict.fromkeys(word for synset in sharing for word in _everyday(synset)))


def _everyday(synset: int) -> list[str]:
    """The word that a synset is best known by, if it is one word and often used."""
    used = zip(load_wordnet().uses(synset), load_wordnet().lemmas(synset), strict=True)
    count, word = max(used, key=lambda pair: pair[0])
    return [word] if count >= _FEWEST_USES and word.isalpha() and word.islower() else []
