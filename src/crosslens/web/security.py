"""What protects every page: host names, headers, bodies of limited size, tokens against forged requests.

Forged requests (CSRF): a random token is in a cookie that other sites' pages can neither read nor set, and every
request that changes something repeats it, as the form field ``csrf_token`` or the header ``X-CSRF-Token``.
``create_app`` and ``feature_router`` make :func:`check_csrf` a dependency of every route, so that none can forget it.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosslens.storage import fetching_nothing
from crosslens.web.access import LoginLimit, refuse
from crosslens.web.library import RunLibrary
from crosslens.web.pictures import PictureStore
from crosslens.web.settings import WebSettings, is_loopback

BODY_BYTES = 1 << 20
"""The largest body of a request, where a feature does not declare another."""
RouteCheck = Callable[[Request, Mapping[str, str]], Response | None]


@dataclass
class Services:
    """The library of runs, the pictures, and what features add while their routers are made.

    ``require_login`` answers a request of somebody who is not logged in (a redirect to a login page) and returns None
    for everybody else; it is asked for every request where the server can be reached from other computers, except for
    ``open_paths``, those that end in ``/`` with all below them. ``route_checks`` hold for their paths on every server:
    they are given the parts of the path, and answer whom it is not for. Both are asked before anything else of a
    request is read. ``may_see_picture`` says whether a request is answered with a picture (dataset, image); it is asked
    for every picture. ``body_limits`` maps the beginning of a path to the largest body it takes, in bytes.
    ``navigation`` holds address and title of each page that the head of all pages links to. ``start_notes`` are printed
    when the server starts, with ``{address}`` replaced by its own; ``start_work`` is done in the background then, one
    after the other: what the first visitor would have to wait for. ``stop_work`` is done when the server stops.
    """

    settings: WebSettings
    library: RunLibrary
    pictures: PictureStore
    login_limit: LoginLimit = field(default_factory=LoginLimit)
    require_login: Callable[[Request], Awaitable[Response | None]] | None = None
    may_see_picture: Callable[[Request, str, str], bool] = lambda request, dataset, image: True
    route_checks: list[tuple[re.Pattern[str], RouteCheck]] = field(default_factory=list)
    open_paths: list[str] = field(default_factory=lambda: ["/static/", "/charts.css"])
    body_limits: dict[str, int] = field(default_factory=dict)
    navigation: list[tuple[str, str]] = field(default_factory=list)
    start_notes: list[str] = field(default_factory=list)
    start_work: list[Callable[[], None]] = field(default_factory=list)
    stop_work: list[Callable[[], None]] = field(default_factory=list)

    def is_open(self, path: str) -> bool:
        return any(path.startswith(start) if start.endswith("/") else path == start for start in self.open_paths)

    def body_limit(self, path: str) -> int:
        longest = max((start for start in self.body_limits if path.startswith(start)), key=len, default=None)
        return BODY_BYTES if longest is None else self.body_limits[longest]


CSRF_COOKIE, CSRF_FIELD, CSRF_HEADER = "crosslens_csrf", "csrf_token", "X-CSRF-Token"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "font-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, and neither script nor style inside a page. ``blob:`` shows a picture before its upload."""
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
"""Of every response, unless the route sets its own."""
_LOG = logging.getLogger("crosslens.web")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_NEW_TOKEN = "new_csrf_token"
_HOST = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*))(?::(?P<port>[0-9]{1,5}))?"
)
_OWN_COOKIE = re.compile(rb"\s*crosslens_[^\\]*")
"""Only these are parsed: a foreign one takes Python time that grows with the square of its length."""
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_STEERING = re.compile(r"[\x00-\x20\x7f-\x9f\\]")
"""Control characters, blanks and backslashes, which browsers drop from addresses or read as slashes."""


_MOST_DISCARDED = 32 << 20
_MOST_FIELDS = 1_000
"""Of a form. Only newer versions of Starlette refuse more, and some of FastAPI look through all of them for each."""
_LONGEST_ADDRESS = 2_000


class _BodyTooLarge(Exception):
    """More bytes came than the path takes."""


class _LimitedBody:
    """``receive``, which raises once more than ``limit`` bytes of the body came."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._left = receive, limit
        self.is_whole = self.is_too_large = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        self.is_whole, self.is_too_large = not message.get("more_body", False), self._left < 0
        if self.is_too_large:
            raise _BodyTooLarge
        return message


class Guard:
    """The middleware around the application: who and what may reach it, decided by the path that it routes by."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app, self._services = app, services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})
        scope["headers"] = [
            (name, b";".join(filter(_OWN_COOKIE.fullmatch, value.split(b";"))) if name == b"cookie" else value)
            for name, value in scope["headers"]
        ]
        request = Request(scope, receive)
        limit = self._services.body_limit(scope["path"])
        body = _LimitedBody(receive, limit)
        is_measured = "content-length" in request.headers or request.method in _SAFE_METHODS
        started = False

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                token = scope["state"].get(_NEW_TOKEN)
                if token is not None:
                    secure = "; Secure" if scope.get("scheme") == "https" else ""
                    headers.append("Set-Cookie", f"{CSRF_COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{secure}")
            await send(message)

        async def noting_start(message: Message) -> None:
            nonlocal started
            if not started and body.is_too_large:
                raise _BodyTooLarge  # whatever the application makes of half a body
            if not started and not is_measured and message.get("status", 0) >= 400:
                while not body.is_whole:  # one that is too large is refused as such, whatever else is wrong
                    await body()
            started = True
            await guarded_send(message)

        try:
            refusal = await self._refusal(request, limit)
            if refusal is not None:
                # A proxy sends every body with its length, and does not see the answer while it is sending.
                budget, more = _MOST_DISCARDED, "content-length" in request.headers
                while more and budget > 0:
                    message = await receive()
                    budget -= len(message.get("body", b""))
                    more = message.get("more_body", False)
                await refusal(scope, receive, guarded_send)
            else:
                with fetching_nothing():
                    await self._app(scope, body, noting_start)
        except _BodyTooLarge:
            if not started:
                await _too_large(request, limit)(scope, receive, guarded_send)
        except ClientDisconnect:
            pass
        except Exception as error:  # here, so that the answer to a bug has the headers, too
            _LOG.error("%s %s", scope["method"], scope["path"], exc_info=error)
            if not started:
                text = "A bug in crosslens: the terminal of the server shows the details."
                await refuse(request, 500, text)(scope, receive, guarded_send)

    async def _refusal(self, request: Request, limit: int) -> Response | None:
        settings, path = self._services.settings, request.scope["path"]
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or host_name(hosts[0]) is None:
            return refuse(request, 400, "Host is not a name or an address with an optional port.")
        if not is_allowed_host(hosts[0], settings):
            text = "This server does not answer under that name.\nStart it with --allowed-host to allow the name."
            return refuse(request, 421, text)
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()):
            return refuse(request, 400, "Content-Length is not a number.")
        if len(length) > 15 or int(length) > limit:
            return _too_large(request, limit)
        if request.method not in _SAFE_METHODS:  # browsers say which site's page sent it
            origin, host = request.headers.get("origin"), hosts[0].lower()
            is_same = origin is None or origin.lower() in (f"http://{host}", f"https://{host}")
            if not is_same or request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                return refuse(request, 403, "Refused: the request comes from a page of another site.")
        if self._services.is_open(path):
            return None
        login = self._services.require_login
        if login is not None and (not settings.is_local or settings.password is not None):
            refusal = await login(request)
            if refusal is not None:
                return refusal
        for pattern, check in self._services.route_checks:
            if (match := pattern.match(path)) is not None:
                return await run_in_threadpool(check, request, match.groupdict())
        return None


def _too_large(request: Request, limit: int) -> Response:
    return refuse(request, 413, f"The request is larger than {limit:,} bytes.")


@lru_cache(maxsize=64)
def host_name(header: str) -> str | None:
    """The name or address of a ``Host`` header; None unless the header is exactly that, with or without a port."""
    match = _HOST.fullmatch(header)
    if match is None or len(header) > 255 or int(match["port"] or 0) > 65535:
        return None
    try:
        if match["ipv6"] is not None:
            return str(ipaddress.IPv6Address(match["ipv6"]))
        if _NUMBER.fullmatch(match["name"].rpartition(".")[2]):  # browsers read such a name as an IPv4 address
            return str(ipaddress.IPv4Address(match["name"]))
    except ValueError:
        return None
    return match["name"].lower()


def is_allowed_host(header: str, settings: WebSettings) -> bool:
    """Whether a ``Host`` header names this server. A name that an attacker's DNS points here is refused.

    Addresses in digits are not names; where the server listens on a local one, they must be local, too.
    """
    name = host_name(header)
    if name is None:
        return False
    if name in {host.lower() for host in settings.allowed_hosts} or is_loopback(name):
        return True
    if is_loopback(settings.host):
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in {settings.host.lower(), socket.gethostname().lower()}
    return True


def own_address(request: Request) -> str:
    """The address of the server as the browser knows it, without a path: the guard has checked the host."""
    return f"{request.scope['scheme']}://{request.headers['host']}"


def local_path(address: str) -> str | None:
    """The address if it is a path of this server however a browser or a proxy reads it, else None."""
    if len(address) > _LONGEST_ADDRESS:  # each layer of % is a pass over the whole
        return None
    path, _, _ = address.partition("?")
    while (plain := unquote(path)) != path:
        path = plain
    is_path = path.startswith("/") and "//" not in path and not _STEERING.search(path)
    return address if is_path and address.isascii() and not _STEERING.search(address) else None


def csrf_token(request: Request) -> str:
    """The token of this browser; one is made, and its cookie set, where it has none."""
    state: dict[str, Any] = request.scope["state"]
    token: str = state.get(_NEW_TOKEN) or request.cookies.get(CSRF_COOKIE, "")
    if not _TOKEN.fullmatch(token):
        token = state[_NEW_TOKEN] = secrets.token_urlsafe(32)
    return token


async def check_csrf(request: Request) -> None:
    """Refuse (403) a request that changes something and does not repeat the token of its cookie.

    A form of too many fields is refused (400) whatever its token, before its fields are looked for one by one. Texts
    with NUL, which no PostgreSQL database keeps, are refused (422) in every form.
    """
    if request.method in _SAFE_METHODS:
        return
    expected = request.cookies.get(CSRF_COOKIE, "")
    token = request.headers.get(CSRF_HEADER)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_form = kind in ("application/x-www-form-urlencoded", "multipart/form-data")
    form = await request.form() if is_form else FormData()
    if len(form.multi_items()) > _MOST_FIELDS:
        raise HTTPException(400, f"The form has more than {_MOST_FIELDS:,} fields.")
    if token is None:
        field = form.get(CSRF_FIELD)
        token = field if isinstance(field, str) else None
    if not _TOKEN.fullmatch(expected) or not secrets.compare_digest((token or "").encode(), expected.encode()):
        raise HTTPException(403, "The form is out of date: reload the page and send it again.")
    if any("\0" in text for _, text in form.multi_items() if isinstance(text, str)):
        raise HTTPException(422, "A text has a NUL character in it.")
