"""The public names of the package."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import crosslens
from reference_pages.commands import commands
from reference_pages.markdown import cell, cleaned, shared_rows, signature

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/*.md", "docs/how-to/*.md", "docs/explanation/*.md", "examples/*.ipynb")
RESULTS = {"comparisons.Comparison", "comparisons.Leaderboard", "values.MetricValues"}
"""Classes of packages that :func:`crosslens.compare`, ``leaderboard`` and ``evaluate`` return or hold."""
_KEYWORD = re.compile(r"^- (`\w+`): .*\n?(?:  \S.*\n?)*", re.MULTILINE)
_SHARED = 3
"""From how many functions on a keyword that is the same in all of them is described once, above them."""


def python_names() -> str:
    """Signature and docstring of everything in ``crosslens.__all__``, and of what pages call of its packages."""
    names = crosslens.__all__
    packages = ", ".join(f"`{name}`" for name in dir(crosslens) if name not in names)
    text = "\n".join(page.read_text(encoding="utf-8") for pattern in PAGES for page in ROOT.glob(pattern))
    called = {f"{package}.{name}" for package, name in re.findall(r"\bcl\.([a-z]+)\.([a-z_]+)\(", text)}
    lines = [
        "# Python",
        f"`import crosslens as cl` offers {len(names)} names, and the packages that have more: {packages}. "
        "Each is loaded when first used.",
    ]
    described = {name: _described(name, attrgetter(name)(crosslens)) for name in [*names, *sorted(called | RESULTS)]}
    return "\n\n".join([*lines, *_keywords_once(described)]) + "\n"


def _keywords_once(described: dict[str, str]) -> Iterator[str]:
    """Keywords of many functions, then every name; what another function or a command has, too, is described there."""
    lines = {name: [match[0].strip() for match in _KEYWORD.finditer(text)] for name, text in described.items()}
    alone = [{_keyword(line): line for line in listed if "likewise" not in line} for listed in lines.values()]
    shared = set(shared_rows(alone, _SHARED).values())
    yield "## Keywords of many functions"
    yield "A keyword that is in a signature, and not in the list below it, is described here."
    yield "\n".join(sorted(shared))
    elsewhere = {
        f"As the flags of [`{path}`](command-line.md#{path.replace(' ', '-')})": {
            f"- `{flag.opts[-1].lstrip('-').replace('-', '_')}`: {cleaned(getattr(flag, 'help', None) or '')}"
            for flag in command.params
        }
        for path, command in commands()
    }
    for name, text in described.items():
        special = set(lines[name]) - shared
        alike = {other: special & listed for other, listed in elsewhere.items()}
        where = max(alike, key=lambda other, alike=alike: len(alike[other]))
        repeated = alike[where] if len(alike[where]) >= _SHARED else set()
        gone = shared | repeated
        text = _KEYWORD.sub(lambda match, gone=gone: "" if match[0].strip() in gone else match[0], text)
        yield f"## {name}\n\n" + re.sub(r"\n{3,}", "\n\n", text).strip()
        if repeated:
            yield f"{where}: {', '.join(_keyword(line) for line in lines[name] if line in repeated)}."
        elsewhere[f"As of [`{name}`](#{name.replace('.', '')})"] = special - repeated


def _keyword(line: str) -> str:
    return line[2 : line.index(":")]


def _described(name: str, value: Any) -> str:
    parts = [] if _is_error(value) else [f"```python\n{signature(name, value)}\n```"]
    parts.append(cleaned(value.__doc__ or ""))
    if inspect.isclass(value) and not _is_error(value):
        parts.append(_members(value))
    return "\n\n".join(part for part in parts if part)


def _members(value: type) -> str:
    rows = []
    for name, member in vars(value).items():
        if name.startswith("_"):
            continue
        function = getattr(member, "__func__", None) or getattr(member, "fget", None) or getattr(member, "func", member)
        text = (getattr(function, "__doc__", None) or "").strip().split("\n\n")[0]
        if inspect.isfunction(function) and text:
            called = name if isinstance(member, property) or hasattr(member, "func") else f"{name}(…)"
            rows.append(f"| `{called}` | {cell(cleaned(text))} |")
    return "\n".join(["| | |", "|---|---|", *rows]) if rows else ""


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)
