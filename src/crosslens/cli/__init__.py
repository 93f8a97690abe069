"""The command line: one file per command, each of which parses, calls and prints; nothing else."""

from __future__ import annotations

from crosslens.cli.entry import EXIT_CODES, main

__all__ = ["EXIT_CODES", "main"]
