"""Several requests at a time, answers as they arrive, and an end that does not wait for the slowest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import TypeVar

from crosslens.core.chat.endpoint import Cancelled, Endpoint

Result = TypeVar("Result")


def answers_of(
    endpoint: Endpoint, count: int, answer: Callable[[Endpoint, int], Result], workers: int
) -> Iterator[tuple[int, Result]]:
    """``answer(endpoint, number)`` for the numbers below ``count``, each as soon as it is there.

    The first error ends the requests that are in progress and is raised here, and so does leaving the iteration.
    """
    endpoint = replace(endpoint, stop=threading.Event())
    todo: SimpleQueue[int] = SimpleQueue()
    done: SimpleQueue[tuple[int, Result | BaseException]] = SimpleQueue()
    for number in range(count):
        todo.put(number)

    def work() -> None:
        while not endpoint.stop.is_set():
            try:
                number = todo.get_nowait()
            except Empty:
                return
            try:
                done.put((number, answer(endpoint, number)))
            except Cancelled:
                return
            except BaseException as error:  # raised again where the answers are awaited
                done.put((number, error))
                return

    for _ in range(min(workers, count)):
        # Daemons, so that Ctrl-C ends the program at once instead of after the slowest answer.
        threading.Thread(target=work, daemon=True).start()
    try:
        for _ in range(count):
            number, result = done.get()
            if isinstance(result, BaseException):
                raise result
            yield number, result
    finally:
        endpoint.stop.set()
