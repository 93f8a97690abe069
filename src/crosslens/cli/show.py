"""``crosslens show``: a stored run, whole or by group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosslens.cli.console import Json, examples, note, say, say_json, width

if TYPE_CHECKING:
    from crosslens.core.run import Run

EXAMPLES = examples(
    "crosslens show runs/clip-b32",
    "crosslens show runs/clip-b32 --by category",
    'crosslens show runs/clip-b32 --by category --metrics "t2i/MedR Hit@1" --json',
    "crosslens show runs/clip-b32 runs/siglip --by category --metrics t2i/Hit@1",
)

_MOST_METRICS = 2
_MOST_GROUPS = 20


def show(
    runs: Annotated[
        list[Path], typer.Argument(help="A run folder (several stand side by side), or a robustness study.")
    ],
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help="Group by a column of the dataset.")] = None,
    metrics: Annotated[str | None, typer.Option(metavar="NAMES", help='Only these, such as "Hit@1 t2i/MedR".')] = None,
    all_groups: Annotated[bool, typer.Option("--all", help="Every group, not only the largest.")] = False,
    tables: Annotated[
        str | None, typer.Option(metavar="NAMES", help='Of a robustness study, such as "drops words captions".')
    ] = None,
    json: Json = False,
) -> None:
    """Print the figures of a run, or of several side by side.

    To test whether runs differ, use `crosslens compare`.
    """
    from crosslens.cli.stored import load_run, load_study

    if len(runs) == 1 and (study := load_study(runs[0])) is not None:
        from crosslens.cli.robustness import print_study

        names = None if tables is None else tables.replace(",", " ").split()
        print_study(study, names, html=None, overwrite=False, json=json)
        return
    if len(runs) > 1:
        _show_several([load_run(folder) for folder in runs], by, metrics, all_groups=all_groups, json=json)
        return
    found = load_run(runs[0])
    if by is not None:
        _show_groups(found, by, metrics, all_groups=all_groups, json=json)
    elif json:
        from crosslens.report.selection import select

        content = found.as_dict()
        say_json({**content, "metrics": {name: content["metrics"][name] for name in select(found, metrics)}})
    else:
        from crosslens.report.table import run_table

        say(run_table(found, metrics, width()))


def _show_several(runs: list[Run], column: str | None, metrics: str | None, *, all_groups: bool, json: bool) -> None:
    from crosslens.report.side_by_side import side_by_side

    largest = None if all_groups or json else _MOST_GROUPS
    found = side_by_side(runs, metrics, column=column, largest=largest)
    if json:
        say_json(found.as_dict())
        return
    if metrics is None and column is not None:
        note("note: the first metric of each direction; choose others with --metrics")
    if any(found.left_out.values()):
        note(f"note: the {_MOST_GROUPS} largest groups; --all shows every one")
    say(found.text(width()))


def _show_groups(run: Run, column: str, metrics: str | None, *, all_groups: bool, json: bool) -> None:
    from crosslens.report.groups import by, column_of, groupable

    named = column_of(run, column)
    if named != column:
        note(f"note: the dataset's {column} is called {named} in runs, which have a {column} of their own")
    if json:
        say_json({"name": run.name, **by(run, column, metrics).as_dict()})
        return
    shown = _first_of_each_direction(groupable(run, column)) if metrics is None else metrics
    groups = by(run, column, shown, largest=None if all_groups else _MOST_GROUPS)
    if metrics is None:
        note("note: the first metrics of each direction; choose others with --metrics")
    if any(groups.left_out.values()):
        note(f"note: the {_MOST_GROUPS} largest groups; --all shows every one")
    say(groups.text(width()))


def _first_of_each_direction(names: list[str]) -> list[str]:
    from crosslens.core.run import split_name

    chosen: dict[str, list[str]] = {}
    for name in names:
        chosen.setdefault(split_name(name)[0], []).append(name)
    return [name for group in chosen.values() for name in group[:_MOST_METRICS]]
