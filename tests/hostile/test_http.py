"""A description server that stalls, never ends or sends too much: every request ends, with an error that says why."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from crosslens.build import SHARPER, ObjectAnnotation, Request, load_generator
from crosslens.core import CrosslensError, UsageError

Behaviour = Callable[[socket.socket], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
TIMEOUT = 0.3


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[str]:
    """The address of a server on this machine that answers every request as it is told."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            with connection.makefile("rb") as request:  # unread words would reset the connection
                lengths = [
                    line for line in iter(request.readline, b"\r\n") if line.lower().startswith(b"content-length")
                ]
                request.read(int(lengths[0].split(b":")[1]))
            behaviour(connection)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        listening.close()


def ask(address: str, notes: list[str] | None = None, **options: Any) -> tuple[str, ...]:
    settings = {"timeout": TIMEOUT, "retries": 0, "first_wait": 0.001, **options}
    notify = (notes if notes is not None else []).append
    generator = load_generator(f"http:{address}?model=small", notify=notify, **settings)
    request = Request("1", None, "count", ("Some dogs.",), SHARPER, 2, (ObjectAnnotation("dog"),), ())
    (answer,) = generator.generate([request])
    return answer


def chat(content: str) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()


def whole(body: bytes, status: bytes = OK) -> Behaviour:
    return lambda connection: connection.sendall(status + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def repeat(first: bytes, again: bytes, pause: float = 0.0) -> Behaviour:
    """Send ``first``, and then ``again`` for ever."""

    def send(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            connection.sendall(again)
            time.sleep(pause)

    return send


STALLING = {
    "nothing": lambda connection: time.sleep(30),
    "slow status": repeat(b"HTTP/1.1 200 O", b"K", 0.05),
    "slow headers": repeat(OK, b"X", 0.05),
    "slow body": repeat(OK + b"Content-Length: 100000\r\n\r\n", b" ", 0.05),
    "slow body without a length": repeat(OK + b"\r\n", b" ", 0.05),
    "slow chunks": repeat(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", 0.05),
    "continue, slowly": repeat(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01),
    "slow error": repeat(b"HTTP/1.1 401 No\r\n\r\n", b"x", 0.05),
}


@pytest.mark.parametrize("behaviour", STALLING)
def test_a_server_that_stalls_is_given_up(behaviour: str) -> None:
    begin = time.monotonic()
    with serving(STALLING[behaviour]) as address, pytest.raises(CrosslensError) as raised:
        ask(address)
    assert time.monotonic() - begin < 10 * TIMEOUT
    expected = "refuses the key (401)" if behaviour == "slow error" else "no answer in time (0.3 seconds)"
    assert expected in str(raised.value)


ENDLESS = {
    "continue": repeat(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "body": repeat(OK + b"\r\n", b" " * 65536),
    "body of an announced length": repeat(OK + b"Content-Length: 9999999999999\r\n\r\n", b" " * 65536),
    "chunks": repeat(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 65536 + b"\r\n"),
    "one chunk": repeat(OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n", b" " * 65536),
}


@pytest.mark.parametrize("behaviour", ENDLESS)
def test_an_answer_that_never_ends_is_cut_off(behaviour: str) -> None:
    with serving(ENDLESS[behaviour]) as address, pytest.raises(CrosslensError) as raised:
        ask(address, timeout=20, max_bytes=100_000)
    assert "more than 100,000 bytes" in str(raised.value)
    assert "max_bytes=200000" in str(raised.value)


def test_endless_headers_are_an_error() -> None:
    with serving(repeat(OK, b"X-More: again\r\n" * 100)) as address, pytest.raises(CrosslensError, match="headers"):
        ask(address, timeout=20)


def test_an_endless_error_page_is_cut_off() -> None:
    endless = repeat(b"HTTP/1.1 404 No\r\n\r\n", b"x" * 65536)
    with serving(endless) as address, pytest.raises(UsageError, match="no such address or model"):
        ask(address, timeout=20, max_bytes=100_000)


def test_a_large_answer_within_the_limit_is_read() -> None:
    padded = chat(json.dumps({"descriptions": ["Two dogs."]})) + b" " * 90_000
    with serving(whole(padded)) as address:
        assert ask(address, timeout=20, max_bytes=100_000) == ("Two dogs.",)


def test_an_answer_that_breaks_off_is_asked_for_again() -> None:
    good = chat(json.dumps({"descriptions": ["Two dogs."]}))
    answers = iter([good[:20], good])

    def break_off(connection: socket.socket) -> None:
        connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(good) + next(answers))

    with serving(break_off) as address:
        assert ask(address, timeout=20, retries=1) == ("Two dogs.",)


UNUSABLE = {
    "many": (json.dumps({"descriptions": [f"dog {n}" for n in range(200_000)]}), "it has 200,000 descriptions"),
    "long": (json.dumps({"descriptions": ["dog" * 1000]}), "more than 400 characters"),
    "steering": (json.dumps({"descriptions": ["a \x1b[2J dog"]}), "control characters"),
    "reversed": (json.dumps({"descriptions": ["a \u202e dog"]}), "control characters"),
    "deep": ("[" * 100_000, "it is not JSON"),
}


@pytest.mark.parametrize("answer", UNUSABLE)
def test_unusable_descriptions_are_not_taken(answer: str) -> None:
    content, reason = UNUSABLE[answer]
    notes: list[str] = []
    with serving(whole(chat(content))) as address:
        assert ask(address, notes, timeout=20, max_bytes=20_000_000) == ()
    assert reason in notes[-1]


def test_brackets_in_brackets_are_no_chat_answer() -> None:
    with serving(whole(b"[" * 200_000)) as address, pytest.raises(CrosslensError, match="like a chat endpoint"):
        ask(address, timeout=20)


def test_the_limits_are_settings() -> None:
    three = whole(chat(json.dumps({"descriptions": ["One dog.", "Two dogs.", "Three dogs."]})))
    with serving(three) as address:
        assert ask(address, timeout=20, max_descriptions=2) == ()
        assert ask(f"{address}", timeout=20, max_descriptions=3) == ("One dog.", "Two dogs.")
        generator = load_generator(f"http:{address}?model=small&max_bytes=10&max_descriptions=3&retries=0")
        with pytest.raises(CrosslensError, match="more than 10 bytes"):
            generator.generate([Request("1", None, "", (), "describe", 1, (), ())])
        for wrong in ({"max_bytes": 0}, {"max_descriptions": 0}):
            with pytest.raises(UsageError, match="must be at least 1"):
                ask(address, **wrong)
