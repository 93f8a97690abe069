"""``crosslens plot``: runs as figures, for the screen or a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import crosslens.pipeline as pipeline
from crosslens.cli.console import print_note
from crosslens.cli.flags import ColumnOptions, command
from crosslens.cli.stored_runs import load_runs, load_studies
from crosslens.core import option

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
) -> pipeline.GroupChart | pipeline.DropTable:
    """Plot a metric of runs by group, with intervals.

    Prints the numbers; --write draws them. A page (.html) opens in any browser without a network. Several runs stand
    side by side; of robustness studies, heat maps of the drops.
    """
    if (studies := load_studies(runs)) is not None:
        return pipeline.drop_table(studies, metric, by=by)
    loaded = load_runs(runs, added.columns)
    drawn = pipeline.chart(loaded, by, metric, largest=None if all_groups else _MAX_GROUPS)
    if metric is None:
        print_note(f"note: {drawn.metric}; choose another with --metric")
    if by is None and (columns := pipeline.group_names(loaded[0])):
        print_note(f"note: all queries together; group them with --by: {', '.join(columns)}")
    if drawn.left_out:
        print_note(f"note: the {_MAX_GROUPS} largest groups; --all draws every group")
    return drawn
