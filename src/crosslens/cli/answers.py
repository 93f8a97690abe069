"""What a command does with its result: prints it as text or JSON, and writes it in every form that is asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import crosslens.report as report
from crosslens.cli.console import (
    check_outputs,
    print_coloured,
    print_json,
    print_written,
    terminal_width,
    use_colour,
)
from crosslens.core import ENDINGS, Presented

F = TypeVar("F", bound=Callable[..., Any])

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what already exists.")]
Write = Annotated[
    list[Path] | None,
    typer.Option("--write", metavar="FILE", help=f"Write the result: {' '.join(ENDINGS)}; may be repeated."),
]

_WRITTEN: ContextVar[list[Path]] = ContextVar("files that a command wrote")
_CODE: ContextVar[int] = ContextVar("exit code of a command")


def wrote(*files: Path | None) -> None:
    """A command wrote these besides its result: they are named under it."""
    _WRITTEN.get().extend(file for file in files if file is not None)


def end_with(code: int) -> None:
    """The command exits with this code once its result is shown."""
    _CODE.set(code)


def answering(function: F) -> F:
    """The command with ``--json``, ``--write`` and ``--overwrite``; what it returns is printed and written."""
    signature = inspect.signature(function)
    own = {"write": Write, "overwrite": Overwrite, "json": Json}
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=None if name == "write" else False
        )
        for name, kind in own.items()
        if name not in signature.parameters
    ]

    def call(json: bool = False, write: list[Path] | None = None, **arguments: Any) -> None:
        overwrite = arguments["overwrite"]
        if "overwrite" not in signature.parameters:
            del arguments["overwrite"]
        # Of a command that prints a list as well, shows what goes on, or draws what has no sections yet.
        arguments |= {name: value for name, value in (("json", json), ("write", write)) if name in signature.parameters}
        for file in write or ():
            report.check_ending(file)
        check_outputs(*write or (), overwrite=overwrite)
        _WRITTEN.set([])
        _CODE.set(0)
        result: Presented | None = function(**arguments)
        if result is None:
            return
        wrote(*(result.save(file, overwrite=overwrite) for file in write or ()))
        if json:
            print_json({**result.as_dict(), "files": list(map(str, _WRITTEN.get()))})
        else:
            if text := result.text(terminal_width(), colour=use_colour()):
                print_coloured(text)
            print_written(_WRITTEN.get())
        if _CODE.get():
            raise typer.Exit(_CODE.get())

    call.__name__, call.__doc__, call.__module__ = function.__name__, function.__doc__, function.__module__
    call.__annotations__ = {**function.__annotations__, **{flag.name: flag.annotation for flag in added}}
    vars(call)["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), *added])
    return call  # type: ignore[return-value]
