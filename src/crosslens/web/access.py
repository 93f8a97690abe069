"""One password for everybody, asked for by the browser itself (HTTP Basic): the login where there are no accounts."""

from __future__ import annotations

import base64
import binascii
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_TRIES, _SECONDS = 10, 60.0
"""So many wrong passwords of one address within so many seconds; then it has to wait."""
_ADDRESSES = 10_000


class AttemptLimit:
    """Counts failures by address and says who has to wait. Bounded: the oldest addresses are forgotten."""

    def __init__(self, tries: int = _TRIES, seconds: float = _SECONDS) -> None:
        self._tries, self._seconds = tries, seconds
        self._failures: OrderedDict[str, list[float]] = OrderedDict()
        self._lock = Lock()

    def must_wait(self, address: str) -> bool:
        """Whether the address has failed too often just now."""
        with self._lock:
            recent = [moment for moment in self._failures.get(address, ()) if time.monotonic() - moment < self._seconds]
            return len(recent) >= self._tries

    def add_failure(self, address: str) -> None:
        """Remember a failure."""
        with self._lock:
            recent = self._failures.pop(address, [])
            self._failures[address] = [*recent[1 - self._tries :], time.monotonic()]
            while len(self._failures) > _ADDRESSES:
                self._failures.popitem(last=False)


def password_login(password: str) -> Callable[[Request], Response | None]:
    """A login that asks for this password under any name, and slows down who guesses."""
    expected, limit = password.encode(), AttemptLimit()

    def require(request: Request) -> Response | None:
        address = request.client.host if request.client is not None else ""
        if limit.must_wait(address):
            return PlainTextResponse("Too many wrong passwords: wait a minute.", 429, {"Retry-After": "60"})
        given = _given_password(request.headers.get("authorization", ""))
        if given is not None and secrets.compare_digest(given, expected):
            return None
        if given is not None:
            limit.add_failure(address)
        headers = {"WWW-Authenticate": 'Basic realm="crosslens", charset="UTF-8"'}
        return PlainTextResponse("This server asks for a password.", 401, headers)

    return require


def _given_password(header: str) -> bytes | None:
    kind, _, encoded = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        return base64.b64decode(encoded, validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return b""
