"""The help of a command: a short list of flags, and with ``--help-all`` every flag, by what it is for.

A command with few flags has one list of all. Of a command with many, ``--help`` lists those that it declares as common,
those that are common in all commands, and those that are required. Which group a flag is in is declared with the option
(:mod:`crosslens.core.options`).
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Collection
from typing import Annotated, Any, TypeVar

import typer

from crosslens.cli.answers import named_as
from crosslens.cli.console import print_result
from crosslens.core import GROUPS, METHOD, READER

F = TypeVar("F", bound=Callable[..., Any])

MOST_LISTED = 12
"""How many flags one list may have."""
_MOST_EXAMPLES = 3
_LEFT_COLUMN = 30
_COMMON = (
    "dataset", "image_folder", "image_embeddings", "caption_embeddings", "model", "metrics", "output", "write", "json",
)  # fmt: skip
"""What ``--help`` lists of every command that has it, in this order."""
_DESCRIBED_BY = {READER: "crosslens data formats"}
"""Group → the command that describes its flags, which depend on the data: they are only listed."""


def _print_full_help(context: typer.Context, given: bool) -> None:
    if given:
        formatter = context.make_formatter()
        command: Any = context.command
        command.format_full_help(context, formatter)
        print_result(formatter.getvalue().rstrip("\n"))
        raise typer.Exit


_HelpAll = Annotated[
    bool, typer.Option("--help-all", is_eager=True, callback=_print_full_help, help="Show every option and exit.")
]


def with_full_help(function: F, common: Collection[str]) -> F:
    """The command with the flag ``--help-all``, which acts while flags are read."""

    def call(help_all: bool, **arguments: Any) -> Any:
        return function(**arguments)

    parameters = inspect.signature(function).parameters
    for name in common:
        assert name in parameters, f"{function.__name__} has no option {name}"
    flag = inspect.Parameter("help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_HelpAll)
    made = named_as(function, call, [*parameters.values(), flag])
    vars(made).update(epilog=vars(function)["epilog"], common=(*_COMMON, *common))
    return made


class CommandHelp(typer.core.TyperCommand):
    """A command whose help fits the number of its flags."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        for parameter in self.params:
            if parameter.name == "help_all":  # where it would show nothing new it is accepted, and not mentioned
                parameter.hidden = not self.is_long  # type: ignore[attr-defined]

    @property
    def flags(self) -> list[Any]:
        """All flags but ``--help-all``."""
        return [flag for flag in self.params if flag.param_type_name == "option" and flag.name != "help_all"]

    @property
    def is_long(self) -> bool:
        """Whether the flags are too many for one list."""
        return len(self.flags) > MOST_LISTED

    @property
    def common_flags(self) -> list[Any]:
        """Those that ``--help`` lists, by group; in each, those that every command has first."""
        common: tuple[str, ...] = vars(self.callback)["common"]
        listed = {flag.name: flag for flag in self.flags if flag.required or flag.name in common}
        by_use = [listed.pop(name) for name in common if name in listed]
        return sorted((*by_use, *listed.values()), key=lambda flag: GROUPS.index(group_of(flag)))

    @property
    def examples(self) -> list[str]:
        """The command lines of the epilog, each with the lines that continue it."""
        lines = textwrap.dedent((self.epilog or "").partition("Examples:\n")[2])
        return re.findall(r"^(?:.*\\\n)*.+$", lines, re.MULTILINE)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Usage, purpose, examples and the common flags; of few flags all."""
        if not self.is_long:
            super().format_help(ctx, formatter)
            return
        listed = self.common_flags
        spelled = {spelling for flag in listed for spelling in (*flag.opts, *flag.secondary_opts)}
        # An example is no help where it uses a flag that is not explained below it.
        plain = [text for text in self.examples if {*re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", text)} <= spelled]
        self._format_begin(ctx, formatter, (self.help or "").partition("\n\n")[0], plain[:_MOST_EXAMPLES])
        self._format_flags(ctx, formatter, {"Most used options": listed})
        formatter.write_paragraph()
        formatter.write(f"--help-all lists all {len(self.flags)} options.\n")

    def format_full_help(self, ctx: Any, formatter: Any) -> None:
        """Usage, the whole description, every example and every flag."""
        if not self.is_long:
            self.format_help(ctx, formatter)
            return
        self._format_begin(ctx, formatter, self.help or "", self.examples)
        self._format_flags(
            ctx, formatter, {name: [flag for flag in self.flags if group_of(flag) == name] for name in GROUPS}
        )
        formatter.write_paragraph()
        formatter.write(f"--help lists the {len(self.common_flags)} most used options.\n")

    def _format_begin(self, ctx: Any, formatter: Any, purpose: str, examples: list[str]) -> None:
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(inspect.cleandoc(purpose))
        if examples:
            with formatter.section("Examples"):
                formatter.write(textwrap.indent("\n".join(examples), "  ") + "\n")
        arguments = [parameter for parameter in self.params if parameter.param_type_name == "argument"]
        if rows := [record for parameter in arguments if (record := parameter.get_help_record(ctx)) is not None]:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)

    def _format_flags(self, ctx: Any, formatter: Any, groups: dict[str, list[Any]]) -> None:
        """The groups that are not empty, with one width of the left column."""
        records = {name: [flag.get_help_record(ctx) for flag in flags] for name, flags in groups.items() if flags}
        widths = [len(left) for name, rows in records.items() if name not in _DESCRIBED_BY for left, _ in rows]
        room = max(width for width in widths if width <= _LEFT_COLUMN)
        for name, rows in records.items():
            if (command := _DESCRIBED_BY.get(name)) is None:
                with formatter.section(name):
                    formatter.write_dl([(left.ljust(room), text) for left, text in rows], room)
                continue
            with formatter.section(f"{name} ({command} describes them)"):
                listed = "  ".join(left.replace(" ", "\0") for left, _ in rows)  # a flag and its value stay together
                lines = textwrap.wrap(listed, formatter.width - 2, break_on_hyphens=False)
                formatter.write(textwrap.indent("\n".join(lines).replace("\0", " "), "  ") + "\n")


def group_of(flag: Any) -> str:
    """What a flag is for: one of ``GROUPS``."""
    return flag.rich_help_panel if flag.rich_help_panel in GROUPS else METHOD
