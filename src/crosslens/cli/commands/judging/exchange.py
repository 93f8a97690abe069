"""``crosslens judging import`` and ``export``: items into a project, judgements out of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import crosslens.data as data
import crosslens.web as web
from crosslens.cli.commands.judging.projects import ProjectArgument
from crosslens.cli.console import check_outputs, print_json, print_note, print_result, print_written, progress_bar
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, command
from crosslens.core import UsageError, option
from crosslens.web import ExportOptions, ImportOptions, JudgingFolder

_OF_RUN = Annotated[DatasetOptions, Flags(help={"dataset": "A reader's name or a path. [default: that of the run]"})]
_TRUTH = {"dataset": "Qrels: also the pairs of this dataset, unless judged: a reader's name, or a path."}


@command(
    "crosslens judging import 1 runs/clip --folder runs --limit 200",
    "crosslens judging import 2 missing.csv --dataset captions.jsonl",
    "crosslens judging import 1 why/failures.parquet --dataset coco \\",
    "    --captions captions.json --instances instances.json",
    "crosslens judging import 3 difficulty.parquet --part survey --model clip \\",
    "    --dataset imp/dataset --rejected imp/rejected.parquet",
)
def import_(
    project: ProjectArgument,
    source: Annotated[
        Path,
        typer.Argument(
            help="A run's folder, a table of pairs, failures or levels, or what build imp wrote.", metavar="SOURCE"
        ),
    ],
    options: ImportOptions,
    dataset: _OF_RUN,
    location: JudgingFolder,
    json: Json = False,
) -> None:
    """Add items to a judging project.

    Of a run, or of failures.parquet of crosslens explain -o: each failed query with what it retrieved, its concept
    metrics and derived causes (of a run: where the dataset has objects). Of a table: each row, with the columns image
    and caption or text; the tables of missing-positives and of analyze labels are such. With --part survey, of a table
    of analyze difficulty: the hard pairs with the lowest scores, and true negatives. Of answers that judging export
    wrote (.csv, .jsonl): the judgements and their items; exporting them again gives the same file. What is there
    already is not added again.
    """
    database = web.judging_database(location)
    number = web.project_named(database, project).id
    imported = web.import_items(database, number, source, dataset.load_if_given(), options, progress_bar())
    if json:
        print_json(asdict(imported))
        return
    added = ", ".join(f"{count:,} {kind}" for kind, count in imported.added.items()) or "no"
    print_result(f"{added} items added to project {number}; {imported.known:,} were there already")
    if imported.judgements:
        print_result(f"{imported.judgements:,} judgements added")
    if imported.updated:
        print_result(f"{imported.updated:,} of these got other metrics or causes than they had")
    if imported.note:
        print_note(f"note: {imported.note}")
    print_note(f"their pictures are those of the dataset {imported.dataset}")


@command(
    "crosslens judging export 1 --folder runs -o judgements.parquet \\",
    "    --dataset captions.jsonl",
    "crosslens evaluate --dataset captions.jsonl --scores scores.npy \\",
    "    --qrels judgements.parquet",
    "crosslens judging export 1 --folder runs -o answers.csv",
    "crosslens judging export 1 --folder runs -o label-studio.json",
    "crosslens judging export 3 --folder runs -o bench/ --form imp",
)
def export(
    project: ProjectArgument,
    options: ExportOptions,
    dataset: Annotated[DatasetOptions, Flags(help=_TRUTH)],
    location: JudgingFolder,
    output: Path = option(
        ...,
        "The file: .parquet (qrels), .csv or .jsonl (answers), .json (Label Studio); imp: the folder of the build.",
        metavar="FILE",
        flags=OUTPUT,
    ),
    interface: Path | None = option(
        None, "Label Studio: the labelling interface that shows the tasks.", metavar="FILE.xml"
    ),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write the judgements of a project to a file.

    Qrels hold each judge's score and one grade per pair: evaluate --qrels uses the grades, agreement --judgements the
    scores. What the owner decided wins over what people said.
    """
    form = web.export_form(output, options)
    check_outputs(None if form == web.IMP_SHEETS else output, interface, overwrite=overwrite)
    if interface is not None and form != web.LABEL_STUDIO:
        raise UsageError("--interface is for Label Studio", fix="name an output that ends in .json")
    if dataset.dataset is not None and form != web.QRELS:
        raise UsageError("--dataset is for qrels", fix="name an output that ends in .parquet, or drop --dataset")
    database = web.judging_database(location)
    answers = web.load_answers(database, web.project_named(database, project).id)
    if form == web.IMP_SHEETS:
        written = web.export_sheets(answers, output, source=options.source, overwrite=overwrite)
    else:
        files = {output: web.export_content(answers, output, options, dataset.load_if_given())}
        if interface is not None:
            files[interface] = web.interface_of(answers).encode()
        written = list(files)
        for path, content in files.items():
            with data.writing_bytes(path) as out:
                out.write(content)
    web.note_export(database, answers.project.id, output.name)
    if json:
        print_json({"form": form, "judgements": answers.table.height, "files": [str(path) for path in written]})
        return
    print_result(f"{answers.table.height:,} judgements of {len(answers.items):,} items")
    print_written(written)
    if form == web.IMP_SHEETS:
        print_note(f"next: run the command that built {output} again")
