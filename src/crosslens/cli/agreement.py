"""``crosslens agreement``: do relevance functions agree with people?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options

EXAMPLES = examples(
    "crosslens agreement --dataset captions.jsonl --judgements pairs.csv --phi cider --phi semantic",
    "crosslens agreement --dataset flickr --captions Flickr8k.token.txt \\",
    "    --judgements ExpertAnnotations.txt --phi cider --phi spice -o agreement.html",
    "crosslens agreement --dataset karpathy --captions dataset_coco.json --split test \\",
    "    --judgements sits_test.csv --phi cider",
)


def agreement(
    dataset: Annotated[str, typer.Option(metavar="NAME|PATH", help="A reader's name, or a dataset's path.")],
    judgements: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="A table with the columns image, caption, score; or CxC's or Flickr8k's file."
        ),
    ],
    phi: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE", help="A relevance function, or its matrix; may be given again. [default: cider]"
        ),
    ] = None,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    form: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="pairs, cxc, flickr8k-expert or flickr8k-cf. [default: what the file looks like]"
        ),
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out judged images and captions that the dataset lacks.")
    ] = False,
    without_references: Annotated[
        bool,
        typer.Option(
            "--without-references", help="Also figures without pairs whose caption is word for word a reference."
        ),
    ] = False,
    pooled: Annotated[
        bool, typer.Option("--pooled", help="Every judge's score by itself, not the mean of a pair's judges.")
    ] = False,
    kendall: Annotated[
        str, typer.Option(metavar="b|c", help="Which of Kendall's τ the table shows; --json has both.")
    ] = "b",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the intervals.")] = 0,
    resamples: Annotated[int, typer.Option(metavar="N", help="Resamples for the intervals; 0 for none.")] = 1000,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Confidence level of the intervals.")] = 0.95,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Threads to use.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="A scatter plot: .html, .svg, .png or .pdf.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that stands there.")] = False,
    json: Json = False,
) -> None:
    """Hold relevance functions against people's judgements.

    Pearson, Spearman and Kendall between φ and the scores that people gave to pairs of an image and a caption: for all
    pairs, and for those outside the ground truth, where ordinary recall sees no difference. The captions of an image
    are the references that φ compares with.
    """
    from crosslens.analyze.agreement import agreement as measure
    from crosslens.core.errors import ConflictError, UsageError
    from crosslens.data import load_dataset, read_judgements

    if kendall not in ("b", "c"):
        raise UsageError(f"--kendall {kendall}", fix="use b or c")
    if output is not None and output.exists() and not overwrite:
        raise ConflictError(f"{output} already exists", fix="choose another name, or pass --overwrite")
    options = reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split)
    loaded = load_dataset(dataset, **options)
    found = measure(
        loaded,
        read_judgements(judgements, loaded, form, skip_unknown=skip_unknown),
        phi or ["cider"],
        without_references=without_references,
        pooled=pooled,
        resamples=resamples,
        level=level,
        seed=seed,
        threads=threads,
        progress=progress(),
    )
    if output is not None:
        from crosslens.report.plots.scatter import write_scatter

        write_scatter(found, output, overwrite=overwrite)
    if json:
        say_json({**found.as_dict(), "file": None if output is None else str(output)})
        return
    say(found.text(width(), kendall))
    if output is not None:
        note(f"\nwritten to {output}")
