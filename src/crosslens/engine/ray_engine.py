"""Tasks on a Ray cluster, or on a Ray of its own on this machine.

Ray repeats a task whose worker or node has died; every result is taken once, in order. So the loss of any machine but
this process's own changes nothing but the time, and this process stores what it has as it does without a cluster. To a
task travel arrays of large files as the files' names, and everything else by content; buffers of arrays are kept apart
from the rest, so that processes of one machine can share them without a copy.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import signal
import socket
import sys
import threading
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crosslens.core import (
    CrosslensError,
    MissingExtraError,
    UsageError,
    argument,
    as_user_error,
    available_cores,
    limit_cores,
    load_plugin,
    loaded_plugins,
)
from crosslens.storage import Array, is_verifying, verification


class Packed(NamedTuple):
    """A value on its way: its structure, and the contents of its arrays."""

    structure: bytes
    buffers: list[Array]

    @property
    def size(self) -> int:
        """How many bytes travel."""
        return len(self.structure) + sum(buffer.nbytes for buffer in self.buffers)


def pack(value: Any, pickler: type[pickle.Pickler] = pickle.Pickler) -> Packed:
    """A value for :func:`unpack`; ``pickler`` may be one that takes functions of any kind, too."""

    class Packer(pickler):  # type: ignore[misc,valid-type]
        def reducer_override(self, value: Any) -> Any:
            if type(value) in (np.ndarray, np.memmap):
                stored = _stored_part(value)
                return NotImplemented if stored is None else (open_part, stored)
            if isinstance(value, threading.local):  # buffers of a thread: every process has its own
                return threading.local, ()
            inherited = getattr(super(), "reducer_override", None)
            return NotImplemented if inherited is None else inherited(value)

    structure, buffers = io.BytesIO(), list[Array]()
    Packer(
        structure, protocol=5, buffer_callback=lambda part: buffers.append(np.frombuffer(part.raw(), np.uint8))
    ).dump(value)
    return Packed(structure.getvalue(), buffers)


def unpack(packed: Packed) -> Any:
    """The value; its arrays are read-only where the buffers are."""
    return pickle.loads(packed.structure, buffers=packed.buffers)


def _stored_part(array: Array) -> tuple[str, int, int, str, tuple[int, ...]] | None:
    """The part of a file that an array is: the file and its size, where in it, type and shape; None for others."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and not (isinstance(owner, np.memmap) and isinstance(owner.base, mmap.mmap)):
        owner = owner.base
    file = getattr(owner, "filename", None)
    if owner is None or file is None or not array.flags.c_contiguous or array.dtype.hasobject:
        return None
    start = int(owner.offset) + array.ctypes.data - owner.ctypes.data
    return str(Path(file).absolute()), Path(file).stat().st_size, start, array.dtype.str, array.shape


def open_part(file: str, size: int, start: int, dtype: str, shape: tuple[int, ...]) -> Array:
    """The array that a part of a file holds; a machine without that file raises."""
    path = Path(file)
    if not path.is_file() or path.stat().st_size != size:
        problem = "is another file" if path.is_file() else "does not exist"
        raise missing_on_node(f"{file} {problem}")
    if not np.prod(shape):
        return np.empty(shape, dtype)
    return np.memmap(file, dtype, "r", start, shape)


def missing_on_node(problem: str) -> CrosslensError:
    """The error of a node that lacks a file which the process that started the work has."""
    return CrosslensError(
        f"{problem} on the node {socket.gethostname()}",
        fix="put the dataset and its files on storage that all nodes mount under the same path",
        code="missing-on-node",
    )


_CONNECT = 5.0
"""Seconds until an address counts as unreachable."""


def _unreachable(address: str, reason: str) -> CrosslensError:
    return CrosslensError(
        f"no Ray cluster answers at {address}: {reason}",
        fix="check that the head of a cluster runs there and that this machine can reach it; without "
        f"{argument('ray_address')} Ray runs on this machine",
        code="unreachable",
        option="ray_address",
    )


def _on_termination(handler: Any) -> None:
    """What SIGTERM does from now on; only the main thread can say so, and Ray says nothing in others, either."""
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _connect(address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no reports over the network
    import ray

    # Ray prints there which tasks it repeats, between the results of a command; its log files have that, too.
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *message, **options: None
    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address in (None, "local"):
        # Tasks hold little; where other programs fill the memory, Ray would end them again and again.
        os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")
        ray.init(address="local", num_cpus=available_cores(), include_dashboard=False, **quiet)
        return
    address, log = str(address), ""
    try:
        with _errors_aside() as read_log:
            try:
                ray.init(address=address, **quiet)
            finally:
                log = read_log()
    except RuntimeError as error:
        if "ersion mismatch" not in str(error):
            raise _unreachable(address, first_line(error)) from error
        raise CrosslensError(
            f"the cluster at {address} runs other versions: {' '.join(str(error).split())}",
            fix="use the same versions of Ray and Python here and on all nodes",
            code="other-version",
        ) from error
    except (ConnectionError, ValueError) as error:
        raise _refused(address) if _NO_TOKEN in log else _unreachable(address, first_line(error)) from error
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


def first_line(error: BaseException) -> str:
    """What an error says, without the traceback that Ray appends."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


_KEPT = 2
"""Shared values that a worker keeps at the same time: the next task usually reads the same."""
_LARGE_BLOCK = 31 << 20
_SHARED: OrderedDict[str, Any] = OrderedDict()


@dataclass(frozen=True)
class TaskSetting:
    """What a worker needs to know of the process that started the work."""

    crosslens: str
    plugins: tuple[str, ...]
    verify: bool


@dataclass(frozen=True)
class TaskFailure:
    """An error for the user, to be raised where the user is."""

    kind: type[CrosslensError]
    facts: dict[str, Any]
    arguments: tuple[Any, ...]

    @staticmethod
    def of(error: CrosslensError) -> TaskFailure:
        """Whatever arguments its class takes."""
        return TaskFailure(type(error), dict(vars(error)), error.args)

    def error(self) -> CrosslensError:
        error = self.kind.__new__(self.kind)
        error.args = self.arguments
        vars(error).update(self.facts)
        return error


def execute(setting: TaskSetting, payload: Packed, shared_key: str, shared: Callable[[], Packed]) -> Any:
    """The result of a packed ``(work, task)``, or its :class:`TaskFailure`."""
    try:
        installed = version("crosslens")
        if installed != setting.crosslens:
            raise CrosslensError(
                f"the node {socket.gethostname()} has crosslens {installed}, and the work was started by "
                f"{setting.crosslens}",
                fix="install the same version on all nodes",
                code="other-version",
            )
        limit_cores(1)
        _keep_memory()
        for plugin in setting.plugins:
            if not Path(plugin).is_file():
                raise missing_on_node(f"the plugin {plugin} does not exist")
            load_plugin(plugin)
        work, task = unpack(payload)
        with verification(setting.verify):
            if shared_key not in _SHARED:
                while len(_SHARED) >= _KEPT:
                    _SHARED.popitem(last=False)
                _SHARED[shared_key] = unpack(shared())
            _SHARED.move_to_end(shared_key)
            return work(_SHARED[shared_key], task)
    except CrosslensError as error:
        return TaskFailure.of(error)
    except Exception as error:
        user_error = as_user_error(error)
        if user_error is None:
            raise
        return TaskFailure.of(user_error)


@cache
def _keep_memory() -> None:
    """Have the process reuse memory instead of giving it back to the system after every buffer, which costs a third.

    The GNU allocator gives back what is free beyond twice the largest block that was ever mapped and freed, up to
    32 MiB: the process that started the work had such blocks, and its workers have none.
    """
    np.empty(_LARGE_BLOCK, np.uint8)


S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 2
"""Tasks that are under way for each that can run: when one ends, the next has arrived."""
_BYTES_AHEAD = 1 << 30
"""Bytes that tasks and results hold together while they are under way."""
_RETRIES = 50
"""How often a task is repeated whose worker or node died; one that kills its worker must end at some time."""
_LOOK = 0.2
"""Seconds until Ctrl-C is noticed: an endless wait would never be interrupted."""
_COUNT = 2.0
"""Seconds after which the cores of the cluster are counted again: nodes come and go."""


class RayEngine:
    """Runs tasks on Ray, each on one core."""

    name = "ray"
    distributed = True

    def __init__(self, address: str | None = None) -> None:
        if find_spec("ray") is None:
            raise MissingExtraError(f"{argument('engine', 'ray')}", "ray", "ray")
        self._address = address = address or os.environ.get("RAY_ADDRESS") or None
        self._is_connected, self._before = False, signal.getsignal(signal.SIGTERM)
        self._counted = (-_COUNT, dict[str, float]())
        if address is None:
            return
        if address not in ("auto", "local"):
            host, colon, port = address.rpartition(":")
            if "://" in address or not colon or not port.isdecimal():
                raise UsageError(
                    f"a Ray address is HOST:PORT or auto, not {address!r}",
                    fix="copy it from what ray start prints, such as 10.0.0.1:6379, and run the command inside the "
                    "cluster",
                    option="ray_address",
                )
            try:  # Ray itself would try for a minute
                socket.create_connection((host.strip("[]"), int(port)), _CONNECT).close()
            except (OSError, OverflowError) as error:
                raise _unreachable(address, str(error)) from error
        self._connect()  # before the work that comes first in this process

    def slots(self, *, gpu: bool = False) -> int:
        """Cores of the cluster, or its GPUs, counted a moment ago."""
        when, counts = self._counted
        if time.monotonic() - when > _COUNT:
            counts = self._connect().cluster_resources()
            self._counted = (time.monotonic(), counts)
        return int(counts.get("GPU", 0)) if gpu else max(1, int(counts.get("CPU", 0)))

    def exceeds(self, own: int, *, gpu: bool = False) -> bool:
        """Whether other nodes have some, or this one has more than this process sees.

        Nodes may join a cluster later: so does one where nobody has any yet, this process included. It has cores, but a
        cluster without a core is one that waits for nodes.
        """
        ray = self._connect()
        counts = {
            node["NodeID"]: int(node["Resources"].get("GPU" if gpu else "CPU", 0))
            for node in ray.nodes()
            if node["Alive"]
        }
        here = counts.pop(ray.get_runtime_context().get_node_id(), 0)
        if here or any(counts.values()):
            return here > own or any(counts.values())
        return self._address not in (None, "local") and (own == 0 or not gpu)

    def run(
        self, work: Callable[[S, T], R], shared: S, tasks: Iterable[T], *,
        done: Callable[[T], object] | None = None, size: int = 0, gpu: bool = False,
    ) -> Iterator[R]:  # fmt: skip
        ray = self._connect()
        from ray.cloudpickle import CloudPickler

        key, stored = uuid.uuid4().hex, ray.put(pack(shared, CloudPickler))  # what all tasks share is sent once
        setting = TaskSetting(version("crosslens"), tuple(loaded_plugins()), is_verifying())
        remote = ray.remote(_execute).options(
            num_cpus=1, num_gpus=int(gpu), max_retries=_RETRIES, retry_exceptions=False, name="crosslens"
        )
        waiting, under_way = iter(tasks), deque[_UnderWay]()
        try:
            has_more = True
            while has_more or under_way:
                slots = max(1, self.slots(gpu=gpu))
                least = slots + 1 if gpu else 2  # no GPU waits for memory, which nodes with GPUs have
                ahead = _AHEAD * slots if not size else max(least, min(_AHEAD * slots, _BYTES_AHEAD // size))
                while has_more and len(under_way) < ahead:
                    task = next(waiting, _END)
                    has_more = task is not _END
                    if has_more:
                        # In a list the reference itself arrives: a worker that has the value need not fetch it again.
                        packed = pack((work, task), CloudPickler)
                        under_way.append(_UnderWay(task, remote.remote(setting, packed, key, [stored])))
                running = {entry.reference: entry for entry in under_way if not entry.finished}
                ready = ray.wait(list(running), num_returns=1, timeout=_LOOK)[0] if running else ()
                if ready:  # and all others that are finished by now
                    ready = ray.wait(list(running), num_returns=len(running), timeout=0)[0]
                for reference in ready:
                    running[reference].finished = True
                    if done is not None:
                        done(running[reference].task)
                while under_way and under_way[0].finished:
                    yield _result(ray, under_way.popleft().reference)
        finally:
            for unfinished in under_way:
                ray.cancel(unfinished.reference, force=True)

    def close(self) -> None:
        """Stop the Ray that was started here, or leave the cluster; tasks that are under way are cancelled."""
        if self._is_connected:
            import ray

            ray.shutdown()
            _on_termination(self._before)
            self._is_connected = False

    def _connect(self) -> Any:
        """Ray, connected to a cluster, or started on this machine until this process ends.

        At SIGTERM, Ray would end its own processes while this one still works with them, which then crashes. Here it
        counts as Ctrl-C, unless the program has its own answer.
        """
        import ray

        if not ray.is_initialized():
            self._before = signal.getsignal(signal.SIGTERM)
            try:
                _connect(self._address)
            except BaseException as error:
                _on_termination(self._before)
                if isinstance(error, SystemExit):  # Ray's answer while it starts
                    raise KeyboardInterrupt from None
                raise
            _on_termination(signal.default_int_handler if self._before is signal.SIG_DFL else self._before)
            self._is_connected = True
        return ray


_END: Any = object()


@dataclass
class _UnderWay:
    """A task on the cluster."""

    task: Any
    reference: Any
    finished: bool = False


def _execute(setting: TaskSetting, payload: Any, key: str, stored: list[Any]) -> Any:
    import ray

    return execute(setting, payload, key, lambda: ray.get(stored[0]))


def _result(ray: Any, reference: Any) -> Any:
    try:
        result = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise _task_error(error) from error
    except ray.exceptions.RayError as error:
        raise CrosslensError(
            f"the cluster lost a task: {first_line(error)}",
            fix="run the same command again, which resumes; if it happens again, give the workers more memory",
            code="lost-task",
        ) from error
    if isinstance(result, TaskFailure):
        raise result.error()
    return result


def _task_error(error: Any) -> BaseException:
    """What a task raised; a node without crosslens gets a message of its own."""
    cause: BaseException = getattr(error, "cause", None) or error
    text = f"{cause} {error}"
    if "No module named 'crosslens'" in text or (
        isinstance(cause, ModuleNotFoundError) and str(cause.name).startswith("crosslens")
    ):
        return CrosslensError(
            "a node of the cluster has no crosslens, or another version of it",
            fix=f"install crosslens {version('crosslens')} on all nodes",
            code="other-version",
        )
    return cause
