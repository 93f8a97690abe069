"""``crosslens counterfactual``: the smallest edit of a query that flips its result."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options
from crosslens.cli.model_flags import BatchSize, CacheFolder, ImageFolder, NoCache, Offline, Precision, SkipBad

EXAMPLES = examples(
    "crosslens counterfactual --dataset scenes/ --model tiny --query 101",
    "crosslens counterfactual --dataset scenes/ --model tiny --sample 50 --only wrong",
    "crosslens counterfactual --dataset captions.jsonl --image-folder photos \\",
    "    --model clip:openai/clip-vit-base-patch32 --perturbations adversarial --html flips.html",
    "crosslens counterfactual --dataset captions.jsonl --image-text mean \\",
    "    --model sentence:all-MiniLM-L6-v2 --sample 20 --perturbations char_swap,antonym",
)
_SAMPLE = 50


def counterfactual(
    dataset: Annotated[str, typer.Option(metavar="NAME|PATH", help="A reader's name, or a dataset's path.")],
    model: Annotated[str, typer.Option(metavar="KIND:SOURCE", help="The model (see crosslens encode --list).")],
    query: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A caption that asks, by its id; may be given again.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help=f"Draw N queries by the seed. [default: {_SAMPLE} without --query]"),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="right|wrong", help="Only queries that find their image first, or only the failures."),
    ] = None,
    perturbations: Annotated[
        str, typer.Option(metavar="NAMES", help="What may be edited: names or groups (see crosslens perturb --list).")
    ] = "everything",
    budget: Annotated[int, typer.Option(min=1, metavar="N", help="Changed texts to encode per query, at most.")] = 200,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    image_folder: ImageFolder = None,
    image_text: Annotated[
        str | None,
        typer.Option(
            metavar="HOW", help="Text-only retrieval: an image is the mean of its other captions (mean), or a summary."
        ),
    ] = None,
    query_caption: Annotated[
        int, typer.Option(min=0, metavar="N", help="Which caption asks in text-only retrieval, from 0.")
    ] = 0,
    score: Annotated[
        str | None, typer.Option(metavar="NAME", help="How two vectors are compared. [default: by their kind; cosine]")
    ] = None,
    precision: Precision = "fp32",
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1. [default: a GPU if there is one]")
    ] = None,
    batch_size: BatchSize = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    offline: Offline = False,
    skip_bad: SkipBad = False,
    pipeline: Annotated[
        str | None, typer.Option(metavar="NAME", help="The spaCy pipeline that tags. [default: the first installed]")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Decides which queries a sample has.")] = 0,
    threads: Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes that tag.")] = None,
    show: Annotated[int, typer.Option(min=0, metavar="N", help="Print N queries, the smallest edits first.")] = 5,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="A page with every query and its edit.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a page that stands there.")] = False,
    json: Json = False,
) -> None:
    """Find the smallest edit of a query that flips its top-1.

    Every single edit that the perturbations can make is a candidate; those that change the fewest characters are tried
    first. A success is broken, a failure is mended; where nothing flips within the budget, the closest edit is shown.
    """
    from crosslens.core.atomic import write_text
    from crosslens.core.errors import ConflictError, UsageError
    from crosslens.data import load_dataset
    from crosslens.encode import Cache
    from crosslens.explain.counterfactuals.counterfactual import counterfactuals
    from crosslens.report.counterfactuals import counterfactuals_page, counterfactuals_text

    if query_caption and image_text is None:
        raise UsageError("a caption that asks, but no text-only retrieval", fix="give --image-text, or drop it")
    if html is not None and html.exists() and not overwrite:
        raise ConflictError(f"{html} already exists", fix="choose another name, or pass --overwrite")
    options = reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split)
    found = counterfactuals(
        load_dataset(dataset, **options),
        model,
        query,
        sample=_SAMPLE if sample is None and not query else sample,
        only=only,
        perturbations=perturbations,
        budget=budget,
        image_text=image_text,
        query_caption=query_caption,
        image_folder=image_folder,
        score=score,
        seed=seed,
        device=device,
        precision=precision,
        offline=offline,
        skip_bad=skip_bad,
        cache=None if no_cache else Cache(cache, tell=note),
        batch_size=batch_size,
        pipeline=pipeline,
        threads=threads,
        tell=note,
        progress=progress(),
    )
    if html is not None:
        write_text(html, counterfactuals_page(found))
    if json:
        say_json({**found.as_dict(), "written": [] if html is None else [str(html)]})
        return
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    say(counterfactuals_text(found, width(), show=show, colour=colour))
    if html is not None:
        note(f"\nevery query and its edit: {html}")
