"""What can be trained: recipes and their settings, models, losses, feature sets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from crosslens.core import Entry
from crosslens.train import (
    FEATURE_SETS,
    LOSSES,
    MODELS,
    PublishedRow,
    RecipeGroup,
    TrainingRecipe,
    TrainingSettings,
    load_training_recipe,
    named_losses,
    recipe_groups,
    recipe_names,
    settings_of,
    tables_of,
)
from reference_pages.markdown import cell
from reference_pages.registries import split_parameters

INTRO = """# Training

What `crosslens train` knows. A recipe is a TOML file with the tables `[data]`, `[model]`, one or more `[[loss]]` and
`[training]`; a `kind` names one of the entries below, other keys are its settings. Before the tables stand `about`,
`phi` (the similarity behind adaptive margins; default `cider`), `text_model` (an encoder as `KIND:SOURCE`: frozen with
`text = "sentence"`, trained further with `text = "encoder"`), `least_count` (how often a word of the vocabulary occurs
in the training captions; default 4) and `base` (a recipe to build on:
[how](../how-to/train.md#build-on-another-recipe)). [How to train](../how-to/train.md). Installed packages add losses,
models and feature sets through the entry-point groups `crosslens.losses`, `crosslens.trainable_models` and
`crosslens.feature_sets`."""


RECIPES = """## Recipes

`crosslens train --list` prints these, `crosslens train --list "f30k soft"` those that the words describe. Names begin
with the data: `flickr8k` for a folder as [described](../how-to/train.md#data), `f30k` and `coco` for precomputed region
features (`precomp`), `imp` for pairs of pictures and captions. `-sam-` is equation 7 of FIVE, `-released-` what its
published code computes ([differences](../explanation/adaptive-margins.md)), `-alone` is without the triplet loss, `-5k`
measures on `testall`."""

ROWS = """## Rows of papers

FIVE is *Is an Image Worth Five Sentences?* (Biten et al., 2022), IMP *Image Polysemy* (appendix E). Figures are as
printed: Nsum is of NCS with SPICE, Nsum(N) without the images' own captions. What the papers leave open, and what
differs here, is among the [deviations](../deviations.md). The CLIP rows of IMP are not trained. IMP's figures are of
its own test images: train, then evaluate the model there; 100K, 500K and 5M are the pairs in the data folder. The last
column is the same model, loss and settings for Flickr8k; fractions are flags there, too. The figures of
[SAM on the models of FIVE](../results/training-flickr8k.md#sam-on-the-models-of-five) are of other recipes:
`flickr8k-cvse`, `flickr8k-sgr` and `flickr8k-vsrn`, whose rates and lengths suit these features, with the losses of the
rows."""


def training() -> str:
    """The page."""
    settings = [
        f"| `{entry.name}` | {'' if entry.default is None else f'`{entry.default}`'} "
        f"| {cell(entry.metadata['option'].help)} |"
        for entry in fields(TrainingSettings)
    ]
    parts = [
        INTRO,
        RECIPES,
        *map(_group, recipe_groups()),
        _rows(),
        "## Settings of `[training]`\n\n" + "\n".join(["| setting | default | |", "|---|---|---|", *settings]),
        _section("Feature sets: `[data]`", FEATURE_SETS),
        _section("Models: `[model]`", MODELS),
        _section("Losses: `[[loss]]`", LOSSES, "A loss is multiplied by its `weight` (default 1); losses are added."),
        _named_losses(),
    ]
    return "\n\n".join(parts) + "\n"


def _group(group: RecipeGroup) -> str:
    rows = [f"| `{recipe.name}` | {cell(recipe.about)} | {tables_of(recipe)} |" for recipe in group.recipes]
    return "\n".join([f"### {group.title}\n", "| name | | rows of |", "|---|---|---|", *rows])


def _rows() -> str:
    """Every row of a paper, in the order of its tables, with the command that repeats it."""
    published = [
        (row, load_training_recipe(name)) for name in recipe_names() for row in load_training_recipe(name).published
    ]
    rows = [_published(row, recipe) for row, recipe in sorted(published, key=lambda pair: pair[0].table)]
    head = ["| table | row | `crosslens train …` | published | on Flickr8k |", "|---|---|---|---|---|"]
    return "\n\n".join([ROWS, "\n".join([*head, *rows])])


def _published(row: PublishedRow, recipe: TrainingRecipe) -> str:
    figures = ", ".join(f"{name} {value:g}" for name, value in row.figures.items())
    name = recipe.name.removesuffix("-5k")
    here = "flickr8k-" + name.partition("-")[2]
    counterpart = f"`{here}`" if here in recipe_names() else ""
    return f"| {row.table} | {row.row} | `{' '.join([recipe.name, row.flags]).strip()}` | {figures} | {counterpart} |"


def _named_losses() -> str:
    about = (
        "What `loss=NAME` of [`crosslens sweep`](../how-to/train.md#compare-trainings) stands for. Any other loss "
        "stands for itself, alone and with its default settings; `recipe` for the losses of the recipe."
    )
    rows = [f"| `{name}` | {' and '.join(map(_written, entries))} |" for name, entries in named_losses().items()]
    return "\n\n".join(["## Short names of losses", about, "\n".join(["| name | losses |", "|---|---|", *rows])])


def _written(entry: Mapping[str, Any]) -> str:
    settings = ", ".join(f"`{name} = {json.dumps(value)}`" for name, value in entry.items() if name != "kind")
    return f"`{entry['kind']}` with {settings}"


def _section(title: str, entries: Iterable[Entry[Any]], about: str = "") -> str:
    return "\n\n".join(part for part in (f"## {title}", about, *map(_entry, entries)) if part)


def _entry(entry: Entry[Any]) -> str:
    options = settings_of(entry.value)
    names = [option.name for option in options]
    text, described = split_parameters(entry.value)
    for extended in getattr(entry.value, "__mro__", ())[1:-1]:  # settings that several classes share
        described = split_parameters(extended, names)[1] | described
    rows = [f"| `{option.name}` | `{option.default}` | {cell(described[option.name])} |" for option in options]
    table = "\n".join(["| setting | default | |", "|---|---|---|", *rows]) if rows else "It has no settings."
    return "\n\n".join([f"### {entry.name}", text, table])
