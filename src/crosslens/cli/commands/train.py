"""``crosslens train``: train a retrieval model on stored features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import crosslens.metrics as metrics
import crosslens.train as train
from crosslens.cli.console import print_json, print_list, print_note, print_result, progress_bar
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
    device: str | None = option(
        None, "Where to compute: cpu, cuda, cuda:1. [default: a GPU if there is one]", metavar="NAME"
    )
    threads: int | None = option(None, "Threads to use.", metavar="N", minimum=1)


@command(
    "crosslens train --list",
    "crosslens train flickr8k-vse-triplet --data flickr8k --fraction 0.1 \\",
    "    --seed 0 -o models/t",
    "crosslens train --recipe my-recipe.toml --data flickr8k -o models/mine",
)
def train_command(
    changes: TrainingChanges,
    name: Annotated[str | None, typer.Argument(help="A recipe that comes with crosslens, or a path.")] = None,
    recipe: Path | None = option(None, "A recipe file, in place of the name.", metavar="FILE.toml"),
    data: Path | None = option(
        None, "The folder with captions and features.", metavar="FOLDER", flags=("--data", "--features")
    ),
    output: Path | None = option(None, "Where the model is written.", metavar="FOLDER", flags=OUTPUT),
    list_recipes: bool = option(False, "List the recipes and stop.", flags=("--list",)),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a retrieval model on stored features.

    The checkpoint that is best on validation is kept and measured on the test split. Running the same command again
    resumes an interrupted training, and ends with the same weights.
    """
    if list_recipes:
        _print_recipes(json)
        return
    chosen, data, output = _required(name, recipe, data, output)
    loaded = train.load_training_recipe(chosen).with_settings(vars(changes))
    features = train.load_features(loaded.layout, data, loaded.data, loaded.source)
    trained = train.train_model(
        loaded, features, output, overwrite=overwrite, progress=progress_bar(), watch=None if json else _watch(loaded)
    )
    if json:
        print_json(trained.as_dict())
        return
    print_result(_summary(trained))


def _required(
    name: str | None, recipe: Path | None, data: Path | None, output: Path | None
) -> tuple[str | Path, Path, Path]:
    if (name is None) == (recipe is None):
        problem = "no recipe" if name is None else f"two recipes, {name} and {recipe}"
        raise UsageError(problem, fix="name one recipe (see crosslens train --list), or a file with --recipe")
    if data is None:
        raise UsageError("no data", fix="name the folder with captions and features", option="data")
    if output is None:
        raise UsageError("no output folder", fix="say where the model goes", option="output")
    return name or recipe or "", data, output


def _print_recipes(json: bool) -> None:
    recipes = [train.load_training_recipe(name) for name in train.recipe_names()]
    if json:
        print_json({"recipes": [{"name": recipe.name, "about": recipe.about} for recipe in recipes]})
    else:
        print_list([(recipe.name, recipe.about) for recipe in recipes])


def _watch(recipe: train.TrainingRecipe) -> Callable[[dict[str, Any]], None]:
    metric = recipe.settings.metric

    def show(row: dict[str, Any]) -> None:
        value = metrics.format_figure(metric, row["value"])
        print_note(f"epoch {row['epoch']:g}: loss {row['loss']:.4f}, validation {metric} {value}")

    return show


def _summary(trained: train.Trained) -> str:
    card = trained.card
    figures = ", ".join(f"{name} {metrics.format_figure(name, value)}" for name, value in trained.test.items())
    return (
        f"{trained.path}: {card['recipe']}, {card['parameters']:,} parameters, best at step {card['best_step']:,} of "
        f"{card['steps']:,}\ntest: {figures}"
    )
