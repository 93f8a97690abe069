"""Words of a caption in any script, and the English words that carry no content."""

from __future__ import annotations

import re

from crosslens.language import word_set

# Scripts without spaces between words: how many letters make a word on average. Marks are no letters.
_HAN_AND_KANA = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_HAN_LETTERS, _SOUTH_EAST_ASIAN_LETTERS = 2, 4
_HAN = re.compile(f"[{_HAN_AND_KANA}]+")
_THAI = re.compile(f"[{_SOUTH_EAST_ASIAN}]+")
_WORD = re.compile(r"[^\W_](?:(?:[\w’'.&+-]|,(?=\d))*[\w+])?")
_NON_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
_LETTER = re.compile(r"[^\W\d_]")

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
            count += -(-len(_LETTER.findall(run)) // letters)
        text = pattern.sub(" ", text)
    return count + len(_WORD.findall(text))


def non_latin_share(text: str) -> float:
    """The share of a text's letters that are not Latin; 0 without letters."""
    if text.isascii():
        return 0.0
    letters = len(_LETTER.findall(text))
    return len(_NON_LATIN.findall(text)) / letters if letters else 0.0


def last_word(text: str) -> str:
    """The last word in lower case; empty where the text ends in punctuation that closes a part of it."""
    match = re.search(r"([^\W_][\w’'-]*)\s*$", text)
    return match.group(1).lower() if match else ""


def needs_more(text: str) -> bool:
    """Whether a text cannot end here: its last word is an article, a preposition, or announces what follows."""
    return last_word(text) in FUNCTION_WORDS or last_word(text) in _ANNOUNCING


_ANNOUNCING = word_set(
    "says reads reading saying costs cost marked labeled labelled showing shows called titled named using"
)
