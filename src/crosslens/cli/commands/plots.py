"""``crosslens plot``: runs as figures, for the screen or a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import crosslens.pipeline as pipeline
import crosslens.report as report
from crosslens.cli.answers import Write
from crosslens.cli.console import print_json, print_note, print_written
from crosslens.cli.flags import ColumnOptions, Json, Overwrite, command
from crosslens.cli.stored_runs import load_runs, load_studies
from crosslens.core import UsageError, option

_MAX_GROUPS = 20
_BY = "Group by a column of the dataset, or by caption_length."


@command(
    "crosslens plot runs/clip-b32 --by category --write categories.html",
    "crosslens plot runs/clip-b32 runs/siglip --by category --metric t2i/Hit@5 \\",
    "    --write categories.svg",
)
def plot(
    runs: Annotated[list[Path], typer.Argument(help="One or more run folders, or robustness studies.")],
    *,
    by: str | None = option(
        None, f"{_BY} Studies by dataset: the mean over models. [default: all queries together]", metavar="COLUMN"
    ),
    added: ColumnOptions,
    metric: str | None = option(None, "Such as t2i/Hit@5. [default: t2i/Hit@1, or the first shared]", metavar="NAME"),
    all_groups: bool = option(False, "Every group, not only the 20 largest.", flags=("--all",)),
    write: Write = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> report.GroupChart | None:
    """Plot a metric of runs by group, with intervals.

    Prints the numbers; --write draws them. A page (.html) opens in any browser without a network. Several runs stand
    side by side.
    """
    if (studies := load_studies(runs)) is not None:
        if not write:
            raise UsageError("no file for the heat map", fix="name one: --write FILE.html")
        table = pipeline.drop_table(studies, metric, by=by)
        for file in write:
            if len(studies) == 1 and by is None:
                report.write_heat_map(next(iter(studies.values())), file, metric=metric, overwrite=overwrite)
            else:
                report.write_drop_map(table, file, overwrite=overwrite)
        if json:
            print_json({"metric": table.metric, "files": list(map(str, write))})
        else:
            print_written(write)
        return None
    loaded = load_runs(runs, added.columns)
    drawn = report.chart(loaded, by, metric, largest=None if all_groups else _MAX_GROUPS)
    if metric is None:
        print_note(f"note: {drawn.metric}; choose another with --metric")
    if by is None and (columns := report.group_names(loaded[0])):
        print_note(f"note: all queries together; group them with --by: {', '.join(columns)}")
    if drawn.left_out:
        print_note(f"note: the {_MAX_GROUPS} largest groups; --all draws every group")
    return drawn
