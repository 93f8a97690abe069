"""The public names of the package."""

from __future__ import annotations

import inspect
from typing import Any

import crosslens
from crosslens.core import Registry
from reference_pages.markdown import cell, cleaned, signature


def python_names() -> str:
    """Signature and docstring of everything in ``crosslens.__all__``."""
    names = [name for name in crosslens.__all__ if name != "__version__"]
    lines = ["# Python", f"`import crosslens as cl` offers {len(names)} names; each is loaded when first used."]
    lines += [f"## {name}\n\n{_described(name, getattr(crosslens, name))}" for name in names]
    return "\n\n".join(lines) + "\n"


def _described(name: str, value: Any) -> str:
    if isinstance(value, Registry):
        return f"The registry of {value.kind}s: iterate over it for their names and summaries, or look one up by name."
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
