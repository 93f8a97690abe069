"""Connections behind real sockets: half requests are closed, there are only so many, and no forwarded header counts."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from crosslens.core import UsageError
from crosslens.web import ServeOptions, WebSettings
from crosslens.web.connections import Connection
from tests.web.serving import listening

LARGE = 32 << 20


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body, and says where the request came from; ``/large`` is larger than any buffer."""
    if scope["type"] != "http":
        return
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    text = b"x" * LARGE if scope["path"] == "/large" else f"{scope['client'][0]} {scope['scheme']} {size}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
    for part in (text[: len(text) // 2], text[len(text) // 2 :]):
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body"})


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that waits less long."""
    for name, value in (("head_seconds", 0.6), ("body_seconds", 0.6), ("body_rate", 4096), ("answer_seconds", 0.6)):
        monkeypatch.setattr(Connection, name, value)
    with listening(application, WebSettings(tmp_path)) as opened:
        yield opened


def connect(address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(address.rsplit(":", 1)[1])), timeout=20)


def trickle(connection: socket.socket, start: bytes, again: bytes, seconds: float = 20.0) -> bytes:
    """Send a little again and again until the server has had enough; what it said, ``b""`` if nothing."""
    connection.sendall(start)
    connection.settimeout(0.05)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            return connection.recv(4096)
        except TimeoutError:
            try:
                connection.sendall(again)
            except OSError:
                return b""
        except OSError:
            return b""
    raise AssertionError("the connection is still open")


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
HALF = {
    "nothing": (b"", b""),
    "a line": (b"GET / HTTP/1.1", b""),
    "some of the head": (HEAD, b""),
    "head, slowly": (HEAD, b"A"),
    "headers, slowly": (HEAD, b"A: 1\r\n"),
    "empty lines, slowly": (b"", b"\r\n"),
    "no body": (HEAD + b"Content-Length: 100\r\n\r\n", b""),
    "some of the body": (HEAD + b"Content-Length: 100\r\n\r\nabc", b""),
    "body, slowly": (HEAD + b"Content-Length: 100000\r\n\r\n", b"x"),
    "chunks, slowly": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "expects to be asked": (HEAD + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", b""),
}


@pytest.mark.parametrize("kind", HALF)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
def test_a_request_that_does_not_become_whole_is_closed(address: str, kind: str, is_first: bool) -> None:
    with closing(connect(address)) as connection:
        if not is_first:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            reply = b""
            while not reply.endswith(b"127.0.0.1 http 0"):
                reply += connection.recv(4096)
        begin = time.monotonic()
        answer = trickle(connection, *HALF[kind])
        if answer.startswith(b"HTTP/1.1 100"):
            answer = trickle(connection, b"", b"")
        assert time.monotonic() - begin < 15
        assert answer == b"" or answer.startswith((b"HTTP/1.1 408", b"HTTP/1.1 400"))


def test_four_hundred_half_requests(address: str) -> None:
    """The issue's case: they are closed, and others are answered meanwhile."""
    with ExitStack() as stack:
        connections = [stack.enter_context(closing(connect(address))) for _ in range(400)]
        for n, connection in enumerate(connections):
            connection.sendall(list(HALF.values())[n % len(HALF)][0])
        assert httpx.get(address, timeout=20).status_code == 200
        end = time.monotonic() + 20
        for connection in connections:
            connection.settimeout(max(0.1, end - time.monotonic()))
            while connection.recv(4096):  # a timeout is an error
                pass


def test_a_large_body_that_keeps_coming_is_taken(address: str) -> None:
    parts = [b"x" * 4096] * 20

    def slowly() -> Iterator[bytes]:
        for part in parts:
            time.sleep(0.08)
            yield part

    answer = httpx.post(address, content=slowly(), timeout=20)
    assert answer.text.endswith(f" {20 * 4096}"), "1.6 seconds, with a limit of 0.6 for a body that does not come"


def test_an_answer_that_nobody_takes_is_given_up(address: str) -> None:
    with closing(connect(address)) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(2)
        taken = 0
        with suppress(ConnectionResetError):
            while part := connection.recv(1 << 20):
                taken += len(part)
        assert 0 < taken < LARGE, "no more than the buffers of the two computers hold"


def test_a_further_connection_takes_the_place_of_a_half_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "most", 20)
    with listening(application, WebSettings(tmp_path)) as address, ExitStack() as stack:
        held = [stack.enter_context(closing(connect(address))) for _ in range(60)]
        assert httpx.get(address, timeout=20).status_code == 200
        closed = sum(is_closed(connection) for connection in held)
        assert closed == 60 - 20 + 1, "those that came first"
        assert all(is_closed(connection) for connection in held[:41])


def test_a_further_connection_takes_the_place_of_an_answer_that_nobody_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that needs no login, asked for and left lying, does not keep others out."""
    monkeypatch.setattr(Connection, "most", 6)
    with listening(application, WebSettings(tmp_path)) as address, ExitStack() as stack:
        for _ in range(6):
            connection = stack.enter_context(closing(connect(address)))
            with suppress(ConnectionError):  # on a busy machine the server may have given it up by now
                connection.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
                connection.recv(1)  # the answer has begun
        for _ in range(3):
            assert httpx.get(address, timeout=20).status_code == 200


def is_closed(connection: socket.socket) -> bool:
    connection.settimeout(0.05)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


FORGED = {"X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "https", "Forwarded": "for=198.51.100.7;proto=https"}


def test_forwarded_headers_are_believed_from_named_proxies_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")

    def reply_with(**settings: Any) -> str:
        with listening(application, WebSettings(tmp_path, **settings)) as address:
            return httpx.get(address, headers=FORGED, timeout=20).text

    assert reply_with() == "127.0.0.1 http 0"
    assert reply_with(proxies=("10.0.0.0/8",)) == "127.0.0.1 http 0"
    assert reply_with(proxies=("127.0.0.1",)) == "198.51.100.7 https 0"
    assert reply_with(proxies=("127.0.0.0/8",)) == "198.51.100.7 https 0"


def test_a_proxy_means_that_others_reach_the_server(tmp_path: Path) -> None:
    from crosslens.web import create_app

    options = ServeOptions(forwarded_allow_ips=("127.0.0.1, ::1", "10.0.0.0/8"))
    settings = WebSettings.of(tmp_path, options)
    assert settings.proxies == ("127.0.0.1", "::1", "10.0.0.0/8")
    assert not settings.is_local
    with pytest.raises(UsageError, match="behind a proxy can be reached from other computers, and no login is set up"):
        create_app(settings)


@pytest.mark.parametrize(
    "value", ["*", "", "0.0.0.0/0", "::/0", "proxy.example", "10.0.0.1/8", "127.0.0.1,", "127.0.0.1:80", "1"]
)
def test_proxies_are_addresses_or_networks(value: str) -> None:
    with pytest.raises(UsageError, match="not an address or a network"):
        ServeOptions(forwarded_allow_ips=(value,))
