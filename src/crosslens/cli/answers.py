"""What a command does with its result: prints it as text or JSON, and writes it in every form that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens import analyze, report
from crosslens.cli.console import check_outputs, print_json, print_presented
from crosslens.core import ENDINGS, Declaration, Part, Presented, Section, UsageError, address_of

if TYPE_CHECKING:
    import polars as pl

Json = Annotated[bool, Declaration("Print JSON and nothing else.")]
Overwrite = Annotated[bool, Declaration("Replace what already exists.")]
_FORMS = f"Write the result: {' '.join(ENDINGS)}; may be repeated."
Write = Annotated[list[Path] | None, Declaration(_FORMS, metavar="FILE")]

_WRITTEN: ContextVar[list[Path | str]] = ContextVar("files that a command wrote")
_CODE: ContextVar[int] = ContextVar("exit code of a command")


@dataclass(frozen=True)
class CommandAnswer(Presented):
    """What a command says that has no result of its own: lists, counts, what it did. ``content`` is its JSON."""

    heading: str
    parts: tuple[Part, ...]
    content: Any

    @property
    def title(self) -> str:
        return self.heading

    def sections(self) -> tuple[Section, ...]:
        return (Section("", self.parts),)

    def as_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = self.content
        return content


def wrote(*files: Path | None) -> None:
    """A command wrote these besides its result: they are named under it."""
    _WRITTEN.get().extend(address_of(file) or file for file in files if file is not None)


def check_tables(*files: Path | None, overwrite: bool) -> None:
    """Raise for the first that exists or is no table (.parquet, .csv), before the work begins."""
    check_outputs(*files, overwrite=overwrite)
    for file in filter(None, files):
        analyze.check_table_file(file)


def write_table(table: pl.DataFrame, file: Path | None) -> None:
    """Write a table, where a file is named for it."""
    if file is not None:
        wrote(analyze.write_table(table, file))


def end_with(code: int) -> None:
    """The command exits with this code once its result is shown."""
    _CODE.set(code)


ANSWER_FLAGS: Mapping[str, Any] = {"write": Write, "overwrite": Overwrite, "json": Json}
"""What every command has that returns a result."""


def answer(
    function: Callable[..., Presented | None], own_flags: Collection[str], json: bool, write: list[Path] | None,
    **arguments: Any,
) -> None:  # fmt: skip
    """Call a command, and print and write what it returns; ``own_flags`` are the names of the flags of its own."""
    overwrite = arguments["overwrite"] if "overwrite" in own_flags else arguments.pop("overwrite")
    # Of a command that prints a list as well, shows what goes on, or draws what has no sections yet.
    arguments |= {name: value for name, value in (("json", json), ("write", write)) if name in own_flags}
    for file in write or ():
        report.check_ending(file)
    # A file is compared with the result when there is one: the same command may be run again.
    check_outputs(*(file for file in write or () if not file.is_file()), overwrite=overwrite)
    _WRITTEN.set([])
    _CODE.set(0)
    result = function(**arguments)
    if result is None:
        if write:
            raise UsageError(f"there is no result to write to {write[0]}", fix="drop --write")
        return
    try:
        wrote(*(result.save(file, overwrite=overwrite) for file in write or ()))
    finally:  # what was computed is shown, also where a file of other content is not replaced
        if json:
            content: Any = result.as_dict()
            files = {"files": list(map(str, _WRITTEN.get()))}
            print_json({**content, **files} if isinstance(content, dict) else content)
        else:
            print_presented(result, _WRITTEN.get())
    if _CODE.get():
        raise typer.Exit(_CODE.get())
