"""Requests to an application exactly as they are written: no client that corrects hosts, paths or bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode

CSRF = "x" * 43
"""A token that a browser holds and repeats."""
ELSEWHERE = "203.0.113.9"


@dataclass(frozen=True)
class Answered:
    """What an application answered."""

    status: int
    headers: dict[str, str]
    body: bytes


async def ask(
    app: Any,
    target: str,
    method: str = "GET",
    *,
    host: str | None = "127.0.0.1",
    headers: Sequence[tuple[str, str]] = (),
    address: str = ELSEWHERE,
    body: Iterable[bytes] = (),
) -> Answered:
    """One request; the parts of a ``body`` come one after the other, without a length."""
    path, _, query = target.partition("?")
    given = [*([] if host is None else [("host", host)]), *headers]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given],
        "client": (address, 5000), "server": ("127.0.0.1", 8000),
    }  # fmt: skip
    parts = iter(body)
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        part = next(parts, None)
        return {"type": "http.request", "body": part or b"", "more_body": part is not None}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return Answered(
        sent[0]["status"],
        {name.decode().lower(): value.decode("latin-1") for name, value in sent[0]["headers"]},
        b"".join(message.get("body", b"") for message in sent[1:]),
    )


def form(fields: dict[str, str]) -> dict[str, Any]:
    """A form with the token of its page, for :func:`ask`."""
    headers = [("cookie", f"crosslens_csrf={CSRF}"), ("content-type", "application/x-www-form-urlencoded")]
    return {"headers": headers, "body": [urlencode({**fields, "csrf_token": CSRF}).encode()]}


async def together(*requests: Any) -> list[Answered]:
    """All of them at once."""
    return list(await asyncio.gather(*requests))
