"""Outputs as plain text that is the same on every machine and whose differences can be read.

Times, versions, hashes, tokens and absolute paths become words in capitals; numbers have six significant digits. Of a
long list the first elements and the last are kept. Of sections, pages and drawings the structure and the figures are:
what a sentence says is for the tests of what makes it.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import Section, restored_part, stored_part

DIGITS = 6
LISTED = 5
"""Rows of a table, and elements of a list of JSON, that are kept with the last one: others are counted."""
KEYS = 36
"""How many keys of an object of JSON are kept: where keys are ids there may be thousands."""
SHOWN = {".html", ".md", ".tex", ".svg", ".csv", ".tsv", ".txt", ".xml", ".yaml"}
"""Endings of files that people read: kept in every folder. Others are kept at the top of ``out/``, and listed below."""

_PLACEHOLDERS = [
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?( UTC)?"), "TIME"),
    (re.compile(r"/(join|login|reset|invitation|invite)/[\w-]{20,}"), r"/\1/TOKEN"),
    (re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{12,}\b"), "HASH"),
    (re.compile(r"\bjudge-[0-9a-f]{8}\b"), "judge-HASH"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "PORT"),
    (re.compile(r"\b([A-Za-z][\w-]*)([ =]+)v?\d+\.\d+\.\d+(\+\w+)?(?!\.?\w)"), r"\1\2VERSION"),
    (re.compile(r"(?<=this takes about ).*(?= here and now)"), "DURATION"),
    (re.compile(r"(?m)^took .*; processor time: .*$"), "took DURATION; processor time: DURATION"),
]  # fmt: skip
# Not the seconds of a time, which becomes a placeholder as a whole.
_FLOAT = re.compile(r"(?<![\w.])(?<!\d:)-?\d+\.\d{4,}(?:e-?\d+)?(?![\w.])|(?<![\w.])-?\d+(?:\.\d+)?e[+-]?\d+(?![\w.])")
_SECRET_KEYS = {"time", "created", "started", "finished", "seconds", "duration", "versions", "python", "platform"}


def plain_text(text: str, folder: Path) -> str:
    """A text without what differs from call to call or from machine to machine."""
    for path in dict.fromkeys((str(folder.resolve()), str(folder))):
        text = text.replace(path, "WORK")
    for pattern, word in _PLACEHOLDERS:
        text = pattern.sub(word, text)
    return "".join(f"{line.rstrip()}\n" for line in text.replace("\x1b", "␛").splitlines())


def plain_json(text: str, folder: Path, **shortened: Any) -> str:
    """JSON with a value per line; lists of numbers and words in one. What is short already stands beside it."""
    value = _kept(json.loads(text))
    return plain_text(_json_text({"json": value, **shortened} if shortened else value), folder)


def plain_file(file: Path, folder: Path) -> str:
    """What a file holds, as text."""
    suffix = file.suffix.lower()
    if suffix in _BINARY:
        return _BINARY[suffix](file)
    text = file.read_text(encoding="utf-8")
    if suffix == ".json":
        return plain_json(text, folder)
    if suffix == ".jsonl":
        return plain_json(f"[{','.join(text.splitlines())}]", folder)
    if suffix in (".html", ".svg", ".xml"):
        return plain_text(_page(text), folder)
    if suffix in (".csv", ".tsv", ".run", ".qrels"):
        text = "\n".join(_some(text.splitlines()))
    return plain_text(_FLOAT.sub(lambda number: f"{_rounded(float(number[0])):g}", text), folder)


def _rows(table: pl.DataFrame) -> str:
    return "".join(
        f"{row if isinstance(row, str) else json.dumps(_kept(row), ensure_ascii=False, default=str)}\n"
        for row in _some(table.to_dicts())
    )


def _some(elements: Sequence[Any]) -> list[Any]:
    """The first elements, how many follow, and the last."""
    if len(elements) <= LISTED + 2:
        return list(elements)
    return [*elements[:LISTED], f"… {len(elements) - LISTED - 1} more", elements[-1]]


def _spread(elements: list[Any]) -> list[Any]:
    """Elements from the first to the last in equal steps: a curve has its height in the middle."""
    steps = LISTED + 1
    if len(elements) <= steps + 1:
        return elements
    return [*(elements[step * (len(elements) - 1) // steps] for step in range(steps + 1)), f"of {len(elements)}"]


def _array(file: Path) -> str:
    array = np.load(file)
    return f"{array.dtype} {'×'.join(map(str, array.shape))}\n{_json_text(_kept(array[:2].tolist()))}"


def _png(file: Path) -> str:
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert min(width, height) > 50
    assert len(content) > 1_000, f"{file.name}: {len(content)} bytes"
    return "a PNG picture\n"


def _pdf(file: Path) -> str:
    content = file.read_bytes()
    assert content.startswith(b"%PDF-")
    assert b"%%EOF" in content[-64:]
    assert len(content) > 1_000, f"{file.name}: {len(content)} bytes"
    return "a PDF document\n"


_BINARY: dict[str, Callable[[Path], str]] = {
    ".parquet": lambda file: _rows(pl.read_parquet(file)),
    ".npy": _array,
    ".png": _png,
    ".pdf": _pdf,
}


def _rounded(value: float) -> float:
    if not math.isfinite(value) or value == 0:
        return value
    return float(f"{value:.{DIGITS}g}") + 0.0


def _kept(value: Any) -> Any:
    """The value with rounded numbers, shortened lists and placeholders for what is of one machine or moment."""
    if isinstance(value, float):
        return _rounded(value)
    if isinstance(value, dict):
        entries = [(key, key.upper() if key in _SECRET_KEYS and item else _kept(item)) for key, item in value.items()]
        more = {"…": f"{len(entries) - KEYS} more"} if len(entries) > KEYS else {}
        return dict(entries[:KEYS]) | more
    return [_kept(item) for item in _some(value)] if isinstance(value, list | tuple) else value


def _json_text(value: Any) -> str:
    return "\n".join(_json_lines(value, "")) + "\n"


def _json_lines(value: Any, indent: str) -> Iterator[str]:
    flat = json.dumps(value, ensure_ascii=False, default=str)
    nested = isinstance(value, dict | list) and any(isinstance(item, dict | list) for item in _items(value))
    if not isinstance(value, dict | list) or (not nested and len(flat) <= 100) or not value:
        yield indent + flat
    elif isinstance(value, dict):
        yield indent + "{"
        for key, item in value.items():
            first, *more = _json_lines(item, indent + " ")
            yield f"{indent} {json.dumps(key, ensure_ascii=False)}: {first.strip()}"
            yield from more
        yield indent + "}"
    else:
        yield indent + "["
        for item in value:
            yield from _json_lines(item, indent + " ")
        yield indent + "]"


def _items(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value


def structure(sections: Iterable[Section]) -> list[Any]:
    """The parts of sections with their headings and figures: sentences by their numbers, charts by their values."""
    return [_part(stored_part(section)) for section in sections]


_NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
_PROSE = {"sentences", "notes", "about", "reason", "text", "lines", "details", "facts", "labels", "key", "rest"}
_NESTED = {"", "parts", "charts", "columns"}
"""What holds parts: each is there, under the name of its kind."""
_LOOKS = {"align", "narrow", "files", "pictures", "cut", "drawn", "terms"}
"""What the tests of forms are about, and what is of one machine."""


def _part(value: Any, name: str = "") -> Any:
    if isinstance(value, list):
        elements = [_part(item, name) for item in value]
        nested = any(isinstance(element, dict | list) for element in elements)
        whole = name in _NESTED or name in _PROSE
        return elements if whole else _some(elements) if nested else _spread(elements)
    if isinstance(value, str):
        return " ".join(_NUMBER.findall(value)) if name in _PROSE else value
    if not isinstance(value, dict):
        return _kept(value)
    kind = value.get("part", "")
    if kind == "Figure":
        return str(restored_part(value))
    if kind in ("mapping", "frozenset", "number"):
        return _part(value["of"], name)
    if kind == "Link":
        return value["text"]
    kept = {key: _part(item, key) for key, item in value.items() if key not in ("part", *_LOOKS)}
    return {kind: kept} if name in _NESTED else kept.popitem()[1] if len(kept) == 1 else kept


def _page(text: str) -> str:
    outline = _Outline()
    outline.feed(text)
    outline.close()
    return "\n".join([*outline.lines, *(f"{count} × {tag}" for tag, count in sorted(outline.tags.items()))])


_TITLES = {"title", "h1", "h2", "h3", "h4", "th", "summary", "caption", "text", "label", "button"}
_UNCOUNTED = {"br", "b", "i", "em", "strong", "span", "html", "head", "body", "meta", "script", "style"}


class _Outline(HTMLParser):
    """Headings and heads of tables, the words of a drawing in a line, and how often each element occurs."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.tags = Counter[str]()
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.update({tag} - _UNCOUNTED)
        if tag in _TITLES:
            self._inside = tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.update({tag} - _UNCOUNTED)

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data: str) -> None:
        words = " ".join(data.split())
        if self._inside and words:
            if (
                self.lines
                and self.lines[-1].startswith(f"{self._inside}: ")
                and self._inside in ("th", "text", "label")
            ):
                self.lines[-1] += f" · {words}"
            else:
                self.lines.append(f"{self._inside}: {words}")
