"""One progress display for a whole audit: stages weigh by the time that they are expected to take."""

from __future__ import annotations

from typing import Protocol

from crosslens.core import Progress

_STEPS_PER_SECOND = 10


class Display(Progress, Protocol):
    """A progress display with room for a short text, such as the stage."""

    def show_beside(self, text: str) -> None:
        """Show a short text at the end of the bar."""


class SilentDisplay:
    """Shows nothing."""

    def start(self, label: str, total: int) -> None: ...
    def advance(self, steps: int = 1) -> None: ...
    def finish(self) -> None: ...
    def show_beside(self, text: str) -> None: ...


class StageProgress:
    """The progress of one stage as a part of the whole.

    A stage may count several things after each other, and does not say how many: each count covers half of what is
    left of the stage. So the display never goes back, and never says that a stage is done before it is.
    """

    def __init__(self, display: Display, name: str, seconds: float) -> None:
        self._display, self._name = display, name
        self._left = self._steps = max(1, round(seconds * _STEPS_PER_SECOND))
        self._total = self._counted = self._shown = self._span = 0
        display.show_beside(name)

    def start(self, label: str, total: int) -> None:
        """A stage begins to count something."""
        self.finish()
        self._total, self._counted, self._shown, self._span = total, 0, 0, self._left // 2
        self._display.show_beside(f"{self._name}: {label}")

    def advance(self, steps: int = 1) -> None:
        """It has counted."""
        if self._total:
            self._counted = min(self._counted + steps, self._total)
            self._show(self._span * self._counted // self._total)

    def finish(self) -> None:
        """It is done with that, or was interrupted."""
        if self._total:
            self._left -= self._shown
        self._total = self._shown = 0

    def complete(self) -> None:
        """The stage is over: whatever it did not count is done, too."""
        self.finish()
        self._display.advance(self._left)
        self._left = 0

    def _show(self, reached: int) -> None:
        if reached > self._shown:
            self._display.advance(reached - self._shown)
            self._shown = reached


def total_steps(seconds: float) -> int:
    """The length of the display for work that is expected to take so long."""
    return max(1, round(seconds * _STEPS_PER_SECOND))
