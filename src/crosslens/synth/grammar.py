"""English small print: articles, plurals, number words, lists."""

from __future__ import annotations

from collections.abc import Sequence

_PLURALS = (
    "man men, woman women, child children, person people, fish fish, sheep sheep, deer deer, aircraft aircraft, "
    "mouse mice, leaf leaves, knife knives, loaf loaves, scarf scarves, bus buses, cactus cacti, glasses glasses, "
    "scissors scissors, tomato tomatoes, potato potatoes, hero heroes"
)
_IRREGULAR = dict(pair.split() for pair in _PLURALS.split(", "))
_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SILENT_H = ("hour", "honest", "honour", "heir")
_LIKE_YOU = ("uni", "use", "usual", "euro", "one", "once")


def a(noun: str) -> str:
    """The noun with ``a`` or ``an``, as its sound requires."""
    first = noun.split()[0].lower()
    vowel = first[0] in "aeiou" and not first.startswith(_LIKE_YOU)
    return f"{'an' if vowel or first.startswith(_SILENT_H) else 'a'} {noun}"


def pluralise(noun: str) -> str:
    """The plural of a noun or of a noun phrase that ends in its noun; what comes after ``of`` or ``with`` stays."""
    for link in (" of ", " with ", " on ", " in "):
        head, separator, rest = noun.partition(link)
        if separator:
            return pluralise(head) + link + rest
    stem, _, last = noun.rpartition(" ")
    return f"{stem} {_plural_word(last)}".strip()


def _plural_word(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for ending, plural in (("woman", "women"), ("man", "men"), ("fish", "fish")):
        if word.endswith(ending):
            return word.removesuffix(ending) + plural
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def number_word(number: int) -> str:
    """``seven`` for 7, ``minus forty-two`` for -42; from a thousand on in digits."""
    if number < 0:
        return f"minus {number_word(-number)}"
    if number < len(_NUMBERS):
        return _NUMBERS[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens] + (f"-{_NUMBERS[ones]}" if ones else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{_NUMBERS[hundreds]} hundred" + (f" and {number_word(rest)}" if rest else "")
    return f"{number:,}"


def listing(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def sentence(text: str) -> str:
    """With a capital at the start and a full stop at the end."""
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?" else f"{text}."
