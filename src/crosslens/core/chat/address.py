"""An endpoint's address with options in it: ``http://127.0.0.1:8000/v1?model=NAME&timeout=60``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from crosslens.core.chat.endpoint import Endpoint
from crosslens.core.errors import UsageError, argument

Reading = tuple[Callable[[str], Any], str]
"""How the value of an option is read, and what is expected."""

ENDPOINT_OPTIONS: Mapping[str, Reading] = {
    "timeout": (float, "a number of seconds"),
    "retries": (int, "a whole number"),
    "first_wait": (float, "a number of seconds"),
    "max_bytes": (int, "a whole number"),
}


def read_address(
    source: str, what: str, further: Mapping[str, Reading], given: Mapping[str, Any], model: str = ""
) -> tuple[Endpoint, dict[str, Any]]:
    """The endpoint that an address names, and the values of ``further`` options.

    ``given`` are values that come from elsewhere and win; ``what`` is whose options they are, in messages.
    """
    readings = {**further, **ENDPOINT_OPTIONS}
    parts = urlsplit(source)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in (*query, *given):
        if name not in ("model", *readings):
            raise UsageError(f"the {what} has no option {name!r}", fix=f"known: {', '.join(('model', *readings))}")
    model = model or query.pop("model", "")
    if not model:
        raise UsageError(f"no model is named for {source}", fix="append ?model=NAME to the address")
    options = {name: _value(name, text, readings, what) for name, text in query.items() if name != "model"}
    options |= given
    own = {name: options.pop(name) for name in further if name in options}
    endpoint = Endpoint(urlunsplit(parts._replace(query="", fragment="")), model, **options)
    if endpoint.max_bytes < 1:
        raise UsageError(f"max_bytes = {endpoint.max_bytes}", fix="max_bytes must be at least 1", option="max_bytes")
    if not endpoint.timeout > 0 or not endpoint.first_wait >= 0 or endpoint.retries < 0:
        values = f"timeout={endpoint.timeout:g}, retries={endpoint.retries}, first_wait={endpoint.first_wait:g}"
        raise UsageError(values, fix="the timeout must be above 0, the others at least 0")
    return endpoint, own


def refuse_network(endpoint: Endpoint, instead: str) -> None:
    """Raise for an endpoint that is not on this machine."""
    if not endpoint.local:
        raise UsageError(
            f"{endpoint.host} is on the network, and {argument('offline', True)} forbids it",
            fix=f"use a server on this machine, or {instead}",
        )


def _value(name: str, text: str, readings: Mapping[str, Reading], what: str) -> Any:
    convert, expected = readings[name]
    try:
        return convert(text)
    except (ValueError, KeyError):
        raise UsageError(f"{name}={text} in the address of the {what}", fix=f"give {expected}") from None
