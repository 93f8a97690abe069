"""``crosslens explain``: why queries failed, one in full or all together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.cli.console import Json, examples, note, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options
from crosslens.cli.explain_overview import explain_all
from crosslens.cli.model_flags import ImageFolder

if TYPE_CHECKING:
    from crosslens.core.dataset import Dataset
    from crosslens.core.run import Run

EXAMPLES = examples(
    "crosslens explain runs/tiny --query 102",
    "crosslens explain runs/tiny --query 102 --query 702 --html why.html",
    "crosslens explain runs/tiny",
    "crosslens explain runs/tiny -o why/ --html atlas.html --depth 6",
    "crosslens explain runs/tiny --compare runs/clip",
    "crosslens explain runs/clip --dataset coco --captions captions_val2017.json \\",
    "    --instances instances_val2017.json --query 91654 --json",
)


def explain(
    run: Annotated[Path, typer.Argument(help="A run folder, as evaluate -o writes it.")],
    query: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A query to explain in full, by its id; may be given again."),
    ] = None,
    direction: Annotated[
        str | None, typer.Option(metavar="t2i|t2t|i2t", help="Who asks. [default: where the query is; texts first]")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="A reader's name or a path. [default: as in the recipe]")
    ] = None,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    image_folder: ImageFolder = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page that stands alone: pictures, boxes, every fact.")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="RUN", help="All failures: what this other run confuses, and what not.")
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="All failures: take concepts by their kind, N steps below the top of WordNet's tree.",
        ),
    ] = None,
    show: Annotated[int, typer.Option(min=1, metavar="N", help="All failures: rows of rules and confusions.")] = 10,
    seed: Annotated[int, typer.Option(metavar="N", help="All failures: decides the resamples of intervals.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="All failures: a folder with every table."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what stands there.")] = False,
    json: Json = False,
) -> None:
    """Say why queries failed, in objects, counts and words.

    With --query, one query in full: what it asks for and whether the retrieved picture has it, what both pictures have
    in common, and two sentences that say what went wrong. Without, all failures of the run: concept metrics, causes,
    rules, and which concepts are taken for which; --html then draws that as a heat map (.html, .svg, .png or .pdf).
    """
    from crosslens.cli.stored import load_run
    from crosslens.core.errors import ConflictError, UsageError
    from crosslens.explain.run_data import changed_since, dataset_of

    if query and (compare or output or depth is not None):
        raise UsageError("--compare, --depth and --output are about all failures", fix="drop them, or drop --query")
    if html is not None and html.exists() and not overwrite:
        raise ConflictError(f"{html} already exists", fix="choose another name, or pass --overwrite")
    opened = load_run(run)
    options = reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split)
    found = dataset_of(opened, dataset, **options)
    if dataset is None and not options and (changed := changed_since(opened, found)):
        note(f"note: {changed}")
    if query:
        _explain_queries(opened, found, query, direction, image_folder=image_folder, html=html, json=json)
    else:
        explain_all(
            opened, found, direction, compare=compare, depth=depth, show=show, seed=seed, output=output, html=html,
            overwrite=overwrite, json=json,
        )  # fmt: skip


def _explain_queries(
    run: Run, dataset: Dataset, queries: list[str], direction: str | None, *, image_folder: str | None,
    html: Path | None, json: bool,
) -> None:  # fmt: skip
    from crosslens.core.atomic import write_text
    from crosslens.explain.local.explaining import explain_queries
    from crosslens.report.explanation import explanation_text

    found = explain_queries(run, dataset, queries, direction)
    if html is not None:
        from crosslens.explain.run_data import picture_files_of
        from crosslens.report.explanation_page import explanation_page

        wanted = {picture.image for one in found for picture in (one.right, one.other) if picture is not None}
        files, problem = picture_files_of(run, dataset, wanted, image_folder)
        if problem:
            note(f"note: boxes without pictures: {problem}")
        write_text(html, explanation_page(found, f"Why: {run.name} on {dataset.name}", files))
    if json:
        written: dict[str, Any] = {"written": [] if html is None else [str(html)]}
        say_json({"explanations": [one.as_dict() for one in found], **written})
        return
    say("\n\n\n".join(explanation_text(one, width()) for one in found))
    if html is not None:
        note(f"\nboth pictures with their boxes: {html}")
