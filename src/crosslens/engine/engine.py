"""An engine runs tasks: the local one in this process, in turn; others wherever there is room.

A task is ``work(shared, task)``: a function of a module, what all tasks read, and what is the task's own. Results come
in the order of the tasks, so that nothing that is made of them depends on where or when they were computed. Which
engine is used is a matter of the caller of all callers: :func:`use_engine` sets it, :func:`current_engine` asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from crosslens.core import Options, UsageError, argument, option


def torch_device(name: str | None) -> Any:
    """The device of this name; None: a GPU if there is one."""
    import torch

    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name is None else name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"cannot use the device {name!r}: {str(error).splitlines()[0]}",
            fix=f"leave {argument('device')} out, or use 'cpu'",
            option="device",
        ) from error
    return device


def torch_devices(names: str | None) -> list[Any]:
    """All devices of names with commas between them; ``cuda`` and, where there is one, None are every visible GPU."""
    import torch

    devices: list[Any] = []
    for name in [None] if names is None else names.split(","):
        device = torch_device(name if name is None else name.strip())
        every = device.type == "cuda" and device.index is None
        devices += [torch.device("cuda", index) for index in range(torch.cuda.device_count())] if every else [device]
    return list(dict.fromkeys(devices))


LOCAL, RAY = "local", "ray"


@dataclass(frozen=True)
class EngineOptions(Options, group="Execution"):
    """Where the work runs, which changes how fast the result comes and never the result."""

    engine: str = option(
        LOCAL,
        "Where the work runs: in this process, or in tasks on a Ray cluster.",
        metavar="local|ray",
        choices=(LOCAL, RAY),
    )
    ray_address: str | None = option(
        None,
        "For --engine ray, the cluster's head, or auto. [default: $RAY_ADDRESS, or a Ray of its own on this machine]",
        metavar="HOST:PORT",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ray_address is not None and self.engine != RAY:
            problem = f"{argument('ray_address')} requires {argument('engine', RAY)}"
            raise UsageError(problem, fix=f"add {argument('engine', RAY)}, or drop the address", option="ray_address")


S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Something that runs tasks."""

    name: str
    distributed: bool
    """Whether tasks run elsewhere. If not, work that is faster in one go need not be cut into tasks."""

    def slots(self, *, gpu: bool = False) -> int:
        """How many tasks run at the same time, as far as is known now; with ``gpu``, how many that need one."""

    def exceeds(self, own: int, *, gpu: bool = False) -> bool:
        """Whether tasks have cores, or with ``gpu`` GPUs, beside the ``own`` ones of this process, or may get some."""

    def run(
        self, work: Callable[[S, T], R], shared: S, tasks: Iterable[T], *,
        done: Callable[[T], object] | None = None, size: int = 0, gpu: bool = False,
    ) -> Iterator[R]:  # fmt: skip
        """The results in the order of the tasks, of which a bounded number is taken ahead of what has been yielded.

        ``done`` is called in this process whenever a task is finished, not necessarily in order. ``size`` is how many
        bytes a task with its result holds, about; ``gpu`` says that a task needs one. An exception in a task is raised
        here. If the iterator is closed, what is not yielded yet is cancelled.
        """


class LocalEngine:
    """Runs each task in this process when its result is asked for."""

    name = LOCAL
    distributed = False

    def slots(self, *, gpu: bool = False) -> int:
        """One: a task uses all cores by itself."""
        return 1

    def exceeds(self, own: int, *, gpu: bool = False) -> bool:
        """Never: tasks run in this process."""
        return False

    def run(
        self, work: Callable[[S, T], R], shared: S, tasks: Iterable[T], *,
        done: Callable[[T], object] | None = None, size: int = 0, gpu: bool = False,
    ) -> Iterator[R]:  # fmt: skip
        for task in tasks:
            result = work(shared, task)
            if done is not None:
                done(task)
            yield result


_CURRENT: ContextVar[Engine | None] = ContextVar("engine", default=None)


def current_engine() -> Engine:
    """The engine that the innermost :func:`use_engine` around this call set; the local one without any."""
    return _CURRENT.get() or LocalEngine()


@contextmanager
def use_engine(engine: str | EngineOptions | Engine = LOCAL, ray_address: str | None = None) -> Iterator[Engine]:
    """Run what is inside on an engine. The results are the same.

    Args:
        engine: ``local``, or ``ray``; or an engine of your own.
        ray_address: A running cluster, which is only left in the end. Without it, a Ray is started on this machine, and
            stopped.
    """
    requested: Any = EngineOptions(engine, ray_address) if isinstance(engine, str) else engine
    started = LocalEngine() if isinstance(requested, EngineOptions) else requested
    if isinstance(requested, EngineOptions) and requested.engine != LOCAL:
        from crosslens.engine.ray_engine import RayEngine

        started = RayEngine(requested.ray_address)
    before = _CURRENT.set(started)
    try:
        yield started
    finally:
        _CURRENT.reset(before)
        if isinstance(requested, EngineOptions) and hasattr(started, "close"):
            started.close()
