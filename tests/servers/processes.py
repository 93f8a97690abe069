"""Servers as processes of their own on free ports of this machine, and a connection to them that breaks."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_HOME = Path(os.environ.get("CROSSLENS_SERVERS", Path(__file__).parents[2] / ".venv-servers"))
_PATIENCE = 600.0
"""Seconds until a server answers: a machine under load is slow, not wrong."""


def program(name: str) -> str:
    """A program of the servers' environment, or a skip."""
    path = _HOME / "bin" / name
    if not path.exists():
        pytest.skip(f"{name} is not in {_HOME}: `make test-servers` installs the servers")
    return str(path)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def running(
    words: Sequence[str], folder: Path, answers: str, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server while the block lasts: begun when ``answers`` is an address that does, ended with all its children."""
    with (folder / "server.log").open("w+") as log:
        process = subprocess.Popen(
            words, cwd=folder, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            end = time.monotonic() + _PATIENCE
            while not _answers(answers):
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    pytest.fail(f"{words[0]} does not answer at {answers}:\n{log.read()[-3_000:]}")
                time.sleep(0.1)
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True  # it says no, but it speaks
    except OSError:
        return False


class Proxy:
    """A TCP connection to a port that passes everything on, until ``received`` or ``sent`` bytes: then it breaks.

    The counts are over all connections, and go on: whoever tries again is cut off at once, until ``heal``.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.heal()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def heal(self) -> None:
        self.received = self.sent = float("inf")
        self.cuts = 0

    def cut(self, *, received: float = float("inf"), sent: float = float("inf")) -> None:
        """Break after so many further bytes of the server, or to it."""
        self.received, self.sent = received, sent

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            for source, target, direction in ((client, server, "sent"), (server, client, "received")):
                threading.Thread(target=self._pass_on, args=(source, target, direction), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, direction: str) -> None:
        with suppress(OSError):
            while content := source.recv(1 << 14):
                left = getattr(self, direction)
                if len(content) > left:
                    target.sendall(content[: int(left)])
                    setattr(self, direction, 0)
                    self.cuts += 1
                    for end in (source, target):  # a reset; the other thread, which reads from it, has to let it go
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        with suppress(OSError):
                            end.shutdown(socket.SHUT_RDWR)
                        end.close()
                    return
                setattr(self, direction, left - len(content))
                target.sendall(content)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
