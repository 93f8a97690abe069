"""The way in and out: runs the command line and turns every end into an exit code."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Sequence

import typer

from crosslens.core.errors import CrosslensError

EXIT_CODES = {
    0: "done",
    1: "a bug in crosslens: the traceback says where",
    2: "wrong use: an unknown command, option or name",
    3: "bad input: a file or an array that cannot be evaluated",
    4: "a missing extra: the message holds the command that installs it",
    5: "a conflict: something else already stands where the result would go",
    130: "interrupted",
}
"""What the command line promises to scripts."""

# typer carries its own copy of click or uses the installed one, depending on its version: ask it, not click.
_ClickError: type[Exception] = typer.BadParameter.__mro__[2]
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
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
        return _reader_left()
    except _ClickError as error:
        return _refuse(_usage(error), getattr(error, "exit_code", 2))
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except OSError as error:
        if error.filename is None:
            raise
        return _refuse(f"{error.filename}: {error.strerror}", 3)
    except SystemExit as end:  # how click answers a closed pipe
        return _reader_left() if end.code == 1 else int(end.code or 0)
    if code == _INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _refuse(message: str, code: int) -> int:
    print(f"error: {_as_flags(message)}", file=sys.stderr)
    return code


def _as_flags(message: str) -> str:
    """Messages are written for Python too, with keyword arguments; here the flag is what helps."""
    message = message.replace("--overwrite (overwrite=True)", "--overwrite").replace("overwrite=True", "--overwrite")
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


def _reader_left() -> int:
    """The reader of a pipe has seen enough (``crosslens metrics | head``): that is nobody's mistake."""
    # What is still buffered has nowhere to go; without this Python would complain while it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
