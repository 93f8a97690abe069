"""``crosslens run``: an evaluation repeated from its recipe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from crosslens.cli.console import Json, examples, note, progress
from crosslens.cli.result import print_run, written_at

EXAMPLES = examples("crosslens run runs/clip-b32/recipe.toml", "crosslens run my-recipe.toml -o runs/again --json")


def run(
    recipe: Annotated[Path, typer.Argument(help="A recipe.toml, written by a run or by hand; or a run folder.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Where the run is written.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another run that stands there.")] = False,
    allow_changed: Annotated[
        bool, typer.Option("--allow-changed", help="Go on although inputs changed since the recipe was stored.")
    ] = False,
    json: Json = False,
) -> None:
    """Repeat an evaluation from its recipe.

    A recipe from a run folder is compared with the run that it belongs to.
    """
    from crosslens.core.run import RECIPE_FILE, RUN_FILE, Run
    from crosslens.pipeline.recipe import Recipe, execute

    file = recipe / RECIPE_FILE if recipe.is_dir() else recipe
    before = written_at(output)
    result = execute(
        Recipe.read(file),
        output,
        overwrite=overwrite,
        allow_changed=allow_changed,
        progress=progress(),
        command=sys.argv,
    )
    print_run(result, json=json, output=output, before=before)
    if (file.parent / RUN_FILE).exists():
        same = Run.load(file.parent).fingerprint == result.fingerprint
        verdict = "every query has the same value as in" if same else "the values differ from those in"
        note(f"note: {verdict} {file.parent}")
