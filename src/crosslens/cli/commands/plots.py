"""``crosslens plot`` and ``curve``: runs as figures, for the screen or a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import crosslens.explanations as explanations
import crosslens.pipeline as pipeline
import crosslens.report as report
from crosslens.cli.commands.protocols import PROTOCOL_HELP, followed, print_protocol, protocol_json
from crosslens.cli.console import print_json, print_note, print_result, print_written, progress_bar, terminal_width
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import OUTPUT, ColumnOptions, Flags, IntervalOptions, Json, Overwrite, Threads, command
from crosslens.cli.stored_runs import load_run, load_runs, load_studies
from crosslens.core import UnknownNameError, option

_MAX_GROUPS = 20
_PHI = "cider"
_BY = "Group by a column of the dataset, or by caption_length."
_RUN_DATASET = "The runs' dataset. [default: the one that the first run's recipe names]"


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


@command(
    "crosslens curve runs/clip-b32 runs/siglip --phi cider --m 1..50 -o fig3.html",
    "crosslens curve runs/clip-b32 --phi spice.npy --direction i2t --k 10 --json",
    "crosslens curve runs/clip-b32 runs/siglip --protocol five -o fig3.html",
)
def curve(
    runs: Annotated[list[Path], typer.Argument(help="One or more run folders, of one dataset.")],
    source: Annotated[DatasetOptions, Flags(help={"dataset": _RUN_DATASET})],
    intervals: Annotated[IntervalOptions, Flags(without=("level",))],
    phi: str = option(_PHI, "The similarity, or a matrix of it.", metavar="NAME|FILE"),
    m: str = option("1..50", "How many items count as relevant: 1..50, or 1,5,10.", metavar="VALUES", joins=","),
    k: int = option(5, "The cutoff of the ranked lists.", metavar="N", minimum=1),
    direction: str = option("t2i", "Which queries.", metavar="i2t|t2i"),
    ground_truth: bool = option(False, "Keep annotated items; otherwise they are left out of both sides."),
    by_image: bool = option(False, "m images that the captions of the query's image vote for, instead of m items."),
    protocol: str | None = option(None, PROTOCOL_HELP.format("five"), metavar="NAME"),
    output: Path | None = option(None, "Ends in .html, .svg, .png or .pdf.", metavar="FILE", flags=OUTPUT),
    threads: Threads = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Plot semantic recall against m, for several runs.

    SR is the share of the m most similar items that is retrieved, SRhit whether any of them is: where one falls and
    the other rises with m, conclusions depend on the choice of m. Rankings come from the run folders; nothing is
    ranked again.
    """
    if direction not in ("i2t", "t2i"):
        raise UnknownNameError("direction", direction, ("i2t", "t2i"))
    paper, record = followed(protocol, "curve")
    if paper is not None and record is not None:
        if ground_truth:
            raise paper.contradiction("ground_truth", True, "the annotated items left out")
        phi = paper.setting("curve", "phi") if phi == _PHI else phi
        by_image = True
        record |= {"phi": [phi], "tokens": {phi: paper.phi[phi]} if phi in paper.phi else {}}
    counts = pipeline.parse_counts(m)
    loaded = [load_run(folder) for folder in runs]
    dataset = source.load_if_given() or explanations.dataset_of_run(loaded[0])
    curves = pipeline.curve(
        loaded, dataset, phi, m=counts, k=k, direction=direction,
        non_gt=not ground_truth, by_image=by_image, seed=intervals.seed, resamples=intervals.resamples, threads=threads,
        progress=progress_bar(),
    )  # fmt: skip
    written = None if output is None else report.write_curves(curves, output, overwrite=overwrite)
    if json:
        print_json({**curves.as_dict(), **protocol_json(record), **({} if written is None else {"file": str(written)})})
        return
    print_result(f"{report.curve_title(curves)}\n\n{report.curve_grid(curves).text(terminal_width())}\n")
    print_result(f"In percent. {report.curve_facts(curves)}.")
    print_protocol(record)
    print_written([] if written is None else [written])
