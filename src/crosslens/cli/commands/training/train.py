"""``crosslens train``: train a retrieval model on stored features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import crosslens.train as train
from crosslens.cli.commands.training.live import live_training
from crosslens.cli.console import print_json, print_list, print_note, print_notes, print_result, progress_bar
from crosslens.cli.flags import OUTPUT, Json, Overwrite, command
from crosslens.core import Options, UsageError, option

_AS_IN_RECIPE = " [default: as in the recipe]"


@dataclass(frozen=True)
class TrainingChanges(Options):
    """Settings of a recipe that a flag may change."""

    fraction: float | None = option(
        None, "Share of the training images; a smaller share is part of a larger one." + _AS_IN_RECIPE,
        metavar="SHARE", above=0, maximum=1,
    )  # fmt: skip
    seed: int | None = option(
        None, "Seed of weights, order, dropout and sampling." + _AS_IN_RECIPE, metavar="N", minimum=0
    )
    epochs: int | None = option(None, "Passes over the training captions." + _AS_IN_RECIPE, metavar="N", minimum=1)
    batch_size: int | None = option(None, "Pairs in a batch." + _AS_IN_RECIPE, metavar="N", minimum=2)
    learning_rate: float | None = option(
        None, "Learning rate at its highest." + _AS_IN_RECIPE, metavar="NUMBER", above=0
    )
    precision: str | None = option(
        None, "What the model computes in: fp32 or bf16." + _AS_IN_RECIPE, metavar="NAME", choices=("fp32", "bf16")
    )
    test_metrics: str | None = option(
        None, 'Metrics of the test split besides those of the recipe, such as "NCS@10 Nsum[spice]".', metavar="NAMES",
        flags=("--metrics",), joins=" ",
    )  # fmt: skip
    processes: int | None = option(
        None, "Processes that train together: one per GPU, or on the CPU." + _AS_IN_RECIPE, metavar="N", minimum=1
    )
    device: str | None = option(
        None, "Where to compute: cpu, cuda, cuda:1. [default: a GPU if there is one]", metavar="NAME"
    )
    threads: int | None = option(None, "Threads to use, of each process.", metavar="N", minimum=1)


@command(
    "crosslens train --list",
    'crosslens train --list "f30k soft"',
    "crosslens train flickr8k-vse-triplet --data flickr8k --fraction 0.1 \\",
    "    --seed 0 -o models/t",
    "crosslens train --recipe my-recipe.toml --data flickr8k -o models/mine",
)
def train_command(
    name: Annotated[str | None, typer.Argument(help="A recipe that comes with crosslens, or a path.")] = None,
    *,
    recipe: Path | None = option(None, "A recipe file, in place of the name.", metavar="FILE.toml"),
    data: Path | None = option(
        None, "The folder with captions and features.", metavar="FOLDER", flags=("--data", "--features")
    ),
    output: Path | None = option(None, "Where the model is written.", metavar="FOLDER", flags=OUTPUT),
    changes: TrainingChanges,
    list_recipes: bool = option(
        False, "List the recipes and stop; with words in place of the name, those they describe.", flags=("--list",)
    ),
    overwrite: Overwrite = False,
    json: Json = False,
) -> train.Trained | None:
    """Train a retrieval model on stored features.

    The checkpoint that is best on validation is kept and measured on the test split. Running the same command again
    resumes an interrupted training, and ends with the same weights. The folder also holds the curves as a page
    (curves.html) and the test split as a run (test), which crosslens compare and crosslens show read.
    """
    if list_recipes:
        _print_recipes(name or "", json)
        return None
    chosen, data, output = _required(name, recipe, data, output)
    loaded = train.load_training_recipe(chosen).with_settings(vars(changes))
    features = train.load_features(loaded.layout, data, loaded.data, loaded.source)
    live = None if json else live_training(loaded.settings.metric)
    try:
        trained = train.train_model(
            loaded, features, output, overwrite=overwrite, progress=live or progress_bar(),
            watch=live.watch if live else None,
        )  # fmt: skip
    except KeyboardInterrupt as interrupt:
        print_note(str(interrupt))
        raise
    if not json:
        print_notes(trained.notes)
    return trained


def _required(
    name: str | None, recipe: Path | None, data: Path | None, output: Path | None
) -> tuple[str | Path, Path, Path]:
    if (name is None) == (recipe is None):
        problem = "no recipe" if name is None else f"two recipes, {name} and {recipe}"
        raise UsageError(problem, fix="name one recipe (see crosslens train --list), or a file with --recipe")
    if data is None:
        raise UsageError("no data", fix="pass --data and the folder with captions and features", option="data")
    if output is None:
        raise UsageError("no output folder", fix="pass -o and the folder that the model is written to", option="output")
    return name or recipe or "", data, output


def _print_recipes(words: str, json: bool) -> None:
    groups = train.recipe_groups(words)
    if json:
        recipes = sorted((recipe for group in groups for recipe in group.recipes), key=lambda recipe: recipe.name)
        print_json({"recipes": [_listed(recipe) for recipe in recipes]})
        return
    for group in groups:
        print_result(f"{group.title}:")
        print_list([(recipe.name, _about(recipe)) for recipe in group.recipes], indent=2)
    if not words:
        print_note('\ncrosslens train --list "flickr8k vse" lists those that the words describe')


def _about(recipe: train.TrainingRecipe) -> str:
    tables = train.tables_of(recipe)
    return f"{recipe.about} ({tables})" if tables else recipe.about


def _listed(recipe: train.TrainingRecipe) -> dict[str, Any]:
    rows = [
        {"table": row.table, "row": row.row, "flags": row.flags, "figures": dict(row.figures)}
        for row in recipe.published
    ]
    return {"name": recipe.name, "about": recipe.about, "published": rows}
