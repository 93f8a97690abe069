"""Repairs of repetition and of shape: words said twice, capitals, cut-off ends, spaces and punctuation."""

from __future__ import annotations

import re

from crosslens.build.imp.cleaning.settings import CleaningSettings
from crosslens.build.imp.cleaning.words import FUNCTION_WORDS
from crosslens.language import word_set

_LONGEST_PHRASE = 8
_EDGES = ".,;:!?\"'()[]|-–—"
_TWICE_BY_NATURE = word_set(
    """la bora walla baden duran tuk choo ha bye knock mahi pago can cha tut so boo pom chop night dik chow aye sing ho
    hum yo pai wagga nous vous die das der were that had blah woof meow tick ding nang"""
)
"""Words that are rightly written twice: Bora Bora, tuk tuk; French and German pronouns."""
_OPENERS = word_set("and or by to")
_RUNS = re.compile(r"([^\w\s])\1{3,}")
_MARKS = re.compile(r"([!?,;:~*=_#|•·！？。，、])(?:\s*\1)+")
_MIXED_MARKS = re.compile(r"[!?]*(?:!\?|\?!)[!?]*")
_TWO_MARKS = re.compile(r"[^\w\s]\s*[^\w\s]|_{2}|_ _|…|\s\.\s")
_LOST = re.compile(r"(?<=\s)\?{2,}(?=\s+[a-z])|(?<=\w)\?{2,}(?=\w)")
"""Letters that an encoding could not hold stand as question marks inside a sentence."""
_DOTS = re.compile(r"\.{2,}|…+|(?:\s\.){2,}")
_DASHES = re.compile(r"(?<=\s)[-–—](?:\s*[-–—])+(?=\s)|[-–—]{3,}|={2,}")
_SEPARATORS = re.compile(r"(?:\s*[|•]){2,}\s*")

_ACRONYMS = {name.lower(): name for name in word_set("USA UK NYC NASA TV BMW WWII WWI UFO NBA NFL UN EU DIY")}
_SHOUTED_WORDS, _SHOUTED_LETTERS, _SHOUTED_SHARE = 3, 10, 0.8
_TWO_CAPITALS = re.compile(r"[A-Z]{2}")
_CASED_WORD = re.compile(r"<\w+>|[^\W\d_]+(?:'[^\W\d_]+)?")

_CUT_OFF = re.compile(r"\s*(?:\.\.\.+|…|\[(?:\.{2,}|…)\])\s*$")

_EMPTY_BRACKETS = re.compile(r"\(\s*[\s.,;:|/-]*\)|\[\s*[\s.,;:|/-]*\]|\{\s*\}|\"\s*\"|“\s*”")
_SPACE_BEFORE = re.compile(r"\s+(?=[,;.!?)\]](?:\s|$))|\s+(?=[,;]\S)")
_SPACE_AFTER = re.compile(r"(?<=[(\[])\s+")
_DOUBLED = re.compile(r"([,;:])\s*(?=[,;:.!?](?!\S))|(?<=[.!?])\s*[,;:](?=\s|$)")
_START = re.compile(r"^[\s|¦›»•·,;:.!?~*=_+>/\\)\]}–—-]+(?!\d)")
_END = re.compile(r"(?:(?<!\w)>|[\s|¦›«•·,;:~*=_+</\\(\[{–—&@#-])+$")
_SPACES = re.compile(r"\s{2,}")


def remove_repeats(text: str, settings: CleaningSettings) -> str:
    """Say words and phrases once that stand twice in a row."""
    tokens = text.split()
    count = len(tokens)
    keys = [token.strip(_EDGES).casefold() for token in tokens]
    position = 0
    while position < len(tokens):
        length = _repeated(tokens, keys, position)
        if not length:
            position += 1
            continue
        # The second copy stays: its punctuation leads on to what follows. The first keeps the capital.
        tokens[position + length] = _with_case(tokens[position], tokens[position + length])
        del tokens[position : position + length], keys[position : position + length]
    return text if len(tokens) == count else " ".join(tokens)


def _repeated(tokens: list[str], keys: list[str], start: int) -> int:
    """How many words from here stand there again at once; 0 for none, or where the language repeats them."""
    for length in range(min(_LONGEST_PHRASE, (len(keys) - start) // 2), 0, -1):
        if keys[start] != keys[start + length]:
            continue
        phrase = keys[start : start + length]
        if phrase != keys[start + length : start + 2 * length] or not all(phrase):
            continue
        if length == 1:
            word = phrase[0]
            if (
                tokens[start][-1] in ".:;!?"
                or word in _TWICE_BY_NATURE
                or not (word.isalpha() or "-" in word)
                or (len(word) == 1 and word != "a")
            ):
                continue
            return 1
        if phrase[0] not in _OPENERS and phrase[-1] not in FUNCTION_WORDS and not all(map(str.isdigit, phrase)):
            return length
    return 0


def _with_case(first: str, second: str) -> str:
    """The second copy with what the first begins with: its capital letter, an opening quote or bracket."""
    opening = first[: len(first) - len(first.lstrip(_EDGES))]
    if not second.startswith(opening):
        second = opening + second
    letter = len(opening)
    same = first[letter : letter + 1].casefold() == second[letter : letter + 1].casefold()
    return first[: letter + 1] + second[letter + 1 :] if same else second


def fix_punctuation(text: str, settings: CleaningSettings) -> str:
    """Write punctuation once that is repeated."""
    if not _TWO_MARKS.search(text):
        return text
    text = _RUNS.sub(r"\1\1\1", text)
    text = _MIXED_MARKS.sub("?", _LOST.sub("\ufffd", text))
    text = _DOTS.sub("...", _SEPARATORS.sub(" | ", _MARKS.sub(r"\1", text)))
    return _DASHES.sub("-", text)


def lower_capitals(text: str, settings: CleaningSettings) -> str:
    """Put a caption that is all in capitals in lower case, the first letter excepted (setting capitals)."""
    if settings.capitals != "lower" or not is_shouted(text):
        return text
    lowered = _CASED_WORD.sub(_lowered, text)
    for position, letter in enumerate(lowered):
        if letter.isalpha():
            return lowered[:position] + letter.upper() + lowered[position + 1 :]
    return lowered


def _lowered(match: re.Match[str]) -> str:
    word = match[0]
    if word.startswith("<"):
        return word
    return "I" if word == "I" else _ACRONYMS.get(word.lower(), word.lower())


def is_shouted(text: str) -> bool:
    """Whether a text of several words is written in capitals."""
    if text.isascii() and not _TWO_CAPITALS.search(text):
        return False
    words = [word for word in _CASED_WORD.findall(text) if not word.startswith("<")]
    letters = "".join(words)
    capitals = sum(map(str.isupper, letters))
    cased = capitals + sum(map(str.islower, letters))
    return (
        len(words) >= _SHOUTED_WORDS
        and cased >= _SHOUTED_LETTERS
        and capitals > _SHOUTED_SHARE * cased
        and sum(word.isupper() for word in words) > _SHOUTED_SHARE * len(words)
    )


def remove_cut_end(text: str, settings: CleaningSettings) -> str:
    """Remove the dots of a title that was cut off, and the articles and prepositions that lead to nothing."""
    match = _CUT_OFF.search(text)
    if match is None:
        return text
    words = text[: match.start()].split()
    while words and words[-1].strip(_EDGES).lower() in FUNCTION_WORDS:
        words.pop()
    return " ".join(words)


def tidy(text: str, settings: CleaningSettings) -> str:
    """Remove empty brackets, separators at the ends, quotes around everything, and superfluous spaces."""
    text = _EMPTY_BRACKETS.sub(" ", text)
    text = _SPACES.sub(" ", text)
    text = _SPACE_AFTER.sub("", _SPACE_BEFORE.sub("", text))
    text = _DOUBLED.sub("", text)
    text = _END.sub("", _START.sub("", text))
    for quote in "\"'":
        if len(text) > 1 and text[0] == text[-1] == quote and text.count(quote) == 2:
            text = text[1:-1]
    return text.strip()
