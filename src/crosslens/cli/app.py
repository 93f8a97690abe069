"""The commands under one name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from crosslens import __version__
from crosslens.cli.commands import (
    analyze,
    build,
    caption_sets,
    data,
    encode,
    evaluate,
    explain,
    export,
    hard_negatives,
    perturb,
    plots,
    relevance,
    robustness,
    runs,
    scenes,
    similarity,
)
from crosslens.cli.exit_codes import EXIT_CODES

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": scenes.demo,
    "evaluate": evaluate.evaluate,
    "encode": encode.encode,
    "show": runs.show,
    "plot": plots.plot,
    "compare": runs.compare,
    "caption-sets": caption_sets.caption_sets,
    "curve": plots.curve,
    "export": export.export,
    "run": evaluate.run,
    "metrics": evaluate.metrics,
    "synth": scenes.synth,
    "similarity": similarity.similarity,
    "agreement": relevance.agreement,
    "hard-negatives": hard_negatives.hard_negatives,
    "perturb": perturb.perturb,
    "robustness": robustness.robustness,
    "counterfactual": explain.counterfactual,
    "explain": explain.explain,
    "missing-positives": relevance.missing_positives,
}
"""In the order in which the help text lists them."""
GROUPS: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {
    "data": (
        "Describe datasets and convert them.",
        {"describe": data.describe, "convert": data.convert, "formats": data.formats},
    ),
    "analyze": (
        "Analyze a dataset: granularity, label quality.",
        {"granularity": analyze.granularity, "labels": analyze.labels},
    ),
    "build": ("Build new benchmarks from candidates.", {"recos": build.recos}),
}

_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())

# Plain help: it reads the same on a terminal, in a pipe and in the documentation.
app = typer.Typer(
    name="crosslens",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(given: bool) -> None:
    if given:
        typer.echo(f"crosslens {__version__}")
        raise typer.Exit


def _print_help(context: typer.Context) -> None:
    """What a group of commands does without a command."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


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


def _add(parent: typer.Typer, commands: dict[str, Callable[..., Any]]) -> None:
    for name, function in commands.items():
        parent.command(name, epilog=vars(function)["epilog"])(function)


_add(app, COMMANDS)
for _name, (_help, _commands) in GROUPS.items():
    _group = typer.Typer(name=_name, rich_markup_mode=None, help=_help, invoke_without_command=True)
    _group.callback(help=_help)(_print_help)
    _add(_group, _commands)
    app.add_typer(_group)
