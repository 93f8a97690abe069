"""Mistakes that the words alone give away: articles, repeated words, capitals, full stops, numbers, open ends."""

from __future__ import annotations

import re
from collections.abc import Iterator

from crosslens.language import COLOURS, NUMBERS, is_phrase, is_plural, pluralise, singularise, takes_an, word_set

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
_MANY = frozenset(NUMBERS[2:]) | word_set("several many both few")
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
    yield from _agreement(text)
    words = [word.lower() for word in _WORD.findall(text)]
    spoken = [word for word in words if word[0].isalnum()]
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
        if number.lower() in _MANY and is_phrase(noun) and not is_plural(noun) and pluralise(noun) != noun:
            yield f"number: {number} {noun}"


def _agreement(text: str) -> Iterator[str]:
    for match in _THERE_IS.finditer(text):
        if match.group(1).lower() in _MANY:
            yield f"agreement: {match.group()}"
    for match in _THERE_ARE.finditer(text):
        listed = re.search(r"\band\b", match.group(1))
        if not listed and _QUANTITIES.isdisjoint(match.group(1).lower().split()[:3]):
            yield f"agreement: {match.group()[:24]}"
    for match in _PRONOUNS.finditer(text):
        yield f"agreement: {match.group(1)}"
