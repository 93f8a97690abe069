"""Where and how a training computes: device, threads, precision, and several processes on this machine."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import connection as multiprocessing_connection, parent_process
from typing import Any

import numpy as np

from crosslens.core import CrosslensError, MissingExtraError, UsageError, available_cores, load_plugin, loaded_plugins
from crosslens.engine import Progress
from crosslens.storage import Array
from crosslens.train.stored.checkpoint import LOSS


def require_torch(purpose: str = "training") -> None:
    """Raise unless the packages of the extra ``train`` are there."""
    try:
        import safetensors.torch  # noqa: F401  # imports torch
    except ImportError as error:
        package = "safetensors" if str(error.name).startswith("safetensors") else "torch"
        raise MissingExtraError(purpose, package, "train") from error


@contextmanager
def same_kernels(threads: int | None) -> Iterator[None]:
    """Compute with so many threads (None: as many as torch chooses), and to the same bits in every process.

    Sums are split by threads. OpenMP, where ``OMP_DYNAMIC`` allows it, takes fewer the busier the machine is; MKL keeps
    to the number once torch has been told it. After a product that failed, as bf16 does on processors without it, torch
    does without oneDNN for the rest of the process: on ARM, products of float32 round differently from then on.
    """
    import torch
    from threadpoolctl import ThreadpoolController

    libraries = [library.dynlib for library in ThreadpoolController().select(user_api="openmp").lib_controllers]
    libraries = [library for library in libraries if hasattr(library, "omp_set_dynamic")]
    dynamic = [library.omp_get_dynamic() for library in libraries]
    count, one_dnn = torch.get_num_threads(), torch.backends.mkldnn.enabled
    for library in libraries:
        library.omp_set_dynamic(0)
    torch.backends.mkldnn.enabled = True
    torch.set_num_threads(threads or count)
    try:
        yield
    finally:
        torch.set_num_threads(count)
        torch.backends.mkldnn.enabled = one_dnn
        for library, was_dynamic in zip(libraries, dynamic, strict=True):
            library.omp_set_dynamic(was_dynamic)


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

        share = encoding
        shapes = [torch.zeros(share.ndim, dtype=torch.int64, device=self.device) for _ in range(self.size)]
        self._call("all_gather", shapes, torch.tensor(share.shape, dtype=torch.int64, device=self.device))
        sizes = torch.stack(shapes).cpu().numpy()
        largest = sizes.max(axis=0)
        # Another share of the captions may have longer ones; padding is 0, as in every encoding of words.
        widths = [
            width for axis in range(share.ndim - 1, 0, -1) for width in (0, int(largest[axis]) - share.shape[axis])
        ]
        share = pad(share, widths) if any(widths) else share
        sent = share.detach().to(self.device)  # lengths may be on the CPU
        if len(share) < largest[0]:
            sent = torch.cat([sent, sent.new_zeros(int(largest[0]) - len(share), *share.shape[1:])])
        kind = sent.dtype
        if kind in (torch.bfloat16, torch.float16, torch.bool):  # not every backend sends these
            sent = sent.float()
        parts = [torch.empty_like(sent) for _ in range(self.size)]
        self._call("all_gather", parts, sent.contiguous())
        live = [part[: sizes[rank, 0]].to(share.device, kind) for rank, part in enumerate(parts)]
        live[self.rank] = share
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


_PATIENCE = 5.0
"""Seconds to wait for the reason, when a process has ended without one."""
_LONGEST_WAIT = timedelta(days=1)
"""For the others: the parent notices when one ends, and one may have much to do alone."""


def check_processes(size: int, device: Any, batch_size: int) -> None:
    """Raise unless that many processes can share a batch on this kind of device."""
    import torch

    if size == 1:
        return
    if batch_size < size:
        raise UsageError(
            f"a batch of {batch_size} pairs for {size} processes",
            fix="choose a batch of at least 1 pair per process",
            option="processes",
        )
    if not torch.distributed.is_available():
        raise UsageError(
            "this build of torch cannot use several processes", fix="leave processes at 1", option="processes"
        )
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
    import torch.multiprocessing

    distributed: Any = torch.distributed
    connection: Any = multiprocessing_connection
    context: Any = torch.multiprocessing.get_context("spawn")  # a forked process can use neither CUDA nor threads
    store, stop = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False), context.Event()
    shared = size, store.port, device.type, stop, loaded_plugins(), function, arguments
    workers: list[Any] = []
    reports: dict[Any, Any] = {}
    result, lost = None, False
    try:
        for rank in range(size):
            report, reporter = context.Pipe(duplex=False)
            reports[report] = context.Process(target=_work, args=(rank, reporter, *shared))
            workers.append(reports[report])
            workers[-1].start()
            reporter.close()  # so that the worker's end is the only one, and its closing is noticed
        with first_interrupt(stop.set):
            while reports and (ready := connection.wait(list(reports), _PATIENCE if lost else None)):
                for report in ready:
                    try:
                        kind, content = report.recv()
                    except (EOFError, OSError):
                        ended = reports.pop(report)
                        ended.join()
                        lost = lost or ended.exitcode != 0
                        continue
                    if kind == "error":
                        raise content
                    if kind == "result":
                        result = content
                    elif kind != "row":
                        getattr(progress, kind, lambda _: None)(*content)  # not all take notes
                    elif watch is not None:
                        watch(content)
        if lost:
            codes = [(worker.exitcode, rank) for rank, worker in enumerate(workers, start=1) if worker.exitcode]
            code, rank = min(codes)  # a signal before what followed from it
            signals = {each.value: each.name for each in signal.Signals}
            ended_by = f"was ended by {signals.get(-code, f'signal {-code}')}"
            ending = f"exited unexpectedly with code {code}" if code > 0 else ended_by
            raise CrosslensError(
                f"process {rank} of {size} {ending}",
                fix="see its message above; the same command resumes at the last checkpoint",
            )
        return result
    finally:
        for worker in workers:
            if worker.pid is not None:
                worker.kill()
                worker.join()


@contextmanager
def first_interrupt(answer: Callable[[], None]) -> Iterator[None]:
    """Call ``answer`` at the first Ctrl-C in place of raising; a second one raises."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is not signal.default_int_handler:
        yield  # somebody else answers Ctrl-C, or nobody
        return

    def note(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, handler)
        answer()

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


class Reporter:
    """The first process' progress, passed on; the others' is not shown."""

    def __init__(self, send: Callable[[tuple[str, Any]], None]) -> None:
        self._send, self._steps, self._last = send, 0, 0.0

    def start(self, label: str, total: int) -> None:
        self._send(("start", (label, total)))

    def advance(self, steps: int = 1) -> None:
        """Steps are done; a message says so every tenth of a second."""
        self._steps += steps
        if time.monotonic() - self._last > 0.1:
            self._flush()

    def note(self, text: str) -> None:
        self._send(("note", (text,)))

    def finish(self) -> None:
        self._flush()
        self._send(("finish", ()))

    def _flush(self) -> None:
        if self._steps:
            self._send(("advance", (self._steps,)))
        self._steps, self._last = 0, time.monotonic()


def _work(
    rank: int,
    reporter: Any,
    size: int,
    port: int,
    device_type: str,
    stop: Any,
    plugins: tuple[str, ...],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    """One of the processes; it ends with its parent."""
    import torch
    import torch.distributed

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent says when to stop
    os.dup2(2, 1)  # what a model prints must not end up in the output of a command
    parent: Any = parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    status = 1
    try:
        for plugin in plugins:
            load_plugin(plugin)
        device = torch.device(device_type, rank) if device_type == "cuda" else torch.device(device_type)
        if device_type == "cuda":
            torch.cuda.set_device(device)
        else:
            torch.set_num_threads(max(1, available_cores() // size))
        distributed: Any = torch.distributed
        store = distributed.TCPStore("127.0.0.1", port, is_master=False)
        backend = "nccl" if device_type == "cuda" else "gloo"
        distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_LONGEST_WAIT)
        reporting = {"progress": Reporter(reporter.send), "watch": lambda row: reporter.send(("row", row))}
        result = function(*arguments, Group(rank, size, device, stop.is_set), **(reporting if rank == 0 else {}))
        if rank == 0:
            reporter.send(("result", result))
        status = 0
    except PeerLostError:
        pass  # the parent knows more
    except BaseException as error:
        if rank and isinstance(error, KeyboardInterrupt):
            status = 0  # the first process says so, when it has written what it must
        else:
            reporter.send(("error", _sendable(error)))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # not by way of torch's own threads, which may still wait for a lost process


def _sendable(error: BaseException) -> BaseException:
    """The error, or one of the same text where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))  # of our own
    except Exception:
        if isinstance(error, CrosslensError):
            return CrosslensError(error.problem, fix=error.fix, code=error.code, option=error.option)
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
