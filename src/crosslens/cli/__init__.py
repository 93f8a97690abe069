"""The command line: every command parses, calls and prints; nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from crosslens.cli.exit_codes import EXIT_CODES, INTERRUPTED

__all__ = ["EXIT_CODES", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``crosslens`` with these arguments (default: those of the process) and return its exit code."""
    try:
        # Loading takes longer than many commands: in here, Ctrl-C is answered from the start.
        from crosslens.cli.app import run_command

        return run_command(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
