"""``crosslens data``: look at datasets and convert them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from crosslens.cli.console import Json, examples, note, say, say_json, say_list
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options

DESCRIBE_EXAMPLES = examples(
    "crosslens data describe coco --captions captions_val2017.json",
    "crosslens data describe captions.jsonl",
    "crosslens data describe flickr --captions Flickr8k.token.txt --json",
)
CONVERT_EXAMPLES = examples(
    "crosslens data convert coco my-dataset --captions captions_val2017.json",
    "crosslens data convert captions.csv my-captions.json --to coco",
)
FORMATS_EXAMPLES = examples("crosslens data formats", "crosslens data formats coco")

Source = Annotated[str, typer.Argument(metavar="NAME|PATH", help="A reader's name, or a dataset's path.")]


def describe(
    source: Source,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Print what a dataset holds and what may be wrong.

    Counts, captions per image, lengths, repeated captions, columns to group by, problems.
    """
    from crosslens.data import describe as describe_dataset
    from crosslens.data import load_dataset

    options = reader_options(source, data, captions=captions, instances=instances, images=images, split=split)
    description = describe_dataset(load_dataset(source, **options))
    if json:
        say_json(description.as_dict())
    else:
        say(str(description))


def convert(
    source: Source,
    output: Annotated[Path, typer.Argument(help="The folder or file to write.")],
    to: Annotated[
        str | None,
        typer.Option(
            help="folder, plain, coco, coco_instances, visual_genome, karpathy or flickr. [default: plain for .jsonl, "
            ".csv, .tsv and .parquet, otherwise folder]"
        ),
    ] = None,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    images_output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For plain: a second file with one row per image.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what stands there.")] = False,
    json: Json = False,
) -> None:
    """Write a dataset in another form.

    The form "folder" (Parquet tables) keeps everything and loads at once; another keeps what it has a place for, and
    says what it leaves out.
    """
    from crosslens.data import left_out, load_dataset, write_dataset
    from crosslens.data.files import format_suffix
    from crosslens.data.plain import PLAIN_SUFFIXES

    options = reader_options(source, data, captions=captions, instances=instances, images=images, split=split)
    dataset = load_dataset(source, **options)
    form = to or ("plain" if format_suffix(output) in PLAIN_SUFFIXES else "folder")
    write_dataset(dataset, output, form, images=images_output, overwrite=overwrite)
    counts = {"images": len(dataset.image_ids), "captions": len(dataset.caption_ids)}
    notes = left_out(dataset, output, form, images=images_output)
    for one in notes:
        note(f"note: {one}")
    if json:
        say_json({"output": str(output), "form": form, "name": dataset.name, **counts, "notes": notes})
    else:
        note(f"{counts['images']:,} images and {counts['captions']:,} captions written to {output} ({form})")


def formats(
    name: Annotated[str | None, typer.Argument(help="Tell all about this one.")] = None,
    json: Json = False,
) -> None:
    """List the dataset readers and their options."""
    from crosslens.data import READERS

    found = list(READERS) if name is None else [READERS[name]]
    if json:
        say_json(
            {"readers": [{"name": one.name, "summary": one.summary, "options": _options(one.value)} for one in found]}
        )
    elif name is None:
        say_list([(one.name, one.summary.replace("``", "")) for one in found])
        say("\nThe options of one: crosslens data formats NAME")
    else:
        text = (inspect.getdoc(found[0].value) or "").replace("``", "")
        say(f"{name}: {text}")


def _options(reader: object) -> dict[str, str]:
    parameters = inspect.signature(reader).parameters  # type: ignore[arg-type]
    return {key: str(one.annotation) for key, one in parameters.items()}
