"""The public names of the package."""

from __future__ import annotations

import inspect
import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import crosslens
from reference_pages.markdown import cell, cleaned, signature

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/*.md", "docs/how-to/*.md", "docs/explanation/*.md", "examples/*.ipynb")
RESULTS = {"comparisons.Comparison", "comparisons.Leaderboard", "values.MetricValues"}
"""Classes of packages that :func:`crosslens.compare`, ``leaderboard`` and ``evaluate`` return or hold."""


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
    lines += [f"## {name}\n\n{_described(name, attrgetter(name)(crosslens))}" for name in names]
    lines += [f"## {name}\n\n{_described(name, attrgetter(name)(crosslens))}" for name in sorted(called | RESULTS)]
    return "\n\n".join(lines) + "\n"


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
