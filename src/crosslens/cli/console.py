"""What commands print, and where: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.core.progress import Progress, Silent

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def say(text: str = "") -> None:
    """Print a result."""
    sys.stdout.write(text + "\n")


def say_json(value: Any) -> None:
    """Print a result as JSON; a number that is none (NaN) is null."""
    say(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def note(text: str) -> None:
    """Tell the person something that is not the result."""
    print(text, file=sys.stderr)


def width() -> int | None:
    """How wide a table may be: the terminal, or anything when nobody looks."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def two_columns(rows: Sequence[tuple[str, str]], indent: int = 0) -> str:
    """Names on the left, their text beside them, wrapped to the width at hand."""
    left = max((len(name) for name, _ in rows), default=0) + indent + 3
    room = max(30, (width() or 100) - left)
    lines = []
    for name, text in rows:
        first, *more = textwrap.wrap(text, room) or [""]
        lines.append(f"{' ' * indent + name:<{left}}{first}".rstrip())
        lines += [" " * left + line for line in more]
    return "\n".join(lines)


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


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_finite(one) for one in value]
    return value
