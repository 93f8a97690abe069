"""Outputs as plain text that is the same on every machine and whose differences can be read.

Times, versions, hashes, tokens and absolute paths become words in capitals. Pages and drawings have one tag or text per
line; style sheets, scripts and pictures inside them are only named. Numbers of files have six significant digits.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

DIGITS = 6
LISTED = 12
"""Rows of a table, and elements of a list of JSON or of a chart, that are kept: others are counted."""
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


def plain_json(text: str, folder: Path) -> str:
    """JSON with a value per line; lists of numbers and words in one."""
    return plain_text(_json_text(_kept(json.loads(text))), folder)


def plain_file(file: Path, folder: Path) -> str:
    """What a file holds, as text."""
    suffix = file.suffix.lower()
    if suffix in _BINARY:
        return _BINARY[suffix](file)
    text = file.read_text(encoding="utf-8")
    if suffix == ".json":
        return plain_json(text, folder)
    if suffix == ".jsonl":
        lines = text.splitlines()
        return plain_text(
            "".join(_json_text(_kept(json.loads(line))) for line in lines[:LISTED]) + _more(lines), folder
        )
    if suffix in (".html", ".svg", ".xml"):
        return plain_text(_page(text), folder)
    if suffix in (".csv", ".tsv", ".run", ".qrels"):
        lines = text.splitlines()
        text = "\n".join(lines[: LISTED + 1]) + "\n" + _more(lines[1:])
    return plain_text(_FLOAT.sub(lambda number: f"{_rounded(float(number[0])):g}", text), folder)


def _rows(table: pl.DataFrame) -> str:
    rows = "".join(f"{json.dumps(_kept(row), ensure_ascii=False, default=str)}\n" for row in table[:LISTED].to_dicts())
    return rows + _more(range(table.height))


def _more(rows: Any) -> str:
    return f"… {len(rows) - LISTED} more\n" if len(rows) > LISTED else ""


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
        if {"dtype", "bdata"} <= value.keys():  # how plotly writes arrays
            array = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
            shape = [int(size) for size in str(value.get("shape", array.size)).split(",")]
            return _kept(array.reshape(shape).tolist())
        return {
            key: key.upper() if key in _SECRET_KEYS and item not in (None, {}) else _kept(item)
            for key, item in list(value.items())[: 2 * LISTED if len(value) > 3 * LISTED else None]
        } | ({"…": f"{len(value) - 2 * LISTED} more"} if len(value) > 3 * LISTED else {})
    if isinstance(value, list | tuple):
        kept = [_kept(item) for item in value[:LISTED]]
        return [*kept, f"… {len(value) - LISTED} more"] if len(value) > LISTED else kept
    return value


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


def _page(text: str) -> str:
    reader = _Lines()
    reader.feed(text)
    reader.close()
    # Where a browser drew the picture, places and sizes are its own: its words stay.
    drawn = 'class="main-svg"' in text and text.lstrip().startswith("<svg")
    return "\n".join(line for line in reader.lines if not (drawn and line.startswith("<")))


class _Lines(HTMLParser):
    """A tag or a text per line; style sheets, scripts and pictures are only named, but for what plotly draws."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        written = "".join(f" {name}" if value is None else f' {name}="{_attribute(value)}"' for name, value in attrs)
        self.lines.append(f"<{tag}{written}>")
        self._inside = tag if tag in ("script", "style") else ""

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        self.lines.append(f"</{tag}>")

    def handle_decl(self, decl: str) -> None:
        self.lines.append(f"<!{decl}>")

    def handle_data(self, data: str) -> None:
        if self._inside == "script" and "Plotly.newPlot(" in data[:10_000]:
            self.lines += list(_charts(data))
        elif self._inside:
            self.lines.append(f"({self._inside})")
        else:
            shown = _FLOAT.sub(lambda number: f"{_rounded(float(number[0])):g}", data)
            self.lines += [line.strip() for line in shown.splitlines() if line.strip()]


def _charts(script: str) -> Iterator[str]:
    """The values that plotly draws: traces and layout, without its own defaults."""
    decoder = json.JSONDecoder()
    for call in script.split("Plotly.newPlot(")[1:]:
        yield "Plotly.newPlot("
        place = 0
        for _ in range(3):  # the element's id, the traces, the layout
            start = re.compile(r'["\[{]').search(call, place)
            if start is None:
                break
            value, place = decoder.raw_decode(call, start.start())
            yield from _json_lines(_kept(_drawn(value)), "")


_STYLING = {"template", "marker", "line", "font", "hoverlabel", "margin", "colorscale", "hovertemplate", "tickfont"}


def _drawn(value: Any) -> Any:
    """What a chart says, without how plotly is told to colour it."""
    if isinstance(value, dict):
        return {key: _drawn(item) for key, item in value.items() if key not in _STYLING}
    return [_drawn(item) for item in value] if isinstance(value, list) else value


_DATA = re.compile(r"data:([\w/+.-]+);base64,[\w+/=\s]+")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _attribute(value: str) -> str:
    value = _DATA.sub(r"data:\1", _UUID.sub("UUID", value))
    if len(value) > 200 and re.match(r"[Mm][\d\s.,-]", value):
        value = value[:200] + "…"
    return _FLOAT.sub(lambda number: f"{_rounded(float(number[0])):g}", value).replace("\n", " ")
