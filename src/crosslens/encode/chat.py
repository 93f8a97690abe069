"""Language models behind an OpenAI-compatible address: retries, waiting times, several requests at a time, pictures.

An HTTP exchange ends within a time in all, and after so many bytes, whatever the server does. The timeout of the
standard library begins anew with every byte, and its loop over ``100 Continue`` has no end. Here every read waits only
for what is left of the time, and all bytes of an answer are counted, headers included.
"""

from __future__ import annotations

import base64
import email.utils
import http.client
import io
import json
import math
import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from crosslens.core import CrosslensError, InputError, UsageError, argument
from crosslens.storage import (
    IMAGE_BYTES,
    fingerprint,
    is_encodable,
    is_offline,
    read_json_file,
    regular_bytes,
    require_address,
    without_hashes,
)

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
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

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


class _Limited(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens addresses of both kinds within the allowance."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._allowance = allowance

    def http_open(self, request: Any) -> Any:
        return self.do_open(partial(self._connect, http.client.HTTPConnection), request)

    def https_open(self, request: Any) -> Any:
        return self.do_open(partial(self._connect, http.client.HTTPSConnection), request)

    def _connect(self, kind: Callable[..., Any], host: str, **keywords: Any) -> Any:
        connection = kind(host, **{**keywords, "timeout": self._allowance.remaining()})
        connection.response_class = partial(_Answer, allowance=self._allowance)
        return connection


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key is for one host only."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def content_of(answer: Any, allowance: Allowance) -> bytes:
    """The body of an answer, never more than allowed: a server can announce any length."""
    content = bytes(answer.read(allowance.most_bytes + 1))
    if len(content) > allowance.most_bytes:
        raise OversizedAnswer
    if missing := getattr(answer, "length", None):
        raise http.client.IncompleteRead(content, missing)
    return content


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
        return self._tokens

    def add(self, raw: bytes) -> None:
        """Count the tokens that an answer says it took."""
        try:
            usage = json.loads(raw)["usage"]
            counts = [usage["prompt_tokens"], usage["completion_tokens"]]
        except (ValueError, LookupError, TypeError, RecursionError):
            counts = []
        counted = counts and all(type(count) is int and 0 <= count < 2**53 for count in counts)
        with self._lock:
            self._tokens += Tokens(*counts) if counted else Tokens(uncounted=1)


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
        try:  # in ASCII, with a host's name that can be looked up and a port that there is
            can_be_sent = self.address.isascii() and (parts.hostname or "").encode("idna") and parts.port != 0
        except ValueError:  # of names and of ports
            can_be_sent = False
        if parts.scheme not in ("http", "https") or not can_be_sent:
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
        return urlsplit(self.address).netloc

    @property
    def local(self) -> bool:
        return (urlsplit(self.address).hostname or "") in _LOCAL

    def ask(self, messages: Sequence[Message], seed: int) -> str:
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
        try:
            content = json.loads(raw)["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError, RecursionError):  # the last: brackets in brackets in brackets …
            content = None
        if not isinstance(content, str):
            raise CrosslensError(
                f"{self.host} does not answer like a chat endpoint: {_excerpt(raw)!r}",
                fix="check the address: it should be an OpenAI-compatible one, usually ending in /v1",
            )
        # Half of a surrogate pair could be neither recorded nor printed: it is written as JSON escapes it.
        return content.encode("utf-8", "backslashreplace").decode()

    def first_token(self, messages: Sequence[Message]) -> dict[str, float]:
        """The likeliest first tokens of the answer with the logarithms of their probabilities."""
        body = {
            "model": self.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": 1,
            "logprobs": True,
            "top_logprobs": 20,
        }
        raw = self._explained_post(body)
        try:
            first = json.loads(raw)["choices"][0]["logprobs"]["content"][0]
            tokens = {str(entry["token"]): float(entry["logprob"]) for entry in [first, *first["top_logprobs"]]}
        except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
            tokens = {}
        if not tokens or not all(value <= 1e-6 for value in tokens.values()):
            raise CrosslensError(
                f"{self.host} sends no log probabilities of tokens: {_excerpt(raw)!r}",
                fix="use a server and a model that answer logprobs=true with top_logprobs",
            )
        return tokens

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
                    inner = getattr(error, "reason", error)
                    reason = str(inner) or type(inner).__name__
                    if isinstance(inner, TimeoutError):
                        reason = f"no answer in time ({self.timeout:g} seconds)"
                    raise CrosslensError(
                        f"{self.host} cannot be reached: {reason} (tried {attempt + 1} times)",
                        fix="check the address, and that the server is running",
                    ) from None
            if self.stop.wait(wait):
                raise Cancelled
        raise AssertionError("unreachable")

    def _post(self, body: Mapping[str, Any]) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "crosslens"}
        if key := os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {key}"
        url = self.address.rstrip("/") + "/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        allowance = Allowance(self.timeout, self.max_bytes)
        proxies = [urllib.request.ProxyHandler({})] if self.local else []  # not asked for this machine's own addresses
        opener = urllib.request.build_opener(_NoRedirects, _Limited(allowance), *proxies)
        try:
            with opener.open(request, timeout=self.timeout) as answer:
                return content_of(answer, allowance)
        except urllib.error.HTTPError as error:
            with error:
                message = _message(error, allowance)
                raise _Refused(error.code, message, _wait(error.headers.get("Retry-After"))) from None

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


class Reading(NamedTuple):
    """How the value of an option is read, what is expected, and the range that it must be in."""

    convert: Callable[[str], Any]
    expected: str
    low: float = 0
    high: float = math.inf


ENDPOINT_OPTIONS: Mapping[str, Reading] = {
    "timeout": Reading(float, "a number of seconds", 0.001, 86_400),
    "retries": Reading(int, "a whole number", 0, 100),
    "first_wait": Reading(float, "a number of seconds", 0, 3_600),
    "max_bytes": Reading(int, "a whole number", 1, 1 << 40),
}
WORKERS = Reading(int, "a whole number", 1, 256)


def read_address(
    source: str, what: str, further: Mapping[str, Reading], keywords: Mapping[str, Any], model: str = ""
) -> tuple[Endpoint, dict[str, Any]]:
    """The endpoint that an address names, and the values of ``further`` options; one that may not be asked raises.

    ``given`` are values that come from elsewhere and win; ``what`` is whose options they are, in messages.
    """
    readings = {**further, **ENDPOINT_OPTIONS}
    try:
        parts = urlsplit(source)
    except ValueError as error:  # half a pair of brackets
        raise UsageError(
            f"{source!r:.200} is not an address: {error}", fix="for example http://127.0.0.1:8000/v1"
        ) from error
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in (*query, *keywords):
        if name not in ("model", *readings):
            raise UsageError(f"the {what} has no option {name!r}", fix=f"known: {', '.join(('model', *readings))}")
    model = model or query.pop("model", "")
    if not model:
        raise UsageError(f"no model is named for {source}", fix="append ?model=NAME to the address")
    query.pop("model", None)
    options: dict[str, Any] = {}
    for name, text in query.items():
        try:
            options[name] = readings[name].convert(text)
        except (ValueError, KeyError):
            fix = f"give {readings[name].expected}"
            raise UsageError(f"{name}={text:.60} in the address of the {what}", fix=fix) from None
    options |= keywords
    for name, value in options.items():
        convert, expected, low, high = readings[name]
        is_number = type(value) in (int, float)
        if (is_number and not low <= value <= high) or (convert in (int, float) and not is_number):
            upper = f" and at most {high:,g}" if high < math.inf else ""
            raise UsageError(
                f"{name} = {value!r:.60}", fix=f"give {expected}: {name} must be at least {low:g}{upper}", option=name
            )
    own_options = {name: options.pop(name) for name in further if name in options}
    endpoint = Endpoint(urlunsplit(parts._replace(query="", fragment="")), model, **options)
    if is_offline() and not endpoint.local:
        raise UsageError(
            f"{endpoint.host} is on the network, and {argument('offline', True)} forbids it",
            fix="use a server on this machine",
        )
    require_address(source, local=endpoint.local)
    return endpoint, own_options


_FENCE = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)


class InvalidAnswer(Exception):
    """An answer that does not have the required form; the message says why, as the model is told."""


def parse_answer(content: str) -> Any:
    """The JSON of an answer; anything around it but a fence makes it invalid."""
    text = content.strip()
    fenced = _FENCE.match(text)
    try:
        answer = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        raise InvalidAnswer("it is not JSON") from None
    if "\\ud" in text.lower() and not is_encodable(json.dumps(answer, ensure_ascii=False)):
        raise InvalidAnswer("it has half of a character: \\ud800 to \\udfff are used in pairs")
    return answer


MEDIA = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif"}
"""Endings of files that can be sent as they are."""


def picture_url(content: bytes, media: str = "png") -> str:
    """The bytes of a picture as an address."""
    return f"data:image/{media};base64,{base64.b64encode(content).decode()}"


def picture_file_url(file: Path) -> str:
    """The picture in a file as an address; raises for a format that cannot be sent."""
    media = MEDIA.get(file.suffix.lower())
    if media is None:
        raise InputError(
            "not an image format that can be sent", file=file, expected=", ".join(MEDIA), fix="convert the image"
        )
    try:
        content = regular_bytes(file, IMAGE_BYTES)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file, fix="check the file") from None
    return picture_url(content, media)


Result = TypeVar("Result")


def answers_of(
    endpoint: Endpoint, count: int, answer: Callable[[Endpoint, int], Result], workers: int
) -> Iterator[tuple[int, Result]]:
    """``answer(endpoint, number)`` for the numbers below ``count``, each as soon as it is there.

    The first error ends the requests that are in progress and is raised here, and so does leaving the iteration.
    """
    endpoint = replace(endpoint, stop=threading.Event())
    todo: SimpleQueue[int] = SimpleQueue()
    answered: SimpleQueue[tuple[int, Result | BaseException]] = SimpleQueue()
    for number in range(count):
        todo.put(number)

    def work() -> None:
        while not endpoint.stop.is_set():
            try:
                number = todo.get_nowait()
            except Empty:
                return
            try:
                answered.put((number, answer(endpoint, number)))
            except Cancelled:
                return
            except BaseException as error:  # raised again where the answers are awaited
                answered.put((number, error))
                return

    for _ in range(min(workers, count)):
        # Daemons, so that Ctrl-C ends the program at once instead of after the slowest answer.
        threading.Thread(target=work, daemon=True).start()
    try:
        for _ in range(count):
            number, result = answered.get()
            if isinstance(result, BaseException):
                raise result
            yield number, result
    finally:
        endpoint.stop.set()


class RecordedAnswers:
    """One file per request in ``folder``, named by a hash of the model and of everything that was sent."""

    def __init__(self, folder: str | Path, model: str) -> None:
        self.folder, self.model = Path(folder), model

    def find(self, messages: Sequence[Message], seed: int) -> str | None:
        """The recorded answer; None where the request was never sent."""
        file = self._file(messages, seed)
        if not file.is_file():
            return None
        content = read_json_file(file)
        content = without_hashes(content, file)[0] if isinstance(content, dict) else None
        if not isinstance(content, dict) or not isinstance(content.get("answer"), str):
            raise InputError("not a recorded answer", file=file, fix="remove the file: the request is sent again")
        return str(content["answer"])

    def ask(self, endpoint: Endpoint | None, messages: Sequence[Message], seed: int) -> str:
        """The recorded answer, or else the endpoint's, which is recorded."""
        answer = self.find(messages, seed)
        if answer is not None:
            return answer
        if endpoint is None:
            raise InputError(
                "no answer to this request is recorded", file=self.folder,
                expected="the answers to the same items, prompt and pictures", fix="name an endpoint that can be asked",
            )  # fmt: skip
        from crosslens.storage import write_header  # brings numpy, which the help texts do without

        answer = endpoint.ask(messages, seed)
        file = self._file(messages, seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_header(file, {"model": self.model, "answer": answer})
        return answer

    def _file(self, messages: Sequence[Message], seed: int) -> Path:
        key = fingerprint("chat answer", {"model": self.model, "messages": list(messages), "seed": seed})
        return self.folder / key[:2] / f"{key}.json"
