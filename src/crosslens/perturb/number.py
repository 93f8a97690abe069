"""One thing becomes several, or several one: *A dog runs* → *Dogs run*, *Two dogs run* → *A dog runs*."""

from __future__ import annotations

from collections.abc import Iterator

from crosslens.language.articles import takes_an
from crosslens.language.inflection import is_plural, pluralise, singularise
from crosslens.language.irregular import SAME_IN_PLURAL
from crosslens.language.scene_words import COUNTED_AS, KINDS, QUANTITIES, is_number
from crosslens.language.wordnet import wordnet
from crosslens.perturb.agreement import Agreement, Unclear
from crosslens.perturb.caption import Caption, Token
from crosslens.perturb.draws import Draws
from crosslens.perturb.edit import Edit
from crosslens.perturb.perturbation import CannotApply, Edits, perturbation
from crosslens.perturb.rewording import cased_like
from crosslens.perturb.synonyms import is_noun_first


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TAGS = frozenset({"NN", "NNS"})
_ARTICLES = frozenset({"a", "an"})
_SINGLE = {"one": "two", "another": "other", "this": "these", "that": "those"}
_SEVERAL = _words("some several many few multiple numerous various")
_POINTING = {"these": "this", "those": "that", "other": "another"}
_KEPT = frozenset({"the", "his", "her", "its", "their", "my", "your", "our"})
_BEFORE_NOUN = frozenset(
    {"det", "amod", "nummod", "compound", "nmod", "poss", "advmod", "npadvmod", "punct", "conj", "cc"}
)
_ONLY_ONE = _words("single lone solitary whole only very first last entire")
_TOGETHER = frozenset({"each", "another", "together", "both", "all", "between", "among", "amongst"})
_BEFORE_ARTICLE = frozenset({"such", "what", "half", "many", "quite", "rather"})
_IDIOMS = _words(
    """bit circle couple crowd day distance dozen front ground half hurry kind line lot manner mess middle motion
    number pair part place position rush side sort time type variety way while"""
)
"""Nouns whose *a* counts nothing: *in a row*, *at a distance*, *a lot of*."""


@perturbation("number_change", level="beyond", tags=True)
def number_change(caption: Caption, draws: Draws) -> Edits:
    """Turn one noun from singular to plural or back, with its determiner, its verb and the pronouns that point to it.

    The plural of *a dog* is *dogs*, of *one dog* *two dogs*, of *this dog* *these dogs*; the singular of *dogs*,
    *two dogs* and *some dogs* is *a dog*, of *the dogs* *the dog*. A singular with *the*, or without any article, may
    be no countable thing (*in the snow*), and stays.
    """
    agreement = Agreement(caption)
    places = [place for place, token in enumerate(caption.tokens) if _may_change(agreement, place, token)]
    for place in draws.shuffled(places):
        try:
            changes = _to_plural(agreement, place) if caption.tokens[place].tag == "NN" else _to_one(agreement, place)
        except Unclear:
            continue
        return tuple(_edits(caption, changes))
    nouns = any(token.tag in _TAGS for token in caption.tokens)
    raise CannotApply("no noun whose number can change" if nouns else "no common noun")


def _may_change(agreement: Agreement, place: int, token: Token) -> bool:
    if token.tag not in _TAGS or token.arc in ("compound", "nmod", "npadvmod") or not token.text.isalpha():
        return False
    if not is_noun_first(singularise(token.text.lower())) or "predet" in (
        agreement.tokens[one].arc for one in agreement.children[place]
    ):
        return False
    if token.lemma in SAME_IN_PLURAL or agreement.below(place, "case") or not _whole(agreement.tokens, place):
        return False
    if agreement.is_hidden_verb(place) or agreement.is_predicate(place) or _goes_on(agreement.tokens, place):
        return False
    return token.lemma not in QUANTITIES | KINDS | _IDIOMS | set(COUNTED_AS) and (token.text.islower() or place == 0)


def _goes_on(tokens: tuple[Token, ...], place: int) -> bool:
    """Whether the next word is a noun, too, whatever it was taken for: the parser tore *microwave oven* apart."""
    if place + 1 == len(tokens):
        return False
    behind = tokens[place + 1]
    return behind.tag in _TAGS or (behind.pos == "VERB" and wordnet().morphy(behind.text.lower(), "v") is None)


def _whole(tokens: tuple[Token, ...], place: int) -> bool:
    """Not a piece of a longer word: *t-shirt*."""
    before = place > 0 and tokens[place - 1].end == tokens[place].start and tokens[place - 1].text[-1:] in "-/'"
    next_one = tokens[place + 1] if place + 1 < len(tokens) else None
    behind = next_one is not None and next_one.start == tokens[place].end
    return not before and not (behind and next_one and (next_one.text[:1] in "-/'’" or next_one.text[:1].isalpha()))


def _to_plural(agreement: Agreement, noun: int) -> dict[int, str]:
    tokens, edge = agreement.tokens, _left_edge(agreement, noun)
    first = tokens[edge].text.lower()
    before = tokens[edge - 1].text.lower() if edge else ""
    words = {tokens[one].text.lower() for one in range(edge + 1, noun)}
    if (
        edge == noun
        or (first not in _ARTICLES and first not in _SINGLE)
        or words & _ONLY_ONE
        or is_plural(tokens[noun].text)
    ):
        raise Unclear
    if (first in _ARTICLES and before in _BEFORE_ARTICLE) or tokens[edge].tag in ("IN", "WDT"):
        raise Unclear
    changes = agreement.changes(noun, plural=True)
    changes[edge] = _SINGLE.get(first, "")
    changes[noun] = pluralise(tokens[noun].text.lower())
    return changes


def _to_one(agreement: Agreement, noun: int) -> dict[int, str]:
    tokens, edge = agreement.tokens, _left_edge(agreement, noun)
    single = singularise(tokens[noun].text.lower())
    if single == tokens[noun].text.lower() or _counted(agreement, noun) or _do_together(agreement, noun):
        raise Unclear
    if agreement.below(noun, "appos"):  # two dogs, one big and one little
        raise Unclear
    changes = agreement.changes(noun, plural=False)
    changes[noun] = single
    first = tokens[edge].text.lower()
    if first in _POINTING:
        changes[edge] = _POINTING[first]
    elif edge < noun and (first in _SEVERAL or is_number(first)) and not agreement.children[edge]:
        changes[edge] = "an" if takes_an(changes.get(edge + 1, tokens[edge + 1].text)) else "a"
    elif (edge < noun and first in _KEPT) or agreement.below(noun, "poss"):
        pass
    elif tokens[edge].arc in ("det", "nummod", "quantmod", "predet") or first in ("more", "most", "fewer"):
        raise Unclear
    else:
        start = changes.get(edge, tokens[edge].text)
        plain = start if tokens[edge].pos == "PROPN" else start[:1].lower() + start[1:]
        changes[edge] = f"{'an' if takes_an(plain) else 'a'} {plain}"
    return changes


def _left_edge(agreement: Agreement, noun: int) -> int:
    """The first token of a noun's phrase; raises :class:`Unclear` where something else stands inside it."""
    inside = {noun}
    edge = noun
    while edge and agreement.tokens[edge - 1].arc in _BEFORE_NOUN and agreement.tokens[edge - 1].head >= edge - 1:
        edge -= 1
        inside.add(edge)
    while edge < noun and (
        agreement.tokens[edge].arc in ("punct", "cc", "conj") or agreement.tokens[edge].head not in inside
    ):
        inside.discard(edge)
        edge += 1
    if any(agreement.tokens[one].arc == "det" for one in range(edge + 1, noun)):
        raise Unclear
    # "a blue tent preparing food" is no kind of food: what is done belongs to the noun before it.
    inner = range(edge + 1, noun + 1)
    if any(agreement.tokens[one].text.endswith("ing") and agreement.tokens[one - 1].pos == "NOUN" for one in inner):
        raise Unclear
    return edge


def _counted(agreement: Agreement, noun: int) -> bool:
    """Whether something counts it from outside: *a group of dogs*, *one of the dogs*, *between two dogs*."""
    token = agreement.tokens[noun]
    link = agreement.tokens[token.head]
    if token.arc != "pobj":
        return False
    whole = agreement.tokens[link.head]
    of = link.text.lower() == "of" and (whole.lemma in QUANTITIES or whole.lemma in COUNTED_AS or whole.pos != "NOUN")
    return of or link.text.lower() in _TOGETHER


def _do_together(agreement: Agreement, noun: int) -> bool:
    """Whether a subject does what only several can do: *look at each other*."""
    if agreement.tokens[noun].arc in ("pobj", "dobj"):
        return False
    return any(token.text.lower() in _TOGETHER for token in agreement.tokens[noun + 1 :])


def _edits(caption: Caption, changes: dict[int, str]) -> Iterator[Edit]:
    """One edit for every token that changes; a word that goes takes the blank behind it, and leaves its capital."""
    tokens = caption.tokens
    for place in sorted(changes):
        token, new = tokens[place], changes[place]
        if place and changes.get(place - 1) == "":
            continue
        if new == "":
            behind = tokens[place + 1]
            after = cased_like(token.text[:1], changes.get(place + 1, behind.text))
            yield Edit(token.start, behind.end, caption.text[token.start : behind.end], after)
        elif (cased := cased_like(token.text, new)) != token.text:
            yield Edit(token.start, token.end, token.text, cased)
