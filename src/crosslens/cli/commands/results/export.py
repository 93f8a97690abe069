"""``crosslens export``: runs for other tools, as tables, and to where teams keep results."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

import crosslens.core as core
import crosslens.pipeline as pipeline
import crosslens.report as report
from crosslens.cli.console import print_file, print_json, print_note
from crosslens.cli.flags import OUTPUT, Json, Overwrite, command
from crosslens.cli.stored_runs import load_run, load_studies
from crosslens.core import Options, UsageError, option

TRACKERS = ("mlflow", "wandb")


@dataclass(frozen=True)
class TrackerOptions(Options):
    """Where results are kept."""

    project: str = option("crosslens", "For mlflow and wandb: the experiment or project.", metavar="NAME")
    tracking_uri: str | None = option(
        None, "For mlflow: its address. [default: $MLFLOW_TRACKING_URI]", metavar="ADDRESS"
    )
    offline: bool = option(False, "For wandb: write it to ./wandb, to be sent later by wandb sync.")
    without_files: bool = option(False, "For mlflow and wandb: figures and settings, no files of the run.")


@command(
    "crosslens export runs/clip-b32 --to latex",
    "crosslens export runs/clip-b32 --to trec",
    "crosslens export runs/clip-b32 --to trec -o lists/clip-b32.run.gz",
    "crosslens export runs/clip-b32 --to trec --direction i2t | head",
    'crosslens export runs/clip-b32 runs/siglip --to markdown --metrics "Hit@1"',
    "crosslens export runs/rob-coco runs/rob-flickr30k --by dataset --to latex",
    "crosslens export runs/clip-b32 --to model-index",
    "crosslens export runs/clip-b32 --to mlflow --project retrieval \\",
    "    --tracking-uri http://localhost:5000",
    "crosslens export runs/clip-b32 --to wandb --project retrieval --offline",
)
def export(
    runs: Annotated[
        list[Path],
        typer.Argument(help="A run folder; several, or robustness studies, where the format takes them."),
    ],
    tracker: TrackerOptions,
    to: str = option(
        ...,
        "trec, ranx, mteb, clip-benchmark, model-index, latex, csv, markdown, mlflow or wandb.",
        metavar="FORMAT",
        flags=("--to", "--format"),
    ),
    output: str | None = option(
        None,
        "Where to write; - prints it. [default: print one file; write several into the current folder]",
        metavar="FILE",
        flags=OUTPUT,
    ),
    direction: str | None = option(None, "Only this direction, of a format with a file for each.", metavar="i2t|t2i"),
    metrics: str | None = option(None, 'Only these, such as "Hit@1 Hit@5".', metavar="NAMES", joins=" "),
    by: str | None = option(None, "Of robustness studies: dataset, for the mean over models.", metavar="dataset"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write runs for other tools, papers and trackers.

    trec, ranx and mteb have one file per direction. Those of the folder runs/name are called name.i2t.run and
    name.t2i.run; with -o other.ext they become other-i2t.ext and other-t2i.ext. mlflow and wandb log metrics with their
    intervals, the recipe and the files of the run by those tools' own clients; a run that is there is not logged twice.
    """
    if to in TRACKERS:
        if output is not None or direction is not None or by is not None:
            raise UsageError(f"--output, --direction and --by are not for {to}", fix="leave them out")
        _track(runs, to, metrics, tracker, json=json)
        return
    if tracker != TrackerOptions():
        raise UsageError(
            "--project, --tracking-uri, --offline and --without-files are for mlflow and wandb",
            fix=f"leave them out, or choose --to {TRACKERS[0]}",
        )
    if (studies := load_studies(runs)) is not None:
        files = report.render_drop_table(pipeline.drop_table(studies, metrics, by=by), to)
    elif by is not None:
        raise UsageError("--by is for robustness studies", fix="drop it, or see crosslens show --by")
    else:
        files = report.render_export([load_run(folder) for folder in runs], to, metrics=metrics, direction=direction)
    _write(files, runs[0], to, output, overwrite=overwrite, json=json)


def _write(files: report.Files, run: Path, to: str, output: str | None, *, overwrite: bool, json: bool) -> None:
    if output == "-" and len(files) > 1:
        raise UsageError(
            f"{to} writes one file for each of {', '.join(files)}", fix="pass -o FILE, or choose one --direction"
        )
    if output not in (None, "-"):
        written = report.write_export(files, str(output), overwrite=overwrite)
    elif len(files) > 1:
        written = report.write_named_export(files, run.resolve().name, to, overwrite=overwrite)
    else:
        content = "".join(files.values())
        if json:
            print_json({"format": to, "content": content})
        else:
            print_file(content)
        return
    if json:
        print_json({"format": to, "files": list(map(str, written))})
    else:
        print_note("written to " + ", ".join(map(str, written)))


def _track(folders: list[Path], to: str, metrics: str | None, tracker: TrackerOptions, *, json: bool) -> None:
    """Log every run; what is logged is reported at once, should a later one fail."""
    logged = []
    for run in [load_run(folder) for folder in folders]:
        result = _logged(run, to, metrics, tracker)
        logged.append({"run": run.name, **asdict(result)})
        if not json:
            print_note(f"{run.name}: {'already there as' if result.existed else 'logged as'} {result.location}")
    if json:
        print_json({"format": to, "runs": logged})


def _logged(run: core.Run, to: str, metrics: str | None, tracker: TrackerOptions) -> report.TrackedAt:
    files = not tracker.without_files
    if to == "mlflow":
        if tracker.offline:
            raise UsageError("--offline is for wandb", fix="leave it out")
        uri = tracker.tracking_uri
        return report.log_to_mlflow(run, metrics, project=tracker.project, tracking_uri=uri, files=files)
    if tracker.tracking_uri is not None:
        raise UsageError("--tracking-uri is for mlflow", fix="leave it out; wandb reads WANDB_BASE_URL")
    return report.log_to_wandb(run, metrics, project=tracker.project, offline=tracker.offline, files=files)
