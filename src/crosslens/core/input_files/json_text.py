"""Text and JSON from files: whatever is wrong with them raises an ``InputError`` that says where."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from crosslens.core.errors import InputError, reading
from crosslens.core.input_files.regular import regular_bytes

_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_INCOMPLETE = "fetch or write the file again: it may be cut off or damaged"
_SPARE_CALLS = 100
# Pairs and escaped backslashes match without a group, so that only half a pair is left for it.
_HALF_PAIR = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def decode(content: bytes) -> str:
    """UTF-8 bytes as text; the first byte that is not UTF-8 is named with its line."""
    if content.startswith(_UTF_16_MARKS):
        fix = "convert it, for example: iconv -f utf-16 -t utf-8 old > new"
        raise InputError("the text is UTF-16", expected="UTF-8 text", fix=fix)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # utf-8-sig counts from behind the mark it skipped, if there was one.
        start = error.start + len(content) - len(error.object)
        line = content.count(b"\n", 0, start) + 1
        problem = f"byte 0x{content[start]:02x} at position {start} is not UTF-8"
        fix = "convert it, for example: iconv -f latin1 -t utf-8 old > new"
        raise InputError(problem, row=f"line {line}", expected="UTF-8 text", fix=fix) from error


def parse_json(text: str, expected: str = "one complete JSON value", fix: str = _INCOMPLETE) -> Any:
    """The value in a JSON text; ``expected`` and ``fix`` are for the message about one that is not JSON.

    Not only a syntax error raises: so do a key that an object has twice (it would hide the first), half of a surrogate
    pair (no file could hold the text), nesting and numbers beyond what can be read.
    """
    try:
        value = _decode_below(text, _SPARE_CALLS)
    except json.JSONDecodeError as error:
        row = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"not valid JSON: {error.msg}", row=row, expected=expected, fix=fix) from error
    except RecursionError as error:
        raise InputError("JSON nested too deeply", expected=f"{expected} of the format", fix=fix) from error
    except ValueError as error:  # Python converts no longer ones
        problem = f"a number of more than {sys.get_int_max_str_digits():,} digits"
        raise InputError(problem, expected="numbers of usual size", fix="correct the number") from error
    if "\\ud" in text or "\\uD" in text:
        _refuse_half_pairs(text)
    return value


def _refuse_half_pairs(text: str) -> None:
    half = next((match for match in _HALF_PAIR.finditer(text) if match[1]), None)
    if half is not None:
        row = f"line {text.count(chr(10), 0, half.start()) + 1}"
        expected = "escapes in pairs: one of \\ud800 to \\udbff, then one of \\udc00 to \\udfff"
        fix = "correct the text, or write it without escapes"
        raise InputError(f"{half[1]} is half of a character", row=row, expected=expected, fix=fix)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        again = next(key for key in content if keys.count(key) > 1)
        simple = [f"{key!r}: {value!r:.40}" for key, value in pairs if isinstance(value, (str, int, float))]
        inside = f" in {{{', '.join(simple[:3])}, …}}" if simple else ""
        raise InputError(
            f"the key {again!r} occurs twice{inside}", expected="each key once", fix="merge the two entries"
        )
    return content


def _decode_below(text: str, calls: int) -> Any:
    """Decode with ``calls`` calls to spare: what is just not nested too deeply to parse must not be so to print."""
    return _decode_below(text, calls - 1) if calls else _STRICT.decode(text)


# The check makes parsing a COCO file 1.2 to 1.6 times as long, and reading the dataset hardly longer.
_STRICT = json.JSONDecoder(object_pairs_hook=_unique)


def read_text_file(path: str | Path) -> str:
    """The text of a regular file; a missing or unreadable one raises ``OSError``."""
    with reading(path):
        return decode(regular_bytes(path))


def read_json_file(path: str | Path) -> Any:
    """The value in a regular file; a missing or unreadable one raises ``OSError``."""
    with reading(path):
        return parse_json(decode(regular_bytes(path)))


def is_finite_number(value: Any) -> bool:
    """Whether a value is a number that a float can hold: a whole number may be too large, even to be asked."""
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


def is_encodable(text: str) -> bool:
    """Whether a text can be written to a file: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
