"""Logging in without being guessed: one limit on wrong passwords for every login, and the login without accounts.

An attempt is counted before its password is looked at, so that many at once are no more than the limit. Three counts
decide, each over the last quarter of an hour:

- Wrong passwords of an address: after ten it waits a minute, then twice as long after each further one. IPv6 counts by
  the network of a customer (/64).
- Wrong passwords for an account, from everywhere: after ten, each further attempt is delayed, up to eight seconds. It
  is never refused for what others did, and not delayed from where the account has logged in before.
- Wrong passwords of an address for such an account: after three it waits.

This computer itself is not delayed by what others did, and waits five seconds after ten wrong passwords. A request that
a proxy passed on does not come from this computer.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import math
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Lock

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from crosslens.core import CrosslensError

TRIES, ACCOUNT_TRIES, TRIES_UNDER_ATTACK = 10, 10, 3
REMEMBERED = 900.0
FIRST_WAIT, LONGEST_WAIT, OWN_WAIT = 60.0, 900.0, 5.0
FIRST_DELAY, LONGEST_DELAY = 0.5, 8.0
_MOST_KEPT, _MOST_MOMENTS, _TURN = 10_000, 32, 0.02
_FORWARDING = (
    "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "x-client-ip", "via",
    "true-client-ip", "cf-connecting-ip",
)  # fmt: skip
_WITH_PORT = re.compile(r"[0-9.]+:[0-9]+|\[[^]]*\]:[0-9]+")
THIS_COMPUTER = "this computer"


class TooManyAttempts(CrosslensError):
    """Somebody has to wait before the next password is looked at."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__("too many wrong passwords", fix=f"wait {self.seconds} seconds", code="too-many")


@dataclass
class _Count:
    """Attempts that were wrong, and those that are being looked at."""

    wrong: list[float] = field(default_factory=list)
    pending: int = 0


@dataclass
class Attempt:
    """A password that is being looked at; unless ``is_right`` is set, it counts as wrong."""

    is_right: bool = False


class LoginLimit:
    """Says who has to wait. Bounded: what was counted longest ago is forgotten first."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._counts: OrderedDict[tuple[str, str], _Count] = OrderedDict()
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = Lock()

    @asynccontextmanager
    async def attempt(self, request: Request, account: str) -> AsyncIterator[Attempt]:
        """Look at a password inside the block; raises :class:`TooManyAttempts` before it, or delays it."""
        address = address_of(request)
        keys = ((address, ""), ("", account), (address, account))
        while (delay := self._begin(address, account, keys)) is None:
            await self._sleep(_TURN)
        attempt = Attempt()
        try:
            if delay:
                await self._sleep(delay)
            yield attempt
        finally:
            with self._lock:
                for key in keys:
                    count = self._counts.setdefault(key, _Count())
                    count.pending = max(0, count.pending - 1)
                    if not attempt.is_right:
                        count.wrong = [*count.wrong, self._clock()][-_MOST_MOMENTS:]
                    elif not count.wrong and not count.pending:
                        del self._counts[key]
                if attempt.is_right:
                    self._known[address, account] = None
                    self._known.move_to_end((address, account))
                    if len(self._known) > _MOST_KEPT:
                        self._known.popitem(last=False)

    def _begin(self, address: str, account: str, keys: tuple[tuple[str, str], ...]) -> float | None:
        """Reserve the attempt and return its delay; None where those before it have to be known first."""
        with self._lock:
            now = self._clock()
            by_address, by_account, by_both = counts = [self._counts.get(key, _Count()) for key in keys]
            for count in counts:
                count.wrong = [moment for moment in count.wrong if now - moment < REMEMBERED]
            failed, is_own = len(by_address.wrong), address == THIS_COMPUTER
            if failed >= TRIES:
                wait = OWN_WAIT if is_own else min(FIRST_WAIT * 2.0 ** (failed - TRIES), LONGEST_WAIT)
                if (seconds := by_address.wrong[-1] + wait - now) > 0:
                    raise TooManyAttempts(seconds)
            if by_address.pending >= max(TRIES - failed, 1):
                return None
            delay = 0.0
            over = len(by_account.wrong) + by_account.pending - ACCOUNT_TRIES
            if over >= 0 and not is_own and (address, account) not in self._known:
                if len(by_both.wrong) + by_both.pending >= TRIES_UNDER_ATTACK:
                    raise TooManyAttempts(by_both.wrong[0] + REMEMBERED - now if by_both.wrong else LONGEST_DELAY)
                delay = min(FIRST_DELAY * 2.0**over, LONGEST_DELAY)
            for key in keys:
                self._counts.setdefault(key, _Count()).pending += 1
                self._counts.move_to_end(key)
            while len(self._counts) > _MOST_KEPT:
                self._counts.popitem(last=False)
            return delay


def address_of(request: Request) -> str:
    """Whom an attempt is counted for: an address, the network of an IPv6 address, or this computer itself."""
    host = request.client.host if request.client is not None else ""
    if _WITH_PORT.fullmatch(host):  # as some proxies write it
        host = host.rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return "no address"
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        # Who is behind a proxy that --forwarded-allow-ips does not name is not known: all of them are one address.
        is_passed_on = any(name in request.headers for name in _FORWARDING)
        return "a proxy on this computer" if is_passed_on else THIS_COMPUTER
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)


def password_login(password: str, limit: LoginLimit) -> Callable[[Request], Awaitable[Response | None]]:
    """A login that asks for this password under any name, by HTTP Basic: the browser itself asks."""
    expected = password.encode()

    async def require(request: Request) -> Response | None:
        kind, _, encoded = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            try:
                password_given = base64.b64decode(encoded, validate=True).partition(b":")[2]
            except ValueError:
                password_given = b""
            try:
                async with limit.attempt(request, "the password of the server") as attempt:
                    attempt.is_right = secrets.compare_digest(password_given, expected)
            except TooManyAttempts as error:
                text = f"Too many wrong passwords: wait {error.seconds} seconds."
                return refuse(request, 429, text, {"Retry-After": str(error.seconds)})
            if attempt.is_right:
                return None
        headers = {"WWW-Authenticate": 'Basic realm="crosslens", charset="UTF-8"'}
        return refuse(request, 401, "This server asks for a password.", headers)

    return require


def refuse(request: Request, status: int, problem: str, headers: dict[str, str] | None = None) -> Response:
    """What is answered before the application is asked: JSON below ``/api`` and for pictures, else a line of text."""
    if request.scope["path"].startswith(("/api/", "/pictures/")):
        return JSONResponse({"problem": problem, "fix": None}, status, headers)
    return PlainTextResponse(problem, status, headers)
