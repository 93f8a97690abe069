"""Settings of a recipe's table, checked against what the registered function takes, before it is called."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from crosslens.core import Entry, InputError, UsageError

_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "str": ((str,), "a text"),
    "bool": ((bool,), "true or false"),
}


def call_registered(entry: Entry[Any], settings: Mapping[str, Any], *leading: Any, table: str, source: str) -> Any:
    """Call a registered function with the settings of a recipe's table; a mistake names the recipe and the rule."""
    options = inspect.signature(entry.value).parameters.values()
    known = {option.name: str(option.annotation) for option in options if option.kind is option.KEYWORD_ONLY}
    for name, value in settings.items():
        if name not in known:
            raise InputError(
                f"{table} {entry.name} has no setting {name!r}", file=source,
                fix=f"choose from {', '.join(sorted(known))}" if known else "remove it: there are none",
            )  # fmt: skip
        check_type(f"{name} of {table} {entry.name}", value, known[name], source)
    try:
        return entry.value(*leading, **settings)
    except UsageError as error:
        raise InputError(f"{table} {entry.name}: {error.args[0]}", file=source, fix=error.fix) from error


def check_type(name: str, value: Any, annotation: str, source: str) -> None:
    """Raise unless a value read from TOML is of the annotated type; other annotations accept everything."""
    types, noun = _TYPES.get(annotation, ((object,), ""))
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types and object not in types):
        raise InputError(f"{name} is {value!r:.60}", file=source, fix=f"write {noun}")
