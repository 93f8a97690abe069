"""The commands under one name, and every outcome of theirs as an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Annotated, Any

import typer

from crosslens import __version__
from crosslens.cli.commands import (
    analyze,
    build,
    caption_sets,
    data,
    difficulty,
    evaluate,
    explain,
    judging,
    pages,
    panels,
    polysemy,
    relevance,
    runs,
    scale,
    start,
    stress,
    training,
)
from crosslens.cli.completion import complete_bash
from crosslens.cli.console import print_note, print_result
from crosslens.cli.exit_codes import EXIT_CODES, INTERRUPTED
from crosslens.cli.flags import flag_spelling, spread_values
from crosslens.cli.help import CommandHelp
from crosslens.core import TRACEBACK_VARIABLE, CrosslensError, MetricNameWarning, UsageError, as_user_error
from crosslens.storage import command_line, is_encodable

Command = Callable[..., Any]
GROUPS: dict[str, tuple[str, dict[str, Command]]] = {
    "data": (
        "Describe datasets and convert them.",
        {"describe": data.describe, "convert": data.convert, "formats": data.formats, "known": data.known},
    ),
    "analyze": (
        "Analyze a dataset: captions, labels, polysemy.",
        {
            "granularity": analyze.granularity, "discriminability": analyze.discriminability,
            "labels": analyze.labels, "polysemy": polysemy.polysemy, "difficulty": difficulty.difficulty,
            "filter-loss": difficulty.filter_loss, "categories": panels.categories, "scorers": panels.scorers,
            "run": analyze.run,
        },
    ),
    "judging": (
        "Projects in which people judge items.",
        {
            "new": judging.new, "import": judging.import_, "export": judging.export, "invite": judging.invite,
            "members": judging.members, "accounts": judging.accounts, "audit": judging.audit,
            "status": judging.status,
        },
    ),
    "build": ("Build new benchmarks from candidates.", {"recos": build.recos, "imp": build.imp, "clean": build.clean}),
}  # fmt: skip
"""Commands of two words: the first, its help, and the second with their functions."""
HEADINGS: dict[str, dict[str, Command | None]] = {
    "Start": {"demo": start.demo, "audit": start.audit, "calibrate": start.calibrate, "doctor": start.doctor},
    "Evaluate": {
        "evaluate": evaluate.evaluate, "compare": runs.compare, "leaderboard": runs.leaderboard,
        "check": runs.check, "run": evaluate.run, "encode": evaluate.encode, "metrics": evaluate.metrics,
        "protocols": evaluate.protocols,
    },
    "Look": {
        "show": runs.show, "serve": pages.serve, "report": pages.report, "gallery": pages.gallery,
        "plot": runs.plot, "export": pages.export,
    },
    "Understand": {
        "explain": explain.explain, "analyze": None, "counterfactual": explain.counterfactual,
        "caption-sets": caption_sets.caption_sets, "similarity": relevance.similarity,
        "missing-positives": relevance.missing_positives,
    },
    "Stress": {"robustness": stress.robustness, "perturb": stress.perturb, "hard-negatives": stress.hard_negatives},
    "Data": {"data": None, "synth": data.synth, "build": None},
    "Train": {"train": training.train_command, "sweep": training.sweep_command},
    "People": {"judging": None, "judge": judging.judge, "agreement": relevance.agreement},
    "Scale": {"curve": scale.curve, "plan": scale.plan},
}  # fmt: skip
"""Heading of the help → its commands, the most used first; None for those of ``GROUPS``."""

_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())


class _HelpByHeading(typer.core.TyperGroup):
    """The help with its commands under headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        room = max(map(len, self.commands))
        for heading, names in HEADINGS.items():
            rows = [(name, self.commands[name].get_short_help_str(formatter.width - 6 - room)) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(room), text) for name, text in rows])


# Plain help: it reads the same on a terminal, in a pipe and in the documentation.
app = typer.Typer(
    name="crosslens", cls=_HelpByHeading, rich_markup_mode=None, pretty_exceptions_enable=False, epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def _print_version(asked: bool) -> None:
    if asked:
        print_result(f"crosslens {__version__}")
        raise typer.Exit


def _print_help(context: typer.Context) -> None:
    """What a group of commands does without a command."""
    if context.invoked_subcommand is None:
        print_result(context.get_help())


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Evaluate image–text retrieval: metrics, intervals, failures.

    Start with `crosslens demo`, then `crosslens evaluate --help`.
    """
    _print_help(context)


for _names in HEADINGS.values():
    for _name, _function in _names.items():
        if _function is not None:
            app.command(_name, cls=CommandHelp, epilog=vars(_function)["epilog"])(_function)
            continue
        _help, _commands = GROUPS[_name]
        _group = typer.Typer(name=_name, rich_markup_mode=None, help=_help, invoke_without_command=True)
        _group.callback(help=_help)(_print_help)
        for _second, _function in _commands.items():
            _group.command(_second, cls=CommandHelp, epilog=vars(_function)["epilog"])(_function)
        app.add_typer(_group)


# typer carries its own copy of click or uses the installed one, depending on its version: ask it, not click.
_ClickError: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


_COMPLETE = "_CROSSLENS_COMPLETE"
"""The environment variable by which a shell asks for proposals."""


@cache
def _root_command() -> Any:
    """All commands with their options, made once: a program may call several."""
    return typer.main.get_command(app)


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run ``crosslens`` with these arguments (default: those of the process) and return its exit code."""
    for channel in (sys.stdout, sys.stderr):
        if hasattr(channel, "reconfigure"):
            channel.reconfigure(errors="replace")  # an arrow must not end an evaluation on a narrow terminal
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        for word in words:
            if not is_encodable(word):  # no file that crosslens writes could name it
                fix = "write it in UTF-8; rename a file whose name is not UTF-8"
                raise UsageError(f"the argument {word!r:.60} is not UTF-8", fix=fix)
        words = spread_values(words, _command_of(words))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetricNameWarning)  # commands print it as a note
            call = partial(_root_command(), args=words, prog_name="crosslens", standalone_mode=False)
            with command_line(words):
                code = complete_bash(call) if os.environ.get(_COMPLETE) == "complete_bash" else call()
        sys.stdout.flush()
    except CrosslensError as error:
        return _print_error(error.render(flag_spelling(_command_of(words))), error.exit_code)
    except BrokenPipeError:
        return _drop_output()
    except _ClickError as error:
        message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "crosslens"
        flag = "--help-all" if getattr(context and context.command, "is_long", False) else "--help"
        usage = f"{message[:1].lower()}{message[1:]}\n  fix: see {command} {flag}"
        return _print_error(usage, getattr(error, "exit_code", 2))
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as end:  # how click answers a closed pipe
        return _drop_output() if end.code == 1 else int(end.code or 0)
    except Exception as error:
        user_error = as_user_error(error)
        if user_error is not None:
            if os.environ.get(TRACEBACK_VARIABLE):
                traceback.print_exception(error)
            return _print_error(user_error.render(flag_spelling(_command_of(words))), user_error.exit_code)
        refused = _system_error(error)
        if refused is None:
            raise
        return _print_error(refused, 3)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _print_error(message: str, code: int) -> int:
    print_note(f"error: {message}")
    return code


def _command_of(words: Sequence[str]) -> Any:
    command = _root_command()
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return command


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
