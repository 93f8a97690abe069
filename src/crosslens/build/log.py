"""The decisions of a build, one after the other: enough to see why, and to do the same again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from crosslens.core.atomic import write_text
from crosslens.core.errors import FormatVersionError, InputError, UsageError

FORMAT, VERSION = "crosslens/recos-decisions", 1
_NEAR = 1e-4  # how much a logged number may differ when it is computed again on another machine

Entry = dict[str, Any]


class DecisionLog:
    """Entries in the order they were made; ``log("step", …)`` adds one. Numbers are kept to six digits."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: list[Entry] = list(entries)

    def __call__(self, step: str, **facts: Any) -> None:
        self.entries.append({"step": step, **{name: _plain(value) for name, value in facts.items()}})

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def of(self, step: str) -> list[Entry]:
        """The entries of one step."""
        return [one for one in self.entries if one["step"] == step]

    @property
    def head(self) -> Entry:
        """The first entry: settings, models, fingerprints."""
        return self.entries[0]

    def save(self, file: str | Path) -> None:
        """Write JSON lines, all or nothing."""
        write_text(file, "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in self.entries))

    @staticmethod
    def load(file: str | Path) -> DecisionLog:
        """Read what :meth:`save` wrote."""
        file = Path(file)
        if file.is_dir():
            file = file / "decisions.jsonl"
        if not file.is_file():
            raise InputError("no such file", file=file, expected="the decisions.jsonl of a build", fix="check the path")
        entries = []
        for number, line in enumerate(file.read_text(encoding="utf-8").rstrip("\n").split("\n"), start=1):
            try:
                entry = json.loads(line)
                entry["step"]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"not an entry of a decision log: {error}", file=file, row=f"line {number}", fix="write it again"
                ) from error
            entries.append(entry)
        if not entries or entries[0].get("format") != FORMAT:
            raise InputError(
                "no decision log", file=file, expected=f"a first line with {FORMAT!r}", fix="check the path"
            )
        if entries[0].get("version") != VERSION:
            raise FormatVersionError(
                f"{file} has format version {entries[0].get('version')}, this crosslens reads version {VERSION}",
                fix="pip install --upgrade crosslens",
            )
        return DecisionLog(entries)

    def check_same(self, again: DecisionLog, *, so_far: bool = False) -> None:
        """Raise unless a repeated build decided as this log says (``so_far``: it goes on).

        Numbers may differ in the fifth digit.
        """
        mine, theirs = self.entries[1:], again.entries[1:]
        for number, (one, other) in enumerate(zip(mine, theirs, strict=False), start=2):
            if not _same(one, other):
                raise UsageError(
                    f"the repeated build decides otherwise: line {number} of the log is {_short(one)}; "
                    f"now it is {_short(other)}",
                    fix="use the same encoder, crosslens and cache as the first build; vectors differ here",
                )
        if len(mine) != len(theirs) and not so_far:
            raise UsageError(
                f"the repeated build has {len(theirs):,} decisions, the log {len(mine):,}",
                fix="use the same encoder, crosslens and cache as the first build",
            )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return round(float(value), 6) if isinstance(value, float) else value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return abs(one - other) <= _NEAR
    return bool(one == other)


def _short(entry: Entry) -> str:
    text = json.dumps(entry, ensure_ascii=False)
    return text if len(text) <= 160 else text[:159] + "…"
