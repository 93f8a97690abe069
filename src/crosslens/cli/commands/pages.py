"""``crosslens report``: runs and audits as one file to send."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from crosslens import comparisons, explanations, pipeline, report as reports, web
from crosslens.cli.answers import Write
from crosslens.cli.console import check_outputs, print_file, print_json, print_note, print_notes
from crosslens.cli.datasets import DATASET_WORDS, DatasetOfRuns, DatasetOptions, served_data
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, command, output_option, positional
from crosslens.cli.stored_runs import check_same_captions, load_run, load_runs, load_studies
from crosslens.core import Options, UnknownNameError, UsageError, option
from crosslens.encode import EncodeOptions
from crosslens.web import ServeOptions

_MEGABYTE = 1_000_000


@command(
    "crosslens report runs/tiny -o report.html",
    'crosslens report runs/clip runs/siglip -o both.html --title "Two models"',
    "crosslens report audits/coco -o report.html --size-budget 2",
    "crosslens report runs/clip --image-folder photos --figures figures",
    group="Output",
    common=("title", "queries", "figures", "size_budget"),
)
def report(
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(only=("image_folder",))],
    runs: list[Path] = positional(..., "Run folders, or folders of audits."),
    output: Path = option(Path("report.html"), "The page (.html).", flags=OUTPUT),
    title: str | None = option(None, "The title of the page. [default: from the runs]", metavar="TEXT"),
    size_budget: float = option(
        2.0,
        "How many MB the page may take: pictures get smaller, then fewer; below 2 MB, lists get shorter.",
        metavar="MB",
        minimum=0.1,
    ),
    queries: int = option(
        8, "How many misses are shown before the others are unfolded.", minimum=1, maximum=100, group="Output"
    ),
    figures: Path | None = option(
        None, "A folder for every chart (.svg, .pdf) and every table (.tex).", metavar="FOLDER"
    ),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write runs and audits as one page to send.

    The answer in a sentence; then how good, where does it fail, what does it not read, can the labels be trusted, each
    with how sure that is and the queries behind it; misses with pictures, all numbers, and where they come from. The
    page needs no other file and no network. Of run folders it has what the runs hold; of an audit also what its stages
    computed.
    """
    check_outputs(output, overwrite=overwrite)
    sources = [folder if reports.is_audit(folder) else load_run(folder) for folder in runs]
    words = ["crosslens", "report", *map(str, runs), "-o", str(output)]
    page = reports.write_report(
        sources, output, title=title, dataset=source.dataset, dataset_options=source.reader_options(),
        image_folder=encode.image_folder, size_budget=size_budget, queries=queries, figures=figures,
        overwrite=overwrite, command=shlex.join(words),
    )  # fmt: skip
    print_notes(page.notes)
    if json:
        print_json(page.as_dict())
        return
    print_note(f"written: {page.page} ({page.size / _MEGABYTE:.1f} MB, {page.pictures:,} pictures)")
    if page.figures:
        print_note(f"written: {len(page.figures):,} files in {figures}")


@command(
    "crosslens serve runs/",
    "crosslens serve runs/ --port 8080 --data pictures/",
    'crosslens serve runs/ --data "coco captions=captions_val2017.json"',
    "crosslens serve runs/ --host 0.0.0.0 --password-file password.txt",
    group="Server",
    common=("data", "port", "host", "password_file"),
)
def serve(
    options: ServeOptions,
    folder: Path = positional(..., "A folder that holds run folders, at any depth."),
    data: list[str] | None = option(
        None,
        "A folder of pictures, a dataset for runs whose recipe does not lead to theirs, or a folder of build imp; "
        "may be repeated.",
        metavar=f"FOLDER|{DATASET_WORDS}",
    ),
    json: Json = False,
) -> None:
    """Look at runs, queries and datasets in a browser.

    Answers on this computer only, unless --host says otherwise. Run folders are only read, and a run that is written
    while the server is open shows up. With --json the address is printed as JSON once the server answers.
    """
    settings = web.WebSettings.of(folder, options, *served_data(data or ()))

    def announce(address: str) -> None:
        if json:
            print_json({"address": address, "folder": str(folder)})
            sys.stdout.flush()
        else:
            print_note(f"{folder} is at {address} (Ctrl-C stops it)")

    web.serve_pages(settings, print_note, announce)


@command(
    "crosslens gallery runs/tiny --query 102",
    'crosslens gallery runs/clip --query "red helmet" --write top.html',
    "crosslens gallery runs/clip runs/siglip --hardest 9 --write hard.html",
    "crosslens gallery runs/clip --query 102 --phi spice",
    "crosslens gallery runs/clip --direction i2t --random 10 --seed 1 --json",
    common=("query", "hardest", "random", "k", "direction"),
)
def gallery(
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(only=("image_folder",))],
    runs: list[Path] = positional(..., "Run folders of one dataset, one per model."),
    query: list[str] | None = option(
        None, "A query: its id, or a part of its text (of an image: of a caption); may be repeated.", metavar="ID|TEXT"
    ),
    hardest: int = option(0, "Add the N queries that every model ranks worst.", minimum=0),
    random: int = option(0, "Add N drawn queries. [default: 5 where no others are chosen]", minimum=0),
    seed: int = option(0, "Seed of --random."),
    direction: str | None = option(None, "[default: the one that has the query; texts first]", metavar="t2i|t2t|i2t"),
    k: int = option(5, "How many items of each list are shown.", minimum=1),
    phi: str | None = option(None, "Say how similar each item is to the query: cider, spice, …", metavar="NAME"),
    write: Write = None,
) -> explanations.Gallery:
    """Show the top k of several models side by side.

    Relevant items are marked; for each list the rank of the first relevant item is given, and for each query how much
    the lists of the models overlap. A page (--write top.html) shows the pictures.
    """
    loaded = [load_run(folder) for folder in runs]
    check_same_captions(dict(zip(map(str, runs), loaded, strict=True)))
    dataset = explanations.dataset_of_run(loaded[0], source.dataset, **source.reader_options())
    result = explanations.retrieval_gallery(
        dict(zip(comparisons.run_labels(tuple(loaded)), loaded, strict=True)), dataset, query or (),
        hardest=hardest, random=random, seed=seed, direction=direction, k=k, phi=phi,
    )  # fmt: skip
    if not write:
        return result
    files, problem = explanations.image_files_of_run(loaded[0], dataset, result.images, encode.image_folder)
    return replace(result, pictures=files, problem=problem or "")


TRACKERS = ("mlflow", "wandb")


@dataclass(frozen=True)
class TrackerOptions(Options, group="Output"):
    """Where results are kept."""

    project: str = option("crosslens", "For mlflow and wandb: the experiment or project.")
    tracking_uri: str | None = option(
        None, "For mlflow: a server or database. [default: $MLFLOW_TRACKING_URI, or MLflow's own]", metavar="ADDRESS"
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
    "crosslens export runs/clip-b32 --to mlflow --project retrieval --tracking-uri http://localhost:5000",
    "crosslens export runs/clip-b32 --to wandb --project retrieval --offline",
    "crosslens export runs/clip-b32 --to fiftyone -o fiftyone/clip-b32",
    group="Output",
    common=("direction", "by", "project"),
)
def export(
    tracker: TrackerOptions,
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(only=("image_folder",))],
    runs: list[Path] = positional(..., "A run folder; several, or robustness studies, where the format takes them."),
    to: str = option(
        ...,
        "trec, ranx, mteb, clip-benchmark, fiftyone, model-index, latex, csv, markdown, mlflow or wandb.",
        metavar="FORMAT",
        flags=("--to", "--format"),
    ),
    output: str | None = output_option(
        "Where to write; - prints it. [default: print one file; write several into the current folder]"
    ),
    direction: str | None = option(None, "Only this direction, of a format with a file for each.", metavar="i2t|t2i"),
    metrics: str | None = option(None, 'Only these, such as "Hit@1 Hit@5".'),
    by: str | None = option(None, "Of robustness studies: dataset, for the mean over models.", metavar="dataset"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write runs for other tools, papers and trackers.

    trec, ranx and mteb have one file per direction. Those of the folder runs/name are called name.i2t.run and
    name.t2i.run; with -o other.ext they become other-i2t.ext and other-t2i.ext. mlflow and wandb log metrics with their
    intervals, the recipe and the files of the run by those tools' own clients; a run that is there is not logged twice.
    fiftyone writes a folder, for which alone the dataset and --image-folder are.
    """
    if to == "fiftyone":
        if len(runs) != 1 or output is None or output == "-":
            raise UsageError("fiftyone is a folder of one run", fix="name one run, and -o FOLDER")
        files_written = reports.write_fiftyone(
            load_run(runs[0]),
            output,
            source.dataset,
            metrics=metrics,
            image_folder=encode.image_folder,
            overwrite=overwrite,
            **source.reader_options(),
        )
        if json:
            print_json({"format": to, "files": list(map(str, files_written))})
        else:
            print_note(f"written to {output}")
            print_note(f"open it: fo.Dataset.from_dir({output!r}, dataset_type=fo.types.LegacyFiftyOneDataset)")
        return
    if source != DatasetOptions() or encode.image_folder is not None:
        raise UsageError("a dataset and --image-folder are for fiftyone", fix="leave them out")
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
    if to not in reports.EXPORTS:
        error = UnknownNameError("export format", to, formats := list(reports.export_formats()))
        near = error.fix if error.suggestions else "crosslens show --write FILE.json writes the figures as JSON"
        error.fix = f"choose one of {', '.join(formats)}; {near}"
        raise error
    if (studies := load_studies(runs)) is not None:
        files = reports.render_drop_table(pipeline.drop_table(studies, metrics, by=by), to)
    elif by is not None:
        raise UsageError("--by is for robustness studies", fix="drop it, or see crosslens show --by")
    else:
        files = reports.render_export(load_runs(runs, with_published=True), to, metrics=metrics, direction=direction)
    if output == "-" and len(files) > 1:
        raise UsageError(
            f"{to} writes one file for each of {', '.join(files)}", fix="pass -o FILE, or choose one --direction"
        )
    if output not in (None, "-"):
        files_written = reports.write_export(files, str(output), overwrite=overwrite)
    elif len(files) > 1:
        files_written = reports.write_named_export(files, runs[0].resolve().name, to, overwrite=overwrite)
    else:
        content = "".join(files.values())
        if json:
            print_json({"format": to, "content": content})
        else:
            print_file(content)
        return
    if json:
        print_json({"format": to, "files": list(map(str, files_written))})
    else:
        print_note("written to " + ", ".join(map(str, files_written)))


def _track(folders: list[Path], to: str, metrics: str | None, tracker: TrackerOptions, *, json: bool) -> None:
    """Log every run; what is logged is reported at once, should a later one fail."""
    logged = []
    if to == "mlflow" and tracker.offline:
        raise UsageError("--offline is for wandb", fix="leave it out")
    if to == "wandb" and tracker.tracking_uri is not None:
        raise UsageError("--tracking-uri is for mlflow", fix="leave it out; wandb reads WANDB_BASE_URL")
    common: dict[str, Any] = {"project": tracker.project, "files": not tracker.without_files}
    for run in [load_run(folder) for folder in folders]:
        if to == "mlflow":
            result = reports.log_to_mlflow(run, metrics, tracking_uri=tracker.tracking_uri, **common)
        else:
            result = reports.log_to_wandb(run, metrics, offline=tracker.offline, **common)
        logged.append({"run": run.name, **asdict(result)})
        if not json:
            print_note(f"{run.name}: {'already there as' if result.existed else 'logged as'} {result.location}")
    if json:
        print_json({"format": to, "runs": logged})
