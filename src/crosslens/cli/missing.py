"""``crosslens missing-positives``: matches that nobody annotated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options

if TYPE_CHECKING:
    from crosslens.core.relevance import Relevance

EXAMPLES = examples(
    "crosslens missing-positives --dataset captions.jsonl --phi semantic -o completed.qrels",
    "crosslens evaluate --dataset captions.jsonl --qrels completed.qrels --scores scores.npy",
    "crosslens missing-positives --dataset karpathy --captions dataset_coco.json --split test \\",
    "    --phi cider --verify eccv --table missing.csv",
)


def missing_positives(
    dataset: Annotated[str, typer.Option(metavar="NAME|PATH", help="A reader's name, or a dataset's path.")],
    phi: Annotated[str, typer.Option(metavar="NAME|FILE", help="The relevance function, or its matrix.")] = "semantic",
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    quantile: Annotated[
        float, typer.Option(metavar="SHARE", help="Of annotated pairs' φ: as high as this, and a pair is missing.")
    ] = 0.5,
    threshold: Annotated[
        float | None, typer.Option(metavar="PHI", help="A threshold of your own. [default: from --quantile]")
    ] = None,
    most: Annotated[int, typer.Option(metavar="N", help="How many pairs are kept, the highest first.")] = 1_000_000,
    verify: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Positives that people verified: eccv or cxc (COCO 5K; needs the extra eccv), or a qrels file.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Decides which caption each image gives up.")] = 0,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Threads to use.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Judgements for evaluate --qrels; .json and .jsonl too."),
    ] = None,
    extra_only: Annotated[
        bool, typer.Option("--extra-only", help="Write the missing positives without the ground truth.")
    ] = False,
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .csv of the missing positives with their texts.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that stand there.")] = False,
    json: Json = False,
) -> None:
    """Find matches that nobody annotated.

    Pairs outside the ground truth with φ as high as annotated pairs', where each caption is compared with the others of
    its image. The written judgements hold the ground truth and these pairs.
    """
    from crosslens.analyze.missing_positives import missing_positives as search
    from crosslens.core.errors import ConflictError
    from crosslens.data import load_dataset, write_qrels

    for file in (output, table):
        if file is not None and file.exists() and not overwrite:
            raise ConflictError(f"{file} already exists", fix="choose another name, or pass --overwrite")
    options = reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split)
    loaded = load_dataset(dataset, **options)
    found = search(
        loaded,
        phi,
        quantile=quantile,
        threshold=threshold,
        verified=None if verify is None else _verified(verify),
        most=most,
        seed=seed,
        threads=threads,
        progress=progress(),
    )
    if output is not None:
        write_qrels(found.relevance(extra_only=extra_only), output)
    if table is not None:
        found.write_table(table)
    written = [str(one) for one in (output, table) if one is not None]
    if json:
        say_json({**found.as_dict(), "files": written})
        return
    say(found.text(width()))
    if written:
        note(f"\nwritten to {' and '.join(written)}")


def _verified(verify: str) -> Relevance | dict[str, Relevance]:
    from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE
    from crosslens.data import read_eccv, read_qrels

    if verify in ("eccv", "cxc"):
        return {direction: read_eccv(verify, direction) for direction in (IMAGE_TO_TEXT, TEXT_TO_IMAGE)}
    return read_qrels(verify)
