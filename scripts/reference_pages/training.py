"""What can be trained: recipes and their settings, models, losses, feature sets."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from crosslens.core import Entry
from crosslens.train import (
    FEATURE_SETS,
    LOSSES,
    MODELS,
    TrainingSettings,
    load_training_recipe,
    recipe_names,
)
from reference_pages.markdown import cell
from reference_pages.registries import split_parameters

INTRO = """# Training

What `crosslens train` knows. A recipe is a TOML file with the tables `[data]`, `[model]`, one or more `[[loss]]` and
`[training]`; a `kind` names one of the entries below, other keys are its settings. Before the tables stand `about`,
`phi` (the similarity behind adaptive margins; default `cider`), `text_model` (a frozen sentence encoder as
`KIND:SOURCE`, for `text = "sentence"`) and `least_count` (how often a word of the vocabulary occurs in the training
captions; default 4). [How to train](../how-to/train.md). Installed packages add losses, models and feature sets through
the entry-point groups `crosslens.losses`, `crosslens.trainable_models` and `crosslens.feature_sets`."""


def training() -> str:
    """The page."""
    recipes = [f"| `{name}` | {cell(load_training_recipe(name).about)} |" for name in recipe_names()]
    settings = [
        f"| `{entry.name}` | {'' if entry.default is None else f'`{entry.default}`'} "
        f"| {cell(entry.metadata['option'].help)} |"
        for entry in fields(TrainingSettings)
    ]
    parts = [
        INTRO,
        "## Recipes\n\n" + "\n".join(["| name | |", "|---|---|", *recipes]),
        "## Settings of `[training]`\n\n" + "\n".join(["| setting | default | |", "|---|---|---|", *settings]),
        _section("Feature sets: `[data]`", FEATURE_SETS),
        _section("Models: `[model]`", MODELS),
        _section("Losses: `[[loss]]`", LOSSES, "A loss is multiplied by its `weight` (default 1); losses are added."),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, entries: Iterable[Entry[Any]], about: str = "") -> str:
    return "\n\n".join(part for part in (f"## {title}", about, *map(_entry, entries)) if part)


def _entry(entry: Entry[Any]) -> str:
    text, described = split_parameters(entry.value)
    options = [
        option for option in inspect.signature(entry.value).parameters.values() if option.kind is option.KEYWORD_ONLY
    ]
    rows = [f"| `{option.name}` | `{option.default}` | {cell(described[option.name])} |" for option in options]
    table = "\n".join(["| setting | default | |", "|---|---|---|", *rows])
    return "\n\n".join([f"### {entry.name}", text, table])
