"""All rules of cleaning by name, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from crosslens.build.imp.cleaning import addresses, boilerplate, characters, checks, markup, repeats, titles
from crosslens.build.imp.cleaning.settings import CleaningSettings

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Rule(Generic[Answer]):
    """A rule: its name, which is what tables of results call it, and a function of a text."""

    name: str
    apply: Callable[[str, CleaningSettings], Answer]

    @property
    def about(self) -> str:
        """What it does, in a sentence."""
        return " ".join((self.apply.__doc__ or "").split())


REPAIRS: tuple[Rule[str], ...] = (
    Rule("encoding", characters.fix_encoding),
    Rule("punctuation", repeats.fix_punctuation),
    Rule("entities", characters.fix_entities),
    Rule("escapes", characters.fix_escapes),
    Rule("tags", markup.remove_tags),
    Rule("markup", markup.remove_markup),
    Rule("invisible", characters.remove_invisible),
    Rule("letters", characters.plain_letters),
    Rule("emoji", characters.remove_emoji),
    Rule("emails", addresses.remove_emails),
    Rule("handles", addresses.remove_handles),
    Rule("urls", addresses.remove_urls),
    Rule("file_names", addresses.fix_file_names),
    Rule("hashtags", addresses.fix_hashtags),
    Rule("credits", titles.remove_credits),
    Rule("boilerplate", boilerplate.remove_boilerplate),
    Rule("sizes", addresses.remove_sizes),
    Rule("dates", addresses.remove_dates),
    Rule("prices", boilerplate.remove_prices),
    Rule("site_names", titles.remove_site_names),
    Rule("stock_words", titles.remove_stock_words),
    Rule("catalogue_numbers", addresses.remove_catalogue_numbers),
    Rule("repeats", repeats.remove_repeats),
    Rule("capitals", repeats.lower_capitals),
    Rule("cut_off", repeats.remove_cut_end),
    Rule("tidy", repeats.tidy),
)
"""What changes a text. They are applied in this order, again and again until none changes it any more."""

TOO_LONG = "too_long"

CHECKS: tuple[Rule[bool], ...] = (
    Rule("empty", checks.is_empty),
    Rule("garbled", checks.is_garbled),
    Rule("code", checks.is_code),
    Rule("advertising", checks.is_advertising),
    Rule("numbers", checks.is_numbers),
    Rule("too_few_words", checks.is_short),
    Rule("keyword_list", checks.is_keyword_list),
    Rule("repetition", checks.is_repetitive),
    Rule("shouting", checks.is_shouting),
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
