"""Tasks on a Ray cluster, or on a Ray of its own on this machine.

Ray repeats a task whose worker or node has died; every result is taken once, in order. So the loss of any machine but
this process's own changes nothing but the time, and this process stores what it has as it does without a cluster.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, TypeVar

from crosslens.core.engine.options import RAY
from crosslens.core.engine.packing import pack
from crosslens.core.engine.ray_connection import check_address, first_line, start_ray
from crosslens.core.engine.remote import TaskFailure, TaskSetting, execute
from crosslens.core.errors import CrosslensError, MissingExtraError, argument
from crosslens.core.integrity import is_verifying
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


class RayEngine:
    """Runs tasks on Ray, each on one core."""

    name = RAY
    distributed = True

    def __init__(self, address: str | None = None) -> None:
        if find_spec("ray") is None:
            raise MissingExtraError(f"{argument('engine', RAY)}", "ray", "ray")
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self._leave: Callable[[], None] | None = None
        self._counted = (-_COUNT, dict[str, float]())
        if self._address is not None:
            check_address(self._address)
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
                while has_more and len(under_way) < self._most_ahead(size, gpu):
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
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _most_ahead(self, size: int, gpu: bool) -> int:
        slots = max(1, self.slots(gpu=gpu))
        least = slots + 1 if gpu else 2  # no GPU waits for memory, which nodes with GPUs have
        return _AHEAD * slots if not size else max(least, min(_AHEAD * slots, _BYTES_AHEAD // size))

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
            self._leave = start_ray(self._address)
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
