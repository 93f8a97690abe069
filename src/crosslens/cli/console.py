"""What commands print, and where: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import crosslens.core as core
from crosslens.core import PAGE_WIDTH, ConflictError, Progress, SilentProgress, two_columns

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


def print_result(text: str = "") -> None:
    """Print on standard output."""
    sys.stdout.write(text + "\n")


def print_json(value: Any) -> None:
    """Print a result as JSON; NaN becomes null."""
    print_result(json.dumps(core.json_form(value), indent=2, ensure_ascii=False, allow_nan=False))


def print_list(rows: Sequence[tuple[str, str]], indent: int = 0) -> None:
    """Print names with their texts beside them."""
    print_result(two_columns(rows, terminal_width() or PAGE_WIDTH, indent))


def print_note(text: str) -> None:
    """Print what is not the result on standard error."""
    print(text, file=sys.stderr)


def print_notes(notes: Iterable[Any]) -> None:
    """The notes of a result, one per line."""
    for text in notes:
        print_note(f"note: {text}")


def print_written(files: Sequence[object]) -> None:
    """Say where results were written, if anywhere."""
    if files:
        print_note(f"\nwritten to {' and '.join(map(str, files))}")


def terminal_width() -> int | None:
    """How wide a table may be: the terminal, or any width where the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def use_colour() -> bool:
    """Whether results may be coloured."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def check_outputs(*files: Path | None, overwrite: bool) -> None:
    """Raise for the first file or folder that already exists, before the work begins."""
    for file in files:
        if file is not None and file.exists() and not overwrite:
            raise ConflictError(f"{file} already exists", fix="choose another name, or pass --overwrite")


def progress_bar() -> Progress:
    """A bar on standard error if that is a terminal; silent otherwise."""
    return Bar() if sys.stderr.isatty() else SilentProgress()


class Bar:
    """One bar per stage, removed when the stage is over."""

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
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
