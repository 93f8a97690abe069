"""The command line: every command with its options, and what its exit codes mean."""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from crosslens.cli import EXIT_CODES
from crosslens.cli.app import app
from crosslens.cli.help import group_of
from crosslens.core import GROUPS, errors
from crosslens.core.errors import CrosslensError
from reference_pages.markdown import cell, cleaned, shared_rows

_REPEATED = (
    "A flag that holds several names (NAMES, VALUES) may be repeated, and all of them count; so may a flag whose "
    "description says so. Any other flag that is given a second value is refused."
)


_HELP = (
    "`--help` describes a command; where it has more than twelve options, the most used ones, which are **bold** here. "
    "`--help-all` lists all of them, by what they are for, in the order of the tables below. `crosslens "
    "--install-completion` has your shell complete commands, flags and their values: metrics, models, datasets and all "
    "else that has names."
)
_SHARED = 2
"""From how many commands on an option that is the same in all of them is described once, above the commands."""
_USUAL = 0.9
"""Beyond this share of the commands an option is one of every command, and those without it say so."""
_HEAD = ("| | |", "|---|---|")


def command_line() -> str:
    """Options of many commands, then one section per command."""
    described = {path: _rows(command) for path, command in commands()}
    uses = Counter(entry for rows in described.values() for entry in rows.items() if entry[0].startswith("-"))
    shared = {name: row for name, row in shared_rows(described.values(), _SHARED).items() if name.startswith("-")}
    groups = {row: group for path, command in commands() for row, group in _groups(command, described[path]).items()}
    names = [name for name, row in uses if shared.get(name) == row]
    usual = [name for name in names if uses[name, shared[name]] > _USUAL * len(described)]
    others = [name for name in names if name not in usual]
    by_group = {group: [name for name in others if groups[shared[name]] == group] for group in GROUPS}
    long = [(described[path], _most_used(command)) for path, command in commands() if command.is_long]
    always = {
        name for name in names if all(name in most_used for rows, most_used in long if rows.get(name) == shared[name])
    }
    parts = ["# Command line", cleaned(_app().help or ""), _HELP, _REPEATED]
    parts += ["## Options of many commands", _described_once(usual)]
    rows = {(_bold if name in always else str)(shared[name]): groups[shared[name]] for name in names}
    parts.append(_table(rows, rows))
    for path, command in commands():
        common = {name for name, row in described[path].items() if shared.get(name) == row}
        most_used = _most_used(command) if command.is_long else set()
        alone = {name: row for name, row in described[path].items() if name not in common}
        parts.append(_command(path, command, alone, most_used))
        listed = _listed(common - set(usual), by_group, most_used - always)
        if absent := ", ".join(f"`{name}`" for name in usual if name not in described[path]):
            listed += f"{', but ' if listed else ''}not {absent}"
        if listed:
            parts.append(f"Also [shared](#options-of-many-commands): {listed}.")
    return "\n\n".join(parts) + "\n"


def _described_once(usual: list[str]) -> str:
    names = ", ".join(f"`{name}`" for name in usual)
    return (
        f"Described here once. Commands have {names}, unless they say otherwise, and what they list below their table."
    )


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it: ``crosslens data describe``."""
    yield from _below("crosslens", _app())


def _app() -> Any:
    return typer.main.get_command(app)


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            if not child.hidden:
                yield from _below(f"{path} {name}", child)
    else:
        yield path, command


def _command(path: str, command: Any, rows: dict[str, str], most_used: set[str]) -> str:
    """What it does, with examples, and the options that it alone has."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = ["[options]"] if len(command.params) > len(arguments) else []
    usage = f"```\n{' '.join([path, *(_usage(one) for one in arguments), *options])}\n```"
    parts = [f"## {path}", usage if arguments else "", cleaned(command.help or "")]
    parts.append(_examples(getattr(command, "epilog", None) or ""))
    groups = _groups(command, rows) if command.is_long else {}
    written = {_bold(row) if name in most_used else row: groups.get(row, "") for name, row in rows.items()}
    return "\n\n".join(part.strip("\n") for part in [*parts, _table(written, written) if rows else ""] if part)


def _most_used(command: Any) -> set[str]:
    """What the short help of a long command lists."""
    return {flag.opts[-1] for flag in command.common_flags}


def _listed(common: set[str], by_group: dict[str, list[str]], most_used: set[str]) -> str:
    """The shared options of a command, by their group where it has nearly all of it."""
    parts = []
    for group, names in by_group.items():
        present, absent = [name for name in names if name in common], [name for name in names if name not in common]
        if len(present) > len(absent) + 2:
            most = ", ".join(f"**`{name}`**" for name in present if name in most_used)
            but = ", ".join(f"`{name}`" for name in absent)
            parts.append(f"all of *{group}*{but and f' but {but}'}{most and f' (most used: {most})'}")
        else:
            parts += [f"**`{name}`**" if name in most_used else f"`{name}`" for name in present]
    return ", ".join(parts)


def _bold(row: str) -> str:
    """The row of an option that ``--help`` lists."""
    flags, separator, rest = row.removeprefix("| ").partition(" |")
    bold = re.sub(r"`(-[^`]+)`", r"**`\1`**", flags)
    return f"| {bold}{separator}{rest}"


def _table(rows: Iterable[str], groups: dict[str, str]) -> str:
    """The rows under a head; those of a group below its name."""
    lines, listed = list(_HEAD), list(rows)
    for group in ("", *GROUPS):
        members = [row for row in listed if groups.get(row, "") == group]
        lines += [f"| *{group}* | |"] if group and members else []
        lines += members
    return "\n".join(lines)


def _groups(command: Any, rows: dict[str, str]) -> dict[str, str]:
    """The line that describes an option → what the option is for."""
    return {rows[flag.opts[-1]]: group_of(flag) for flag in command.flags if flag.opts[-1] in rows}


def _rows(command: Any) -> dict[str, str]:
    """The line that describes each argument and each option, by its name."""
    kinds = typing.get_type_hints(inspect.unwrap(command.callback)) if command.params else {}
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    named = [one for one in [*arguments, *options] if one.name not in ("help", "help_all")]
    return {_word(one) if one in arguments else one.opts[-1]: _row(one, kinds.get(one.name)) for one in named}


def _examples(epilog: str) -> str:
    """The commands of an epilog as a block to copy; what else stands there stays text."""
    text = epilog.replace("\b\n", "").strip()
    if not text.startswith("Examples:"):
        return cleaned(text)
    return f"```bash\n{inspect.cleandoc(text.removeprefix('Examples:'))}\n```"


def _usage(argument: Any) -> str:
    word = _word(argument) + ("..." if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def _row(parameter: Any, kind: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    if is_argument:
        # Markdown has no way to write | as code inside a table that every renderer understands.
        name = cell(_word(parameter)) if "|" in _word(parameter) else f"`{_word(parameter)}`"
    else:
        name = ", ".join(f"`{one}`" for one in [*parameter.opts, *parameter.secondary_opts])
    value = "" if is_argument or kind is bool else cell(parameter.metavar or value_word(kind))
    text = f"{cell(cleaned(parameter.help or ''))} {_default(parameter)}"
    return f"| {f'{name} {value}'.strip()} | {text.strip()} |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "[required]"
    value = parameter.default.value if isinstance(parameter.default, enum.Enum) else parameter.default
    if isinstance(value, list):  # how a flag with a single value is read, to refuse a second one
        value = ", ".join(map(str, value))
    return "" if value is None or isinstance(value, bool) or value in ((), []) else f"[default: `{value}`]"


def _word(argument: Any) -> str:
    return str(argument.metavar or argument.name).upper()


def value_word(kind: Any) -> str:
    """How a table names the type of an option: ``text``, ``path``, ``stable \\| expected``."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return value_word(next(one for one in typing.get_args(kind) if one is not type(None)))
    if typing.get_origin(kind) in (list, tuple, set):
        return value_word(typing.get_args(kind)[0]) + ", repeatable"
    if typing.get_origin(kind) is typing.Annotated:
        return value_word(typing.get_args(kind)[0])
    if typing.get_origin(kind) is typing.Literal:
        return " | ".join(f"`{one}`" for one in typing.get_args(kind))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return " | ".join(f"`{one.value}`" for one in kind)
    return {str: "text", int: "integer", float: "number", Path: "path"}.get(kind, "")


def exit_codes() -> str:
    """The table of exit codes, with the errors that lead to them."""
    raised: dict[int, list[str]] = {}
    for value in vars(errors).values():
        if inspect.isclass(value) and issubclass(value, CrosslensError):
            raised.setdefault(value.exit_code, []).append(f"`{value.__name__}`")
    rows = ["| code | means | in Python |", "|---|---|---|"]
    rows += [f"| {code} | {cell(text)} | {', '.join(raised.pop(code, []))} |" for code, text in EXIT_CODES.items()]
    assert not raised, f"exit codes without a meaning: {sorted(raised)}"
    return (
        "# Exit codes\n\nScripts can rely on these. The message goes to standard error, without a traceback; standard "
        "output holds results only.\n\n" + "\n".join(rows) + "\n"
    )
