"""What protects every page: host names, headers, bodies of limited size, tokens against forged requests.

Forged requests (CSRF): a random token is in a cookie that other sites' pages can neither read nor set, and every
request that changes something repeats it, as the form field ``csrf_token`` or the header ``X-CSRF-Token``.
``create_app`` makes :func:`check_csrf` a dependency of every route, so that none can forget it.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import secrets
import socket
from typing import Any
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosslens.web.services import Services
from crosslens.web.settings import WebSettings, is_loopback

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


class _BodyTooLarge(Exception):
    """More bytes came than the path takes."""


class Guard:
    """The middleware around the application."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app, self._services = app, services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})
        guarded_send = _with_headers(scope, send)
        refusal = await self._refusal(Request(scope, receive))
        if refusal is not None:
            await refusal(scope, receive, guarded_send)
            return
        limit = self._services.body_limit(scope["path"])
        started = False

        async def noting_start(message: Message) -> None:
            nonlocal started
            started = True
            await guarded_send(message)

        try:
            await self._app(scope, _limited(receive, limit), noting_start)
        except _BodyTooLarge:
            if not started:
                await _too_large(limit)(scope, receive, guarded_send)
        except Exception as error:  # here, so that the answer to a bug has the headers, too
            _LOG.error("%s %s", scope["method"], scope["path"], exc_info=error)
            if not started:
                text = "A bug in crosslens: the terminal of the server shows the details."
                await PlainTextResponse(text, 500)(scope, receive, guarded_send)

    async def _refusal(self, request: Request) -> Response | None:
        settings = self._services.settings
        if not is_allowed_host(request.headers.get("host", ""), settings):
            text = "This server does not answer under that name.\nStart it with --allowed-host to allow the name."
            return PlainTextResponse(text, 421)
        length = request.headers.get("content-length", "0")
        limit = self._services.body_limit(request.url.path)
        if not (length.isascii() and length.isdecimal()):
            return PlainTextResponse("Content-Length is not a number.", 400)
        if len(length) > 15 or int(length) > limit:
            return _too_large(limit)
        if request.method not in _SAFE_METHODS and is_cross_site(request.headers):
            return PlainTextResponse("Refused: the request comes from a page of another site.", 403)
        login = self._services.require_login
        asks = login is not None and (not settings.is_local or settings.password is not None)
        if asks and login is not None and not request.url.path.startswith(tuple(self._services.open_paths)):
            return await run_in_threadpool(login, request)
        return None


def _too_large(limit: int) -> Response:
    return PlainTextResponse(f"The request is larger than {limit:,} bytes.", 413)


def _limited(receive: Receive, limit: int) -> Receive:
    """``receive``, which raises once more than ``limit`` bytes of the body came."""
    taken = 0

    async def limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise _BodyTooLarge
        return message

    return limited


def _with_headers(scope: Scope, send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            token = scope["state"].get(_NEW_TOKEN)
            if token is not None:
                secure = "; Secure" if scope.get("scheme") == "https" else ""
                headers.append("Set-Cookie", f"{CSRF_COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{secure}")
        await send(message)

    return send_with_headers


def is_allowed_host(header: str, settings: WebSettings) -> bool:
    """Whether a ``Host`` header names this server. A name that an attacker's DNS points here is refused.

    Addresses in digits are not names; where the server is local they must be local, too.
    """
    try:
        name = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return False
    if name in {host.lower() for host in settings.allowed_hosts} or is_loopback(name):
        return True
    if settings.is_local:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in {settings.host.lower(), socket.gethostname().lower()}
    return True


def is_cross_site(headers: Headers) -> bool:
    """Whether a browser says that a page of another origin sent the request."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()


def csrf_token(request: Request) -> str:
    """The token of this browser; one is made, and its cookie set, where it has none."""
    state: dict[str, Any] = request.scope["state"]
    token: str = state.get(_NEW_TOKEN) or request.cookies.get(CSRF_COOKIE, "")
    if not _TOKEN.fullmatch(token):
        token = state[_NEW_TOKEN] = secrets.token_urlsafe(32)
    return token


async def check_csrf(request: Request) -> None:
    """Refuse (403) a request that changes something and does not repeat the token of its cookie."""
    if request.method in _SAFE_METHODS:
        return
    expected = request.cookies.get(CSRF_COOKIE, "")
    given = request.headers.get(CSRF_HEADER)
    if given is None and _is_form(request):
        field = (await request.form()).get(CSRF_FIELD)
        given = field if isinstance(field, str) else None
    if not _TOKEN.fullmatch(expected) or not secrets.compare_digest((given or "").encode(), expected.encode()):
        raise HTTPException(403, "The form is out of date: reload the page and send it again.")


def _is_form(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in ("application/x-www-form-urlencoded", "multipart/form-data")
