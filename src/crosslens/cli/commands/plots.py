"""``crosslens plot``: runs as figures, for the screen or a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import crosslens.pipeline as pipeline
import crosslens.report as report
from crosslens.cli.console import print_json, print_note
from crosslens.cli.flags import OUTPUT, ColumnOptions, Json, Overwrite, command
from crosslens.cli.stored_runs import load_runs, load_studies
from crosslens.core import option

_MAX_GROUPS = 20
_BY = "Group by a column of the dataset, or by caption_length."


@command(
    "crosslens plot runs/clip-b32 --by category -o categories.html",
    "crosslens plot runs/clip-b32 runs/siglip --by category --metric t2i/Hit@5 \\",
    "    --kind radar -o categories.svg",
)
def plot(
    runs: Annotated[list[Path], typer.Argument(help="One or more run folders, or robustness studies.")],
    *,
    output: Path = option(..., "Ends in .html, .svg, .png or .pdf.", metavar="FILE", flags=OUTPUT),
    by: str | None = option(
        None, f"{_BY} Studies by dataset: the mean over models. [default: all queries together]", metavar="COLUMN"
    ),
    added: ColumnOptions,
    metric: str | None = option(None, "Such as t2i/Hit@5. [default: t2i/Hit@1, or the first shared]", metavar="NAME"),
    kind: str | None = option(None, "bar, radar or both. [default: both; bar for an image file]", metavar="NAME"),
    all_groups: bool = option(False, "Every group, not only the 20 largest.", flags=("--all",)),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Plot a metric of runs by group, with intervals.

    A page (.html) opens in any browser without a network; images (.svg, .png, .pdf) need the extra plot-static and
    a Chromium or Chrome. Several runs stand side by side.
    """
    if (studies := load_studies(runs)) is not None:
        table = pipeline.drop_table(studies, metric, by=by)
        if len(studies) == 1 and by is None:
            file = report.write_heat_map(next(iter(studies.values())), output, metric=metric, overwrite=overwrite)
        else:
            file = report.write_drop_map(table, output, overwrite=overwrite)
        if json:
            print_json({"file": str(file), "metric": table.metric})
        else:
            print_note(f"written to {file}")
        return
    loaded = load_runs(runs, added.columns)
    drawn = report.chart(loaded, by, metric, largest=None if all_groups else _MAX_GROUPS)
    if metric is None:
        print_note(f"note: {drawn.metric}; choose another with --metric")
    if by is None and (columns := report.group_names(loaded[0])):
        print_note(f"note: all queries together; group them with --by: {', '.join(columns)}")
    if drawn.left_out:
        print_note(f"note: the {_MAX_GROUPS} largest groups; --all draws every group")
    file = report.write_plot(drawn, output, kind, overwrite=overwrite)
    if json:
        groups = {
            series.name: {group: values.as_dict() for group, values in series.groups.items()} for series in drawn.series
        }
        print_json({"file": str(file), "metric": drawn.metric, "by": drawn.column or None, "runs": groups})
    else:
        print_note(f"written to {file}")
