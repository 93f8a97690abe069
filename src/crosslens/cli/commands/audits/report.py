"""``crosslens report``: runs and audits as one file to send."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

import crosslens.report as reports
from crosslens.cli.console import check_outputs, print_json, print_note, print_notes
from crosslens.cli.datasets import DatasetOfRuns
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, command
from crosslens.cli.stored_runs import load_run
from crosslens.core import option
from crosslens.encode import EncodeOptions

_MEGABYTE = 1_000_000


@command(
    "crosslens report runs/tiny -o report.html",
    'crosslens report runs/clip runs/siglip -o both.html --title "Two models"',
    "crosslens report audits/coco -o report.html --size-budget 2",
    "crosslens report runs/clip --image-folder photos --figures figures",
)
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of audits.")],
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(only=("image_folder",))],
    output: Path = option(Path("report.html"), "The page (.html).", metavar="FILE", flags=OUTPUT),
    title: str | None = option(None, "The title of the page. [default: from the runs]", metavar="TEXT"),
    size_budget: float = option(
        5.0, "How many MB the page may take: its pictures are made smaller, or fewer.", metavar="MB", minimum=0.1
    ),
    queries: int = option(6, "How many queries of each kind are shown.", metavar="N", minimum=1, maximum=100),
    figures: Path | None = option(
        None, "A folder for every chart (.svg, .pdf) and every table (.tex).", metavar="FOLDER"
    ),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write runs and audits as one page to send.

    How good, how sure, where does it fail; then recalls, graded metrics, groups, robustness, causes, the most
    instructive queries with pictures, label problems, and where every number comes from. The page needs no other file
    and no network. Of run folders it has what the runs hold; of an audit also what its stages computed.
    """
    check_outputs(output, overwrite=overwrite)
    sources = [folder if reports.is_audit(folder) else load_run(folder) for folder in runs]
    words = ["crosslens", "report", *map(str, runs), "-o", str(output)]
    written = reports.write_report(
        sources, output, title=title, dataset=source.dataset, dataset_options=source.reader_options(),
        image_folder=encode.image_folder, size_budget=size_budget, queries=queries, figures=figures,
        overwrite=overwrite, command=shlex.join(words),
    )  # fmt: skip
    print_notes(written.notes)
    if json:
        print_json(written.as_dict())
        return
    print_note(f"written: {written.page} ({written.size / _MEGABYTE:.1f} MB, {written.pictures:,} pictures)")
    if written.figures:
        print_note(f"written: {len(written.figures):,} files in {figures}")
