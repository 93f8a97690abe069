"""``crosslens judging new`` and ``status``: projects, and how far they have come."""

from __future__ import annotations

from typing import Annotated

import typer

import crosslens.core as core
import crosslens.web as web
from crosslens.cli.console import print_json, print_list, print_note, print_result
from crosslens.cli.flags import Json, command
from crosslens.web import JudgingFolder, ProjectOptions

ProjectArgument = Annotated[str, typer.Argument(help="The number or the name of a project.", metavar="PROJECT")]


@command(
    'crosslens judging new "Failures of CLIP" --task failures --folder runs',
    "crosslens judging new Survey --task pairs --overlap 10 --per-person 25",
    "crosslens judging new Relevance --task relevance --labels form.toml",
    reads_files=False,
)
def new(
    name: Annotated[str, typer.Argument(help="What the project is called.", metavar="NAME")],
    options: ProjectOptions,
    location: JudgingFolder,
    json: Json = False,
) -> None:
    """Make a judging project.

    Its items come from crosslens judging import; people judge them in the pages of crosslens serve.
    """
    project = web.new_project(web.judging_database(location, create=True), name, options)
    if json:
        print_json({"project": project.id, "name": project.name, "task": project.task})
        return
    print_result(f"project {project.id}: {project.name} ({project.task}, {project.overlap} people per item)")
    print_note(f"next: crosslens judging import {project.id} RUN|TABLE --folder {location.folder}")


@command(
    "crosslens judging status --folder runs",
    "crosslens judging status 1 --folder runs --json",
    "crosslens judging status 1 --folder runs --write results.html",
    reads_files=False,
)
def status(
    project: Annotated[
        str | None, typer.Argument(help="The number or the name of a project. [default: all]", metavar="PROJECT")
    ] = None,
    location: JudgingFolder = JudgingFolder(),  # noqa: B008
    json: Json = False,
) -> core.Presented | None:
    """Show how far projects have come, and how far people agree."""
    database = web.judging_database(location)
    if project is None:
        listed = web.list_projects(database)
        if json:
            print_json([entry.as_dict() for entry in listed])
        else:
            print_list([(f"{entry.project.id} {entry.project.name}", entry.line) for entry in listed])
        return None
    return web.results_of(database, web.project_named(database, project).id)
