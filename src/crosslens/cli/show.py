"""``crosslens show``: a stored run, whole or by group."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosslens.cli.console import Json, examples, note, say, say_json, width

EXAMPLES = examples(
    "crosslens show runs/clip-b32",
    "crosslens show runs/clip-b32 --by category",
    'crosslens show runs/clip-b32 --by category --metrics "t2i/MedR Hit@1" --json',
)

_COLUMNS = 2
_ROWS = 40


def show(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help="Group by a column of the dataset.")] = None,
    metrics: Annotated[str | None, typer.Option(metavar="NAMES", help='Only these, such as "Hit@1 t2i/MedR".')] = None,
    json: Json = False,
) -> None:
    """Print the figures of a run, with their intervals."""
    from crosslens.core.run import Run
    from crosslens.report.figures import select
    from crosslens.report.groups import by as grouped
    from crosslens.report.table import run_table

    found = Run.load(run)
    if by is None:
        if json:
            chosen = select(found, metrics)
            content = found.as_dict()
            say_json({**content, "metrics": {name: content["metrics"][name] for name in chosen}})
        else:
            say(run_table(found, metrics, width()))
        return
    shortened = metrics is None and not json
    groups = grouped(found, by, _first_of_each_direction(list(found)) if shortened else metrics)
    if shortened:
        note("note: the first metrics of each direction; choose others with --metrics")
    if json:
        say_json({"name": found.name, **groups.as_dict()})
    else:
        say(groups.text(width(), limit=_ROWS))


def _first_of_each_direction(names: list[str]) -> list[str]:
    chosen: dict[str, list[str]] = {}
    for name in names:
        chosen.setdefault(name.rpartition("/")[0], []).append(name)
    return [name for direction, group in chosen.items() if direction for name in group[:_COLUMNS]] or names[:_COLUMNS]
