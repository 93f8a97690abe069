"""Runs the command line and turns every outcome into an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer

from crosslens.cli.exit_codes import INTERRUPTED
from crosslens.core import CrosslensError

# typer carries its own copy of click or uses the installed one, depending on its version: ask it, not click.
_ClickError: type[Exception] = typer.BadParameter.__mro__[2]


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run ``crosslens`` with these arguments (default: those of the process) and return its exit code."""
    for channel in (sys.stdout, sys.stderr):
        if hasattr(channel, "reconfigure"):
            channel.reconfigure(errors="replace")  # an arrow must not end an evaluation on a narrow terminal
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from crosslens.cli.app import app

        code = app(args=words, prog_name="crosslens", standalone_mode=False)
        sys.stdout.flush()
    except CrosslensError as error:
        from crosslens.cli.flags import flag_spelling

        return _print_error(error.render(flag_spelling(_command_of(words))), error.exit_code)
    except BrokenPipeError:
        return _drop_output()
    except _ClickError as error:
        return _print_error(_usage(error), getattr(error, "exit_code", 2))
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as end:  # how click answers a closed pipe
        return _drop_output() if end.code == 1 else int(end.code or 0)
    except Exception as error:
        message = _system_error(error)
        if message is None:
            raise
        return _print_error(message, 3)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _print_error(message: str, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


def _command_of(words: Sequence[str]) -> Any:
    """The command that these words call."""
    from crosslens.cli.app import app

    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def _usage(error: BaseException) -> str:
    """Click's message in our form, with the help to look at."""
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "crosslens"
    return f"{message[:1].lower()}{message[1:]}\n  fix: see {command} --help"


def _system_error(error: Exception) -> str | None:
    """What the operating system refused, and for which file where that is known; None for any other error."""
    wrapped = re.search(r"\(os error (\d+)\)", str(error))  # polars passes on the number in no other way
    if wrapped:
        error = OSError(int(wrapped[1]), os.strerror(int(wrapped[1])))
    if not isinstance(error, OSError):
        return None
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
    reason = error.strerror or str(error) or type(error).__name__
    cut_short = re.search(r"\d+ requested and \d+ written", reason)  # numpy does not say why
    if cut_short or error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason += "\n  fix: free some disk space, or write to another disk"
    return f"{error.filename}: {reason}" if error.filename is not None else reason


def _drop_output() -> int:
    """The reader of a pipe was closed (``crosslens metrics | head``), which is no error."""
    # What is still buffered has nowhere to go; without this Python would complain while it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
