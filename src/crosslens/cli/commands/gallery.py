"""``crosslens gallery``: the top of several models' lists side by side, with pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import crosslens.explanations as explanations
import crosslens.pipeline as pipeline
from crosslens.cli.answers import Write
from crosslens.cli.datasets import DatasetOfRuns
from crosslens.cli.flags import Flags, command
from crosslens.cli.stored_runs import check_same_captions, load_run
from crosslens.core import option
from crosslens.encode import EncodeOptions


@command(
    "crosslens gallery runs/tiny --query 102",
    'crosslens gallery runs/clip --query "red helmet" --write top.html',
    "crosslens gallery runs/clip runs/siglip --hardest 9 --write hard.html",
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
    write: Write = None,
) -> explanations.Gallery:  # fmt: skip
    """Show the top k of several models side by side.

    Relevant items are marked; for each list the rank of the first relevant item is given, and for each query how much
    the lists of the models overlap. A page (--write top.html) shows the pictures.
    """
    loaded = [load_run(folder) for folder in runs]
    check_same_captions(dict(zip(map(str, runs), loaded, strict=True)))
    dataset = explanations.dataset_of_run(loaded[0], source.dataset, **source.reader_options())
    result = explanations.retrieval_gallery(
        dict(zip(pipeline.run_labels(tuple(loaded)), loaded, strict=True)), dataset, query or (),
        hardest=hardest, random=random, seed=seed, direction=direction, k=k,
    )  # fmt: skip
    if not write:
        return result
    files, problem = explanations.image_files_of_run(loaded[0], dataset, result.images, encode.image_folder)
    return replace(result, pictures=files, problem=problem or "")
