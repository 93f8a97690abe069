"""Addresses of pages with their parameters: empty and usual ones are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

_USUAL: Mapping[str, Any] = {"sort": "order", "offset": 0, "descending": False}


def address(path: str, state: Mapping[str, Any] | None = None, **changes: Any) -> str:
    """A path with these parameters; ``changes`` replace some of them."""
    values = {**(state or {}), **changes}
    kept = [(name, value) for name, value in values.items() if value not in ("", None) and _USUAL.get(name) != value]
    words = urlencode([(name, str(value).lower() if isinstance(value, bool) else value) for name, value in kept])
    return f"{path}?{words}" if words else path


def query_address(run: str, query: str, state: Mapping[str, Any], **changes: Any) -> str:
    """The page of a query, which remembers the list that it was chosen from."""
    return address(f"/runs/{quote(run, safe='')}/query", {"id": query, **state}, **changes)
