"""All rules of cleaning by name, in the order in which they are applied."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from crosslens.build.imp.cleaning import characters, titles
from crosslens.build.imp.cleaning.characters import is_shouted
from crosslens.build.imp.cleaning.words import DIGIT, FUNCTION_WORDS, count_words, words_of
from crosslens.build.settings import CleaningSettings
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
_NUMBER = re.compile(r"[\d.,:/x×-]*\d[\d.,:/x×-]*(?:st|nd|rd|th|am|pm|px|cm|mm|kb|mb|h)?", re.IGNORECASE)
_KEYWORD_MARKS = re.compile(r"\s*[,;|/·•]\s*|\s+[-–]\s+")
_KEYWORDS, _KEYWORD_WORDS = 5, 2.5
_REPETITION_WORDS = 5
_LETTER = re.compile(r"[^\W_]")


def is_keyword_list(text: str) -> bool:
    """Whether a text is a list of key words, not a sentence."""
    parts = [part for part in _KEYWORD_MARKS.split(text) if part]
    if len(parts) < _KEYWORDS:
        return False
    words = [word for part in parts for word in words_of(part)]
    return count_words(text) <= _KEYWORD_WORDS * len(parts) and FUNCTION_WORDS.isdisjoint(words)


def repeated_share(text: str) -> float:
    """The share of a text's content words that are repetitions; 0 of a short text."""
    words = [word for word in words_of(text) if word not in FUNCTION_WORDS]
    return 1 - len(set(words)) / len(words) if len(words) >= _REPETITION_WORDS else 0.0


def missing_part(pos: Sequence[str], tags: Sequence[str]) -> str | None:
    """Which part of speech a parsed caption lacks, as a reason; None where it has a noun and a verb or an adjective."""
    if not {"NOUN", "PROPN"} & set(pos):
        return "no_noun"
    has_verb = any(tag.startswith("VB") for tag in tags) or bool({"VERB", "AUX", "ADJ"} & set(pos))
    return None if has_verb else "no_verb_or_adjective"


REPAIRS = (*characters.REPAIRS, *titles.REPAIRS, *characters.LAST_REPAIRS)
"""What changes a text. They are applied in this order, again and again until none changes it any more."""

TOO_LONG = "too_long"

Check = Callable[[str, CleaningSettings], bool]
CHECKS: dict[str, tuple[str, Check]] = {
    TOO_LONG: (
        "It has more characters than a caption, before any repair (setting maximum_characters).",
        lambda text, settings: len(text) > settings.maximum_characters,
    ),
    "empty": ("Nothing is left but punctuation.", lambda text, _: _LETTER.search(text) is None),
    "garbled": (
        "Characters were lost before the text came here.",
        lambda text, _: "\ufffd" in text or "????" in text,
    ),
    "code": ("Code or markup remains that is no sentence.", lambda text, _: _CODE.search(text) is not None),
    "advertising": (
        "It advertises, or speaks about the page instead of the picture.",
        lambda text, _: _ADVERTISING.search(text.lower()) is not None,
    ),
    "numbers": (
        "It consists of numbers, dates and times.",
        lambda text, _: (
            DIGIT.search(text) is not None
            and all(word in _TIME_WORDS or _NUMBER.fullmatch(word) for word in words_of(text))
        ),
    ),
    "too_few_words": (
        "It has fewer words than asked for (setting minimum_words).",
        lambda text, settings: count_words(text) < settings.minimum_words,
    ),
    "keyword_list": ("It is a list of key words, not a sentence.", lambda text, _: is_keyword_list(text)),
    "repetition": (
        "Too many of its content words are repetitions (setting maximum_repetition).",
        lambda text, settings: repeated_share(text) > settings.maximum_repetition,
    ),
    "shouting": (
        "It is all in capitals (only with the setting capitals: drop).",
        lambda text, settings: settings.capitals == "drop" and is_shouted(text),
    ),
}
"""What drops a text, once it is repaired, and when: the first that applies is the reason."""

LATER_REASONS = {
    "language": "It is in none of the wanted languages (setting languages).",
    "no_noun": "An English caption has no noun (setting tagging).",
    "no_verb_or_adjective": "An English caption has neither a verb nor an adjective (setting tagging).",
}
"""Reasons that need a model: they are looked at last, in this order."""

REASONS: dict[str, str] = {
    **{name: about for name, (about, _) in CHECKS.items()},
    **LATER_REASONS,
}
"""Every reason for dropping a caption, and what it means."""

_MOST_ROUNDS = 20


def repair(text: str, settings: CleaningSettings) -> tuple[str, list[str]]:
    """The repaired text, and the names of the repairs that changed it, in their order. A long text is left as it is.

    The result is a text that no repair changes, so cleaning it again changes nothing. A text that does not come to rest
    is marked as damaged.
    """
    changed: set[str] = set()
    if CHECKS[TOO_LONG][1](text, settings):  # a page rather than a caption; some repairs would take long with it
        return text, []
    for _ in range(_MOST_ROUNDS):
        before = text
        for rule in REPAIRS:
            after = rule(text, settings)
            if after != text:
                changed.add(rule.name)
                text = after
        if text == before:
            break
    else:
        text = "\ufffd"
    return text, [rule.name for rule in REPAIRS if rule.name in changed]


def reason_to_drop(text: str, settings: CleaningSettings) -> str | None:
    """The first check that a repaired text fails."""
    return next((name for name, (_, applies) in CHECKS.items() if applies(text, settings)), None)
