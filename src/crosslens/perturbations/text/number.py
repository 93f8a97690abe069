"""One object becomes several, or several one: *A dog runs* → *Dogs run*, *Two dogs run* → *A dog runs*."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from crosslens.language import (
    CO_CAPTION_QUANTITIES,
    COUNTED_AS,
    KINDS,
    SAME_IN_PLURAL,
    is_number,
    is_plural,
    load_wordnet,
    pluralise,
    singularise,
    takes_an,
    word_set,
)
from crosslens.perturbations.caption import Caption, Edit, Edits, Token, cased_like
from crosslens.perturbations.draws import Draws
from crosslens.perturbations.registry import CannotApply, perturbation
from crosslens.perturbations.text.agreement import NumberAgreement, Unclear
from crosslens.perturbations.text.synonym_lexicon import is_noun_first

_TAGS = frozenset({"NN", "NNS"})
_ARTICLES = frozenset({"a", "an"})
_SINGLE = {"one": "two", "another": "other", "this": "these", "that": "those"}
_SEVERAL = word_set("some several many few multiple numerous various")
_POINTING = {"these": "this", "those": "that", "other": "another"}
_KEPT = frozenset({"the", "his", "her", "its", "their", "my", "your", "our"})
_BEFORE_NOUN = word_set("det amod nummod compound nmod poss advmod npadvmod punct conj cc")
_ONLY_ONE = word_set("single lone solitary whole only very first last entire")
_TOGETHER = frozenset({"each", "another", "together", "both", "all", "between", "among", "amongst"})
_PARTS = word_set("half majority member minority percent percentage portion quarter remainder rest third")
"""Nouns before *of* that say how many of several: *the rest of the players*."""
_BEFORE_ARTICLE = frozenset({"such", "what", "half", "many", "quite", "rather"})
_IDIOMS = word_set(
    """bit circle couple crowd day distance dozen front ground half hurry kind line lot manner mess middle motion
    number pair part place position rush side sort time type variety way while"""
)
"""Nouns whose *a* counts nothing: *in a row*, *at a distance*, *a lot of*."""


@perturbation("number_change", level="beyond", tags=True, order=19)
def number_change(caption: Caption, draws: Draws) -> Edits:
    """Turn one noun from singular to plural or back, with its determiner, its verb and the pronouns that point to it.

    The plural of *a dog* is *dogs*, of *one dog* *two dogs*, of *this dog* *these dogs*; the singular of *dogs*,
    *two dogs* and *some dogs* is *a dog*, of *the dogs* *the dog*. A singular with *the*, or without any article, may
    be no countable thing (*in the snow*), and stays.
    """
    agreement = NumberAgreement(caption)
    nouns = [at for at, token in enumerate(caption.tokens) if _may_change(agreement, at, token)]
    for noun in draws.shuffled(nouns):
        try:
            changes = _to_plural(agreement, noun) if caption.tokens[noun].tag == "NN" else _to_one(agreement, noun)
        except Unclear:
            continue
        return tuple(_edits(caption, changes))
    has_noun = any(token.tag in _TAGS for token in caption.tokens)
    raise CannotApply("no noun whose number can change" if has_noun else "no common noun")


def _may_change(agreement: NumberAgreement, noun: int, token: Token) -> bool:
    if token.tag not in _TAGS or token.arc in ("compound", "nmod", "npadvmod") or not token.text.isalpha():
        return False
    if not is_noun_first(singularise(token.text.lower())) or agreement.below(noun, "predet"):
        return False
    if token.lemma in SAME_IN_PLURAL or agreement.below(noun, "case") or not _whole(agreement.tokens, noun):
        return False
    if agreement.is_hidden_verb(noun) or agreement.is_predicate(noun) or _goes_on(agreement.tokens, noun):
        return False
    return token.lemma not in CO_CAPTION_QUANTITIES | KINDS | _IDIOMS | set(COUNTED_AS) and (
        token.text.islower() or noun == 0
    )


def _goes_on(tokens: tuple[Token, ...], noun: int) -> bool:
    """Whether the next word is a noun, too, whatever it was taken for: the parser tore *microwave oven* apart."""
    if noun + 1 == len(tokens):
        return False
    behind = tokens[noun + 1]
    return behind.tag in _TAGS or (behind.pos == "VERB" and load_wordnet().morphy(behind.text.lower(), "v") is None)


def _whole(tokens: tuple[Token, ...], noun: int) -> bool:
    """Not a piece of a longer word: *t-shirt*."""
    before = noun > 0 and tokens[noun - 1].end == tokens[noun].start and tokens[noun - 1].text[-1:] in "-/'"
    behind = tokens[noun + 1] if noun + 1 < len(tokens) and tokens[noun + 1].start == tokens[noun].end else None
    return not before and not (behind and (behind.text[:1] in "-/'’" or behind.text[:1].isalpha()))


def _to_plural(agreement: NumberAgreement, noun: int) -> dict[int, str]:
    tokens, edge = agreement.tokens, _left_edge(agreement, noun)
    first = tokens[edge].text.lower()
    before = tokens[edge - 1].text.lower() if edge else ""
    words = {token.text.lower() for token in tokens[edge + 1 : noun]}
    countable = first in _ARTICLES or first in _SINGLE
    if edge == noun or not countable or words & _ONLY_ONE or is_plural(tokens[noun].text):
        raise Unclear
    if (first in _ARTICLES and before in _BEFORE_ARTICLE) or tokens[edge].tag in ("IN", "WDT"):
        raise Unclear
    changes = agreement.changes(noun, plural=True)
    changes[edge] = _SINGLE.get(first, "")
    changes[noun] = pluralise(tokens[noun].text.lower())
    return changes


def _to_one(agreement: NumberAgreement, noun: int) -> dict[int, str]:
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


def _left_edge(agreement: NumberAgreement, noun: int) -> int:
    """The first token of a noun's phrase; raises :class:`Unclear` where something else is inside it."""
    tokens, edge = agreement.tokens, noun
    while edge and tokens[edge - 1].arc in _BEFORE_NOUN and tokens[edge - 1].head >= edge - 1:
        edge -= 1
    while edge < noun and (tokens[edge].arc in ("punct", "cc", "conj") or not edge <= tokens[edge].head <= noun):
        edge += 1
    # "a blue tent preparing food" is no kind of food: what is done belongs to the noun before it.
    inner = pairwise(tokens[edge : noun + 1])
    done = any(token.text.endswith("ing") and before.pos == "NOUN" for before, token in inner)
    if done or any(token.arc == "det" for token in tokens[edge + 1 : noun]):
        raise Unclear
    return edge


def _counted(agreement: NumberAgreement, noun: int) -> bool:
    """Whether something counts it from outside: *a group of dogs*, *the rest of the dogs*, *between two dogs*."""
    token = agreement.tokens[noun]
    link = agreement.tokens[token.head]
    if token.arc != "pobj":
        return False
    whole = agreement.tokens[link.head]
    counts = (
        whole.lemma in CO_CAPTION_QUANTITIES
        or whole.lemma in COUNTED_AS
        or whole.lemma in _PARTS
        or whole.pos != "NOUN"
    )
    of = link.text.lower() == "of" and counts
    return of or link.text.lower() in _TOGETHER


def _do_together(agreement: NumberAgreement, noun: int) -> bool:
    """Whether a subject does what only several can do: *look at each other*."""
    if agreement.tokens[noun].arc in ("pobj", "dobj"):
        return False
    return any(token.text.lower() in _TOGETHER for token in agreement.tokens[noun + 1 :])


def _edits(caption: Caption, changes: dict[int, str]) -> Iterator[Edit]:
    """One edit for every token that changes; a word that goes takes the blank behind it, and leaves its capital."""
    tokens = caption.tokens
    for position in sorted(changes):
        token, new = tokens[position], changes[position]
        if position and changes.get(position - 1) == "":
            continue
        if new == "":
            behind = tokens[position + 1]
            after = cased_like(token.text[:1], changes.get(position + 1, behind.text))
            yield Edit(token.start, behind.end, caption.text[token.start : behind.end], after)
        elif (cased := cased_like(token.text, new)) != token.text:
            yield Edit(token.start, token.end, token.text, cased)
