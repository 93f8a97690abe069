"""``crosslens gallery``: the top of several models' lists side by side, with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import crosslens.core as core
import crosslens.explanations as explanations
import crosslens.pipeline as pipeline
import crosslens.report as report
from crosslens.cli.console import (
    check_outputs,
    print_json,
    print_note,
    print_notes,
    print_result,
    terminal_width,
)
from crosslens.cli.datasets import DatasetOfRuns
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, command
from crosslens.cli.stored_runs import check_same_captions, load_run
from crosslens.core import UsageError, option
from crosslens.encode import EncodeOptions


@command(
    "crosslens gallery runs/tiny --query 102",
    'crosslens gallery runs/clip runs/siglip --query "red helmet" -o top.html',
    "crosslens gallery runs/clip runs/siglip --hardest 20 --k 10 -o hard.html",
    "crosslens gallery runs/clip --direction i2t --random 10 --seed 1 --json",
)
def gallery(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of one dataset, one per model.")],
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(only=("image_folder",))],
    query: list[str] | None = option(
        None, "A query: its id, or a part of its text (of an image: of a caption); may be repeated.", metavar="ID|TEXT"
    ),
    hardest: int = option(0, "Add the N queries that every model ranks worst.", metavar="N", minimum=0),
    random: int = option(
        0, "Add N drawn queries. [default: 5 where no others are chosen]", metavar="N", minimum=0
    ),
    seed: int = option(0, "Seed of --random.", metavar="N"),
    direction: str | None = option(None, "[default: the one that has the query; texts first]", metavar="t2i|t2t|i2t"),
    k: int = option(5, "How many items of each list are shown.", metavar="N", minimum=1),
    budget: float = option(
        8.0, "The page: how many MB its pictures may take; they are made smaller to fit.", metavar="MB",
        flags=("--picture-budget",), minimum=0.1,
    ),
    output: Path | None = option(
        None, "A page that needs no other file (.html), with pictures.", metavar="FILE", flags=OUTPUT
    ),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Show the top k of several models side by side.

    Relevant items are marked; for each list the rank of the first relevant item is given, and for each query how much
    the lists of the models overlap. The page (-o) shows the pictures.
    """
    check_outputs(output, overwrite=overwrite)
    if output is not None and output.suffix.lower() != ".html":
        raise UsageError(f"{output} is not .html", fix="end the name in .html", option="output")
    loaded = [load_run(folder) for folder in runs]
    check_same_captions(dict(zip(map(str, runs), loaded, strict=True)))
    dataset = explanations.dataset_of_run(loaded[0], source.dataset, **source.reader_options())
    result = report.retrieval_gallery(
        dict(zip(pipeline.run_labels(tuple(loaded)), loaded, strict=True)), dataset, query or (),
        hardest=hardest, random=random, seed=seed, direction=direction, k=k,
    )  # fmt: skip
    if output is not None:
        files, problem = explanations.image_files_of_run(loaded[0], dataset, result.images, encode.image_folder)
        page = report.gallery_page(result, files, budget=budget, problem=problem)
        core.write_text(output, page)
    print_notes(result.notes)
    if json:
        print_json({**result.as_dict(), "written": [] if output is None else [str(output)]})
        return
    print_result(result.text(terminal_width()))
    if output is not None:
        print_note(f"\nwith pictures: {output} ({output.stat().st_size / 1e6:.1f} MB)")
