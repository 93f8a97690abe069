"""An endpoint's address with options in it: ``http://127.0.0.1:8000/v1?model=NAME&timeout=60``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from crosslens.core.chat.endpoint import Endpoint
from crosslens.core.errors import UsageError, argument


class Reading(NamedTuple):
    """How the value of an option is read, what is expected, and the range that it must be in."""

    convert: Callable[[str], Any]
    expected: str
    low: float = 0
    high: float = math.inf


ENDPOINT_OPTIONS: Mapping[str, Reading] = {
    "timeout": Reading(float, "a number of seconds", 0.001, 86_400),
    "retries": Reading(int, "a whole number", 0, 100),
    "first_wait": Reading(float, "a number of seconds", 0, 3_600),
    "max_bytes": Reading(int, "a whole number", 1, 1 << 40),
}
WORKERS = Reading(int, "a whole number", 1, 256)


def read_address(
    source: str, what: str, further: Mapping[str, Reading], given: Mapping[str, Any], model: str = ""
) -> tuple[Endpoint, dict[str, Any]]:
    """The endpoint that an address names, and the values of ``further`` options.

    ``given`` are values that come from elsewhere and win; ``what`` is whose options they are, in messages.
    """
    readings = {**further, **ENDPOINT_OPTIONS}
    try:
        parts = urlsplit(source)
    except ValueError as error:  # half a pair of brackets
        raise UsageError(
            f"{source!r:.200} is not an address: {error}", fix="for example http://127.0.0.1:8000/v1"
        ) from error
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in (*query, *given):
        if name not in ("model", *readings):
            raise UsageError(f"the {what} has no option {name!r}", fix=f"known: {', '.join(('model', *readings))}")
    model = model or query.pop("model", "")
    if not model:
        raise UsageError(f"no model is named for {source}", fix="append ?model=NAME to the address")
    options = {name: _value(name, text, readings, what) for name, text in query.items() if name != "model"}
    options |= given
    for name, value in options.items():
        convert, expected, low, high = readings[name]
        is_number = type(value) in (int, float)
        if (is_number and not low <= value <= high) or (convert in (int, float) and not is_number):
            upper = f" and at most {high:,g}" if high < math.inf else ""
            raise UsageError(
                f"{name} = {value!r:.60}",
                fix=f"give {expected}: {name} must be at least {low:g}{upper}", option=name,
            )  # fmt: skip
    own = {name: options.pop(name) for name in further if name in options}
    return Endpoint(urlunsplit(parts._replace(query="", fragment="")), model, **options), own


def refuse_network(endpoint: Endpoint, instead: str) -> None:
    """Raise for an endpoint that is not on this machine."""
    if not endpoint.local:
        raise UsageError(
            f"{endpoint.host} is on the network, and {argument('offline', True)} forbids it",
            fix=f"use a server on this machine, or {instead}",
        )


def _value(name: str, text: str, readings: Mapping[str, Reading], what: str) -> Any:
    try:
        return readings[name].convert(text)
    except (ValueError, KeyError):
        fix = f"give {readings[name].expected}"
        raise UsageError(f"{name}={text:.60} in the address of the {what}", fix=fix) from None
