"""One conversation with an OpenAI-compatible endpoint: asking, waiting, trying again, and clear words when it fails."""

from __future__ import annotations

import email.utils
import http.client
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from crosslens.core.errors import CrosslensError, UsageError

KEY = "CROSSLENS_API_KEY"
"""The environment variable that holds the key; it is sent, and never shown or written."""
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 60.0
_LOCAL = ("localhost", "127.0.0.1", "::1")

Message = Mapping[str, Any]


class Stopped(Exception):
    """The work was given up while this request was under way."""


@dataclass(frozen=True)
class Endpoint:
    """Where the model answers, and how patiently it is asked."""

    address: str
    model: str
    timeout: float = 120.0
    retries: int = 5
    first_wait: float = 1.0
    stop: threading.Event = field(default_factory=threading.Event, compare=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"{self.address!r} is not the address of an endpoint", fix="for example http://127.0.0.1:8000/v1"
            )
        if parts.username or parts.password:
            raise UsageError("the address holds a name or a password", fix=f"take it out and put the key into {KEY}")
        if parts.scheme == "http" and not self.local and os.environ.get(KEY):
            raise UsageError(
                f"{KEY} is set, and {self.host} is asked over http: the key would travel unprotected",
                fix="use https, or unset the key",
            )

    @property
    def host(self) -> str:
        """Host and port."""
        return urlsplit(self.address).netloc

    @property
    def local(self) -> bool:
        """Whether it is on this machine."""
        return (urlsplit(self.address).hostname or "") in _LOCAL

    def ask(self, messages: Sequence[Message], seed: int) -> str:
        """The model's answer."""
        body = {
            "model": self.model,
            "messages": list(messages),
            "temperature": 0,
            "seed": seed,
            "response_format": {"type": "json_object"},
        }
        try:
            return _content(self._patiently(body), self)
        except _Refused as refusal:
            if refusal.status == 400 and "response_format" in refusal.message:
                del body["response_format"]  # older servers do not know it; the answer is read strictly anyway
                try:
                    return _content(self._patiently(body), self)
                except _Refused as second:
                    refusal = second
            raise self._explained(refusal) from None

    def _patiently(self, body: Mapping[str, Any]) -> bytes:
        """Post, and post again after a while where the failure may pass."""
        for attempt in range(self.retries + 1):
            wait = min(self.first_wait * 2**attempt, _LONGEST_WAIT)
            try:
                return self._post(body)
            except _Refused as refusal:
                if refusal.status not in _PASSING or attempt == self.retries:
                    raise
                wait = wait if refusal.wait is None else min(refusal.wait, _LONGEST_WAIT)
            except (OSError, http.client.HTTPException) as error:
                if attempt == self.retries:
                    raise CrosslensError(
                        f"{self.host} cannot be reached: {_reason(error)} (tried {attempt + 1} times)",
                        fix="check the address, and that the server is running",
                    ) from None
            if self.stop.wait(wait):
                raise Stopped
        raise AssertionError("unreachable")

    def _post(self, body: Mapping[str, Any]) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "crosslens"}
        key = os.environ.get(KEY)
        if key:
            headers["Authorization"] = f"Bearer {key}"
        url = self.address.rstrip("/") + "/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            with _opener(self.local).open(request, timeout=self.timeout) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise _Refused(error.code, _message(error), _wait(error.headers.get("Retry-After"))) from None

    def _explained(self, refusal: _Refused) -> CrosslensError:
        said = f": {refusal.message}" if refusal.message else ""
        if refusal.status in (401, 403):
            fix = f"put a valid key into the environment variable {KEY}"
            return UsageError(f"{self.host} refuses the key ({refusal.status}){said}", fix=fix)
        if refusal.status == 404:
            fix = f"check the address (it usually ends in /v1) and the model's name, {self.model!r}"
            return UsageError(f"{self.host} knows no such address or model (404){said}", fix=fix)
        if 300 <= refusal.status < 400:
            return UsageError(f"{self.host} points elsewhere ({refusal.status})", fix="give the final address itself")
        if refusal.status in _PASSING:
            fix = "wait and run the same command again: answers there are already are kept"
            return CrosslensError(
                f"{self.host} still fails after {self.retries + 1} tries ({refusal.status}){said}", fix=fix
            )
        return CrosslensError(
            f"{self.host} refuses the request ({refusal.status}){said}", fix="check the model and its abilities"
        )


class _Refused(Exception):
    def __init__(self, status: int, message: str, wait: float | None) -> None:
        super().__init__(status)
        self.status, self.message, self.wait = status, message, wait


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key is for one host only."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _opener(local: bool) -> urllib.request.OpenerDirector:
    # A proxy must not be asked for this machine's own addresses.
    return urllib.request.build_opener(_Stay, *([urllib.request.ProxyHandler({})] if local else []))


def _content(raw: bytes, endpoint: Endpoint) -> str:
    try:
        content = json.loads(raw)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        content = None
    if not isinstance(content, str):
        raise CrosslensError(
            f"{endpoint.host} does not answer like a chat endpoint: {_shown(raw)!r}",
            fix="check the address: it should be an OpenAI-compatible one, usually ending in /v1",
        )
    return content


def _message(error: urllib.error.HTTPError) -> str:
    """What the server says, on one line, without the key should it repeat it."""
    try:
        raw = error.read()
    except (OSError, http.client.HTTPException):
        return ""
    try:
        told = json.loads(raw)["error"]
        return _shown((told["message"] if isinstance(told, dict) else str(told)).encode())
    except (ValueError, LookupError, TypeError, AttributeError):
        return _shown(raw)


def _shown(raw: bytes) -> str:
    text = " ".join(raw.decode("utf-8", "replace").split())
    key = os.environ.get(KEY)
    return (text.replace(key, "…") if key else text)[:200]


def _wait(header: str | None) -> float | None:
    """Seconds to wait: the header holds a number or a date."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", error)
    return "no answer in time" if isinstance(inner, TimeoutError) else str(inner) or type(inner).__name__
