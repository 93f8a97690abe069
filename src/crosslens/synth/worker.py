"""Processes that draw shards: numbers in on standard input, numbers out when done.

A worker ends when its input does, so none outlives the process that started it, however that one ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from crosslens.core.errors import CrosslensError
from crosslens.core.progress import Progress
from crosslens.synth.generation import Recipe
from crosslens.synth.shards import SHARD, draw_shard, recipe_in


def draw_shards(folder: Path, recipe: Recipe, shards: Sequence[int], workers: int, progress: Progress) -> None:
    """Draw these shards, in this process or in several others; the files are the same either way."""
    if workers <= 1 or len(shards) <= 1:
        for shard in shards:
            draw_shard(folder, recipe, shard)
            progress.advance(SHARD)
        return
    queue = _Queue(shards)
    with ThreadPoolExecutor(min(workers, len(shards))) as pool:
        try:
            waiting = [pool.submit(_drive, folder, queue, progress) for _ in range(min(workers, len(shards)))]
            for one in waiting:
                one.result()
        finally:
            queue.close()


class _Queue:
    """Numbers handed out to threads, one at a time; closed, it hands out no more."""

    def __init__(self, shards: Sequence[int]) -> None:
        self._left: Iterator[int] = iter(shards)
        self._lock = threading.Lock()

    def next(self) -> int | None:
        with self._lock:
            return next(self._left, None)

    def close(self) -> None:
        with self._lock:
            self._left = iter(())


def _drive(folder: Path, queue: _Queue, progress: Progress) -> None:
    """Feed one worker process until the queue is empty."""
    command = [sys.executable, "-m", "crosslens.synth.worker", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        while (shard := queue.next()) is not None:
            try:
                worker.stdin.write(f"{shard}\n")
                worker.stdin.flush()
                answer = worker.stdout.readline()
            except OSError:
                answer = ""
            if answer.strip() != str(shard):
                queue.close()
                raise CrosslensError(
                    f"a drawing process ended early, at shard {shard}",
                    fix="see its message above; run the same command again to go on",
                )
            progress.advance(SHARD)
        worker.stdin.close()


def main(folder: Path) -> None:
    """Draw the shards named on standard input."""
    # Ctrl-C goes to the whole group; the parent stops by closing the input, and a shard is finished first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    recipe = recipe_in(folder)
    for line in sys.stdin:
        draw_shard(folder, recipe, int(line))
        try:
            print(line.strip(), flush=True)
        except BrokenPipeError:  # nobody waits for the answer any more; the shard is there all the same
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
