"""The way in and out: runs the command line and turns every end into an exit code."""

from __future__ import annotations

import errno
import inspect
import os
import re
import sys
from collections.abc import Sequence

import typer

from crosslens.cli.exit_codes import INTERRUPTED
from crosslens.core.errors import CrosslensError

# typer carries its own copy of click or uses the installed one, depending on its version: ask it, not click.
_ClickError: type[Exception] = typer.BadParameter.__mro__[2]


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run ``crosslens`` with these arguments (default: those of the process) and return its exit code."""
    for channel in (sys.stdout, sys.stderr):
        if hasattr(channel, "reconfigure"):
            channel.reconfigure(errors="replace")  # an arrow must not end an evaluation on a narrow terminal
    try:
        from crosslens.cli.app import app

        code = app(args=None if arguments is None else list(arguments), prog_name="crosslens", standalone_mode=False)
        sys.stdout.flush()
    except CrosslensError as error:
        return _refuse(str(error), error.exit_code)
    except BrokenPipeError:
        return _drop_output()
    except _ClickError as error:
        return _refuse(_usage(error), getattr(error, "exit_code", 2))
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as end:  # how click answers a closed pipe
        return _drop_output() if end.code == 1 else int(end.code or 0)
    except Exception as error:
        refusal = _system_error(error)
        if refusal is None:
            raise
        return _refuse(refusal, 3)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _refuse(message: str, code: int) -> int:
    print(f"error: {_as_flags(message)}", file=sys.stderr)
    return code


def _as_flags(message: str) -> str:
    """Messages are written for Python too, with keyword arguments; here the flag is what helps."""
    message = re.sub(r"(--[\w-]+) \(\w+=\w*\)", r"\1", message).replace("overwrite=True", "--overwrite")
    message = re.sub(r"\w+='[\w-]+' \((--[\w -]+)\)", r"\1", message)
    message = re.sub(r"\b(score|ties|backend)='([\w-]+)'", r"--\1 \2", message)
    return re.sub(r"\bpass (\w+)=", lambda found: f"pass {_flag(found[1])}", message)


def _flag(option: str) -> str:
    from crosslens.cli.dataset_flags import NAMED
    from crosslens.data import READERS

    if option in NAMED:
        return f"--{option}"
    known = any(option in inspect.signature(entry.value).parameters for entry in READERS)
    return f"-D {option}=" if known else f"{option}="


def _usage(error: BaseException) -> str:
    """Click's message in our form, with the help to look at."""
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "crosslens"
    return f"{message[:1].lower()}{message[1:]}\n  fix: see {command} --help"


def _system_error(error: Exception) -> str | None:
    """What the operating system refused, and for which file where that is known; None for any other error."""
    wrapped = re.search(r"\(os error (\d+)\)", str(error))  # as polars hands it on
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
        reason += "\n  fix: make room, or write to another place"
    return f"{error.filename}: {reason}" if error.filename is not None else reason


def _drop_output() -> int:
    """The reader of a pipe has seen enough (``crosslens metrics | head``): that is nobody's mistake."""
    # What is still buffered has nowhere to go; without this Python would complain while it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
