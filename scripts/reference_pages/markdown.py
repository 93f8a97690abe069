"""Code and docstrings as Markdown."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


def cleaned(text: str) -> str:
    """A docstring as Markdown: roles and double backticks become code, indentation goes, aligned terms form a list."""
    text = inspect.cleandoc(text).replace("\b", "")
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text).strip()
    return "\n\n".join(_terms(paragraph) for paragraph in text.split("\n\n"))


def _terms(paragraph: str) -> str:
    lines = paragraph.splitlines()
    if lines[0] == "Args:":
        return "\n".join(re.sub(r"^    (\w+): ", r"- `\1`: ", line).replace("        ", "  ") for line in lines[1:])
    if not all(line.startswith("`") for line in lines) or not any(re.match(r"`[^`]+`  ", line) for line in lines):
        return paragraph
    return "\n".join(re.sub(r"^(`[^`]+`)\s+", r"- \1: ", line) for line in lines)


def cell(text: str) -> str:
    """Text that fits into one table cell."""
    return re.sub(r"\s*\n\s*", " ", text).replace("|", "\\|").strip()


def shared_rows(described: Iterable[Mapping[str, str]], least: int = 3) -> dict[str, str]:
    """The lines that at least so many entries have, by the name they describe; of several of one name the most used."""
    uses = Counter(row for rows in described for row in rows.items())
    return dict(reversed([row for row, count in uses.most_common() if count >= least]))


def signature(name: str, value: Any) -> str:
    """``name(parameters) -> result``, one parameter per line where it gets long."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    parameters: list[str] = []
    for one in found.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not any(shown.startswith("*") for shown in parameters):
            parameters.append("*")
        parameters.append(_parameter(one))
    silent = inspect.isclass(value) or found.return_annotation is inspect.Signature.empty
    result = "" if silent else f" -> {tidy(word(found.return_annotation))}"
    line = f"{name}({', '.join(parameters)}){result}"
    return line if len(line) <= 88 else "\n".join([f"{name}(", *(f"    {one}," for one in parameters), f"){result}"])


def _parameter(parameter: inspect.Parameter) -> str:
    stars = (
        "**" if parameter.kind is parameter.VAR_KEYWORD else "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    )
    kind = "" if parameter.annotation is parameter.empty else f": {tidy(word(parameter.annotation))}"
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{kind}"
    # A default made by a factory has no form worth reading.
    default = (
        "…"
        if "<factory>" in repr(parameter.default) or " at 0x" in repr(parameter.default)
        else repr(parameter.default)
    )
    return f"{stars}{parameter.name}{kind} = {default}"


def word(annotation: Any) -> str:
    """A type annotation as text."""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def tidy(text: str) -> str:
    """Types as a person would write them: no module paths, arrays as arrays."""
    text = re.sub(r"np\.ndarray\[Any, (?:np\.dtype\[[^]]*\]|Any)\]|\b(?:Int|Float|Bool)?Array\b", "np.ndarray", text)
    return re.sub(r"\b(?:crosslens|typing|collections|pathlib|polars)(?:\.\w+)*\.(?=\w)", "", text)
