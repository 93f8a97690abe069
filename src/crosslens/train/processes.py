"""Where and how a training computes: device, threads, precision, and several processes on this machine.

A worker is ``python -m crosslens.train.processes RANK SIZE PORT``. It reads a function and its arguments from standard
input, calls it with its :class:`Group`, and reports on standard output; both pipes hold pickles of this very program,
never of a file. Nothing is forked, and the caller's script is not imported a second time. When the caller dies, its end
of the pipe closes, and the workers end too.
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
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from crosslens.core import (
    CrosslensError,
    MissingExtraError,
    Progress,
    UsageError,
    available_cores,
    load_plugin,
    loaded_plugins,
)
from crosslens.train.stored.checkpoint import LOSS


def require_torch() -> None:
    """Raise unless the packages of the extra ``train`` are there."""
    try:
        import safetensors.torch  # noqa: F401  # imports torch
    except ImportError as error:
        package = "safetensors" if str(error.name).startswith("safetensors") else "torch"
        raise MissingExtraError("training", package, "train") from error


@contextmanager
def thread_limit(count: int | None) -> Iterator[None]:
    """Compute with so many threads; None: as many as torch chooses."""
    import torch

    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seed_generators(seed: int, device: Any) -> None:
    """Seed what draws on this device, and on the CPU.

    ``torch.manual_seed`` also puts calls off for devices that are not in use, each with the whole stack as text: on a
    CPU that is a noticeable part of a small step, more of it the deeper the stack.
    """
    import torch

    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def precision_context(precision: str, device: Any) -> AbstractContextManager[Any]:
    """Inside, a model computes in this precision; its weights stay float32."""
    import torch

    if precision == "fp32":
        return nullcontext()
    autocast: AbstractContextManager[Any] = torch.autocast(device.type, torch.bfloat16)
    return autocast


Array = np.ndarray[Any, Any]


class PeerLostError(CrosslensError):
    """Another process of the group is gone."""


@dataclass(frozen=True)
class Group:
    """This process among ``size``."""

    rank: int = 0
    size: int = 1
    device: Any = None
    asked_to_stop: Callable[[], bool] = lambda: False

    @property
    def leads(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    def share(self, rows: Array) -> Array:
        """The rows that this process encodes."""
        return np.array_split(rows, self.size)[self.rank]

    def gather(self, encoding: Any, *, add_gradients: bool = False) -> Any:
        """The encodings of the whole batch, in its order; a tensor, or a tuple of such.

        Backwards, this process' share gets the gradient of this process' loss or, with ``add_gradients``, the sum of
        all processes' gradients.
        """
        if self.size == 1:
            return encoding
        if isinstance(encoding, tuple):
            return tuple(self.gather(part, add_gradients=add_gradients) for part in encoding)
        import torch
        from torch.nn.functional import pad

        own = encoding
        shapes = [torch.zeros(own.ndim, dtype=torch.int64, device=self.device) for _ in range(self.size)]
        self._call("all_gather", shapes, torch.tensor(own.shape, dtype=torch.int64, device=self.device))
        sizes = torch.stack(shapes).cpu().numpy()
        largest = sizes.max(axis=0)
        # Another share of the captions may have longer ones; padding is 0, as in every encoding of words.
        widths = [width for axis in range(own.ndim - 1, 0, -1) for width in (0, int(largest[axis]) - own.shape[axis])]
        own = pad(own, widths) if any(widths) else own
        sent = own.detach().to(self.device)  # lengths may be on the CPU
        if len(own) < largest[0]:
            sent = torch.cat([sent, sent.new_zeros(int(largest[0]) - len(own), *own.shape[1:])])
        kind = sent.dtype
        if kind in (torch.bfloat16, torch.float16, torch.bool):  # not every backend sends these
            sent = sent.float()
        parts = [torch.empty_like(sent) for _ in range(self.size)]
        self._call("all_gather", parts, sent.contiguous())
        live = [part[: sizes[rank, 0]].to(own.device, kind) for rank, part in enumerate(parts)]
        live[self.rank] = own
        whole: Any = torch.cat(live)
        if add_gradients and whole.requires_grad:

            def added(gradient: Any) -> Any:
                gradient = gradient.contiguous().clone()
                self.add(gradient)
                return gradient

            whole.register_hook(added)
        return whole

    def add(self, tensor: Any) -> None:
        """Replace a tensor by its sum over all processes."""
        if self.size > 1:
            self._call("all_reduce", tensor)

    def from_leader(self, number: float) -> float:
        """The first process' number, in all of them."""
        return float(self.add_array(np.array([number if self.leads else 0.0]))[0])

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """The first process runs the block before the others do: they find in caches what it has computed."""
        if not self.leads:
            self.from_leader(0)
        yield
        if self.leads:
            self.from_leader(0)

    def add_array(self, array: Array) -> Array:
        """The sum of an array over all processes."""
        import torch

        if self.size == 1:
            return array
        tensor = torch.from_numpy(array).to(self.device)
        self.add(tensor)
        total: Array = tensor.cpu().numpy()
        return total

    def add_gradients(self, model: Any) -> None:
        """Replace every gradient by its sum over all processes; those of the loss are complete in each."""
        import torch

        gradients = [
            parameter.grad
            for name, parameter in model.named_parameters()
            if parameter.grad is not None and not name.startswith(f"{LOSS}.")
        ]
        if self.size == 1 or not gradients:
            return
        flat: Any = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self.add(flat)
        for gradient, total in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(total.view_as(gradient))

    def is_stopped(self) -> bool:
        """Whether any process was asked to stop: the same answer in all."""
        import torch

        if self.size == 1:
            return self.asked_to_stop()
        total = torch.tensor([int(self.asked_to_stop())], device=self.device)
        self.add(total)
        return bool(total.item())

    def _call(self, name: str, *arguments: Any) -> None:
        import torch.distributed

        try:
            getattr(torch.distributed, name)(*arguments)
        except RuntimeError as error:
            raise PeerLostError(f"another process of the training is gone: {error}") from error


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
    # -P: nothing is imported from the current folder, which may be somebody else's.
    command = [sys.executable, "-P", "-m", "crosslens.train.processes"]
    workers = [
        subprocess.Popen(
            [*command, str(rank), str(size), str(store.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for rank in range(size)
    ]
    try:
        for rank, worker in enumerate(workers):
            threading.Thread(target=_serve, args=(rank, worker, payload, inbox), daemon=True).start()
        return _follow(workers, inbox, progress, watch)
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.wait()


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
            for worker in workers:
                assert worker.stdin is not None
                with suppress(OSError):
                    worker.stdin.write(STOP)
                    worker.stdin.flush()
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
                ending = f"exited unexpectedly with code {content}"
                if content < 0:
                    ending = f"was ended by signal {-content}"
                    with suppress(ValueError):
                        ending = f"was ended by {signal.Signals(-content).name}"
                lost = f"process {rank + 1} of {len(workers)} {ending}"
                deadline = time.monotonic() + _PATIENCE
    if lost:
        raise CrosslensError(lost, fix="see its message above; the same command resumes at the last checkpoint")
    return result


class Reporter:
    """The first process' progress, passed on; the others' is not shown."""

    def __init__(self, send: Callable[[str, Any], None]) -> None:
        self._send = send
        self._waiting, self._last = 0, 0.0

    def start(self, label: str, total: int) -> None:
        self._send("start", (label, total))

    def advance(self, steps: int = 1) -> None:
        """Steps are done; a message says so every tenth of a second."""
        self._waiting += steps
        if time.monotonic() - self._last > 0.1:
            self._flush()

    def finish(self) -> None:
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

    def listen() -> None:
        """Note a request to stop; end with the parent."""
        while line := sys.stdin.buffer.readline():
            if line == STOP:
                stop.set()
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
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
    from crosslens.train import processes  # whose classes are those that the other modules use

    status = processes.main(*map(int, sys.argv[1:4]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # not by way of torch's own threads, which may still wait for a lost process
