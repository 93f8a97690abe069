"""What a command that repeats a logged build shares with others: where its inputs are, and what it may not be given."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from crosslens.core import UsageError

MODEL = "KIND:SOURCE"
"""The metavar of options that name an encoder."""


def refuse_on_repeat(context: typer.Context, names: Iterable[str]) -> None:
    """Raise for a setting on the command line: a repeated build has those of its log, and would ignore it."""
    for name in names:
        if is_given(context, name):
            raise UsageError(
                f"--{name.replace('_', '-')} does not go with --repeat, which takes its settings from the log",
                fix=f"drop --{name.replace('_', '-')}",
            )


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def resolved(path: str) -> str:
    """A path in full."""
    return str(Path(path).expanduser().resolve())


def absolute(value: Any) -> Any:
    """A path of something that exists, in full; anything else as it is."""
    is_path = isinstance(value, str | Path) and str(value) and Path(value).expanduser().exists()
    return resolved(str(value)) if is_path else value
