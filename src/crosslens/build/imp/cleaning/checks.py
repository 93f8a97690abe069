"""Reasons to drop a caption that the repairs have left."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crosslens.build.imp.cleaning.repeats import is_shouted
from crosslens.build.imp.cleaning.settings import CleaningSettings
from crosslens.build.imp.cleaning.words import FUNCTION_WORDS, count_words, words_of
from crosslens.language import word_set

_CODE = re.compile(
    r"</?\w+[^<>]*=|\{[^{}]*[:;][^{}]*\}|\bfunction\s*\(|\bvar \w+\s*=|=>|\$\(|&&|\bnull\b.*\bundefined\b|\bpx;"
    r"|</\w+>|\};"
    r"|<\?php|%>|\[/?\w+\s[^\]]*=[^\]]*\]|\bon(?:click|load|error)\s*="
)
_ADVERTISING = re.compile(
    r"% off|\b(?:free shipping|add to (?:cart|basket|wish ?list)|click (?:here|on the|to)|buy (?:now|online)"
    r"|shop (?:now|online)"
    r"|(?:best|lowest|low|cheap|great) prices?\b|all rights reserved|terms (?:of use|of service|and conditions)"
    r"|privacy policy"
    r"|(?:uses?|accept(?: all)?) cookies|page not found|error 404|404 error|image (?:is )?not available"
    r"|no image available"
    r"|no photo description|(?:may|might) be an image of|image may contain|may contain:|enable javascript|log ?in to"
    r"|sign (?:up|in) (?:to|for|now)|subscribe (?:to|now)|coming soon|default (?:image|thumbnail)"
    r"|placeholder image|money[- ]back|in stock|order (?:now|online|today)|save \d+ ?%|lorem ipsum|free delivery"
    r"|(?:hotels?|flights?) deals"
    r"|customer reviews|(?:visit )?our (?:website|web ?site|online store|store|shop|range)|call us|contact us"
    r"|download (?:the|this|free|now"
    r"|our)"
    r"|get (?:a|your) free|limited time|this (?:image|photo|picture|video) (?:has been|is no longer|was)"
    r"|high quality (?:photos?"
    r"|images?|pictures?|prints?)\b|gift ideas?\b|(?:photos|images|pictures) and (?:images|pictures|photos"
    r"|premium))(?!\w)"
)
_TIME_WORDS = word_set(
    """january february march april may june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri
    sat sun am pm a.m p.m utc gmt est pst cet st nd rd th of at on the to from and until daily hours hrs hr min sec
    posted updated date time today yesterday page no vol photo image img pic"""
)
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"[\d.,:/x×-]*\d[\d.,:/x×-]*(?:st|nd|rd|th|am|pm|px|cm|mm|kb|mb|h)?", re.IGNORECASE)
_KEYWORD_MARKS = re.compile(r"\s*[,;|/·•]\s*|\s+[-–]\s+")
_KEYWORDS, _KEYWORD_WORDS = 5, 2.5
_REPETITION_WORDS = 5
_LETTER = re.compile(r"[^\W_]")


def is_empty(text: str, settings: CleaningSettings) -> bool:
    """Nothing is left but punctuation."""
    return _LETTER.search(text) is None


def is_garbled(text: str, settings: CleaningSettings) -> bool:
    """Characters were lost before the text came here."""
    return "\ufffd" in text or "????" in text


def is_code(text: str, settings: CleaningSettings) -> bool:
    """Code or markup remains that is no sentence."""
    return _CODE.search(text) is not None


def is_advertising(text: str, settings: CleaningSettings) -> bool:
    """It advertises, or speaks about the page instead of the picture."""
    return _ADVERTISING.search(text.lower()) is not None


def is_numbers(text: str, settings: CleaningSettings) -> bool:
    """It consists of numbers, dates and times."""
    words = words_of(text)
    return bool(_DIGIT.search(text)) and all(word in _TIME_WORDS or _NUMBER.fullmatch(word) for word in words)


def is_short(text: str, settings: CleaningSettings) -> bool:
    """It has fewer words than asked for (setting minimum_words)."""
    return count_words(text) < settings.minimum_words


def is_keyword_list(text: str, settings: CleaningSettings) -> bool:
    """It is a list of key words, not a sentence."""
    parts = [part for part in _KEYWORD_MARKS.split(text) if part]
    if len(parts) < _KEYWORDS:
        return False
    words = [word for part in parts for word in words_of(part)]
    return count_words(text) <= _KEYWORD_WORDS * len(parts) and FUNCTION_WORDS.isdisjoint(words)


def is_repetitive(text: str, settings: CleaningSettings) -> bool:
    """Too many of its content words are repetitions (setting maximum_repetition)."""
    words = [word for word in words_of(text) if word not in FUNCTION_WORDS]
    return len(words) >= _REPETITION_WORDS and 1 - len(set(words)) / len(words) > settings.maximum_repetition


def is_shouting(text: str, settings: CleaningSettings) -> bool:
    """It is all in capitals (only with the setting capitals: drop)."""
    return settings.capitals == "drop" and is_shouted(text)


def missing_part(pos: Sequence[str], tags: Sequence[str]) -> str | None:
    """Which part of speech a parsed caption lacks, as a reason; None where it has a noun and a verb or an adjective."""
    if not {"NOUN", "PROPN"} & set(pos):
        return "no_noun"
    has_verb = any(tag.startswith("VB") for tag in tags) or bool({"VERB", "AUX", "ADJ"} & set(pos))
    return None if has_verb else "no_verb_or_adjective"
