"""``crosslens evaluate``: from files to a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from crosslens.cli.console import Json, examples, note, progress
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options
from crosslens.cli.model_flags import BatchSize, CacheFolder, ImageFolder, NoCache, Offline, Precision, SkipBad
from crosslens.cli.result import print_run, written_at

EXAMPLES = examples(
    "crosslens evaluate --dataset coco --captions captions.json \\",
    "    --image-embeddings img.npy --caption-embeddings cap.npy -o runs/clip-b32",
    "crosslens evaluate --run model.run.gz --qrels qrels.txt \\",
    '    --metrics "CappedRecall@1 CappedRecall@5" --json',
    "crosslens evaluate --dataset captions.jsonl --scores scores.npy",
    "crosslens evaluate --dataset captions.jsonl --scores scores.npy \\",
    '    --metrics "NCS[cider]@10 SR[semantic,m=20]@5 DCGcm@10"',
    "crosslens evaluate --model clip:openai/clip-vit-base-patch32 \\",
    "    --dataset captions.jsonl --image-folder photos -o runs/clip-b32",
    "crosslens evaluate --model blip:Salesforce/blip-itm-base-coco \\",
    "    --rerank blip:Salesforce/blip-itm-base-coco --rerank-depth 128 \\",
    "    --dataset captions.jsonl --image-folder photos",
    "crosslens evaluate --model sentence:all-MiniLM-L6-v2 --image-text mean \\",
    "    --dataset captions.jsonl",
)

_FILE = "FILE"


def evaluate(
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="A reader's name, or a dataset's path.")
    ] = None,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    model: Annotated[
        str | None, typer.Option(metavar="KIND:SOURCE", help="A model that encodes it (see crosslens encode --list).")
    ] = None,
    image_folder: ImageFolder = None,
    image_text: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Text-only retrieval: an image is the mean of its other captions' vectors (mean), or a summary of "
            "them (extractive, transformers:t5-small).",
        ),
    ] = None,
    query_caption: Annotated[
        int, typer.Option(min=0, metavar="N", help="Which caption asks in text-only retrieval, from 0.")
    ] = 0,
    rerank: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:SOURCE",
            help="Re-order the top of every list by a model that looks at image and text together: blip:NAME or "
            "callable:FILE.py:NAME.",
        ),
    ] = None,
    rerank_depth: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many places of every list are re-ordered.")
    ] = 100,
    precision: Precision = "fp32",
    batch_size: BatchSize = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    offline: Offline = False,
    skip_bad: SkipBad = False,
    image_embeddings: Annotated[
        str | None, typer.Option(metavar=_FILE, help=".npy in the dataset's order, or an embeddings folder.")
    ] = None,
    caption_embeddings: Annotated[
        str | None, typer.Option(metavar=_FILE, help=".npy in the dataset's order, or an embeddings folder.")
    ] = None,
    image_ids: Annotated[
        str | None, typer.Option(metavar=_FILE, help="The image of each row of the .npy, one id per line.")
    ] = None,
    caption_ids: Annotated[
        str | None, typer.Option(metavar=_FILE, help="The caption of each row of the .npy, one id per line.")
    ] = None,
    scores: Annotated[str | None, typer.Option(metavar=_FILE, help="A .npy of scores, images × captions.")] = None,
    run: Annotated[
        list[str] | None, typer.Option(metavar=_FILE, help="Ready-made ranked lists; twice for both directions.")
    ] = None,
    qrels: Annotated[
        str | None, typer.Option(metavar=_FILE, help="Which items are relevant, instead of the captions' own images.")
    ] = None,
    phi: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="A similarity of your own for graded metrics, images × captions (.npy, .csv): NCS[NAME]@10.",
        ),
    ] = None,
    scores_from: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SOURCE",
            help="A relevance encoder for DCGcm[scores_from=NAME]@10: a run folder, a .npy of scores, a folder that "
            "encode wrote, or KIND:SOURCE.",
        ),
    ] = None,
    direction: Annotated[
        list[str] | None,
        typer.Option(metavar="i2t|t2i", help="May be given twice. [default: both; i2t for --run without --dataset]"),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="NAMES", help='Such as "Hit@1 t2i/mAP@R" (see crosslens metrics).')
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="How two embeddings are compared. [default: by their kind; cosine]"),
    ] = None,
    ties: Annotated[str, typer.Option(metavar="MODE", help="stable, optimistic, pessimistic or expected.")] = "stable",
    folds: Annotated[int, typer.Option(metavar="N", help="Mean over N consecutive parts; 5 for COCO 1K.")] = 1,
    depth: Annotated[int, typer.Option(metavar="N", help="How many items of each list the run keeps.")] = 10,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the intervals.")] = 0,
    resamples: Annotated[int, typer.Option(metavar="N", help="Resamples for the intervals; 0 for none.")] = 1000,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Confidence level of the intervals.")] = 0.95,
    backend: Annotated[str, typer.Option(metavar="NAME", help="numpy or torch.")] = "numpy",
    device: Annotated[str | None, typer.Option(metavar="NAME", help="For torch and models: cpu, cuda, cuda:1.")] = None,
    tile: Annotated[int | None, typer.Option(metavar="N", help="Rows scored at a time.")] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Threads to use.")] = None,
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the run is called. [default: the output folder's name]")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Where the run is written.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another run that stands there.")] = False,
    json: Json = False,
) -> None:
    """Evaluate a model, embeddings, scores or lists.

    The same command again resumes, or finds everything done; a different run in the output folder is never replaced
    unless asked.
    """
    from crosslens.core.errors import UsageError
    from crosslens.pipeline.recipe import Encoding, Inputs, Model, Options, Recipe, Rerank, execute

    if query_caption and image_text is None:
        raise UsageError("a caption that asks, but no text-only retrieval", fix="give --image-text, or drop it")
    reading = reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split)
    recipe = Recipe(
        dataset=dataset,
        dataset_options=reading,
        inputs=Inputs(
            image_embeddings,
            caption_embeddings,
            image_ids,
            caption_ids,
            scores,
            tuple(run or ()),
            qrels,
            tuple(phi or ()),
            tuple(scores_from or ()),
        ),
        model=Model(model, image_folder, image_text, query_caption, precision, skip_bad),
        rerank=Rerank(rerank, rerank_depth),
        options=Options(
            metrics=() if metrics is None else (metrics,),
            directions=tuple(direction or ()),
            score=score,
            ties=ties,
            folds=folds,
            depth=depth,
            seed=seed,
            resamples=resamples,
            level=level,
            backend=backend,
            device=device,
            tile=tile,
            threads=threads,
        ),
        name=name,
    )
    encoding = Encoding(device, batch_size, cache, not no_cache, offline, note)
    before = written_at(output)
    result = execute(recipe, output, overwrite=overwrite, progress=progress(), command=sys.argv, encoding=encoding)
    print_run(result, json=json, output=output, before=before, name=name)
