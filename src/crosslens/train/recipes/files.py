"""Recipe files: the packaged ones, and files that build on another one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from crosslens.core import InputError, UnknownNameError
from crosslens.data import read_text

BASE = "base"
SUFFIX = ".toml"
_NOT_INHERITED = ("about", "published")


@dataclass(frozen=True)
class RecipeFile:
    """A recipe as written: what its bases say included."""

    name: str
    source: str
    """The file, for messages."""
    content: Mapping[str, Any]


def recipe_names() -> list[str]:
    """The recipes that come with crosslens."""
    return sorted(_packaged())


def read_recipe_file(name: str | Path) -> RecipeFile:
    """A packaged recipe by its name, or a TOML file by its path."""
    return _read(str(name), Path(), ())


def _packaged() -> dict[str, Traversable]:
    """The packaged files by name, those in folders below included."""
    folders = [files("crosslens.train.recipes")]
    packaged: dict[str, Traversable] = {}
    for folder in folders:
        for entry in folder.iterdir():
            if entry.name.endswith(SUFFIX):
                packaged[entry.name.removesuffix(SUFFIX)] = entry
            elif entry.is_dir():
                folders.append(entry)
    return packaged


def _read(name: str, folder: Path, above: tuple[str, ...]) -> RecipeFile:
    """The recipe of a name, or of a path from ``folder``; ``above`` are the recipes that build on it."""
    path = folder / name
    is_file = path.suffix == SUFFIX or path.is_file()
    source = str(path) if is_file else f"{name}{SUFFIX}"
    key = str(path.resolve()) if is_file else name
    if key in above:
        circle = " → ".join(Path(step).name for step in (*above[above.index(key) :], key))
        raise InputError(f"the recipe builds on itself: {circle}", file=source, fix="remove one of these bases")
    if is_file:
        text, stem = read_text(path), path.stem
    else:
        known = _packaged()
        if name not in known:
            raise UnknownNameError("recipe", name, list(known))
        text, stem = known[name].read_text("utf-8"), name
    content = _parsed(text, source)
    return RecipeFile(stem, source, _with_base(content, path.parent if is_file else Path(), source, (*above, key)))


def _with_base(content: dict[str, Any], folder: Path, source: str, above: tuple[str, ...]) -> dict[str, Any]:
    if BASE not in content:
        return _with_losses_of(None, content, source)
    base = content.pop(BASE)
    if not isinstance(base, str):
        raise InputError(
            f"base is {base!r:.60}", file=source, fix="write the name of a recipe, or a path from this file"
        )
    try:
        below = _read(base, folder, above)
    except UnknownNameError as error:
        raise InputError(f"its base is unknown: {error.args[0]}", file=source, fix=error.fix) from error
    except InputError as error:
        if (folder / base).exists() or not base.endswith(SUFFIX):
            raise
        problem = f"its base {base} does not exist"
        raise InputError(problem, file=source, fix="write a path from this file, or the name of a recipe") from error
    return merged(below.content, _with_losses_of(below.content.get("loss"), content, source))


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe's entries over those of its base: tables entry by entry, unless they name another kind; losses anew."""
    content = {key: value for key, value in base.items() if key not in _NOT_INHERITED}
    for key, value in own.items():
        below = content.get(key)
        if key != "loss" and isinstance(value, dict) and isinstance(below, dict) and _same_kind(below, value):
            content[key] = {**below, **value}
        else:
            content[key] = value
    return content


def _same_kind(below: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    return "kind" not in own or own["kind"] == below.get("kind")


def _with_losses_of(base: Any, content: dict[str, Any], source: str) -> dict[str, Any]:
    """The content with the base's losses in place of an entry [[loss]] of kind "base"."""
    losses = content.get("loss")
    if not isinstance(losses, list):
        return content
    kept: list[Any] = []
    for entry in losses:
        if not (isinstance(entry, dict) and entry.get("kind") == BASE):
            kept.append(entry)
            continue
        if len(entry) > 1:
            problem = f'a [[loss]] of kind "base" with {", ".join(key for key in entry if key != "kind")}'
            raise InputError(problem, file=source, fix="write the losses themselves to change them")
        if base is None:
            fix = "name one (base = …), or write the losses themselves"
            raise InputError('a [[loss]] of kind "base" in a recipe without a base', file=source, fix=fix)
        kept += base if isinstance(base, list) else [base]
    return {**content, "loss": kept}


def _parsed(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOML's own error is a ValueError
        raise InputError(
            f"not valid TOML: {error}", file=source, expected="a training recipe", fix="correct the file"
        ) from error
