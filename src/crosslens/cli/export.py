"""``crosslens export``: a run as a file that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosslens.cli.console import Json, examples, note, say, say_json

EXAMPLES = examples(
    "crosslens export runs/clip-b32 --to latex",
    "crosslens export runs/clip-b32 --to trec",
    "crosslens export runs/clip-b32 --to trec -o lists/clip-b32.run.gz",
    "crosslens export runs/clip-b32 --to trec --direction i2t | head",
    'crosslens export runs/clip-b32 runs/siglip --to markdown --metrics "Hit@1"',
)


def export(
    runs: Annotated[list[Path], typer.Argument(help="A run folder; several for latex, csv and markdown.")],
    to: Annotated[
        str, typer.Option(metavar="FORMAT", help="trec, ranx, mteb, clip-benchmark, latex, csv or markdown.")
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write; - prints it. [default: print one file; write several into the current folder]",
        ),
    ] = None,
    direction: Annotated[
        str | None, typer.Option(metavar="i2t|t2i", help="Only i2t or t2i, of a format with a file for each.")
    ] = None,
    metrics: Annotated[str | None, typer.Option(metavar="NAMES", help='Only these, such as "Hit@1 Hit@5".')] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that stand there.")] = False,
    json: Json = False,
) -> None:
    """Write a run for another tool, or as a table.

    trec, ranx and mteb have one file per direction. Those of the folder runs/name are called name.i2t.run and
    name.t2i.run; with -o other.ext they become other-i2t.ext and other-t2i.ext.
    """
    from crosslens.cli.stored import load_run
    from crosslens.core.errors import UsageError
    from crosslens.report.export import render, write, write_named

    files = render([load_run(folder) for folder in runs], to, metrics=metrics, direction=direction)
    if output == "-" and len(files) > 1:
        raise UsageError(
            f"{to} makes a file for each of {', '.join(files)}", fix="name them with -o FILE, or choose one --direction"
        )
    if output not in (None, "-"):
        written = write(files, str(output), overwrite=overwrite)
    elif len(files) > 1:
        written = write_named(files, runs[0].resolve().name, to, overwrite=overwrite)
    else:
        if json:
            say_json({"format": to, "content": "".join(files.values())})
        else:
            say("".join(files.values()).removesuffix("\n"))
        return
    if json:
        say_json({"format": to, "files": [str(place) for place in written]})
    else:
        note("written to " + ", ".join(map(str, written)))
