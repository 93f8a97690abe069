"""``a`` or ``an``: by the sound that the next word begins with."""

from __future__ import annotations

import re

from crosslens.language.scene_words import word_set

_LEADING = re.compile(r"[^\w]+")
_SILENT_H = re.compile(r"hour|honest|hono(?:u?r|rar)|heir|hors d")
_LIKE_YOU = re.compile(
    r"uni(?!n|m|d|ron|ss)|unid(?:ir|im)|unanim|us(?:e|a|u|i)|ut[aeio]|ur[aeio]|uku|ubiq|ugand|ukrain|uvul|eu|ewe"
)
_LIKE_WON = re.compile(r"ones?(?![a-z])|one(?:sie|time|ness|self)|once|ouija|oaxac")
_ONE_LETTER = re.compile(r"[A-Za-z](?![A-Za-z0-9])")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9]+(?=s?(?![A-Za-z]))")
_VOWELS = "aeiouáàâäãåæéèêëíìîïóòôöõøœúùûü"
_VOWEL_LETTERS = "AEFHILMNORSX"
"""Letters whose names begin with a vowel: an *X-ray*, an *SUV*."""
_VOWEL_NUMBERS = re.compile(r"8|11(?!\d)|18(?!\d)")
_SPELLED_OUT = word_set("""AED AI ATM ATV AV EMT EU FBI HIV IBM IPA IT IV LA LED MBA MIT MRI NBA PA RAF RBI SOS SUV TA
    UAV UFC UFO UK UN US USA USB VIP""")
"""Letters that have a vowel among them and are still said one by one."""


def takes_an(word: str) -> bool:
    """Whether a word is said with ``an`` before it: *hour*, *SUV*, *8-wheeler*; not *unicycle*, *one-way*, *ewe*."""
    word = _LEADING.sub("", word, count=1) if not word[:1].isalnum() else word
    if word[:1].isdigit():
        return _VOWEL_NUMBERS.match(word) is not None
    if _is_spelled_out(word):
        return word[0].upper() in _VOWEL_LETTERS
    lower = word.lower()
    vowel = lower[:1] in tuple(_VOWELS) and not _LIKE_YOU.match(lower) and not _LIKE_WON.match(lower)
    return vowel or _SILENT_H.match(lower) is not None


def _is_spelled_out(word: str) -> bool:
    """A lone letter (*U-turn*, *x-ray*), or capitals that nobody says as a word; *A RED DOG* is only loud."""
    capitals = _CAPITALS.match(word)
    if capitals is None:
        return _ONE_LETTER.match(word) is not None
    return capitals.group() in _SPELLED_OUT or set("AEIOUY").isdisjoint(capitals.group())
