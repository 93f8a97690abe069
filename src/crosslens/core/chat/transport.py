"""One HTTP exchange that ends: within a time in all, and after so many bytes, whatever the server does.

The timeout of the standard library begins anew with every byte, and its loop over ``100 Continue`` has no end. Here
every read waits only for what is left of the time, and all bytes of an answer are counted, headers included.
"""

from __future__ import annotations

import http.client
import io
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

_HEADERS = 256 * 1024  # beside the content: more than any server sends


class OversizedAnswer(Exception):
    """An answer of more bytes than allowed."""


@dataclass
class Allowance:
    """What is left of the time and of the bytes of one exchange."""

    seconds: float
    most_bytes: int
    received: int = 0
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.seconds

    def remaining(self) -> float:
        """Seconds that are left; none raises."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def count(self, received: int) -> None:
        """Count bytes that arrived; too many raise."""
        self.received += received
        if self.received > self.most_bytes + _HEADERS:
            raise OversizedAnswer


class _Received(io.RawIOBase):
    """What arrives on a socket, within the allowance."""

    def __init__(self, sock: Any, allowance: Allowance) -> None:
        self._sock, self._raw, self._allowance = sock, sock.makefile("rb", buffering=0), allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._allowance.remaining())
        received = int(self._raw.readinto(buffer) or 0)
        self._allowance.count(received)
        return received

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: Any, *args: Any, allowance: Allowance, **keywords: Any) -> None:
        super().__init__(sock, *args, **keywords)
        self.fp.close()
        self.fp = io.BufferedReader(_Received(sock, allowance))


def _limited(kind: Callable[..., Any], allowance: Allowance, host: str, **keywords: Any) -> Any:
    connection = kind(host, **{**keywords, "timeout": allowance.remaining()})
    connection.response_class = partial(_Answer, allowance=allowance)
    return connection


class _Plain(urllib.request.HTTPHandler):
    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._allowance = allowance

    def http_open(self, request: Any) -> Any:
        return self.do_open(partial(_limited, http.client.HTTPConnection, self._allowance), request)


class _Encrypted(urllib.request.HTTPSHandler):
    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._allowance = allowance

    def https_open(self, request: Any) -> Any:
        return self.do_open(partial(_limited, http.client.HTTPSConnection, self._allowance), request)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key is for one host only."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def opener(allowance: Allowance, *, local: bool) -> urllib.request.OpenerDirector:
    """What opens addresses within the allowance; a proxy is not asked for this machine's own ones."""
    proxies = [urllib.request.ProxyHandler({})] if local else []
    return urllib.request.build_opener(_NoRedirects, _Plain(allowance), _Encrypted(allowance), *proxies)


def content_of(answer: Any, allowance: Allowance) -> bytes:
    """The body of an answer, never more than allowed: a server can announce any length."""
    content = bytes(answer.read(allowance.most_bytes + 1))
    if len(content) > allowance.most_bytes:
        raise OversizedAnswer
    missing = getattr(answer, "length", None)
    if missing:
        raise http.client.IncompleteRead(content, missing)
    return content
