"""Repairs of single characters: wrong encodings, entities, invisible and decorative ones."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from crosslens.build.imp.cleaning.settings import CleaningSettings
from crosslens.core import MissingExtraError

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


def fix_encoding(text: str, settings: CleaningSettings) -> str:
    """Undo wrong decoding (mojibake) with ftfy, and compose accents."""
    if text.isascii():
        return text
    fixed = str(_ftfy().fix_text(text, _ftfy_config()))
    return _LOST_APOSTROPHE.sub("'", fixed) if "\ufffd" in fixed else fixed


def fix_entities(text: str, settings: CleaningSettings) -> str:
    """Replace HTML entities by their characters."""
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


def fix_escapes(text: str, settings: CleaningSettings) -> str:
    """Replace escapes of programs and addresses by their characters."""
    if "%20" in text:
        text = unquote(text)
    if "\\" not in text:
        return text
    text = _ESCAPED.sub(_unescaped, text)
    return _ESCAPED_QUOTE.sub("", _ESCAPED_BREAK.sub(" ", text))


def _unescaped(match: re.Match[str]) -> str:
    characters = str(json.loads(f'"{match[0]}"'))
    return characters.encode("utf-8", "ignore").decode()  # half of a pair is no character


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


def _ftfy() -> Any:
    try:
        import ftfy
    except ImportError as error:
        raise MissingExtraError("cleaning captions", "ftfy", "imp") from error
    return ftfy


@lru_cache(maxsize=1)
def _ftfy_config() -> Any:
    """Encodings only: the rest has rules of its own, which are named when they change something."""
    return _ftfy().TextFixerConfig(
        unescape_html=False,
        uncurl_quotes=False,
        fix_latin_ligatures=False,
        fix_character_width=False,
        remove_control_chars=False,
        explain=False,
    )
