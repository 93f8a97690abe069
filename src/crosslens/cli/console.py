"""What commands print, and where: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.core.grid import PAGE_WIDTH, two_columns
from crosslens.core.json_form import json_form
from crosslens.core.progress import Progress, Silent

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def say(text: str = "") -> None:
    """Print a result."""
    sys.stdout.write(text + "\n")


def say_json(value: Any) -> None:
    """Print a result as JSON; a number that is none (NaN) is null."""
    say(json.dumps(json_form(value), indent=2, ensure_ascii=False, allow_nan=False))


def note(text: str) -> None:
    """Tell the person something that is not the result."""
    print(text, file=sys.stderr)


def width() -> int | None:
    """How wide a table may be: the terminal, or anything when nobody looks."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def say_list(rows: Sequence[tuple[str, str]], indent: int = 0) -> None:
    """Print names with their texts beside them."""
    say(two_columns(rows, width() or PAGE_WIDTH, indent))


def examples(*lines: str) -> str:
    """An epilog of commands to copy; the mark keeps click from wrapping them."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def progress() -> Progress:
    """A bar on standard error while somebody watches it; silence otherwise."""
    return Bar() if sys.stderr.isatty() else Silent()


class Bar:
    """One bar per stage, gone when the stage is over."""

    def __init__(self) -> None:
        self._bar: RichProgress | None = None
        self._task: Any = None

    def start(self, label: str, total: int) -> None:
        """Show the stage."""
        from rich.console import Console
        from rich.progress import Progress as RichProgress

        self.finish()
        self._bar = RichProgress(console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task(label, total=total)

    def advance(self, steps: int = 1) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.advance(self._task, steps)

    def finish(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
