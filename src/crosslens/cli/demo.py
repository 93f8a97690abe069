"""``crosslens demo``: the whole way on generated data, nothing needed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosslens.cli.console import Json, examples, progress, say, say_json, width

if TYPE_CHECKING:
    from crosslens.core.run import Run

EXAMPLES = examples("crosslens demo", "crosslens demo -o tryout --images 500 --json")

_GENERATED = (
    "This is generated data: {images:,} toy scenes with {captions:,} captions, as two\n"
    "toy models see them through noise. The figures look like a real model's, and\n"
    "mean nothing beyond this demo."
)


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where data and runs are written.")
    ] = Path("runs"),
    images: Annotated[int, typer.Option(min=2, metavar="N", help="How many scenes to generate.")] = 200,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the generated data.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier, different demo.")] = False,
    json: Json = False,
) -> None:
    """Evaluate and compare two toy models on generated data."""
    from crosslens.pipeline.compare import compare
    from crosslens.report.table import run_table
    from crosslens.synth.toy import save_toy, toy_dataset

    dataset, models = toy_dataset(images=images, seed=seed)
    save_toy(output / "demo-data", dataset, models, overwrite=overwrite)
    folders = [output / f"demo-{model.removeprefix('model-')}" for model in models]
    runs = [_evaluate(model, folder, overwrite) for model, folder in zip(models, folders, strict=True)]
    comparison = compare(*runs, metrics="Hit@1 Hit@5 Hit@10 Rsum")
    intro = _GENERATED.format(images=images, captions=dataset.captions.height)
    if json:
        say_json(
            {
                "note": intro.replace("\n", " "),
                "runs": {str(folder): run.as_dict() for folder, run in zip(folders, runs, strict=True)},
                "comparison": comparison.as_dict(),
            }
        )
        return
    say(intro)
    for run in runs:
        say(f"\n{run_table(run, width=width(), explained=run is runs[-1])}")
    say(f"\n{comparison.text(width())}\n\n{_next_steps(*folders)}")


def _evaluate(model: str, folder: Path, overwrite: bool) -> Run:
    from crosslens.pipeline.recipe import Inputs, Recipe, execute

    data = folder.parent / "demo-data"
    recipe = Recipe(
        dataset=str(data / "dataset"),
        inputs=Inputs(
            image_embeddings=str(data / f"{model}-images"), caption_embeddings=str(data / f"{model}-captions")
        ),
        name=model,
    )
    return execute(recipe, folder, overwrite=overwrite, progress=progress(), command=sys.argv)


def _next_steps(first: Path, second: Path) -> str:
    steps = {
        f"crosslens show {second} --by category": "the same figures by group",
        f"crosslens compare {first} {second}": "the test above, again",
        f"crosslens export {second} --to latex": "a table for a paper",
        f"crosslens run {second}/recipe.toml": "the same evaluation, repeated",
        "crosslens evaluate --help": "your own embeddings or lists",
    }
    room = max(map(len, steps))
    return "What to try next\n" + "\n".join(f"  {command:<{room}}   {why}" for command, why in steps.items())
