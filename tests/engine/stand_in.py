"""A stand-in for a cluster in this process: tasks travel, run in another order, and some of them die on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np

from crosslens.core import core_limit, limit_cores
from crosslens.engine import use_engine
from crosslens.engine.ray_engine import _SHARED, TaskFailure, TaskSetting, execute, pack, unpack


class StandInEngine:
    """Behaves as :class:`crosslens.engine.ray_engine.RayEngine` does, without processes.

    ``dies`` is the share of first attempts that are lost; ``stops_after`` so many results, the engine breaks down as
    where the process that started the work is killed.
    """

    name = "stand-in"
    distributed = True

    def __init__(self, slots: int = 3, dies: float = 0.3, stops_after: int | None = None, seed: int = 0) -> None:
        self._slots, self._dies, self._left = slots, dies, stops_after
        self._random = np.random.default_rng(seed)
        self.most_under_way = 0
        self.attempts: Counter[str] = Counter()
        self.taken: list[tuple[str, Any]] = []
        self.results = 0
        self.travelled = 0

    def slots(self, *, gpu: bool = False) -> int:
        return 0 if gpu else self._slots

    def exceeds(self, in_process: int, *, gpu: bool = False) -> bool:
        return True

    def run(
        self, work: Callable[[Any, Any], Any], shared: Any, tasks: Iterable[Any], *,
        done: Callable[[Any], object] | None = None, size: int = 0, gpu: bool = False,
    ) -> Iterator[Any]:  # fmt: skip
        sent = pack(shared)
        self.travelled += sent.size
        _SHARED.clear()
        waiting, under_way, has_more = iter(tasks), list[list[Any]](), True
        while has_more or under_way:
            while has_more and len(under_way) < 2 * self._slots:
                task = next(waiting, None)
                has_more = task is not None
                if has_more:
                    self.taken.append((work.__name__, task))
                    under_way.append([task, pack((work, task)), None])
            self.most_under_way = max(self.most_under_way, len(under_way))
            unfinished = [entry for entry in under_way if entry[2] is None]
            if unfinished:
                self._attempt(unfinished[self._random.integers(len(unfinished))], sent, work, done)
            while under_way and under_way[0][2] is not None:
                yield self._result(under_way.pop(0)[2][0])

    def _attempt(self, entry: list[Any], sent: Any, work: Any, done: Any) -> None:
        self.attempts[work.__name__] += 1
        if self._random.random() < self._dies:
            return
        setting = TaskSetting(version("crosslens"), (), True)
        before = core_limit()
        try:
            with use_engine("local"):  # as in another process
                result = execute(setting, entry[1], f"{id(sent)}", lambda: sent)
        finally:
            limit_cores(before)
        entry[2] = (unpack(pack(result)),)
        if done is not None:
            done(entry[0])

    def _result(self, result: Any) -> Any:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt
        if isinstance(result, TaskFailure):
            raise result.error()
        self.results += 1
        return result


class Recorded:
    """Progress that remembers what was shown."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int]] = []
        self.steps: Counter[str] = Counter()

    def start(self, label: str, total: int) -> None:
        self.stages.append((label, total))

    def advance(self, steps: int = 1) -> None:
        self.steps[self.stages[-1][0]] += steps

    def finish(self) -> None: ...
