"""Requests to an OpenAI-compatible endpoint: retries, waiting times, and errors that say what to do."""

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

from crosslens.core.chat.transport import Allowance, OversizedAnswer, content_of, opener
from crosslens.core.errors import CrosslensError, UsageError

KEY = "CROSSLENS_API_KEY"
"""The environment variable that holds the key; it is sent, and never shown or written."""
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 60.0
_LOCAL = ("localhost", "127.0.0.1", "::1")

Message = Mapping[str, Any]


class Cancelled(Exception):
    """The work was cancelled while this request was in progress."""


@dataclass(frozen=True)
class Tokens:
    """Tokens of requests and of answers; ``uncounted`` answers came without a count."""

    sent: int = 0
    received: int = 0
    uncounted: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.sent + other.sent, self.received + other.received, self.uncounted + other.uncounted)

    def cost(self, prices: tuple[float, float]) -> float:
        """What they cost, at these prices of a million tokens sent and received."""
        return (self.sent * prices[0] + self.received * prices[1]) / 1e6


class TokenCounter:
    """Adds up the tokens of answers that arrive in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens = Tokens()

    @property
    def tokens(self) -> Tokens:
        """All of them so far."""
        return self._tokens

    def add(self, raw: bytes) -> None:
        """Count the tokens of an answer."""
        tokens = tokens_of(raw)
        with self._lock:
            self._tokens += tokens


def tokens_of(raw: bytes) -> Tokens:
    """The tokens that an answer says it took."""
    try:
        usage = json.loads(raw)["usage"]
        sent, received = usage["prompt_tokens"], usage["completion_tokens"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return Tokens(uncounted=1)
    if not all(type(count) is int and 0 <= count < 2**53 for count in (sent, received)):
        return Tokens(uncounted=1)
    return Tokens(sent, received)


@dataclass(frozen=True)
class Endpoint:
    """Where the model answers, how often and how long it is tried, and how large its answers may be.

    ``timeout`` is for one request from beginning to end, ``max_bytes`` for the body of its answer.
    """

    address: str
    model: str
    timeout: float = 120.0
    max_bytes: int = 4 << 20
    retries: int = 5
    first_wait: float = 1.0
    stop: threading.Event = field(default_factory=threading.Event, compare=False)
    counter: TokenCounter = field(default_factory=TokenCounter, compare=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not _can_be_sent(self.address):
            fix = "for example http://127.0.0.1:8000/v1; write other than ASCII characters as %C3%A9, a host's as xn--…"
            raise UsageError(f"{self.address!r:.200} is not the address of an endpoint", fix=fix)
        if not (os.environ.get(KEY, "").isascii() and os.environ.get(KEY, "").isprintable()):
            raise UsageError(f"{KEY} holds characters that no key has", fix="set it anew, without line breaks")
        if parts.username or parts.password:
            raise UsageError("the address contains a name or a password", fix=f"remove it and put the key into {KEY}")
        if parts.scheme == "http" and not self.local and os.environ.get(KEY):
            raise UsageError(
                f"{KEY} is set, and {self.host} uses http: the key would be sent unencrypted",
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
            raw = self._post_with_retries(body)
        except _Refused as refusal:
            if refusal.status != 400 or "response_format" not in refusal.message:
                raise self._explained(refusal) from None
            del body["response_format"]  # older servers do not know it; the answer is read strictly anyway
            raw = self._explained_post(body)
        self.counter.add(raw)
        return _content(raw, self)

    def first_token(self, messages: Sequence[Message], *, alternatives: int = 20) -> dict[str, float]:
        """The likeliest first tokens of the answer with the logarithms of their probabilities."""
        body = {
            "model": self.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": 1,
            "logprobs": True,
            "top_logprobs": alternatives,
        }
        return _log_probabilities(self._explained_post(body), self)

    def _explained_post(self, body: Mapping[str, Any]) -> bytes:
        try:
            return self._post_with_retries(body)
        except _Refused as refusal:
            raise self._explained(refusal) from None

    def _post_with_retries(self, body: Mapping[str, Any]) -> bytes:
        """Post, and post again after a while where the failure may be temporary."""
        for attempt in range(self.retries + 1):
            wait = min(self.first_wait * 2**attempt, _LONGEST_WAIT)
            try:
                return self._post(body)
            except _Refused as refusal:
                if refusal.status not in _TRANSIENT or attempt == self.retries:
                    raise
                wait = wait if refusal.wait is None else min(refusal.wait, _LONGEST_WAIT)
            except OversizedAnswer:
                raise CrosslensError(
                    f"{self.host} sent an answer of more than {self.max_bytes:,} bytes",
                    fix=f"check the server; an answer can be larger with max_bytes={2 * self.max_bytes} in the address",
                ) from None
            except (OSError, http.client.HTTPException) as error:
                if attempt == self.retries:
                    raise CrosslensError(
                        f"{self.host} cannot be reached: {self._reason(error)} (tried {attempt + 1} times)",
                        fix="check the address, and that the server is running",
                    ) from None
            if self.stop.wait(wait):
                raise Cancelled
        raise AssertionError("unreachable")

    def _post(self, body: Mapping[str, Any]) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "crosslens"}
        key = os.environ.get(KEY)
        if key:
            headers["Authorization"] = f"Bearer {key}"
        url = self.address.rstrip("/") + "/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        allowance = Allowance(self.timeout, self.max_bytes)
        try:
            with opener(allowance, local=self.local).open(request, timeout=self.timeout) as answer:
                return content_of(answer, allowance)
        except urllib.error.HTTPError as error:
            with error:
                message = _message(error, allowance)
                raise _Refused(error.code, message, _wait(error.headers.get("Retry-After"))) from None

    def _reason(self, error: Exception) -> str:
        inner = getattr(error, "reason", error)
        if isinstance(inner, TimeoutError):
            return f"no answer in time ({self.timeout:g} seconds)"
        return str(inner) or type(inner).__name__

    def _explained(self, refusal: _Refused) -> CrosslensError:
        kind: type[CrosslensError] = UsageError
        if refusal.status in (401, 403):
            problem, fix = "refuses the key", f"put a valid key into the environment variable {KEY}"
        elif refusal.status == 404:
            problem = "knows no such address or model"
            fix = f"check the address (it usually ends in /v1) and the model's name, {self.model!r}"
        elif 300 <= refusal.status < 400:
            problem, fix = "redirects", "give the final address"
        elif refusal.status in _TRANSIENT:
            kind, problem = CrosslensError, f"still fails after {self.retries + 1} tries"
            fix = "wait and run the same command again: answers so far are kept"
        else:
            kind, problem, fix = CrosslensError, "refuses the request", "check the model and its abilities"
        detail = f": {refusal.message}" if refusal.message else ""
        return kind(f"{self.host} {problem} ({refusal.status}){detail}", fix=fix)


class _Refused(Exception):
    def __init__(self, status: int, message: str, wait: float | None) -> None:
        super().__init__(status)
        self.status, self.message, self.wait = status, message, wait


def _can_be_sent(address: str) -> bool:
    """Whether an address is in ASCII, with a host's name that can be looked up and a port that there is."""
    try:
        parts = urlsplit(address)
        return address.isascii() and bool((parts.hostname or "").encode("idna")) and parts.port != 0
    except ValueError:  # of names and of ports
        return False


def _content(raw: bytes, endpoint: Endpoint) -> str:
    try:
        content = json.loads(raw)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):  # the last: brackets in brackets in brackets …
        content = None
    if not isinstance(content, str):
        raise CrosslensError(
            f"{endpoint.host} does not answer like a chat endpoint: {_excerpt(raw)!r}",
            fix="check the address: it should be an OpenAI-compatible one, usually ending in /v1",
        )
    # Half of a surrogate pair could be neither recorded nor printed: it is written as JSON escapes it.
    return content.encode("utf-8", "backslashreplace").decode()


def _log_probabilities(raw: bytes, endpoint: Endpoint) -> dict[str, float]:
    try:
        first = json.loads(raw)["choices"][0]["logprobs"]["content"][0]
        tokens = {str(entry["token"]): float(entry["logprob"]) for entry in [first, *first["top_logprobs"]]}
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
        tokens = {}
    if not tokens or not all(value <= 1e-6 for value in tokens.values()):
        raise CrosslensError(
            f"{endpoint.host} sends no log probabilities of tokens: {_excerpt(raw)!r}",
            fix="use a server and a model that answer logprobs=true with top_logprobs",
        )
    return tokens


def _message(error: urllib.error.HTTPError, allowance: Allowance) -> str:
    """The server's message on one line, without the key should it repeat it."""
    try:
        raw = content_of(error, allowance)
    except (OSError, http.client.HTTPException, OversizedAnswer):
        return ""
    try:
        problem = json.loads(raw)["error"]
        return _excerpt((problem["message"] if isinstance(problem, dict) else str(problem)).encode())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return _excerpt(raw)


def _excerpt(raw: bytes) -> str:
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
    except (TypeError, ValueError, OverflowError):
        return None
