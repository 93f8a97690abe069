"""What every grammar check is: texts in, problems out, and a name that identifies the rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from crosslens.core import MissingExtraError, Registry
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
    takes_an,
    word_set,
)


@runtime_checkable
class GrammarCheck(Protocol):
    """Something that finds mistakes. ``revision`` changes whenever the same text may get another answer than before."""

    name: str
    revision: str

    def problems(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """For each text what is wrong with it, in a few words; nothing where it is fine."""


GRAMMAR_CHECKS: Registry[Callable[[], GrammarCheck]] = Registry(
    "grammar check", "grammar_checks", ("crosslens.build.grammar",)
)


def load_grammar_check(check: str | GrammarCheck) -> GrammarCheck:
    """The check of a name; a check is used as it is."""
    return GRAMMAR_CHECKS[check].value() if isinstance(check, str) else check


_ARTICLE = re.compile(r"(?<![\w'’-])(a|an)\s+[\"'“‘(]*([A-Za-z0-9][\w'’-]*)", re.IGNORECASE)
_REPEATED = re.compile(r"(?<![\w'’-])(\w+)\s+\1(?![\w'’-])", re.IGNORECASE)
_MAY_REPEAT = word_set("that had bye very choo tsk")
_FULL_STOP = re.compile(r"[.!?…][\"'”’)\]]*$")
_FIRST = re.compile(r"[^\W_]")
_WORD = re.compile(r"[\w'’-]+|[^\w\s]")
_OPEN_ENDS = word_set("a an the and or their its")
_FUNCTION_WORDS = _OPEN_ENDS | word_set(
    """of with from at in on by to for is are was were be has have as but that which who into onto near under over
    behind beside between"""
)
_SEVERAL = frozenset(NUMBERS[2:]) | word_set("several many both few")
_QUANTITIES = word_set("few lot couple number group pair dozen variety bunch hundred thousand million handful row set")
_THERE_IS = re.compile(r"(?<!\w)there(?:'s|’s| is| was) (\w+)", re.IGNORECASE)
_THERE_ARE = re.compile(r"(?<!\w)there (?:are|were) (?:an?|one) ([^.;]*)", re.IGNORECASE)
_SHE = r"(?:he|she|it) (?:are|were|have|do)"
_THEY = r"(?:they|we|these|those) (?:is|was|has|does)"
_PRONOUNS = re.compile(rf"(?:^|[,;.] |\band )({_SHE}|{_THEY})(?!\w)", re.IGNORECASE)


def problems_of_words(text: str) -> Iterator[str]:
    """What is wrong with a text, each as ``rule: where``."""
    first = _FIRST.search(text)
    if first and first.group().islower() and not text.startswith(('"', "“")):  # a quoted word is as it is
        yield f"capital: {text.split()[0]}"
    if not _FULL_STOP.search(text.rstrip()):
        yield f"full stop: {' '.join(text.split()[-1:])}"
    for match in _ARTICLE.finditer(text):
        article, word = match.groups()
        is_letter = article == "A" and match.start() > 0 and text[: match.start()].rstrip()[-1:].isalnum()
        if not is_letter and takes_an(word) != (article.lower() == "an"):
            yield f"article: {article} {word}"
    for match in _REPEATED.finditer(text):
        if match.group(1).lower() not in _MAY_REPEAT and not match.group(1).isdigit():
            yield f"repeated word: {match.group()}"
    for match in _THERE_IS.finditer(text):
        if match.group(1).lower() in _SEVERAL:
            yield f"agreement: {match.group()}"
    for match in _THERE_ARE.finditer(text):
        listed = re.search(r"\band\b", match.group(1))
        if not listed and _QUANTITIES.isdisjoint(match.group(1).lower().split()[:3]):
            yield f"agreement: {match.group()[:24]}"
    for match in _PRONOUNS.finditer(text):
        yield f"agreement: {match.group(1)}"
    spoken = [word.lower() for word in _WORD.findall(text) if word[0].isalnum()]
    if len(spoken) < 2 or spoken[-1] in _OPEN_ENDS:
        yield f"fragment: {' '.join(spoken[-2:])}"


def problems_of_numbers(text: str) -> Iterator[str]:
    """A number and a noun that do not agree, where nothing but the noun follows the number."""
    words = [*_WORD.findall(text), "."]
    for number, noun, after in zip(words, words[1:], words[2:], strict=False):
        ends = not after[0].isalnum() or after.lower() in _FUNCTION_WORDS - {"and", "or"}
        is_noun = noun.islower() and noun.isalpha() and noun not in _FUNCTION_WORDS | COLOURS
        if not ends or not is_noun or after in "-'":
            continue
        if number.lower() in ("a", "an") and is_plural(noun) and singularise(noun) != noun:
            yield f"number: {number} {noun}"
        if number.lower() in _SEVERAL and is_phrase(noun) and not is_plural(noun) and pluralise(noun) != noun:
            yield f"number: {number} {noun}"


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
        further = map(problems_of_parse, parse_texts(texts)) if self._parses else map(problems_of_numbers, texts)
        both = zip(map(problems_of_words, texts), further, strict=True)
        return [tuple(dict.fromkeys([*of_words, *others])) for of_words, others in both]


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
        if head <= token or parse.arcs[head] in _WITHIN - {"pobj"}:
            continue
        # Between them adjectives and nothing else: not *few*, nor nouns that the parser took for adjectives.
        between = [word.lower() for word in parse.words[token + 1 : head]]
        plain = all(word in COLOURS | SIZES or not is_phrase(word) for word in between)
        if not plain or not _COUNTING.isdisjoint(between) or set(parse.pos[token + 1 : head]) - {"ADJ"}:
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


def _agreement(parse: Parse) -> Iterator[str]:
    for token, (arc, verb) in enumerate(zip(parse.arcs, parse.heads, strict=True)):
        if arc not in _SUBJECTS or token > verb:
            continue
        between = range(token, verb)
        forms = [word for word in between if parse.heads[word] == verb and parse.arcs[word].startswith("aux")]
        finite = (forms or [verb])[0]  # the word that shows the number of the verb
        plural = _is_plural_subject(parse, token, verb)
        if parse.tags[finite] not in _FINITE - {"MD"} or plural is None:  # none does: after *can*, or without a verb
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
