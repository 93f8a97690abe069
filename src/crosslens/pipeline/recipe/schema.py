"""The check of a hand-written recipe: every mistake is named with its line, every unknown key with its near names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_type_hints

from crosslens.core.errors import CrosslensError, FormatVersionError, InputError, UnknownNameError
from crosslens.data.reader_paths import is_dataset_path, reader_parameters
from crosslens.pipeline.recipe import toml
from crosslens.pipeline.recipe.faults import KEYS, first_fault
from crosslens.pipeline.recipe.values import Inputs, Model, Options, Rerank, out_of_range

VERSION = 1
TABLES = ("dataset", "inputs", "model", "rerank", "options", "fingerprints")

MADE_FROM = ("model", "items", "rerank_model", "pictures", "similarities")
"""Fingerprints beside those of the inputs: the revisions of models and similarities, and what models were given."""

_EXPECTED = {
    str: 'a text in quotes, for example "value"',
    int: "a whole number, for example 10",
    float: "a number, for example 0.95",
    bool: "true or false",
    tuple[str, ...]: 'a list of texts, for example ["one", "two"]',
}


class NewerRecipeError(InputError, FormatVersionError):
    """A recipe written by a newer crosslens than this one, with the line that says so."""


class _Page:
    """A recipe's text, able to say on which line a key stands."""

    def __init__(self, text: str) -> None:
        self.content = toml.parse(text)
        self._lines = toml.key_lines(text)

    def fail(self, path: toml.KeyPath, problem: str, expected: str | None = None, fix: str | None = None) -> InputError:
        return InputError(problem, row=self.line(path), expected=expected, fix=fix)

    def line(self, path: toml.KeyPath) -> str | None:
        return toml.line_of(self._lines, path)

    def table(self, name: str) -> dict[str, Any]:
        found = self.content.get(name, {})
        if not isinstance(found, dict):
            raise self.fail((name,), f"{name} is a value", f"a table: [{name}] on a line of its own, its keys below")
        return found

    def refuse_unknown(self, where: toml.KeyPath, keys: Iterable[str], known: Iterable[str]) -> None:
        known = list(known)
        for key in keys:
            if key not in known:
                near = UnknownNameError("key", key, known)
                place = f" in [{where[0]}]" if where else ""
                raise self.fail((*where, key), f"unknown key {key!r}{place}", fix=near.fix)


def check(text: str, base: Path = Path()) -> dict[str, Any]:
    """The content of a recipe, its lists as tuples; anything that is not a recipe raises. Paths start from ``base``."""
    page = _Page(text)
    page.refuse_unknown((), page.content, ("version", "name", *TABLES))
    _check_version(page)
    name = page.content.get("name")
    if name is not None and not isinstance(name, str):
        raise page.fail(("name",), f"name = {name!r}", _EXPECTED[str])
    content: dict[str, Any] = {
        "name": name,
        "dataset": _dataset(page, base),
        "inputs": _fields(page, "inputs", Inputs),
        "model": _fields(page, "model", Model),
        "rerank": _checked(page, "rerank", Rerank),
        "options": _options(page),
        "fingerprints": _fingerprints(page),
    }
    fault = first_fault(
        Inputs(**content["inputs"]),
        Model(**content["model"]),
        Rerank(**content["rerank"]),
        content["options"].get("directions", ()),
        dataset=bool(content["dataset"]),
    )
    if fault is not None:
        raise page.fail(fault.place, fault.problem, fix=fault.fix.format(**KEYS))
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


def _fields(page: _Page, table: str, kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    content = page.table(table)
    page.refuse_unknown((table,), content, hints)
    checked = {}
    for key, value in content.items():
        hint = next(one for one in _EXPECTED if one == hints[key] or hints[key] == (one | None))
        typed = _typed(value, hint)
        if typed is None:
            raise page.fail((table, key), f"{key} = {value!r}", _EXPECTED[hint])
        checked[key] = typed
    return checked


def _checked(page: _Page, table: str, kind: type) -> dict[str, Any]:
    checked = _fields(page, table, kind)
    for key, value in checked.items():
        expected = out_of_range(key, value)
        if expected:
            raise page.fail((table, key), f"{key} = {page.content[table][key]!r}", expected)
    return checked


def _options(page: _Page) -> dict[str, Any]:
    checked = _checked(page, "options", Options)
    if "metrics" in checked:
        from crosslens.metrics import parse_metrics

        try:
            parse_metrics(checked["metrics"])
        except CrosslensError as error:
            raise page.fail(("options", "metrics"), error.problem, fix=error.fix) from error
    for key, known in _names().items():
        name = str(checked.get(key) or known[0]).partition("[")[0].strip()  # smooth-chamfer[alpha=8] carries options
        if name not in known:
            near = UnknownNameError(key, name, known)
            raise page.fail(("options", key), near.problem, fix=near.fix)
    return checked


def _names() -> dict[str, tuple[str, ...]]:
    """The options whose values are names."""
    from crosslens.metrics import TIES
    from crosslens.rank import BACKENDS, SCORES

    return {"ties": TIES, "backend": tuple(BACKENDS), "score": tuple(SCORES)}


def _dataset(page: _Page, base: Path) -> dict[str, Any]:
    content = page.table("dataset")
    if not content:
        return {}
    source = content.get("source")
    if not isinstance(source, str):
        raise page.fail(
            ("dataset", "source") if source is not None else ("dataset",),
            "the dataset has no source" if source is None else f"source = {source!r}",
            'source = "coco" (a reader) or source = "folder/of/data" (a path)',
        )
    parameters = reader_parameters(source)
    if parameters:
        page.refuse_unknown(("dataset",), content, ("source", *parameters))
    elif is_dataset_path(source, base):
        parameters = reader_parameters("plain")
    else:
        from crosslens.data import READERS

        near = UnknownNameError("dataset reader", source, [entry.name for entry in READERS])
        raise page.fail(("dataset", "source"), near.problem, fix=near.fix)
    for key, value in content.items():
        expected = _misfit(value, parameters[key].annotation) if key in parameters else None
        if expected:
            raise page.fail(("dataset", key), f"{key} = {value!r}", expected)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}


def _misfit(value: Any, annotation: Any) -> str | None:
    """What a reader's option should be, where the value is of a kind that its type leaves no place for."""
    words = set(re.findall(r"\w+", str(annotation)))
    fitting = [
        (kinds, expected)
        for names, kinds, expected in (
            ({"str", "Path"}, (str,), _EXPECTED[str]),
            ({"bool"}, (bool,), _EXPECTED[bool]),
            ({"int"}, (int,), _EXPECTED[int]),
            ({"float"}, (int, float), _EXPECTED[float]),
        )
        if names & words
    ]
    if words - {"str", "Path", "bool", "int", "float", "None"} or not fitting:
        return None  # a type of a reader's own: only the reader can tell
    fits = any(isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)) for kinds, _ in fitting)
    return None if fits else " or ".join(expected for _, expected in fitting)


def _fingerprints(page: _Page) -> dict[str, Any]:
    content = page.table("fingerprints")
    page.refuse_unknown(("fingerprints",), content, ("dataset", *get_type_hints(Inputs), *MADE_FROM))
    for key, value in content.items():
        if not isinstance(value, str) and _typed(value, tuple[str, ...]) is None:
            raise page.fail(("fingerprints", key), f"{key} = {value!r}", "the hash that crosslens wrote there")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}


def _typed(value: Any, kind: Any) -> Any:
    """The value as ``kind``, or None where it is something else. A single text serves as a list of one."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind == tuple[str, ...]:
        value = [value] if isinstance(value, str) else value
        good = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return tuple(value) if good else None
    return value if isinstance(value, kind) and isinstance(value, bool) == (kind is bool) else None
