"""A hand-written recipe, checked: every mistake is named with its line, every unknown key with its near names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_type_hints

from crosslens.core import (
    CrosslensError,
    FormatVersionError,
    InputError,
    UnknownNameError,
    is_finite_number,
    is_plugin_loaded,
    load_plugin,
    require_trust,
)
from crosslens.data import EXTRA_IMAGES, KNOWN, READERS, is_dataset_name, is_dataset_path, reader_options
from crosslens.pipeline.options import EvaluateOptions
from crosslens.pipeline.protocols.protocol import PROTOCOLS
from crosslens.pipeline.recipe.options import RECIPE_KEYS, InputOptions, ModelOptions, RerankOptions, first_conflict

KeyPath = tuple[str, ...]
VERSION = 1
SOURCE_KEYS = ("model", "items", "rerank_model", "pictures", "similarities", "plugins", "corpus", "queries")
"""Fingerprints beside those of the inputs: revisions of models and similarities, what models were given, plugins."""

_EXPECTED: dict[Any, str] = {
    str: 'a text in quotes, for example "value"',
    int: "a whole number, for example 10",
    float: "a number, for example 0.95",
    bool: "true or false",
    tuple[str, ...]: 'a list of texts, for example ["first", "second"]',
    int | str: 'a whole number, or a text in quotes, for example "mean"',
}

BARE_KEY = r"[A-Za-z0-9_-]+"
_PART = rf"(?:{BARE_KEY}|\"[^\"]*\"|'[^']*')"
_HEADER = re.compile(rf"\s*\[\[?\s*({_PART}(?:\s*\.\s*{_PART})*)\s*\]")
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")
_LONG_QUOTE = re.compile(r'"""|\'\'\'')
_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


class NewerRecipeError(InputError, FormatVersionError):
    """A recipe written by a newer crosslens than this one, with the line that says so."""


def _parse(text: str) -> dict[str, Any]:
    """The tables of a TOML text; a mistake is raised with its line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        position = _POSITION.search(message)
        line = position[1] if position and position[1] else str(len(text.splitlines()) or 1)
        raise InputError(
            f"not valid TOML: {_POSITION.sub('', message)}",
            row=f"line {line}",
            expected='lines such as: metrics = ["Hit@1", "Hit@5"]',
            fix="write texts in quotes and lists in brackets",
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits
        problem = "nested too deeply" if isinstance(error, RecursionError) else f"not valid TOML: {error}"
        raise InputError(problem, expected="a recipe", fix="write the recipe again") from error


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of each key and each table header, counted from 1."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    in_long_text = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not in_long_text:
            if header := _HEADER.match(line):
                table = _parts(header[1])
                lines.setdefault(table, number)
            elif key := _KEY.match(line):
                lines.setdefault(table + _parts(key[1]), number)
        if len(_LONG_QUOTE.findall(line)) % 2:
            in_long_text = not in_long_text
    return lines


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


class _Page:
    """A recipe's text, with the line of every key."""

    def __init__(self, text: str) -> None:
        self.content = _parse(text)
        self._lines = key_lines(text)

    def fail(self, path: KeyPath, problem: str, expected: str | None = None, fix: str | None = None) -> InputError:
        return InputError(problem, row=self.line(path), expected=expected, fix=fix)

    def line(self, path: KeyPath) -> str | None:
        """``line 7`` for a key; for a key inside an inline table, the line where that table begins."""
        known = (path[:length] for length in range(len(path), 0, -1) if path[:length] in self._lines)
        return next((f"line {self._lines[key]}" for key in known), None)

    def table(self, name: str) -> dict[str, Any]:
        table = self.content.get(name, {})
        if not isinstance(table, dict):
            raise self.fail((name,), f"{name} is a value", f"a table: [{name}] on a line of its own, its keys below")
        return table

    def refuse_unknown(self, table: KeyPath, keys: Iterable[str], known: Iterable[str]) -> None:
        known = list(known)
        for key in keys:
            if key not in known:
                where = f" in [{table[0]}]" if table else ""
                fix = UnknownNameError("key", key, known).fix
                raise self.fail((*table, key), f"unknown key {key!r}{where}", fix=fix)


def check(text: str, base: Path = Path()) -> dict[str, Any]:
    """The content of a recipe, its lists as tuples; anything that is not a recipe raises. Paths start from ``base``."""
    page = _Page(text)
    tables = ("dataset", "queries", "inputs", "model", "rerank", "options", "fingerprints")
    page.refuse_unknown((), page.content, ("version", "name", "plugins", *tables))
    _check_version(page)
    plugins = _plugins(page)
    load_recipe_plugins(plugins, base)  # first of all: the rest of the recipe may use what they register
    name = page.content.get("name")
    if name is not None and not isinstance(name, str):
        raise page.fail(("name",), f"name = {name!r}", _EXPECTED[str])
    content: dict[str, Any] = {
        "name": name,
        "plugins": plugins,
        "dataset": _dataset(page, base, "dataset"),
        "queries": _dataset(page, base, "queries"),
        "inputs": InputOptions(**_values(page, "inputs", InputOptions)),
        "model": ModelOptions(**_values(page, "model", ModelOptions)),
        "rerank": RerankOptions(**_values(page, "rerank", RerankOptions)),
        "options": _options(page),
        "fingerprints": _fingerprints(page),
    }
    conflict = first_conflict(
        content["inputs"], content["model"], content["rerank"], content["options"].directions,
        bool(content["dataset"]), lambda key: RECIPE_KEYS.get(key, key), queries=bool(content["queries"]),
    )  # fmt: skip
    if conflict is not None:
        raise page.fail(conflict.key, conflict.problem, fix=conflict.fix)
    return content


def _check_version(page: _Page) -> None:
    version = page.content.get("version", VERSION)
    if _typed(version, int) is None or version < 1:
        raise page.fail(("version",), f"version = {version!r}", f"the number {VERSION}")
    if version > VERSION:
        raise NewerRecipeError(
            f"the recipe has format version {version}, this crosslens reads up to version {VERSION}",
            row=page.line(("version",)),
            fix="pip install --upgrade crosslens",
        )


def _plugins(page: _Page) -> tuple[str, ...]:
    plugins: tuple[str, ...] | None = _typed(page.content.get("plugins", []), tuple[str, ...])
    if plugins is None:
        raise page.fail(("plugins",), f"plugins = {page.content['plugins']!r}", _EXPECTED[tuple[str, ...]])
    return plugins


def load_recipe_plugins(plugins: Iterable[str], base: Path) -> None:
    """Load the plugins that a recipe names: code that its author chose, and not who runs it.

    A plugin of the same content that is loaded already, because the command line named it, is not loaded again.
    """
    for plugin in plugins:
        file = base / Path(plugin).expanduser()
        if not is_plugin_loaded(file):
            require_trust(plugin, file.absolute())
            load_plugin(file)


def _values(page: _Page, table: str, kind: type) -> dict[str, Any]:
    """The values of a table, each of the type and in the range that its options class declares."""
    hints = get_type_hints(kind)
    content = page.table(table)
    page.refuse_unknown((table,), content, hints)
    values = {}
    for key, value in content.items():
        hint = next(known for known in _EXPECTED if hints[key] in (known, known | None))
        values[key] = _typed(value, hint)
        if values[key] is None:
            raise page.fail((table, key), f"{key} = {value!r}", _EXPECTED[hint])
        try:
            kind(**{key: values[key]})
        except CrosslensError as error:
            raise page.fail((table, key), error.problem, fix=error.fix) from error
    return values


def _options(page: _Page) -> EvaluateOptions:
    from crosslens.metrics import TIES, parse_metrics
    from crosslens.rank import BACKENDS, SCORES

    options = EvaluateOptions(**_values(page, "options", EvaluateOptions))
    if options.metrics:
        try:
            parse_metrics(options.metrics)
        except CrosslensError as error:
            raise page.fail(("options", "metrics"), error.problem, fix=error.fix) from error
    names = {
        "ties": TIES,
        "backend": tuple(BACKENDS),
        "score": tuple(SCORES.names()),
        "protocol": tuple(PROTOCOLS.names()),
    }
    for key, known in names.items():
        name = str(getattr(options, key) or known[0]).partition("[")[0].strip()  # smooth-chamfer[alpha=8] has options
        if name not in known:
            unknown = UnknownNameError(key, name, known)
            raise page.fail(("options", key), unknown.problem, fix=unknown.fix)
    return options


def _dataset(page: _Page, base: Path, table: str) -> dict[str, Any]:
    """A table that names a dataset and the options of its reader."""
    content = page.table(table)
    if not content:
        return {}
    source = content.get("source")
    if not isinstance(source, str):
        raise page.fail(
            (table, "source") if source is not None else (table,),
            "the dataset has no source" if source is None else f"source = {source!r}",
            'source = "coco" (a reader) or source = "folder/of/data" (a path)',
        )
    options = reader_options(source)
    if is_dataset_name(source, base):
        page.refuse_unknown((table,), content, ("source", EXTRA_IMAGES, *options))
    elif not is_dataset_path(source, base):
        unknown = UnknownNameError("dataset reader", source, [*READERS.names(), *KNOWN])
        raise page.fail((table, "source"), unknown.problem, fix=unknown.fix)
    if not isinstance(content.get(EXTRA_IMAGES, ""), str):
        raise page.fail((table, EXTRA_IMAGES), f"{EXTRA_IMAGES} = {content[EXTRA_IMAGES]!r}", _EXPECTED[str])
    for key, value in content.items():
        if key in options and not options[key].accepts(value):
            expected = " or ".join(_EXPECTED[kind] for kind in options[key].types)
            raise page.fail((table, key), f"{key} = {value!r}", expected)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}


def _fingerprints(page: _Page) -> dict[str, Any]:
    content = page.table("fingerprints")
    page.refuse_unknown(("fingerprints",), content, ("dataset", *get_type_hints(InputOptions), *SOURCE_KEYS))
    for key, value in content.items():
        if not isinstance(value, str) and _typed(value, tuple[str, ...]) is None:
            raise page.fail(("fingerprints", key), f"{key} = {value!r}", "the hash that crosslens wrote there")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}


def _typed(value: Any, kind: Any) -> Any:
    """The value as ``kind``, or None where it is something else. A single text is a list with one entry."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if is_finite_number(value) else None
    if kind == tuple[str, ...]:
        value = [value] if isinstance(value, str) else value
        good = isinstance(value, list) and all(isinstance(text, str) for text in value)
        return tuple(value) if good else None
    return value if isinstance(value, kind) and isinstance(value, bool) == (kind is bool) else None
