"""Words of a caption in any script, the English words that carry no content, and what a repair is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from crosslens.build.settings import CleaningSettings
from crosslens.language import word_set

# Scripts without spaces between words: how many letters make a word on average. Marks are no letters.
_HAN_AND_KANA = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_HAN_LETTERS, _SOUTH_EAST_ASIAN_LETTERS = 2, 4
_HAN = re.compile(f"[{_HAN_AND_KANA}]+")
_THAI = re.compile(f"[{_SOUTH_EAST_ASIAN}]+")
_WORD = re.compile(r"[^\W_](?:(?:[\w’'.&+-]|,(?=\d))*[\w+])?")
NON_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
LETTER = re.compile(r"[^\W\d_]")

FUNCTION_WORDS = word_set(
    """a an the this that these those his her its their my our your some any each every no and or but nor so as if than
    then when while where who which what whose of in on at by to for from with without into onto over under through
    between behind beside near around about above below across along against after before during inside outside off
    up down out is are was were be been being am has have had do does did can could will would may might must shall
    should not it he she they we you i him them us me there here very also just"""
)
"""English words that say nothing about a picture by themselves."""


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, cut at spaces and punctuation."""
    return [word.lower() for word in _WORD.findall(text)]


def count_words(text: str) -> int:
    """How many words a text has; two Chinese or Japanese letters, or four Thai ones, count as a word."""
    if text.isascii():
        return len(_WORD.findall(text))
    count = 0
    for pattern, letters in ((_HAN, _HAN_LETTERS), (_THAI, _SOUTH_EAST_ASIAN_LETTERS)):
        for run in pattern.findall(text):
            count += -(-len(LETTER.findall(run)) // letters)
        text = pattern.sub(" ", text)
    return count + len(_WORD.findall(text))


_LAST_WORD = re.compile(r"([^\W_][\w’'-]*)\s*$")
_OPEN_ENDS = FUNCTION_WORDS | word_set(
    "says reads reading saying costs cost marked labeled labelled showing shows called titled named using"
)


def needs_more(text: str) -> bool:
    """Whether a text cannot end here: its last word is an article, a preposition, or announces what follows."""
    match = _LAST_WORD.search(text)
    return match is not None and match[1].lower() in _OPEN_ENDS


DIGIT = re.compile(r"\d")
_FULL_STOP = re.compile(r"\s*[.!?](?=\s)")
Replacement = str | Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class Repair:
    """A change of a text: what ``replaced`` patterns match becomes something else, then ``ends`` are cut off.

    Nothing is changed where ``needs`` is not in the text. A repair that this does not describe is a function.
    """

    name: str
    """What tables of results call it."""
    about: str = ""
    needs: str | re.Pattern[str] = ""
    replaced: tuple[tuple[re.Pattern[str], Replacement], ...] = ()
    ends: tuple[re.Pattern[str], ...] = ()
    function: Callable[[str, CleaningSettings], str] | None = None

    def __post_init__(self) -> None:
        if self.function is not None:
            object.__setattr__(self, "about", " ".join((self.function.__doc__ or "").split()))

    def __call__(self, text: str, settings: CleaningSettings) -> str:
        if not (self.needs in text if isinstance(self.needs, str) else self.needs.search(text)):
            return text
        if self.function is not None:
            return self.function(text, settings)
        for pattern, replacement in self.replaced:
            text = pattern.sub(replacement, text)
        for pattern in self.ends:
            text = cut_end(text, pattern)
        return text


def cut_end(text: str, pattern: re.Pattern[str]) -> str:
    """The text without what the pattern matches at its end, unless it cannot end there; a full stop stays."""
    match = pattern.search(text)
    if match is None:
        return text
    rest, stop = text[: match.start()], _FULL_STOP.match(match[0])
    if stop is not None:
        return rest + stop[0].strip()
    return text if needs_more(rest) else rest
