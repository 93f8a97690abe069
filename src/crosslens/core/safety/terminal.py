"""Text from elsewhere, made harmless to print: what would steer a terminal is spelled out instead.

Captions, names, file names and answers of servers may hold escape sequences that move the cursor, hide text, set the
clipboard or reverse the direction of writing. Line feeds and tabs stay; :func:`printable_line` spells them out, too.
"""

from __future__ import annotations

import re

_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 without tab, LF and CR; DEL; C1, whose \x9b is ESC [
_DIRECTIONS = "\u202a-\u202e\u2066-\u2069"  # overrides, embeddings and isolates
_SEPARATORS = "\u2028\u2029"  # line breaks to some programs and not to others
_STEERING = re.compile(rf"\r(?!\n)|[{_CONTROLS}{_DIRECTIONS}{_SEPARATORS}]")
_NOT_IN_A_LINE = re.compile(rf"[\t\n\r{_CONTROLS}{_DIRECTIONS}{_SEPARATORS}]")


def printable(text: str) -> str:
    r"""The text with everything that steers a terminal written as Python writes it: ``\x1b``, ``\u202e``."""
    return _STEERING.sub(_spelled_out, text)


def printable_line(text: str) -> str:
    """The text as one line: a name or a cell must not begin a line of its own."""
    return _NOT_IN_A_LINE.sub(_spelled_out, text)


def printable_json(text: str) -> str:
    """JSON with the same content, in which those characters are escaped as JSON escapes them."""
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _spelled_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
