"""The commands under one name."""

from __future__ import annotations

from typing import Annotated

import typer

from crosslens import __version__
from crosslens.cli import (
    agreement,
    analyze,
    build,
    caption_sets,
    compare,
    counterfactual,
    curve,
    data,
    demo,
    encode,
    evaluate,
    explain,
    export,
    hard_negatives,
    labels,
    metrics,
    missing,
    perturb,
    plot,
    recipe,
    robustness,
    show,
    similarity,
    synth,
)
from crosslens.cli.exit_codes import EXIT_CODES

_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())

# Plain help: it reads the same on a terminal, in a pipe and in the documentation.
app = typer.Typer(
    name="crosslens",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_data = typer.Typer(name="data", rich_markup_mode=None)
_build = typer.Typer(name="build", rich_markup_mode=None)
_analyze = typer.Typer(name="analyze", rich_markup_mode=None)

app.command(epilog=demo.EXAMPLES)(demo.demo)
app.command(epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command(epilog=encode.EXAMPLES)(encode.encode)
app.command(epilog=show.EXAMPLES)(show.show)
app.command(epilog=plot.EXAMPLES)(plot.plot)
app.command(epilog=compare.EXAMPLES)(compare.compare)
app.command("caption-sets", epilog=caption_sets.EXAMPLES)(caption_sets.caption_sets)
app.command(epilog=curve.EXAMPLES)(curve.curve)
app.command(epilog=export.EXAMPLES)(export.export)
app.command("run", epilog=recipe.EXAMPLES)(recipe.run)
app.command(epilog=metrics.EXAMPLES)(metrics.metrics)
app.command(epilog=synth.EXAMPLES)(synth.synth)
app.command(epilog=similarity.EXAMPLES)(similarity.similarity)
app.command(epilog=agreement.EXAMPLES)(agreement.agreement)
app.command("hard-negatives", epilog=hard_negatives.EXAMPLES)(hard_negatives.hard_negatives)
app.command(epilog=perturb.EXAMPLES)(perturb.perturb)
app.command(epilog=robustness.EXAMPLES)(robustness.robustness)
app.command(epilog=counterfactual.EXAMPLES)(counterfactual.counterfactual)
app.command(epilog=explain.EXAMPLES)(explain.explain)
app.command("missing-positives", epilog=missing.EXAMPLES)(missing.missing_positives)
_build.command(epilog=build.RECOS_EXAMPLES)(build.recos)
_analyze.command(epilog=analyze.GRANULARITY_EXAMPLES)(analyze.granularity)
_analyze.command(epilog=labels.EXAMPLES)(labels.labels)
_data.command(epilog=data.DESCRIBE_EXAMPLES)(data.describe)
_data.command(epilog=data.CONVERT_EXAMPLES)(data.convert)
_data.command(epilog=data.FORMATS_EXAMPLES)(data.formats)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"crosslens {__version__}")
        raise typer.Exit


def _help_if_alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """How good is an image–text retrieval system, really?

    Start with `crosslens demo`, then `crosslens evaluate --help`.
    """
    _help_if_alone(context)


@_data.callback(invoke_without_command=True)
def data_root(context: typer.Context) -> None:
    """Look at datasets and convert them."""
    _help_if_alone(context)


@_build.callback(invoke_without_command=True)
def build_root(context: typer.Context) -> None:
    """Build new benchmarks from candidates."""
    _help_if_alone(context)


@_analyze.callback(invoke_without_command=True)
def analyze_root(context: typer.Context) -> None:
    """Say what a dataset is like."""
    _help_if_alone(context)


app.add_typer(_data)
app.add_typer(_analyze)
app.add_typer(_build)
