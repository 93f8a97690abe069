"""``crosslens caption-sets``: two sets of captions of the same images, one model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_words import SPELLING, dataset_of
from crosslens.cli.model_flags import BatchSize, CacheFolder, ImageFolder, NoCache, Offline, Precision, SkipBad

if TYPE_CHECKING:
    from crosslens.core.dataset import Dataset

EXAMPLES = examples(
    "crosslens synth --images 240 --seed 7 -o scenes",
    "crosslens caption-sets --dataset scenes --by style --before sparse --after detailed \\",
    "    --model tiny",
    "crosslens caption-sets --model clip:openai/clip-vit-base-patch32 \\",
    '    --before "coco captions=captions_val2014.json" --image-folder val2014 \\',
    '    --after "fine_grained captions=coco_fg.json coco_ids=true" --shared-images',
    "crosslens caption-sets --before captions.jsonl --after finer.jsonl \\",
    "    --image-embeddings images.npy --before-embeddings captions.npy \\",
    "    --after-embeddings finer.npy --json",
)

_EMBEDDINGS = ".npy in the dataset's order, or an embeddings folder"


def caption_sets(
    before: Annotated[
        str, typer.Option(metavar=SPELLING, help="The first captions: a path, a reader with options; a value of --by.")
    ],
    after: Annotated[str, typer.Option(metavar=SPELLING, help="The captions that it is compared with.")],
    dataset: Annotated[
        str | None, typer.Option(metavar=SPELLING, help="With --by: the one dataset that holds both sets.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The caption column whose values tell the sets apart.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="KIND:SOURCE", help="A model that encodes (see crosslens encode --list).")
    ] = None,
    image_folder: ImageFolder = None,
    image_embeddings: Annotated[
        str | None, typer.Option(metavar="FILE", help=f"Instead of a model: {_EMBEDDINGS}, as is --before.")
    ] = None,
    before_embeddings: Annotated[str | None, typer.Option(metavar="FILE", help=f"Of --before: {_EMBEDDINGS}.")] = None,
    after_embeddings: Annotated[str | None, typer.Option(metavar="FILE", help=f"Of --after: {_EMBEDDINGS}.")] = None,
    shared_images: Annotated[
        bool, typer.Option("--shared-images", help="Keep the images that both sets have, instead of stopping.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help='Such as "Hit@1 Rsum". [default: hit rates, capped recall, ranks, DCGcm@10, Rsum]'
        ),
    ] = None,
    score: Annotated[
        str | None, typer.Option(metavar="NAME", help="How two embeddings are compared. [default: by their kind]")
    ] = None,
    ties: Annotated[str, typer.Option(metavar="MODE", help="stable, optimistic, pessimistic or expected.")] = "stable",
    folds: Annotated[int, typer.Option(min=1, metavar="N", help="Mean over N consecutive parts of the images.")] = 1,
    no_granularity: Annotated[
        bool, typer.Option("--no-granularity", help="Do not measure the captions themselves.")
    ] = False,
    correction: Annotated[str, typer.Option(metavar="NAME", help="For several tests: holm, bh or none.")] = "holm",
    permutations: Annotated[int, typer.Option(min=1, metavar="N", help="Permutations of the paired test.")] = 10_000,
    resamples: Annotated[int, typer.Option(min=0, metavar="N", help="Resamples for the intervals.")] = 1000,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Confidence level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of intervals and permutations.")] = 0,
    precision: Precision = "fp32",
    device: Annotated[str | None, typer.Option(metavar="NAME", help="For the model: cpu, cuda, cuda:1.")] = None,
    batch_size: BatchSize = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    offline: Offline = False,
    skip_bad: SkipBad = False,
    threads: Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads to use.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Where the runs before and after go.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace other runs that stand there.")] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="One row per caption set, as papers print them, without intervals.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare two caption sets of the same images.

    One model, or embeddings of both sets. Every metric before and after, in both directions, with the interval of the
    difference and a p-value, paired by image: captions have no counterparts, and may differ in number. Where the extra
    language is installed, the captions' granularity is compared, too.
    """
    from crosslens.pipeline.caption_sets import compare_caption_sets
    from crosslens.pipeline.recipe import Encoding

    first, second = _both(dataset, by, before, after)
    found = compare_caption_sets(
        first, second, model=model, **_embeddings(first, second, image_embeddings, before_embeddings, after_embeddings),
        image_folder=image_folder, encoding=Encoding(device, batch_size, cache, not no_cache, offline, note),
        precision=precision, skip_bad=skip_bad, shared_images=shared_images, metrics=metrics, score=score,
        ties=ties,  # type: ignore[arg-type]
        folds=folds, granularity=False if no_granularity else None, correction=correction, permutations=permutations,
        resamples=resamples, level=level, seed=seed, threads=threads, output=output, overwrite=overwrite,
        command=sys.argv, progress=progress(),
    )  # fmt: skip
    if json:
        say_json({**found.as_dict(), "folder": None if output is None else str(output)})
        return
    say(found.wide_grid().text(width()) if wide else found.text(width()))
    if output is not None:
        note(f"\nboth runs are in {output}")


def _both(dataset: str | None, by: str | None, before: str, after: str) -> tuple[Dataset, Dataset]:
    from crosslens.core.errors import UsageError
    from crosslens.data.subsets import captions_where

    if (dataset is None) != (by is None):
        lacking = "--dataset" if dataset is None else "--by"
        raise UsageError(f"no {lacking}", fix="for two sets in one dataset give both --dataset and --by")
    if dataset is None or by is None:
        return dataset_of(before), dataset_of(after)
    whole = dataset_of(dataset)
    return captions_where(whole, by, before), captions_where(whole, by, after)


def _embeddings(
    before: Dataset, after: Dataset, images: str | None, first: str | None, second: str | None
) -> dict[str, Any]:
    from crosslens.core.errors import UsageError
    from crosslens.pipeline.recipe.inputs import read_embeddings

    flags = {"--image-embeddings": images, "--before-embeddings": first, "--after-embeddings": second}
    given = [flag for flag, file in flags.items() if file is not None]
    if not given:
        return {}
    if len(given) < len(flags):
        lacking = next(flag for flag in flags if flag not in given)
        raise UsageError(f"{given[0]} without {lacking}", fix="give all three, or a model")
    return {
        "images": read_embeddings(images, None, before.image_ids, "image"),
        "captions": (
            read_embeddings(first, None, before.caption_ids, "caption"),
            read_embeddings(second, None, after.caption_ids, "caption"),
        ),
    }
