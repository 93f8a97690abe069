"""The help of a command: a short list of flags, and with ``--help-all`` every flag, by what it is for.

A command with few flags has one list of all. Of a command with many, ``--help`` lists those that it declares as common,
those that are common in all commands, and those that are required. Which group a flag is in is declared with the option
(:mod:`crosslens.core.options`).
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Annotated, Any

import typer

from crosslens.cli.console import print_result
from crosslens.core import GROUPS, METHOD, READER

MOST_LISTED = 12
"""How many flags one list may have."""
_MOST_EXAMPLES = 3
_LEFT_COLUMN = 30
COMMON = (
    "dataset", "image_folder", "image_embeddings", "caption_embeddings", "model", "metrics", "output", "write", "json",
)  # fmt: skip
"""What ``--help`` lists of every command that has it, in this order."""
_DESCRIBED_BY = {READER: "crosslens data formats"}
"""Group → the command that describes its flags, which depend on the data: they are only listed."""


_ALL = "crosslens.help_all"
"""Whether every flag is asked for, noted in the context."""


def _print_full_help(context: typer.Context, asked: bool) -> None:
    if asked:
        context.meta[_ALL] = True
        print_result(context.get_help())
        raise typer.Exit


HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--help-all", is_eager=True, callback=_print_full_help, help="Show every option and exit.")
    ],
)
"""The flag that acts while flags are read."""


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

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """What the command does, examples, and its arguments; of few flags as ever."""
        if not self.is_long:
            super().format_help_text(ctx, formatter)
            return
        purpose, examples = self.help or "", self.examples
        if _ALL not in ctx.meta:
            # Those without a flag that the short help does not explain.
            spelled = {spelling for flag in self.common_flags for spelling in (*flag.opts, *flag.secondary_opts)}
            plain = [text for text in examples if {*re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", text)} <= spelled]
            purpose, examples = purpose.partition("\n\n")[0], plain[:_MOST_EXAMPLES]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(inspect.cleandoc(purpose))
        with formatter.section("Examples"):
            formatter.write(textwrap.indent("\n".join(examples), "  ") + "\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The common flags, or with ``--help-all`` every flag by its group; of few flags all."""
        if not self.is_long:
            super().format_options(ctx, formatter)
            return
        arguments = [parameter for parameter in self.params if parameter.param_type_name == "argument"]
        if rows := [record for parameter in arguments if (record := parameter.get_help_record(ctx)) is not None]:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        if _ALL in ctx.meta:
            groups = {name: [flag for flag in self.flags if group_of(flag) == name] for name in GROUPS}
            other = f"--help lists the {len(self.common_flags)} most used options."
        else:
            groups, other = {"Most used options": self.common_flags}, f"--help-all lists all {len(self.flags)} options."
        self._format_flags(ctx, formatter, groups)
        formatter.write(f"\n{other}\n")

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Examples, which stand above the flags where these are many."""
        if not self.is_long:
            super().format_epilog(ctx, formatter)

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
