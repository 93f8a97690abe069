"""Servers behind ``--image-embeddings http://…`` that are silent, slow or endless: each is given up."""

from __future__ import annotations

import http.server
import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from crosslens.data import read_vectors
from crosslens.storage.remote import _in_time, _refusal
from tests.hostile.conftest import Call, Refuses

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
Behaviour = Callable[[http.server.BaseHTTPRequestHandler], None]
GOOD = io.BytesIO()
np.save(GOOD, np.eye(4, dtype=np.float32))


@contextmanager
def serving(head: Behaviour, get: Behaviour) -> Iterator[str]:
    """The address of a server on this machine that answers as it is told."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            with suppress(OSError):
                head(self)

        def do_GET(self) -> None:
            with suppress(OSError):
                get(self)

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/vectors.npy"
    finally:
        server.shutdown()
        server.server_close()


def start(length: int | None = None, status: int = 200) -> Behaviour:
    def send(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        if length is not None:
            handler.send_header("Content-Length", str(length))
        handler.end_headers()

    return send


def endless(part: bytes, pause: float = 0.0, length: int | None = None, status: int = 200) -> Behaviour:
    def send(handler: http.server.BaseHTTPRequestHandler) -> None:
        start(length, status)(handler)
        while True:
            handler.wfile.write(part)
            handler.wfile.flush()
            time.sleep(pause)

    return send


def silent(handler: http.server.BaseHTTPRequestHandler) -> None:
    time.sleep(60)


def refuse_head(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.send_error(405)


SLOW: dict[str, tuple[Behaviour, Behaviour]] = {
    "silence": (silent, silent),
    "silence after the head": (start(192), silent),
    "silence after the first bytes": (
        start(),
        lambda handler: (start()(handler), handler.wfile.write(b"x"), silent(handler)),
    ),
    "a byte now and then": (start(), endless(b"x", 0.05)),
    "a byte now and then of an announced length": (start(1 << 24), endless(b"x", 0.05, 1 << 24)),
    "no head, and silence": (refuse_head, silent),
}


@pytest.fixture(autouse=True)
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CROSSLENS_MAX_REMOTE_SECONDS", "1")
    monkeypatch.setenv("CROSSLENS_MAX_REMOTE_BYTES", "20000000")


def left(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("behaviour", SLOW)
def test_a_server_that_is_silent_or_slow_is_given_up(behaviour: str, call: Call, tmp_path: Path) -> None:
    begin = time.monotonic()
    (tmp_path / "d.csv").write_text("image,text\na,one\nb,two\n")
    with serving(*SLOW[behaviour]) as address:
        outcome = call(
            "evaluate", "--dataset", tmp_path / "d.csv", "--image-embeddings", address, "--caption-embeddings", address,
            "-o", tmp_path / "out",
        )  # fmt: skip
    assert outcome.code == 3, outcome.err
    assert "within 1 seconds" in outcome.err
    assert "CROSSLENS_MAX_REMOTE_SECONDS" in outcome.err
    assert time.monotonic() - begin < 15
    assert left(tmp_path / "cache") < 1000
    assert not (tmp_path / "out").exists()


PART = bytes(1 << 20)
FLOODS: dict[str, tuple[Behaviour, Behaviour, str]] = {
    "without a length": (start(), endless(PART), "CROSSLENS_MAX_REMOTE_BYTES"),
    "of an announced length": (start(3 << 30), endless(PART, 0, 3 << 30), "CROSSLENS_MAX_REMOTE_BYTES"),
    "after a small length": (start(192), endless(PART), "192 bytes, as announced"),
    "beside a missing file": (start(0, 404), endless(PART, 0, None, 404), "nothing is there"),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_ends(flood: str, call: Call, tmp_path: Path) -> None:
    head, get, message = FLOODS[flood]
    (tmp_path / "d.csv").write_text("image,text\na,one\nb,two\n")
    with serving(head, get) as address:
        outcome = call(
            "evaluate", "--dataset", tmp_path / "d.csv", "--image-embeddings", address, "--caption-embeddings", address,
            "-o", tmp_path / "out",
        )  # fmt: skip
    assert outcome.code == 3, outcome.err
    assert message in outcome.err
    assert left(tmp_path / "cache") < 1000


def test_a_slow_server_that_keeps_sending_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is for each megabyte, not for all."""
    monkeypatch.setenv("CROSSLENS_MAX_REMOTE_BYTES", "100000000")
    rows = np.arange(1 << 20, dtype=np.float32).reshape(-1, 4)
    content = io.BytesIO()
    np.save(content, rows)

    def send(handler: http.server.BaseHTTPRequestHandler) -> None:
        start(len(content.getvalue()))(handler)
        for at in range(0, len(content.getvalue()), 1 << 20):
            handler.wfile.write(content.getvalue()[at : at + (1 << 20)])
            time.sleep(0.4)

    with serving(start(len(content.getvalue())), send) as address:
        np.testing.assert_array_equal(np.asarray(read_vectors(address, "image")), rows)


@pytest.mark.parametrize("answer", ["403", "500", "junk", "closes", "loop", "another scheme", "nobody"])
def test_a_server_that_fails_is_not_taken_for_a_missing_file(answer: str, refuses: Refuses) -> None:
    """Only 404 says that nothing is there."""

    def send(handler: http.server.BaseHTTPRequestHandler) -> None:
        if answer.isdigit():
            handler.send_error(int(answer))
        elif answer in ("loop", "another scheme"):
            handler.send_response(302)
            handler.send_header("Location", "/vectors.npy" if answer == "loop" else "file:///etc/hostname")
            handler.end_headers()
        elif answer == "junk":
            handler.wfile.write(b"\x00\xff" * 99)

    with serving(send, send) as address:
        if answer != "nobody":
            message = refuses(lambda: read_vectors(address, "image"))
    if answer == "nobody":  # the server has ended
        message = refuses(lambda: read_vectors(address, "image"))
    assert "nothing is there" not in message
    assert ("access is refused" in message) == (answer == "403")


def test_a_missing_file_is_said_to_be_missing(refuses: Refuses) -> None:
    with serving(start(status=404), start(status=404)) as address:
        assert "nothing is there" in refuses(lambda: read_vectors(address, "image"))


def test_the_time_of_a_connection_is_told_as_the_limit_that_it_is(refuses: Refuses) -> None:
    """Whoever notices it first, the connection or who waits for it."""

    def working(_: object) -> None:
        time.sleep(0.1)
        raise FileNotFoundError("address") from TimeoutError("of the socket")

    assert "CROSSLENS_MAX_REMOTE_SECONDS" in refuses(lambda: _in_time(working))


@pytest.mark.parametrize("address", ["http://127.0.0.1:40313/vectors.npy", "http://host/403/vectors.npy"])
def test_an_address_does_not_tell_that_access_is_refused(address: str) -> None:
    failed = OSError(f"0, message='', url='{address}'")
    assert "access is refused" not in str(_refusal(address, failed))
    assert "access is refused" in str(_refusal(address, OSError(f"403, message='', url='{address}'")))
