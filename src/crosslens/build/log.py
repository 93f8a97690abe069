"""The decisions of a build in their order: enough to explain it, and to repeat it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from crosslens import __version__
from crosslens.core import FormatVersionError, InputError, UsageError, parse_json, read_text_file, write_text

RECOS, IMP = "crosslens/recos-decisions", "crosslens/imp-decisions"
"""The format of a log, which tells what was built."""
VERSION = 1
_NEAR = 1e-4  # how much a logged number may differ when it is computed again on another machine

LogEntry = dict[str, Any]


class DecisionLog:
    """Entries in the order they were made; ``log("step", …)`` adds one. Numbers are kept to six digits."""

    def __init__(self, entries: Iterable[LogEntry] = ()) -> None:
        self.entries: list[LogEntry] = list(entries)

    def __call__(self, step: str, **facts: Any) -> None:
        self.entries.append({"step": step, **{name: _plain(value) for name, value in facts.items()}})

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(self.entries)

    def of(self, step: str) -> list[LogEntry]:
        """The entries of one step."""
        return [entry for entry in self.entries if entry["step"] == step]

    @property
    def head(self) -> LogEntry:
        """The first entry: settings, models, fingerprints."""
        return self.entries[0]

    def save(self, file: str | Path) -> None:
        """Write JSON lines, all or nothing."""
        write_text(file, "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in self.entries))

    @staticmethod
    def load(file: str | Path, form: str = RECOS) -> DecisionLog:
        """Read what :meth:`save` wrote: the log of one kind of build."""
        file = Path(file)
        if file.is_dir():
            file = file / "decisions.jsonl"
        if not file.is_file():
            raise InputError("no such file", file=file, expected="the decisions.jsonl of a build", fix="check the path")
        entries = []
        for number, line in enumerate(read_text_file(file).rstrip("\n").split("\n"), start=1):
            try:
                entry = parse_json(line)
                entry["step"]
            except (InputError, KeyError, TypeError) as error:
                raise InputError(
                    f"not an entry of a decision log: {error}", file=file, row=f"line {number}", fix="write it again"
                ) from error
            entries.append(entry)
        if not entries or entries[0].get("format") != form:
            raise InputError(
                "not a decision log", file=file, expected=f"a first line with {form!r}", fix="check the path"
            )
        if entries[0].get("version") != VERSION:
            raise FormatVersionError(
                f"{file} has format version {entries[0].get('version')}, this crosslens reads version {VERSION}",
                fix="pip install --upgrade crosslens",
            )
        return DecisionLog(entries)

    def check_same(self, again: DecisionLog, *, so_far: bool = False) -> None:
        """Raise unless a repeated build decided as this log says (``so_far``: it is not finished yet).

        Numbers may differ in the fifth digit.
        """
        logged, repeated = self.entries[1:], again.entries[1:]
        for number, (entry, other) in enumerate(zip(logged, repeated, strict=False), start=2):
            if not _same(entry, other):
                raise UsageError(
                    f"the repeated build decides differently: line {number} of the log is {_short(entry)}; "
                    f"now it is {_short(other)}",
                    fix="use the same encoder, crosslens and cache as the first build; vectors differ here",
                )
        if len(logged) != len(repeated) and not so_far:
            raise UsageError(
                f"the repeated build has {len(repeated):,} decisions, the log {len(logged):,}",
                fix="use the same encoder, crosslens and cache as the first build",
            )


def log_head(form: str, key: str, inputs: Mapping[str, Any], **about: Any) -> LogEntry:
    """The first entry of a log: its format, the key of the build, its inputs, and what else is worth knowing."""
    first = {"step": "settings", "format": form, "version": VERSION, "crosslens": __version__, "key": key}
    return {**first, **inputs, **about}


def check_inputs(logged: Mapping[str, Any], head: Mapping[str, Any], about: Iterable[str] = ()) -> None:
    """Raise unless a repeated build has the inputs of the logged one; ``about`` names what is no input."""
    if logged["key"] == head["key"]:
        return
    ignored = {"step", "format", "version", "crosslens", "key", *about}
    parts = [part for part in {**head, **logged} if part not in ignored and logged.get(part) != head.get(part)]
    raise UsageError(
        f"the log is of another build: different {', '.join(parts) or 'key'}",
        fix="pass the candidates and encoders of the first build, unchanged, and no other setting",
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return round(float(value), 6) if isinstance(value, float) else value


def _same(left: Any, other: Any) -> bool:
    if isinstance(left, dict) and isinstance(other, dict):
        return left.keys() == other.keys() and all(_same(left[key], other[key]) for key in left)
    if isinstance(left, list) and isinstance(other, list):
        return len(left) == len(other) and all(map(_same, left, other))
    if isinstance(left, float) and isinstance(other, (int, float)):
        return abs(left - other) <= _NEAR
    return bool(left == other)


def _short(entry: LogEntry) -> str:
    text = json.dumps(entry, ensure_ascii=False)
    return text if len(text) <= 160 else text[:159] + "…"
