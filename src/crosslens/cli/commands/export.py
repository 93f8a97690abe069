"""``crosslens export``: a run as a file that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosslens.cli.console import print_json, print_note, print_result
from crosslens.cli.flags import OUTPUT, Json, Overwrite, command
from crosslens.cli.stored_runs import load_run
from crosslens.core import option


@command(
    "crosslens export runs/clip-b32 --to latex",
    "crosslens export runs/clip-b32 --to trec",
    "crosslens export runs/clip-b32 --to trec -o lists/clip-b32.run.gz",
    "crosslens export runs/clip-b32 --to trec --direction i2t | head",
    'crosslens export runs/clip-b32 runs/siglip --to markdown --metrics "Hit@1"',
)
def export(
    runs: Annotated[list[Path], typer.Argument(help="A run folder; several for latex, csv and markdown.")],
    to: str = option(..., "trec, ranx, mteb, clip-benchmark, latex, csv or markdown.", metavar="FORMAT"),
    output: str | None = option(
        None,
        "Where to write; - prints it. [default: print one file; write several into the current folder]",
        metavar="FILE",
        flags=OUTPUT,
    ),
    direction: str | None = option(None, "Only this direction, of a format with a file for each.", metavar="i2t|t2i"),
    metrics: str | None = option(None, 'Only these, such as "Hit@1 Hit@5".', metavar="NAMES"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write a run for another tool, or as a table.

    trec, ranx and mteb have one file per direction. Those of the folder runs/name are called name.i2t.run and
    name.t2i.run; with -o other.ext they become other-i2t.ext and other-t2i.ext.
    """
    from crosslens.core import UsageError
    from crosslens.report import render_export, write_export, write_named_export

    files = render_export([load_run(folder) for folder in runs], to, metrics=metrics, direction=direction)
    if output == "-" and len(files) > 1:
        raise UsageError(
            f"{to} writes one file for each of {', '.join(files)}", fix="pass -o FILE, or choose one --direction"
        )
    if output not in (None, "-"):
        written = write_export(files, str(output), overwrite=overwrite)
    elif len(files) > 1:
        written = write_named_export(files, runs[0].resolve().name, to, overwrite=overwrite)
    else:
        content = "".join(files.values())
        if json:
            print_json({"format": to, "content": content})
        else:
            print_result(content.removesuffix("\n"))
        return
    if json:
        print_json({"format": to, "files": list(map(str, written))})
    else:
        print_note("written to " + ", ".join(map(str, written)))
