"""Processes on this machine that compute something together: started, watched and ended by the one that asks for it.

A worker is ``python -m crosslens.train.compute.processes RANK SIZE PORT``. It reads a function and its arguments from
standard input, calls it with its :class:`Group`, and reports on standard output; both pipes hold pickles of this very
program, never of a file. Nothing is forked, and the caller's script is not imported a second time. When the caller
dies, its end of the pipe closes, and the workers end too.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from crosslens.core import CrosslensError, Progress, UsageError, available_cores, load_plugin, loaded_plugins
from crosslens.train.compute.group import Group, PeerLostError

STOP = b"stop\n"
_PATIENCE = 5.0
"""Seconds to wait for the reason, when a process has ended without one."""
_LONGEST_WAIT = timedelta(days=1)
"""For the others: the parent notices when one ends, and one may have much to do alone."""
_END = "end"


def check_processes(size: int, device: Any, batch_size: int) -> None:
    """Raise unless that many processes can share a batch on this kind of device."""
    import torch

    if size == 1:
        return
    if batch_size < size:
        raise UsageError(
            f"a batch of {batch_size} pairs for {size} processes", fix="choose a batch of at least 1 pair per process",
            option="processes",
        )  # fmt: skip
    if not torch.distributed.is_available():
        raise UsageError("this build of torch cannot use several processes", fix="leave processes at 1",
                         option="processes")  # fmt: skip
    if device.type == "cuda" and device.index is not None:
        raise UsageError(f"{size} processes on the one device {device}", fix="name the device cuda", option="device")
    if device.type == "cuda" and size > torch.cuda.device_count():
        raise UsageError(
            f"{size} processes on {torch.cuda.device_count()} GPUs", fix="use one process per GPU", option="processes"
        )


def compute_together(
    function: Callable[..., Any], arguments: tuple[Any, ...], size: int, device: Any, *,
    progress: Progress, watch: Callable[[dict[str, Any]], None] | None,
) -> Any:  # fmt: skip
    """What ``function(*arguments, group, progress=, watch=)``, called in ``size`` processes, returns in the first.

    The function is one of a module. An error of any process is raised here. Ctrl-C asks the processes to stop by
    themselves, a second one ends them at once.
    """
    import torch.distributed

    distributed: Any = torch.distributed
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    payload = pickle.dumps((loaded_plugins(), function, arguments, device.type), pickle.HIGHEST_PROTOCOL)
    inbox: queue.SimpleQueue[tuple[int, str, Any]] = queue.SimpleQueue()
    workers = [_start(rank, size, store.port) for rank in range(size)]
    try:
        for rank, worker in enumerate(workers):
            threading.Thread(target=_serve, args=(rank, worker, payload, inbox), daemon=True).start()
        return _follow(workers, inbox, progress, watch)
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.wait()


def _start(rank: int, size: int, port: int) -> subprocess.Popen[bytes]:
    # -P: nothing is imported from the current folder, which may be somebody else's.
    command = [sys.executable, "-P", "-m", "crosslens.train.compute.processes", str(rank), str(size), str(port)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _serve(rank: int, worker: subprocess.Popen[bytes], payload: bytes, inbox: Any) -> None:
    """Send a worker its work, and put what it reports into the inbox."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    with suppress(OSError, EOFError, pickle.UnpicklingError):
        worker.stdin.write(payload)
        worker.stdin.flush()
        while True:
            inbox.put((rank, *pickle.load(worker.stdout)))  # of our own process
    inbox.put((rank, _END, worker.wait()))


def _follow(
    workers: list[subprocess.Popen[bytes]], inbox: Any, progress: Progress, watch: Callable[..., None] | None
) -> Any:
    """Pass on what the workers report, until all have ended; the result of the first."""
    result, running, deadline, lost = None, len(workers), float("inf"), ""
    stopping = False
    while running:
        try:
            rank, kind, content = inbox.get(timeout=0.2)  # see wait_for_all: an endless wait may ignore Ctrl-C
        except queue.Empty:
            if time.monotonic() > deadline:
                break
            continue
        except KeyboardInterrupt:
            if stopping:
                raise
            stopping = True
            _ask_to_stop(workers)
            continue
        if kind == "result":
            result = content
        elif kind == "error":
            raise content
        elif kind == "row" and watch is not None:
            watch(content)
        elif kind in ("start", "advance", "finish"):
            getattr(progress, kind)(*content)
        elif kind == _END:
            running -= 1
            if content and not lost:
                lost = f"process {rank + 1} of {len(workers)} {_ending(content)}"
                deadline = time.monotonic() + _PATIENCE
    if lost:
        raise CrosslensError(lost, fix="see its message above; the same command resumes at the last checkpoint")
    return result


def _ask_to_stop(workers: list[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        assert worker.stdin is not None
        with suppress(OSError):
            worker.stdin.write(STOP)
            worker.stdin.flush()


def _ending(code: int) -> str:
    if code >= 0:
        return f"exited unexpectedly with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


class Reporter:
    """The first process' progress, passed on; the others' is not shown."""

    def __init__(self, send: Callable[[str, Any], None]) -> None:
        self._send = send
        self._waiting, self._last = 0, 0.0

    def start(self, label: str, total: int) -> None:
        """A stage begins."""
        self._send("start", (label, total))

    def advance(self, steps: int = 1) -> None:
        """Steps are done; a message says so every tenth of a second."""
        self._waiting += steps
        if time.monotonic() - self._last > 0.1:
            self._flush()

    def finish(self) -> None:
        """The stage is over."""
        self._flush()
        self._send("finish", ())

    def _flush(self) -> None:
        if self._waiting:
            self._send("advance", (self._waiting,))
        self._waiting, self._last = 0, time.monotonic()


def main(rank: int, size: int, port: int) -> int:
    """One worker."""
    # Ctrl-C goes to the whole group; the parent says when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a model prints must not end up among the messages

    def send(kind: str, content: Any) -> None:
        pickle.dump((kind, content), out)
        out.flush()

    plugins, function, arguments, device_type = pickle.load(sys.stdin.buffer)  # of our own parent
    stop = threading.Event()
    threading.Thread(target=_listen, args=(stop,), daemon=True).start()
    try:
        for plugin in plugins:
            load_plugin(plugin)
        group = _join(rank, size, port, device_type, stop)
        leads = {"progress": Reporter(send), "watch": lambda row: send("row", row)}
        result = function(*arguments, group, **(leads if rank == 0 else {}))
        if rank == 0:
            send("result", result)
    except PeerLostError:
        return 1  # the parent knows more
    except BaseException as error:
        if rank and isinstance(error, KeyboardInterrupt):
            return 0  # the first process says so, when it has written what it must
        send("error", _sendable(error))
        return 1
    return 0


def _join(rank: int, size: int, port: int, device_type: str, stop: threading.Event) -> Group:
    import torch
    import torch.distributed

    device = torch.device(device_type, rank) if device_type == "cuda" else torch.device(device_type)
    if device_type == "cuda":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(max(1, available_cores() // size))
    distributed: Any = torch.distributed
    store = distributed.TCPStore("127.0.0.1", port, is_master=False)
    backend = "nccl" if device_type == "cuda" else "gloo"
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_LONGEST_WAIT)
    return Group(rank, size, device, stop.is_set)


def _listen(stop: threading.Event) -> None:
    """Note a request to stop; end with the parent."""
    while line := sys.stdin.buffer.readline():
        if line == STOP:
            stop.set()
    os._exit(1)


def _sendable(error: BaseException) -> BaseException:
    """The error, or one of the same text where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))  # of our own
    except Exception:
        if isinstance(error, CrosslensError):
            return CrosslensError(error.problem, fix=error.fix, code=error.code, option=error.option)
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


if __name__ == "__main__":
    status = main(*map(int, sys.argv[1:4]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # not by way of torch's own threads, which may still wait for a lost process
