"""The command line: every command parses, calls and prints; nothing else."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from types import TracebackType

from crosslens.cli.exit_codes import EXIT_CODES, INTERRUPTED

__all__ = ["EXIT_CODES", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``crosslens`` with these arguments (default: those of the process) and return its exit code."""
    if arguments is None:  # the program itself, not a call from Python
        sys.excepthook = print_traceback
    try:
        # Loading takes longer than many commands: in here, Ctrl-C is answered from the start.
        from crosslens.cli.app import run_command

        return run_command(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of a bug, whose message may quote anything."""
    from crosslens.core import printable

    sys.stderr.write(printable("".join(traceback.format_exception(kind, error, trace))))
