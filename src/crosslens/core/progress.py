"""How long work reports its progress without knowing who watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Something that shows progress: a bar on a terminal, a line in a log, nothing."""

    def start(self, label: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def advance(self, steps: int = 1) -> None:
        """``steps`` more steps are done."""

    def finish(self) -> None:
        """The stage is over, or was interrupted."""


class SilentProgress:
    """Shows nothing."""

    def start(self, label: str, total: int) -> None: ...
    def advance(self, steps: int = 1) -> None: ...
    def finish(self) -> None: ...


@contextmanager
def stage(progress: Progress, label: str, total: int) -> Iterator[Progress]:
    """A stage that is finished however the block ends."""
    progress.start(label, total)
    try:
        yield progress
    finally:
        progress.finish()
