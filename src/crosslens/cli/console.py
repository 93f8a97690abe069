"""What commands print, and where: results on standard output, everything else on standard error.

All of it passes through here, and whatever would steer the terminal is spelled out: captions, names and messages come
from elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosslens import core, storage
from crosslens.core import printable, printable_json, printable_line, without_secrets
from crosslens.engine import duration
from crosslens.storage import NamedCode

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


def print_result(text: str = "") -> None:
    """Print on standard output."""
    sys.stdout.write(printable(text) + "\n")


def print_file(content: str) -> None:
    """Print what would be a file: byte by byte into a pipe, harmless on a terminal."""
    sys.stdout.write((printable(content) if sys.stdout.isatty() else content).removesuffix("\n") + "\n")


def print_json(value: Any) -> None:
    """Print a result as JSON; NaN becomes null."""
    text = json.dumps(storage.json_form(value), indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write(printable_json(text) + "\n")


print_note = core.to_stderr
"""Prints what is not the result."""


def confirm_code(code: NamedCode) -> bool:
    """Ask at the terminal whether code that a file names may run; False where nobody can be asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    origin, path, source = map(printable_line, (code.origin, code.path, code.source))
    print_note(f"{origin} names Python code, which can do anything that you can do:\n  {path}\n  ({source})")
    sys.stderr.write("Run it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_notes(notes: Iterable[Any]) -> None:
    """The notes of a result, one per line."""
    for text in notes:
        print_note(f"note: {printable_line(str(text))}")


def terminal_width() -> int | None:
    """How wide a table may be: the terminal, or any width where the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_presented(result: core.Presented, files: Sequence[object]) -> None:
    """Print a result, coloured on a terminal, and say where it was written, if anywhere."""
    if text := result.text(terminal_width(), colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ):
        sys.stdout.write(text + "\n")  # its renderer made the parts printable before it coloured them
    if files:
        *most, last = map(str, files)
        print_note(f"\nwritten to {', '.join(most)} and {last}" if most else f"\nwritten to {last}")


def check_outputs(*files: Path | None, overwrite: bool) -> None:
    """Raise for the first file or folder that already exists, before the work begins."""
    for file in files:
        if file is not None:
            storage.refuse_existing(file, overwrite)


def progress_bar() -> Bar | LogLines:
    """A bar on standard error if that is a terminal; otherwise a line there now and then."""
    return Bar() if sys.stderr.isatty() else LogLines()


class Bar:
    """One bar per stage, removed when the stage is over."""

    def __init__(self) -> None:
        self._bar: RichProgress | None = None
        self._task: Any = None

    def start(self, label: str, total: int) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress as RichProgress, TextColumn

        self.finish()
        columns = (*RichProgress.get_default_columns(), TextColumn("{task.fields[beside]}", markup=False))
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task(escape(printable_line(label)), total=total, beside="")

    def show_beside(self, text: str) -> None:
        """Show a short text at the end of the bar."""
        if self._bar is not None:
            self._bar.update(self._task, beside=printable_line(text))

    def note(self, text: str) -> None:
        """Print a line; a bar that is shown goes on below it."""
        line = printable(without_secrets(f"note: {text}"))
        if self._bar is None:
            print(line, file=sys.stderr)
        else:
            self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def advance(self, steps: int = 1) -> None:
        if self._bar is not None:
            self._bar.advance(self._task, steps)

    def finish(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class LogLines:
    """A plain line every half a minute: work that is done sooner is silent, longer work never is for long."""

    def __init__(self) -> None:
        self._every, self._printed = 30.0, time.monotonic()
        self._label, self._total, self._done, self._started = "", 0, 0, self._printed
        self._beside = ""

    def start(self, label: str, total: int) -> None:
        """A stage begins; the time since the last line goes on."""
        self._label, self._total, self._done, self._started = label, total, 0, time.monotonic()
        self._print_if_due()

    def show_beside(self, text: str) -> None:
        self._beside = text

    def note(self, text: str) -> None:
        print_note(f"note: {text}")

    def advance(self, steps: int = 1) -> None:
        """Count, and print a line if it is time."""
        self._done += steps
        self._print_if_due()

    def finish(self) -> None:
        pass

    def _print_if_due(self) -> None:
        now = time.monotonic()
        if now - self._printed < self._every:
            return
        self._printed = now
        elapsed = now - self._started
        rest = elapsed / self._done * max(self._total - self._done, 0) if self._done else None
        print_note(
            f"{self._label}: {self._done:,} of {self._total:,}, {duration(elapsed)} elapsed"
            + ("" if rest is None else f", about {duration(rest)} left")
            + (f" ({printable_line(self._beside)})" if self._beside else "")
        )
