"""``rules``: mistakes that rules can find; in a parse where spaCy is installed, in the words alone otherwise.

A rule reports only what it is sure of. A caption may be a noun phrase (*A man on a horse.*): a missing verb is no
mistake, a text that is neither a sentence nor a noun phrase is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosslens.build.grammar.protocol import GRAMMAR_CHECKS, GrammarCheck
from crosslens.build.grammar.words import problems_of_numbers, problems_of_words
from crosslens.core import MissingExtraError
from crosslens.language import (
    COLOURS,
    NUMBERS,
    SAME_IN_PLURAL,
    SIZES,
    Parse,
    find_pipeline,
    is_phrase,
    is_plural,
    parse_texts,
    pluralise,
    singularise,
    word_set,
)

_REVISION = "1"
_FINITE = frozenset({"VBZ", "VBP", "VBD", "MD"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_WITHIN = frozenset({"pobj", "compound", "nmod", "poss", "npadvmod"})
"""Arcs of nouns that belong to something else: alone they make no noun phrase."""
_NOUNS = frozenset({"NOUN", "PROPN", "PRON", "NUM"})
_MORE = frozenset({"NN", "NNS", "JJ", "VBN"})
_COUNTING = word_set("few dozen hundred thousand million many couple lot")
_ONE = word_set("a an one each every this")
_MANY = frozenset(NUMBERS[2:])
_EITHER = SAME_IN_PLURAL | word_set(
    """all any some none most half more rest lot couple pair team crew staff family crowd audience band police cattle
    majority number variety group bunch row set series pants jeans glasses scissors"""
)
"""Subjects that go with a singular and a plural verb, or whose number their form does not show."""


@GRAMMAR_CHECKS.register("rules")
def load_rules() -> GrammarCheck:
    """Articles, repeated words, capitals, full stops, number, agreement of subject and verb, fragments."""
    try:
        return RuleCheck(str(find_pipeline()))
    except MissingExtraError:
        return RuleCheck(None)


class RuleCheck:
    """The rules; ``pipeline`` is the spaCy pipeline that parses the texts, None for rules of words alone."""

    name = "rules"

    def __init__(self, pipeline: str | None) -> None:
        self._parses = pipeline is not None
        self.revision = f"{_REVISION}, {pipeline or 'words alone'}"

    def problems(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """For each text what is wrong with it, as ``rule: where``."""
        per_text = [list(problems_of_words(text)) for text in texts]
        if self._parses:
            for problems, parse in zip(per_text, parse_texts(texts), strict=True):
                problems += problems_of_parse(parse)
        else:
            for problems, text in zip(per_text, texts, strict=True):
                problems += problems_of_numbers(text)
        return [tuple(dict.fromkeys(problems)) for problems in per_text]


def problems_of_parse(parse: Parse) -> Iterator[str]:
    """What a parse shows: numbers, subjects and verbs, whether it is a sentence or a noun phrase at all."""
    yield from _numbers(parse)
    yield from _agreement(parse)
    is_sentence = any(tag in _FINITE for tag in parse.tags) or any(
        tag == "VB" and arc == "ROOT" for tag, arc in zip(parse.tags, parse.arcs, strict=True)
    )
    nouns = (arc for pos, arc in zip(parse.pos, parse.arcs, strict=True) if pos in _NOUNS and arc not in _WITHIN)
    starts_noun_phrase = len(parse) > 0 and parse.pos[0] == "DET"  # "A close up of a cat" is parsed as anything
    quotes = not {":", '"', "“"}.isdisjoint(parse.words)  # what is before a colon or in quotes need be neither
    if not (is_sentence or starts_noun_phrase or quotes or any(nouns)):
        yield f"fragment: {' '.join(parse.words[:4])}"


def _numbers(parse: Parse) -> Iterator[str]:
    for token, (arc, head) in enumerate(zip(parse.arcs, parse.heads, strict=True)):
        word, noun = parse.words[token].lower(), parse.words[head].lower()
        if head <= token or parse.arcs[head] in _WITHIN - {"pobj"} or not _are_adjectives(parse, token + 1, head):
            continue
        changes = singularise(noun) != noun if is_plural(noun) else pluralise(noun) != noun
        if not changes or not noun.isalpha():
            continue
        one_of_many = arc == "det" and word in _ONE and parse.tags[head] == "NNS" and is_plural(noun)
        many_of_one = arc == "nummod" and word in _MANY and parse.tags[head] == "NN" and not is_plural(noun)
        # "a three wheeler", "seven ebony wrapped boxes": not a number of what the parser says.
        many_of_one &= parse.pos[max(token - 1, 0)] != "DET" and parse.tags[min(head + 1, len(parse) - 1)] not in _MORE
        if one_of_many or many_of_one:
            yield f"number: {word} {noun}"


def _are_adjectives(parse: Parse, start: int, end: int) -> bool:
    """Whether words are adjectives and nothing else: not *few*, nor nouns that the parser took for adjectives."""
    words = [word.lower() for word in parse.words[start:end]]
    plain = all(word in COLOURS | SIZES or not is_phrase(word) for word in words)
    return plain and _COUNTING.isdisjoint(words) and all(pos == "ADJ" for pos in parse.pos[start:end])


def _agreement(parse: Parse) -> Iterator[str]:
    for token, (arc, verb) in enumerate(zip(parse.arcs, parse.heads, strict=True)):
        if arc not in _SUBJECTS or token > verb:
            continue
        finite = _finite_form(parse, token, verb)
        plural = _is_plural_subject(parse, token, verb)
        if finite is None or plural is None:
            continue
        tag, form = parse.tags[finite], parse.words[finite].lower()
        says_plural = {"VBZ": False, "VBP": True}.get(tag, {"was": False, "were": True}.get(form))
        if says_plural is None or says_plural == plural:
            continue
        is_listed = "and" in parse.words[:finite]
        if not _NOUNS.isdisjoint(parse.pos[token + 1 : finite]):  # the nearer noun may be the subject
            continue
        is_noun = parse.pos[token] != "PRON" and is_phrase(form) and form not in ("are", "have", "do")
        if not says_plural or not (is_listed or is_noun):  # "the bathroom mirror": parsed as a verb, as "dogs eat"
            yield f"agreement: {parse.words[token]} {form}"


def _finite_form(parse: Parse, subject: int, verb: int) -> int | None:
    """The word that shows the number of the verb; None where none does: after *can*, or where there is no verb."""
    between = range(subject, verb)
    forms = [token for token in between if parse.heads[token] == verb and parse.arcs[token].startswith("aux")]
    first = (forms or [verb])[0]
    return first if parse.tags[first] in _FINITE - {"MD"} else None


def _is_plural_subject(parse: Parse, subject: int, verb: int) -> bool | None:
    """Whether the subject is a plural; None where its form does not say."""
    word, tag = parse.words[subject].lower(), parse.tags[subject]
    children = [token for token in range(len(parse)) if parse.heads[token] == subject and token != subject]
    others = [token for token, arc in enumerate(parse.arcs) if arc in _SUBJECTS and parse.heads[token] == verb]
    if len(others) > 1 or any(parse.arcs[token] in ("conj", "cc", "appos", "relcl") for token in children):
        return None  # "fish and chips is", "the dogs, each of which is": rules are not sure of these
    if word in _EITHER or any(parse.words[token].lower() == "of" for token in children):
        return None
    if word in ("he", "she", "it", "they", "we"):
        return word in ("they", "we")
    if tag == "NNS" and is_plural(word):
        return True
    return False if tag == "NN" and not is_plural(word) else None
