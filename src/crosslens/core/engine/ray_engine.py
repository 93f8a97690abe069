"""Tasks on a Ray cluster, or on a Ray of its own on this machine.

Ray repeats a task whose worker or node has died; every result is taken once, in order. So the loss of any machine but
this process's own changes nothing but the time, and this process stores what it has as it does without a cluster.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, TypeVar

from crosslens.core.engine.options import RAY
from crosslens.core.engine.packing import pack
from crosslens.core.engine.remote import TaskFailure, TaskSetting, execute
from crosslens.core.errors import CrosslensError, MissingExtraError, UsageError, argument
from crosslens.core.integrity import is_verifying
from crosslens.core.long_work import available_cores
from crosslens.core.user_code import loaded_plugins

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
_CONNECT = 5.0
"""Seconds until an address counts as unreachable."""


class RayEngine:
    """Runs tasks on Ray, each on one core."""

    name = RAY
    distributed = True

    def __init__(self, address: str | None = None) -> None:
        if find_spec("ray") is None:
            raise MissingExtraError(f"{argument('engine', RAY)}", "ray", "ray")
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self._started = False
        self._counted = (-_COUNT, 0)
        if self._address is not None:
            _check_address(self._address)
            self._connect()  # before the work that comes first in this process

    def slots(self) -> int:
        """Cores of the cluster, counted a moment ago."""
        when, count = self._counted
        if time.monotonic() - when > _COUNT:
            count = int(self._connect().cluster_resources().get("CPU", 0))
            self._counted = (time.monotonic(), count)
        return max(1, count)

    def run(
        self,
        work: Callable[[S, T], R],
        shared: S,
        tasks: Iterable[T],
        *,
        done: Callable[[T], object] | None = None,
        size: int = 0,
        gpu: bool = False,
    ) -> Iterator[R]:
        ray = self._connect()
        common = self._submitter(shared, gpu)
        waiting, under_way = iter(tasks), deque[_UnderWay]()
        try:
            has_more = True
            while has_more or under_way:
                while has_more and len(under_way) < self._most_ahead(size):
                    task = next(waiting, _END)
                    has_more = task is not _END
                    if has_more:
                        under_way.append(_UnderWay(task, common(work, task)))
                _note_finished(ray, under_way, done)
                while under_way and under_way[0].finished:
                    yield _result(ray, under_way.popleft().reference)
        finally:
            for left in under_way:
                ray.cancel(left.reference, force=True)

    def close(self) -> None:
        """Stop the Ray that was started here, or leave the cluster; tasks that are under way are cancelled."""
        if self._started:
            import ray

            ray.shutdown()
            self._started = False

    def _most_ahead(self, size: int) -> int:
        most = _AHEAD * self.slots()
        return most if not size else max(2, min(most, _BYTES_AHEAD // size))

    def _submitter(self, shared: Any, gpu: bool) -> Callable[[Any, Any], Any]:
        """A function that sends a task on its way; what all tasks share is sent once."""
        import ray
        from ray.cloudpickle import CloudPickler

        key = uuid.uuid4().hex
        stored = ray.put(pack(shared, CloudPickler))
        setting = TaskSetting(version("crosslens"), tuple(loaded_plugins()), is_verifying())
        remote = ray.remote(_execute).options(
            num_cpus=1, num_gpus=int(gpu), max_retries=_RETRIES, retry_exceptions=False, name="crosslens"
        )
        # In a list the reference itself arrives: a worker that has the value already need not fetch it again.
        return lambda work, task: remote.remote(setting, pack((work, task), CloudPickler), key, [stored])

    def _connect(self) -> Any:
        import ray

        if not ray.is_initialized():
            _start(self._address)
            self._started = True
        return ray


_END: Any = object()


class _UnderWay:
    """A task on the cluster."""

    def __init__(self, task: Any, reference: Any) -> None:
        self.task, self.reference, self.finished = task, reference, False


def _execute(setting: TaskSetting, payload: Any, key: str, stored: list[Any]) -> Any:
    import ray

    return execute(setting, payload, key, lambda: ray.get(stored[0]))


def _note_finished(ray: Any, under_way: Iterable[_UnderWay], done: Callable[[Any], object] | None) -> None:
    """Wait a moment for any task, and mark those that are finished."""
    running = {entry.reference: entry for entry in under_way if not entry.finished}
    if not running:
        return
    ready, _ = ray.wait(list(running), num_returns=1, timeout=_LOOK)
    if ready:  # and all others that are finished by now
        ready, _ = ray.wait(list(running), num_returns=len(running), timeout=0)
    for reference in ready:
        running[reference].finished = True
        if done is not None:
            done(running[reference].task)


def _result(ray: Any, reference: Any) -> Any:
    try:
        result = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise _task_error(error) from error
    except ray.exceptions.RayError as error:
        raise CrosslensError(
            f"the cluster lost a task: {_first_line(error)}",
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


def _check_address(address: str) -> None:
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


def _start(address: str | None) -> None:
    """Connect to a cluster, or start a Ray on this machine that ends with this process."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no reports over the network
    import ray

    _keep_off_standard_output()
    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address in (None, "local"):
        # Tasks hold little; where other programs fill the memory, Ray would end them again and again.
        os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")
        ray.init(address="local", num_cpus=available_cores(), include_dashboard=False, **quiet)
        return
    try:
        ray.init(address=address, **quiet)
    except RuntimeError as error:
        if "ersion mismatch" not in str(error):
            raise _unreachable(str(address), _first_line(error)) from error
        raise CrosslensError(
            f"the cluster at {address} runs other versions: {' '.join(str(error).split())}",
            fix="use the same versions of Ray and Python here and on all nodes",
            code="other-version",
        ) from error
    except (ConnectionError, ValueError) as error:
        raise _unreachable(str(address), _first_line(error)) from error


def _keep_off_standard_output() -> None:
    """Ray prints there which tasks it repeats, between the results of a command; its log files have that, too."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *message, **options: None


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
