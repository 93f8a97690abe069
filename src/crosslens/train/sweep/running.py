"""The trainings of a sweep, one after the other or several processes side by side."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import TRACEBACK_VARIABLE, ConflictError, CrosslensError, as_user_error, load_plugin
from crosslens.engine import Progress, stage
from crosslens.train.sweep.plan import DataOfRecipes, PlannedTraining
from crosslens.train.trainer import train_model

_STAGE = "training"
"""The trainer's stage whose steps count; others, such as the encoding of captions, are short."""
_PATIENCE = 5.0
"""Seconds to wait for a folder that another process holds."""


@dataclass(frozen=True)
class Failure:
    """Why a training gave nothing."""

    problem: str
    fix: str = ""
    exit_code: int = 3

    @staticmethod
    def of(error: Exception) -> Failure:
        """What an exception says, as the command line would."""
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exception(error)
        user_error = error if isinstance(error, CrosslensError) else as_user_error(error)
        if user_error is None:  # the memory of a GPU, say: the other trainings may still be possible
            return Failure(f"{type(error).__name__}: {error}")
        return Failure(user_error.problem, user_error.fix or "", user_error.exit_code)


@dataclass(frozen=True)
class TrainingOutcome:
    """What became of one training: its card, or a failure."""

    training: PlannedTraining
    card: Mapping[str, Any] | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class TrainingOptions:
    """What all trainings of a sweep share."""

    output: Path
    overwrite: bool = False


SweepWatch = Callable[[TrainingOutcome, int, int], None]
"""Called with an outcome, how many trainings have ended, and of how many."""


def run_trainings(
    trainings: Sequence[PlannedTraining], steps: Mapping[str, int], data: DataOfRecipes, options: TrainingOptions,
    *, jobs: int, plugins: Sequence[str], progress: Progress, watch: SweepWatch | None,
) -> list[TrainingOutcome]:  # fmt: skip
    """Train all of them; one that fails does not stop the others. The outcomes are in the order of the trainings."""
    label = f"steps of {len(trainings)} trainings" if len(trainings) > 1 else _STAGE
    outcomes: dict[str, TrainingOutcome] = {}
    with stage(progress, label, sum(steps[training.folder] for training in trainings)) as running:
        if jobs == 1 or len(trainings) == 1:
            finished: Generator[TrainingOutcome] = (
                _train(
                    training, data, options, _Steps(running.advance, steps[training.folder], running, training.folder)
                )
                for training in trainings
            )
        else:
            finished = _side_by_side(trainings, steps, data, options, min(jobs, len(trainings)), plugins, running)
        with closing(finished):  # ends the processes, if this is interrupted
            for outcome in finished:
                outcomes[outcome.training.folder] = outcome
                if watch:
                    watch(outcome, len(outcomes), len(trainings))
    return [outcomes[training.folder] for training in trainings]


def _train(
    training: PlannedTraining, data: DataOfRecipes, options: TrainingOptions, progress: _Steps
) -> TrainingOutcome:
    recipe, folder = training.recipe, options.output / training.folder
    until = time.monotonic() + _PATIENCE
    try:
        while True:
            try:
                trained = train_model(recipe, data.of(recipe), folder, overwrite=options.overwrite, progress=progress)
                return TrainingOutcome(training, trained.card)
            except ConflictError as error:
                # A process of a killed sweep may hold the folder for the moment that it takes to notice.
                if error.code != "locked" or time.monotonic() > until:
                    raise
                time.sleep(0.2)
    except Exception as error:  # whatever it is, the other trainings go on, and the table says what happened
        return TrainingOutcome(training, failure=Failure.of(error))
    finally:
        progress.complete()


class _Steps:
    """Counts the steps of one training, and at its end those that it did not need."""

    def __init__(
        self, advance: Callable[[int], object], total: int, bar: Progress | None = None, name: str = ""
    ) -> None:
        self._advance, self._left, self._counts = advance, total, False
        self._note, self._name = getattr(bar, "note", lambda _: None), name

    def start(self, label: str, total: int) -> None:
        self._counts = label == _STAGE

    def advance(self, steps: int = 1) -> None:
        if self._counts:
            self._advance(steps)
            self._left -= steps

    def note(self, text: str) -> None:
        self._note(f"{self._name}: {text}")

    def finish(self) -> None:
        self._counts = False

    def complete(self) -> None:
        """The training is over, early or not."""
        self._advance(self._left)
        self._left = 0


def _side_by_side(
    trainings: Sequence[PlannedTraining], steps: Mapping[str, int], data: DataOfRecipes, options: TrainingOptions,
    jobs: int, plugins: Sequence[str], progress: Progress,
) -> Generator[TrainingOutcome]:  # fmt: skip
    """The outcomes as they come from ``jobs`` processes."""
    context = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA, nor torch's threads safely
    counter, stop = context.Value("q", 0), context.Event()
    pool = ProcessPoolExecutor(
        jobs, context, _begin, (os.getpid(), counter, stop, data.folder, options, tuple(plugins))
    )
    reported = 0
    try:
        pending: set[Future[TrainingOutcome]] = {
            pool.submit(_train_here, training, steps[training.folder]) for training in trainings
        }
        while pending:
            done, pending = wait(pending, 0.2, FIRST_COMPLETED)
            steps_done = counter.value
            progress.advance(steps_done - reported)
            reported = steps_done
            for job in done:
                yield job.result()
    except BrokenProcessPool as error:
        raise CrosslensError(
            "a process of the sweep was killed, perhaps for lack of memory",
            fix="run fewer side by side; the same command goes on where it stopped", code="killed", option="jobs",
        ) from error  # fmt: skip
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_process: dict[str, Any] = {}
"""What a process of the pool keeps between its trainings."""


def _begin(
    parent: int, counter: Any, stop: Any, data: Path, options: TrainingOptions, plugins: tuple[str, ...]
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends the sweep

    def end_with_parent() -> None:
        """End this process as soon as the sweep is over or was killed: nobody would read its result."""
        while os.getppid() == parent and not stop.wait(0.5):
            pass
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    for plugin in plugins:
        load_plugin(plugin)
    _process.update(data=DataOfRecipes(data), options=options, counter=counter)


def _train_here(training: PlannedTraining, steps: int) -> TrainingOutcome:
    counter = _process["counter"]

    def advance(count: int) -> None:
        with counter.get_lock():
            counter.value += count

    return _train(training, _process["data"], _process["options"], _Steps(advance, steps))
