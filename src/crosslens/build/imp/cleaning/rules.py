"""All rules of cleaning by name, in the order in which they are applied."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from crosslens.build.imp.cleaning import characters, titles
from crosslens.build.imp.cleaning.characters import is_shouted
from crosslens.build.imp.cleaning.words import FUNCTION_WORDS, count_words, words_of
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


Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Rule(Generic[Outcome]):
    """A rule: its name, which is what tables of results call it, and a function of a text."""

    name: str
    apply: Callable[[str, CleaningSettings], Outcome]

    @property
    def about(self) -> str:
        """What it does, in a sentence."""
        return " ".join((self.apply.__doc__ or "").split())


REPAIRS: tuple[Rule[str], ...] = (
    Rule("encoding", characters.fix_encoding),
    Rule("punctuation", characters.fix_punctuation),
    Rule("entities", characters.fix_entities),
    Rule("escapes", characters.fix_escapes),
    Rule("tags", characters.remove_tags),
    Rule("markup", characters.remove_markup),
    Rule("invisible", characters.remove_invisible),
    Rule("letters", characters.plain_letters),
    Rule("emoji", characters.remove_emoji),
    Rule("emails", titles.remove_emails),
    Rule("handles", titles.remove_handles),
    Rule("urls", titles.remove_urls),
    Rule("file_names", titles.fix_file_names),
    Rule("hashtags", titles.fix_hashtags),
    Rule("credits", titles.remove_credits),
    Rule("boilerplate", titles.remove_boilerplate),
    Rule("sizes", titles.remove_sizes),
    Rule("dates", titles.remove_dates),
    Rule("prices", titles.remove_prices),
    Rule("site_names", titles.remove_site_names),
    Rule("stock_words", titles.remove_stock_words),
    Rule("catalogue_numbers", titles.remove_catalogue_numbers),
    Rule("repeats", characters.remove_repeats),
    Rule("capitals", characters.lower_capitals),
    Rule("cut_off", characters.remove_cut_end),
    Rule("tidy", characters.tidy),
)
"""What changes a text. They are applied in this order, again and again until none changes it any more."""

TOO_LONG = "too_long"

CHECKS: tuple[Rule[bool], ...] = (
    Rule("empty", is_empty),
    Rule("garbled", is_garbled),
    Rule("code", is_code),
    Rule("advertising", is_advertising),
    Rule("numbers", is_numbers),
    Rule("too_few_words", is_short),
    Rule("keyword_list", is_keyword_list),
    Rule("repetition", is_repetitive),
    Rule("shouting", is_shouting),
)
"""What drops a text, once it is repaired: the first that applies is the reason."""

LATER_REASONS = {
    "language": "It is in none of the wanted languages (setting languages).",
    "no_noun": "An English caption has no noun (setting tagging).",
    "no_verb_or_adjective": "An English caption has neither a verb nor an adjective (setting tagging).",
}
"""Reasons that need a model: they are looked at last, in this order."""

REASONS: dict[str, str] = {
    TOO_LONG: "It has more characters than a caption, before any repair (setting maximum_characters).",
    **{rule.name: rule.about for rule in CHECKS},
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
    if is_too_long(text, settings):
        return text, []
    for _ in range(_MOST_ROUNDS):
        before = text
        for rule in REPAIRS:
            after = rule.apply(text, settings)
            if after != text:
                changed.add(rule.name)
                text = after
        if text == before:
            return text, [rule.name for rule in REPAIRS if rule.name in changed]
    return "\ufffd", [rule.name for rule in REPAIRS if rule.name in changed]


def is_too_long(text: str, settings: CleaningSettings) -> bool:
    """Whether a text is a page rather than a caption; some repairs would take long with it."""
    return len(text) > settings.maximum_characters


def reason_to_drop(text: str, settings: CleaningSettings) -> str | None:
    """The first check that a repaired text fails."""
    if is_too_long(text, settings):
        return TOO_LONG
    return next((rule.name for rule in CHECKS if rule.apply(text, settings)), None)
