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
    TrainingSettings,
    load_training_recipe,
    named_losses,
    recipe_groups,
    recipe_names,
    settings_of,
)
from reference_pages.markdown import cell, shared_rows
from reference_pages.registries import split_parameters

INTRO = """# Training

What `crosslens train` knows. A recipe is a TOML file with the tables `[data]`, `[model]`, one or more `[[loss]]` and
`[training]`; a `kind` names one of the entries below, other keys are its settings. Before the tables stand `about`,
`phi` (the similarity behind adaptive margins; default `cider`), `text_model` (an encoder as `KIND:SOURCE`: frozen with
`text = "sentence"`, trained further with `text = "encoder"`), `least_count` (how often a word of the vocabulary occurs
in the training captions; default 4) and `base` (a recipe to build on:
[how](../how-to/train.md#build-on-another-recipe)). [How to train](../how-to/train.md).
[Add your own](../how-to/extend.md)."""


RECIPES = """## Recipes

`crosslens train --list` prints these, `crosslens train --list "f30k soft"` those that the words describe. Names begin
with the data: `flickr8k` for a folder as [described](../how-to/train.md#data) with features of EfficientNet-lite0,
`f30k` and `coco` for precomputed region features (`precomp`), `imp` for pairs of pictures and captions, evaluated on
IMP. `-sam-` is equation 7 of FIVE, `-released-` what its published code computes
([differences](../explanation/adaptive-margins.md)), `[-alone]`: with this ending without the triplet loss;
`[-5k]`: with this one, of `coco`, measured on the 5,000 images of `testall`."""

ENDINGS = {"-alone": "no triplet loss", "-5k": "5,000 test images"}
"""What the end of a recipe's name adds to the sentence about it."""

ROWS = """## Rows of papers

FIVE is *Is an Image Worth Five Sentences?* (Biten et al., 2022), IMP *Image Polysemy* (appendix E). Figures are as
printed: Nsum is of NCS with SPICE, Nsum(N) without the images' own captions. What the papers leave open, and what
differs here, is among the [deviations](../deviations.md). The CLIP rows of IMP are not trained. IMP's figures are of
its own test images: train, then evaluate the model there; 100K, 500K and 5M are the pairs in the data folder.

With `flickr8k-` in place of `f30k-`, `coco-` or `imp-` and without `-5k` a name is the same model, loss and settings
for Flickr8k; fractions are flags there, too. The figures of
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
        _recipes(),
        _rows(),
        "## Settings of `[training]`\n\n" + _table(settings),
        _section("Feature sets: `[data]`", FEATURE_SETS),
        _section("Models: `[model]`", MODELS),
        _section("Losses: `[[loss]]`", LOSSES, "A loss is multiplied by its `weight` (default 1); losses are added."),
        _named_losses(),
    ]
    return "\n\n".join(parts) + "\n"


def _recipes() -> str:
    """What recipes do, each said once of all the data that it is there for; an ending stands beside its name."""
    abouts = {recipe.name: recipe.about for group in recipe_groups() for recipe in group.recipes}
    data: dict[tuple[str, str], list[str]] = {}
    endings: dict[tuple[str, str], set[str]] = {}
    for recipe, about in abouts.items():
        for ending, means in ENDINGS.items():
            stem = recipe.removesuffix(ending)
            if stem != recipe and about == f"{abouts.get(stem)}, {means}":
                endings.setdefault((stem.partition("-")[2], abouts[stem]), set()).add(f"`[{ending}]`")
                break
        else:
            prefix, _, name = recipe.partition("-")
            data.setdefault((name, about), []).append(prefix)
    rows = [
        f"| `{', '.join(prefixes)}` | {' '.join([f'`-{name}`', *sorted(endings.get((name, about), ()))])} "
        f"| {cell(about)} |"
        for (name, about), prefixes in data.items()
    ]
    return "\n".join(["| data | name | |", "|---|---|---|", *rows])


def _rows() -> str:
    """Every row of a paper, by its tables, with the command that repeats it; figures that two tables print, once."""
    published = sorted(
        (
            (row, recipe)
            for name in recipe_names()
            for recipe in [load_training_recipe(name)]
            for row in recipe.published
        ),
        key=lambda pair: pair[0].table,
    )
    tables: dict[tuple[str, str, tuple[tuple[str, float], ...]], list[str]] = {}
    for row, recipe in published:
        command = f"`{' '.join([recipe.name, row.flags]).strip()}`"
        tables.setdefault((row.row, command, tuple(row.figures.items())), []).append(row.table)
    by_paper: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (row_name, command, figures), names in tables.items():
        paper = names[0].partition(" ")[0]
        where = " and ".join([names[0].removeprefix(f"{paper} Table "), *(name.split()[2] for name in names[1:])])
        cells = [where, row_name, command, *(f"{value:g}" for _, value in figures)]
        by_paper.setdefault((paper, tuple(name for name, _ in figures)), []).append(f"| {' | '.join(cells)} |")
    written = []
    for (paper, metrics), lines in by_paper.items():
        head = [f"{paper} Table", "row", "`crosslens train …`", *metrics]
        written.append("\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]))
    return "\n\n".join([ROWS, *written])


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
    """Every entry with its settings; those that are the same in several are described once, above them."""
    settings = {entry.name: _settings(entry) for entry in entries}
    shared = shared_rows(settings.values())
    parts = [f"## {title}", about]
    if shared:
        parts += [f"### Settings of several {title.partition(':')[0].lower()}", _table(shared.values())]
    for entry in entries:
        rows = settings[entry.name]
        common = [f"`{name}`" for name, row in rows.items() if row == shared.get(name)]
        parts += [f"### {entry.name}", split_parameters(entry.value)[0]]
        parts.append(_table(row for name, row in rows.items() if row != shared.get(name)))
        parts.append(f"Also, as above: {', '.join(common)}." if common else "" if rows else "It has no settings.")
    return "\n\n".join(part for part in parts if part)


def _settings(entry: Entry[Any]) -> dict[str, str]:
    options = settings_of(entry.value)
    described = split_parameters(entry.value)[1]
    for extended in getattr(entry.value, "__mro__", ())[1:-1]:  # settings that several classes share
        described = split_parameters(extended, [option.name for option in options])[1] | described
    return {
        option.name: f"| `{option.name}` | `{option.default}` | {cell(described[option.name])} |" for option in options
    }


def _table(rows: Iterable[str]) -> str:
    listed = list(rows)
    return "\n".join(["| setting | default | |", "|---|---|---|", *listed]) if listed else ""
