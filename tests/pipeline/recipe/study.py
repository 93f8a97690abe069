"""A folder with a dataset, embeddings and scores, and recipes that evaluate them."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe
from crosslens.values import Run


def recipe(study: Path, **changes: Any) -> Recipe:
    inputs = InputOptions(image_embeddings="img.npy", caption_embeddings="cap.npy")
    return replace(
        Recipe(dataset="./data", inputs=inputs, options=EvaluateOptions(resamples=20), base=study), **changes
    )


def figures(run: Run) -> dict[str, float]:
    return {name: values.mean for name, values in run.values.items()}


def stored_metrics(folder: Path) -> list[str]:
    return list(tomllib.loads((folder / "recipe.toml").read_text())["options"]["metrics"])


def lists(study: Path, depth: int) -> Recipe:
    """The same ranking as ready-made lists of this many items."""
    from crosslens.data import write_run

    ranking = run_recipe(recipe(study, options=EvaluateOptions(depth=depth, metrics=("Hit@1",), resamples=0))).rankings[
        "t2i"
    ]
    write_run(ranking, study / "t2i.run")
    return recipe(study, inputs=InputOptions(runs=("t2i.run",)))
