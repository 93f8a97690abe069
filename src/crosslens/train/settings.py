"""Settings of a recipe's table, checked against what the registered function takes, before it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from crosslens.core import Entry, InputError, UsageError

_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "str": ((str,), "a text"),
    "bool": ((bool,), "true or false"),
}


def call_registered(entry: Entry[Any], settings: Mapping[str, Any], *leading: Any, table: str, source: str) -> Any:
    """Call a registered function with the settings of a recipe's table; a mistake names the recipe and the rule.

    Keywords without a default are not a recipe's to set: a caller that has them passes them among the settings.
    """
    required = {name for name, option in _keywords(entry.value).items() if option.default is option.empty}
    own = {name: settings[name] for name in settings if name not in required}
    check_settings(entry, own, table=table, source=source)
    with naming_recipe(entry, table, source):
        return entry.value(*leading, **settings)


@contextmanager
def naming_recipe(entry: Entry[Any], table: str, source: str) -> Iterator[None]:
    """What is wrong with settings names the recipe that has them."""
    try:
        yield
    except UsageError as error:
        raise InputError(f"{table} {entry.name}: {error.args[0]}", file=source, fix=error.fix) from error


def settings_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The keywords of a function that a recipe may set: those with a default."""
    return [option for option in _keywords(function).values() if option.default is not option.empty]


def _keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Its own, and of a class that passes ``**`` others on, those of the class that it extends."""
    parameters = inspect.signature(function).parameters
    own = {name: option for name, option in parameters.items() if option.kind is option.KEYWORD_ONLY}
    if isinstance(function, type) and any(option.kind is option.VAR_KEYWORD for option in parameters.values()):
        return own | _keywords(function.__mro__[1])
    return own


def declared_settings(entry: Entry[Any]) -> dict[str, str]:
    """Name → annotation of the settings of a registered function."""
    return {option.name: str(option.annotation) for option in settings_of(entry.value)}


def check_settings(entry: Entry[Any], settings: Mapping[str, Any], *, table: str, source: str) -> None:
    """Raise unless all settings of a recipe's table exist and have the right type."""
    known = declared_settings(entry)
    for name, value in settings.items():
        if name not in known:
            raise InputError(
                f"{table} {entry.name} has no setting {name!r}", file=source,
                fix=f"choose from {', '.join(sorted(known))}" if known else "remove it: there are none",
            )  # fmt: skip
        check_type(f"{name} of {table} {entry.name}", value, known[name], source)


def check_type(name: str, value: Any, annotation: str, source: str) -> None:
    """Raise unless a value read from TOML is of the annotated type; other annotations accept everything."""
    types, noun = _TYPES.get(annotation, ((object,), ""))
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types and object not in types):
        raise InputError(f"{name} is {value!r:.60}", file=source, fix=f"write {noun}")
