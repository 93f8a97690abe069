"""``crosslens curve``: semantic recall of runs against the number of items that count as relevant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options

if TYPE_CHECKING:
    from crosslens.core.dataset import Dataset

EXAMPLES = examples(
    "crosslens curve runs/clip-b32 runs/siglip --phi cider --m 1..50 -o fig3.html",
    "crosslens curve runs/clip-b32 --phi spice.npy --direction i2t --k 10 --json",
)


def curve(
    runs: Annotated[list[Path], typer.Argument(help="One or more run folders, of one dataset.")],
    phi: Annotated[str, typer.Option(metavar="NAME|FILE", help="The similarity, or a matrix of it.")] = "cider",
    m: Annotated[str, typer.Option("--m", metavar="VALUES", help="How many items count: 1..50, or 1,5,10.")] = "1..50",
    k: Annotated[int, typer.Option("--k", min=1, metavar="N", help="How many retrieved items are looked at.")] = 5,
    direction: Annotated[str, typer.Option(metavar="i2t|t2i", help="Which queries.")] = "t2i",
    ground_truth: Annotated[
        bool, typer.Option("--ground-truth", help="Keep annotated items; they are left out of both sides otherwise.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Ends in .html, .svg, .png or .pdf.")
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(metavar="NAME|PATH", help="The runs' dataset. [default: the one the first run's recipe names]"),
    ] = None,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the intervals.")] = 0,
    resamples: Annotated[int, typer.Option(metavar="N", help="Resamples for the intervals; 0 for none.")] = 1000,
    threads: Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads to use.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that stands there.")] = False,
    json: Json = False,
) -> None:
    """Draw semantic recall against m, for several runs.

    SR is the share of the m most similar items that is retrieved, SRhit whether any of them is: where one falls and
    the other rises with m, the choice of m decides the story. Rankings come from the run folders, so nothing is ranked
    again.
    """
    from crosslens.cli.stored import load_run
    from crosslens.core.errors import UnknownNameError
    from crosslens.pipeline.curve import curve as curve_of
    from crosslens.pipeline.curve import parse_counts
    from crosslens.report.plots.curves import curve_facts, curve_grid, curve_title, write_curves

    if direction not in ("i2t", "t2i"):
        raise UnknownNameError("direction", direction, ("i2t", "t2i"))
    counts = parse_counts(m)
    loaded = [load_run(folder) for folder in runs]
    reading = reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split)
    found = curve_of(
        loaded, _dataset_of(runs[0], dataset, reading), phi, m=counts, k=k, direction=direction,
        non_gt=not ground_truth, seed=seed, resamples=resamples, threads=threads, progress=progress(),
    )  # fmt: skip
    written = None if output is None else write_curves(found, output, overwrite=overwrite)
    if json:
        say_json({**found.as_dict(), **({} if written is None else {"file": str(written)})})
        return
    say(f"{curve_title(found)}\n\n{curve_grid(found).text(width())}\n")
    say(f"In percent. {curve_facts(found)}.")
    if written is not None:
        note(f"\nwritten to {written}")


def _dataset_of(run: Path, dataset: str | None, options: dict[str, object]) -> Dataset:
    from crosslens.core.errors import UsageError
    from crosslens.core.run import RECIPE_FILE
    from crosslens.data import load_dataset
    from crosslens.pipeline.recipe import Recipe

    if dataset is not None:
        return load_dataset(dataset, **options)
    recipe = Recipe.read(run / RECIPE_FILE).absolute() if (run / RECIPE_FILE).exists() else Recipe()
    if recipe.dataset is None:
        raise UsageError(f"{run} does not say what its dataset is", fix="pass --dataset")
    return load_dataset(recipe.dataset, **recipe.dataset_options)
