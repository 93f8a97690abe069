"""``crosslens plot``: runs as a figure, for the screen or a paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosslens.cli.console import Json, examples, note, say_json

if TYPE_CHECKING:
    from crosslens.core.run import Run

EXAMPLES = examples(
    "crosslens plot runs/clip-b32 --by category -o categories.html",
    "crosslens plot runs/clip-b32 runs/siglip --by category --metric t2i/Hit@5 \\",
    "    --kind radar -o categories.svg",
)

_MOST_GROUPS = 20


def plot(
    runs: Annotated[list[Path], typer.Argument(help="One or more run folders, or a robustness study.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Ends in .html, .svg, .png or .pdf.")],
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of the dataset that makes groups.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="Such as t2i/Hit@5. [default: t2i/Hit@1, or the first shared]")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="NAME", help="bar, radar or both. [default: both; bar for a picture]")
    ] = None,
    all_groups: Annotated[bool, typer.Option("--all", help="Every group, not only the 20 largest.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that stands there.")] = False,
    json: Json = False,
) -> None:
    """Draw the figures of runs by group, with intervals.

    A page (.html) opens in any browser without a network; pictures (.svg, .png, .pdf) need the extra plot-static and
    a Chromium or Chrome. Several runs stand side by side.
    """
    from crosslens.cli.stored import load_run, load_study
    from crosslens.core.errors import UsageError
    from crosslens.report.plots import chart, write_plot

    if len(runs) == 1 and (study := load_study(runs[0])) is not None:
        from crosslens.report.plots.heat_map import write_heat_map

        drawn = write_heat_map(study, output, metric=metric, overwrite=overwrite)
        if json:
            say_json({"file": str(drawn), "metric": metric or study.headline})
        else:
            note(f"written to {drawn}")
        return
    loaded = [load_run(folder) for folder in runs]
    if by is None:
        raise UsageError("no column to group by", fix=f"pass --by with one of {_columns(loaded[0])}")
    found = chart(loaded, by, metric, largest=None if all_groups else _MOST_GROUPS)
    if metric is None:
        note(f"note: {found.metric}; choose another with --metric")
    if found.left_out:
        note(f"note: the {_MOST_GROUPS} largest groups; --all draws every one")
    written = write_plot(found, output, kind, overwrite=overwrite)
    if json:
        groups = {one.name: {group: two.as_dict() for group, two in one.groups.items()} for one in found.series}
        say_json({"file": str(written), "metric": found.metric, "by": found.column, "runs": groups})
    else:
        note(f"written to {written}")


def _columns(run: Run) -> str:
    return ", ".join(
        sorted({one for table in run.columns.values() for one in table.columns} - {"text", "image", "file"})
    )
