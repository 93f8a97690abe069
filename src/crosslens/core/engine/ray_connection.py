"""Joining a Ray cluster, or starting a Ray on this machine: addresses, refusals, and what Ray prints meanwhile."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

from crosslens.core.errors import CrosslensError, UsageError, argument
from crosslens.core.long_work import available_cores

_CONNECT = 5.0
"""Seconds until an address counts as unreachable."""


def check_address(address: str) -> None:
    """Raise for an address that nobody answers at: Ray itself would try for a minute."""
    if address in ("auto", "local"):
        return
    host, colon, port = address.rpartition(":")
    if "://" in address or not colon or not port.isdecimal():
        raise UsageError(
            f"a Ray address is HOST:PORT or auto, not {address!r}",
            fix="copy it from what ray start prints, such as 10.0.0.1:6379, and run the command inside the cluster",
            option="ray_address",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, str(error)) from error


def _unreachable(address: str, reason: str) -> CrosslensError:
    return CrosslensError(
        f"no Ray cluster answers at {address}: {reason}",
        fix="check that the head of a cluster runs there and that this machine can reach it; without "
        f"{argument('ray_address')} Ray runs on this machine",
        code="unreachable",
        option="ray_address",
    )


def start_ray(address: str | None) -> Callable[[], None]:
    """Connect to a cluster, or start a Ray on this machine that ends with this process; returns how to leave it.

    At SIGTERM, Ray would end its own processes while this one still works with them, which then crashes. Here it counts
    as Ctrl-C, unless the program has its own answer.
    """
    before = signal.getsignal(signal.SIGTERM)
    try:
        _connect(address)
    except BaseException as error:
        _on_termination(before)
        if isinstance(error, SystemExit):  # Ray's answer while it starts
            raise KeyboardInterrupt from None
        raise
    _on_termination(_interrupt if before is signal.SIG_DFL else before)

    def leave() -> None:
        import ray

        ray.shutdown()
        _on_termination(before)

    return leave


def _on_termination(handler: Any) -> None:
    """What SIGTERM does from now on; only the main thread can say so, and Ray says nothing in others, either."""
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _connect(address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no reports over the network
    import ray

    _keep_off_standard_output()
    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address in (None, "local"):
        # Tasks hold little; where other programs fill the memory, Ray would end them again and again.
        os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")
        ray.init(address="local", num_cpus=available_cores(), include_dashboard=False, **quiet)
        return
    _join(ray, str(address), quiet)


def _join(ray: Any, address: str, quiet: dict[str, Any]) -> None:
    """Connect to a cluster; its refusal is an error that says what to do."""
    written = ""
    try:
        with _errors_aside() as said:
            try:
                ray.init(address=address, **quiet)
            finally:
                written = said()
    except RuntimeError as error:
        if "ersion mismatch" not in str(error):
            raise _unreachable(address, first_line(error)) from error
        raise CrosslensError(
            f"the cluster at {address} runs other versions: {' '.join(str(error).split())}",
            fix="use the same versions of Ray and Python here and on all nodes",
            code="other-version",
        ) from error
    except (ConnectionError, ValueError) as error:
        raise _refused(address) if _NO_TOKEN in written else _unreachable(address, first_line(error)) from error
    except ray.exceptions.RayError as error:
        if type(error).__name__ != "AuthenticationError":  # older versions do not have it
            raise
        raise _refused(address) from error


_NO_TOKEN = "InvalidAuthToken"
"""What Ray writes where a cluster asks for a token; its exception only says that nobody answered."""


def _refused(address: str) -> CrosslensError:
    return CrosslensError(
        f"the Ray cluster at {address} requires its authentication token, and this process has none or another",
        fix="set RAY_AUTH_MODE=token here and on all nodes, with the same token in ~/.ray/auth_token or RAY_AUTH_TOKEN",
        code="unauthenticated",
        option="ray_address",
    )


@contextmanager
def _errors_aside() -> Iterator[Callable[[], str]]:
    """Keep what compiled code writes to standard error off the terminal; the value is a function that returns it."""
    with TemporaryFile() as file:
        sys.stderr.flush()
        terminal = os.dup(2)
        os.dup2(file.fileno(), 2)

        def written() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield written
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def _keep_off_standard_output() -> None:
    """Ray prints there which tasks it repeats, between the results of a command; its log files have that, too."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *message, **options: None


def first_line(error: BaseException) -> str:
    """What an error says, without the traceback that Ray appends."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
