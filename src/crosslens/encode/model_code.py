"""Python code that a model folder brings along or names: it never runs.

The libraries can import classes that a folder's own files name: ``auto_map`` in transformers, ``modules.json`` in
sentence-transformers, whose versions before 6 run the code of a local folder unasked. Every call that loads a model
forbids it; this module finds what a folder names, to refuse it or to say why loading failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crosslens.core import InputError

_LIBRARY, _ACTIVATIONS = "sentence_transformers.", "torch.nn."
_MODULE_FILES = ("modules.json", "router_config.json", "config.json")


def refuse_own_modules(folder: Path) -> None:
    """Raise if a folder of sentence-transformers names classes that are not the library's."""
    for file in _files(folder, _MODULE_FILES):
        for name, allowed in _classes(_content(file)):
            if not str(name).startswith(allowed):
                raise _refused(file, str(name))


def own_code(folder: Path) -> InputError | None:
    """The error about code that a folder names for transformers; None where it names none."""
    for file in _files(folder, ("*config.json",)):
        content = _content(file)
        classes = content.get("auto_map") if isinstance(content, dict) else None
        if classes:
            return _refused(file, ", ".join(map(str, classes.values() if isinstance(classes, dict) else [classes])))
    return None


def _refused(file: Path, name: str) -> InputError:
    return InputError(
        f"the model needs Python code of its own ({name}), and code of a model folder never runs",
        file=file,
        expected="a model whose classes are those of the library",
        fix="load the model in a Python file of yours and pass callable:FILE.py:NAME",
        code="untrusted-code",
        subject=name,
    )


def _classes(content: Any) -> Iterator[tuple[Any, str]]:
    """The classes that a file of a sentence-transformers folder names, and how those of the library begin."""
    if isinstance(content, list):  # modules.json
        yield from ((module.get("type"), _LIBRARY) for module in content if isinstance(module, dict))
    elif isinstance(content, dict):
        if isinstance(content.get("types"), dict):  # a router
            yield from ((name, _LIBRARY) for name in content["types"].values())
        if "activation_function" in content and "in_features" in content:  # a dense layer
            yield content["activation_function"], _ACTIVATIONS


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(file for pattern in patterns for file in folder.rglob(pattern) if file.is_file())


def _content(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None  # the library says what is wrong with it
