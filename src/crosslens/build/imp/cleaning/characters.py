"""Repairs of single characters: wrong encodings, entities, invisible and decorative ones."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote

from crosslens.build.imp.cleaning.words import FUNCTION_WORDS, Repair
from crosslens.build.settings import CleaningSettings
from crosslens.core import needs_extra
from crosslens.language import word_set

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_ESCAPED_BREAK = re.compile(r"\\[nrt](?![a-z])|(?<=[.!?,])\\[nrt]")
_ESCAPED_QUOTE = re.compile(r"\\+(?=['\"/])")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffc]"
)
_JOINERS = re.compile("[\u200c\u200d]")
_NEEDED_JOINERS = re.compile("(?<=[\u0600-\u07ff\u0900-\u0dff])[\u200c\u200d]+(?=[\u0600-\u07ff\u0900-\u0dff])")
_SPACE = re.compile(r"\s+")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_STYLED = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\ufb00-\ufb06\U0001d400-\U0001d7ff]")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201b": "'", "\u201c": '"', "\u201d": '"', "\u00b4": "'"})
_LOST_APOSTROPHE = re.compile(r"(?<=[^\W\d_])\ufffd(?=(?:s|t|re|ve|ll|d|m)\b)")
_EMOJI = re.compile(
    "[\u200d\u20e3\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\ufe0e\ufe0f"
    "\U0001f000-\U0001faff\U000e0020-\U000e007f]+"
)
_EMOTICON = re.compile(r"(?<!\S)(?:[:;=8][-^o']?[)(\]\[DPpO*|/\\3]+|<3+|\^[_.]?\^|[xX]D+|:'\()(?=\s|$|[.!?,])")


@lru_cache(maxsize=1)
def _fix_text() -> Callable[[str], str]:
    """What repairs encodings, and nothing else: other changes have repairs of their own, which are named."""
    with needs_extra("cleaning captions", "ftfy", "imp"):
        import ftfy
    names = "unescape_html uncurl_quotes fix_latin_ligatures fix_character_width remove_control_chars explain"
    switched_off: dict[str, Any] = dict.fromkeys(names.split(), False)
    return partial(ftfy.fix_text, config=ftfy.TextFixerConfig(**switched_off))


def fix_encoding(text: str, settings: CleaningSettings) -> str:
    """Undo wrong decoding (mojibake) with ftfy, and compose accents."""
    if text.isascii():
        return text
    fixed = _fix_text()(text)
    return _LOST_APOSTROPHE.sub("'", fixed) if "\ufffd" in fixed else fixed


def fix_escapes(text: str, settings: CleaningSettings) -> str:
    """Replace escapes of programs and addresses by their characters."""
    if "%20" in text:
        text = unquote(text)
    if "\\" not in text:
        return text
    # Half of a pair of surrogates is no character.
    text = _ESCAPED.sub(lambda match: json.loads(f'"{match[0]}"').encode("utf-8", "ignore").decode(), text)
    return _ESCAPED_QUOTE.sub("", _ESCAPED_BREAK.sub(" ", text))


def remove_invisible(text: str, settings: CleaningSettings) -> str:
    """Remove control and zero-width characters; every white space becomes a space."""
    text = _CONTROL.sub("", text)
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
        if _JOINERS.search(text) and not _EMOJI.search(_JOINERS.sub("", text)):
            needed = {match.start() for match in _NEEDED_JOINERS.finditer(text)}
            text = _JOINERS.sub(lambda match: match[0] if match.start() in needed else "", text)
    return _SPACE.sub(" ", text).strip()


def plain_letters(text: str, settings: CleaningSettings) -> str:
    """Write curly quotes, ligatures, full-width and mathematical letters as plain ones."""
    if text.isascii():
        return text
    text = text.translate(_QUOTES)
    return _STYLED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


def remove_emoji(text: str, settings: CleaningSettings) -> str:
    """Remove emoji, arrows, decorative symbols and emoticons."""
    if not text.isascii():
        text = _EMOJI.sub(" ", text)
    return _EMOTICON.sub(" ", text)


_TAGS = word_set(
    """a abbr address article aside audio b big blockquote body br button caption center cite code dd del
    details div dl dt em embed fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i
    iframe img input ins label legend li link main map mark meta nav noscript object ol option p param picture pre q s
    samp script section select small source span strike strong style sub summary sup svg table tbody td textarea
    tfoot th thead
    title tr tt u ul var video"""
)
_NAME = "|".join(sorted(_TAGS, key=len, reverse=True))
_CODE = re.compile(r"<(script|style)\b[^>]*>.*?(?:</\1\s*>|$)|<!--.*?(?:-->|$)", re.IGNORECASE | re.DOTALL)
_ALT = re.compile(r"<img\b[^<>]*?\balt\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)')[^<>]*>", re.IGNORECASE)
_INLINE = re.compile(r"</?(?:b|i|em|strong|span|u|font|small|big|tt|mark)(?:\s[^<>]*)?/?>", re.IGNORECASE)
_TAG = re.compile(rf"</?(?:{_NAME})(?:\s[^<>]*|/)?>|<!doctype[^<>]*>", re.IGNORECASE)
_OPEN_END = re.compile(rf"</?(?:{_NAME})(?:\s+[\w-]+\s*=[^<>]*)?$", re.IGNORECASE)
_OPEN_START = re.compile(r"^[^<>]{0,200}=\s*(?:\"[^\"<>]*\"|'[^'<>]*')\s*/?>")
_BBCODE = re.compile(
    r"\[img[^\]]*\].*?\[/img\]|\[/?(?:b|i|u|s|url|img|color|size|quote|center|font|list|caption"
    r"|gallery)(?:[= ][^\]]*)?\]",
    re.IGNORECASE,
)
_MARKDOWN_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()\s]*)(?:\s+\"[^\"]*\")?\)")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)*([^\[\]|]*)\]\]")
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}|\{%[^{}]*%\}|\$\{[^{}]*\}")
_REFERENCE = re.compile(
    r"[(\[](?:4k|8k|hd|uhd|video|photos?|pics|pictures|gallery|slideshow|oc)[)\]]|(?<=\w|[.,;])\[(?:\d{1,3}"
    r"|citation needed|edit|note \d+)\]",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"(?<![\w*_])(\*{1,3}|_{1,3}|'{2,5})(?=[^\s*_'])([^*_]{1,300}?)(?<=[^\s*_'])\1(?![\w*_])")
_HEADING = re.compile(r"^#{1,6}\s+(?=[^\W\d_])|^={2,6}\s*(.*?)\s*={2,6}$|^>\s+")


def remove_tags(text: str, settings: CleaningSettings) -> str:
    """Remove HTML tags, scripts and comments; a picture's alternative text stays, and so do placeholders (<person>)."""
    if "<" not in text:
        return _OPEN_START.sub("", text) if ">" in text else text
    text = _CODE.sub(" ", text)
    text = _ALT.sub(lambda match: f" {match[1] or match[2] or ''} ", text)
    text = _TAG.sub(" ", _INLINE.sub("", text))
    return _OPEN_END.sub("", text)


def remove_markup(text: str, settings: CleaningSettings) -> str:
    """Remove the marks of wikis, Markdown, forums and templates; the words that they mark stay."""
    if "[" in text:
        text = _BBCODE.sub("", text)
        text = _WIKI_LINK.sub(r"\1", _MARKDOWN_LINK.sub(r"\1", text))
    text = _REFERENCE.sub("", text) if "[" in text or "(" in text else text
    if "{" in text:
        text = _TEMPLATE.sub(" ", text)
    text = _HEADING.sub(lambda match: match[1] or "", text)
    return _EMPHASIS.sub(r"\2", text)


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
        # The second copy stays: its punctuation leads on to what follows. It begins as the first does: with the same
        # capital letter, and an opening quote or bracket.
        first, second = tokens[position], tokens[position + length]
        opening = first[: len(first) - len(first.lstrip(_EDGES))]
        if not second.startswith(opening):
            second = opening + second
        letter = len(opening)
        if first[letter : letter + 1].casefold() == second[letter : letter + 1].casefold():
            second = first[: letter + 1] + second[letter + 1 :]
        tokens[position + length] = second
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


def lower_capitals(text: str, settings: CleaningSettings) -> str:
    """Put a caption that is all in capitals in lower case, the first letter excepted (setting capitals)."""
    if settings.capitals != "lower" or not is_shouted(text):
        return text

    def lower(match: re.Match[str]) -> str:
        word = match[0]
        return word if word.startswith("<") or word == "I" else _ACRONYMS.get(word.lower(), word.lower())

    lowered = _CASED_WORD.sub(lower, text)
    for position, letter in enumerate(lowered):
        if letter.isalpha():
            return lowered[:position] + letter.upper() + lowered[position + 1 :]
    return lowered


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
    words = _CUT_OFF.sub("", text).split()
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


REPAIRS = (
    Repair("encoding", function=fix_encoding),
    Repair(
        "punctuation",
        "Write punctuation once that is repeated.",
        _TWO_MARKS,
        (
            (_RUNS, r"\1\1\1"),
            (_LOST, "\ufffd"),
            (_MIXED_MARKS, "?"),
            (_MARKS, r"\1"),
            (_SEPARATORS, " | "),
            (_DOTS, "..."),
            (_DASHES, "-"),
        ),
    ),
    Repair(
        "entities",
        "Replace HTML entities by their characters.",
        "&",
        ((_ENTITY, lambda match: html.unescape(match[0])),),
    ),
    Repair("escapes", function=fix_escapes),
    Repair("tags", function=remove_tags),
    Repair("markup", function=remove_markup),
    Repair("invisible", function=remove_invisible),
    Repair("letters", function=plain_letters),
    Repair("emoji", function=remove_emoji),
)
LAST_REPAIRS = (
    Repair("repeats", function=remove_repeats),
    Repair("capitals", function=lower_capitals),
    Repair("cut_off", needs=_CUT_OFF, function=remove_cut_end),
    Repair("tidy", function=tidy),
)
"""After those of titles."""
