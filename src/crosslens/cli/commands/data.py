"""``crosslens data``: describe datasets and convert them."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import crosslens.core as core
import crosslens.data as data
from crosslens.cli.console import print_json, print_list, print_note, print_notes, print_result
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import Flags, Json, Overwrite, command
from crosslens.core import UsageError, option

_NAMED = ("folder", "karpathy")
"""Formats that hold the name of a dataset."""

Source = Annotated[
    str, typer.Argument(metavar="NAME|PATH", help="A known dataset, a reader's name, or a dataset's path.")
]
Reader = Annotated[DatasetOptions, Flags(without=("dataset",))]


@command(
    "crosslens data describe coco --captions captions_val2017.json",
    "crosslens data describe captions.jsonl",
    "crosslens data describe flickr --captions Flickr8k.token.txt --json",
)
def describe(source: Source, reader: Reader) -> data.DatasetDescription:
    """Print what a dataset holds, and likely problems.

    Counts, captions per image, lengths, repeated captions, columns to group by, problems.
    """
    return data.describe(reader.load(source))


@command(
    "crosslens data convert coco my-dataset --captions captions_val2017.json",
    "crosslens data convert captions.csv my-captions.json --to coco",
    "crosslens data convert captions.csv my-dataset --name street-scenes",
    "crosslens data convert visual_genome joined -D folder=visual-genome \\",
    "    -D coco_captions=coco/annotations",
)
def convert(
    source: Source,
    output: Annotated[Path, typer.Argument(help="The folder or file to write.")],
    reader: Reader,
    to: str | None = option(
        None,
        "folder, plain, coco, coco_instances, visual_genome, karpathy or flickr. [default: plain for .jsonl, "
        ".csv, .tsv and .parquet, otherwise folder]",
        metavar="FORMAT",
    ),
    name: str | None = option(None, "The dataset's new name, for folder and karpathy.", metavar="TEXT"),
    images_output: Path | None = option(None, "For plain: a second file with one row per image.", metavar="FILE"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write a dataset in another format.

    The format "folder" (Parquet tables) keeps everything and loads fast; others keep what they can express, and the
    command says what they leave out.
    """
    form = to or ("plain" if data.format_suffix(output) in data.PLAIN_SUFFIXES else "folder")
    if name is not None and form not in _NAMED:
        raise UsageError(
            f"the format {form} holds no name: a reader takes the file's",
            fix=f"write {' or '.join(_NAMED)}, or drop --name",
        )
    dataset = reader.load(source)
    dataset = dataset if name is None else replace(dataset, name=name)
    data.write_dataset(dataset, output, form, images=images_output, overwrite=overwrite)
    counts = {"images": len(dataset.image_ids), "captions": len(dataset.caption_ids)}
    notes = [*_card_notes(dataset), *data.left_out(dataset, output, form, images=images_output)]
    print_notes(notes)
    if json:
        print_json({"output": str(output), "form": form, "name": dataset.name, **counts, "notes": notes})
    else:
        print_note(f"{counts['images']:,} images and {counts['captions']:,} captions written to {output} ({form})")


@command(
    "crosslens data known",
    "crosslens data known flickr30k",
    "crosslens data known --data-folder ~/datasets --json",
    reads_files=False,
)
def known(
    name: Annotated[str | None, typer.Argument(help="Say of this dataset where it is, or where to get it.")] = None,
    data_folder: Path | None = option(
        None, "Where they are looked for. [default: $CROSSLENS_DATA, and the current folder]", metavar="FOLDER"
    ),
    json: Json = False,
) -> None:
    """List the datasets that are known by name.

    For each, whether it is here, and if not, what to download from where, and under which licence.
    """
    entries = list(data.KNOWN.values()) if name is None else [data.known_dataset(name)]
    present = {entry.name: data.look_for_known(entry.name, data_folder) for entry in entries}
    root = data.data_roots(data_folder)[0]
    if json:
        print_json({"datasets": [_known_content(entry, present[entry.name], root) for entry in entries]})
    elif name is None:
        print_list([(f"{'✓' if present[entry.name] else ' '} {entry.name}", entry.title) for entry in entries])
        print_result("\n✓: here. Where to get one: crosslens data known NAME")
    else:
        (entry,) = entries
        files = present[entry.name]
        print_result(f"{entry.name}: {entry.title}\n")
        # Not as a table: an address must not be broken.
        print_result(f"here: {'no' if files is None else files.path}")
        if files is not None and files.pictures is not None:
            print_result(f"pictures: {files.pictures}")
        print_result("\n".join(data.where_to_get(entry, root)))


def _known_content(entry: data.KnownDataset, files: data.KnownFiles | None, root: Path) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "purpose": entry.purpose,
        "licence": entry.licence,
        "relevance": entry.relevance,
        "folds": entry.folds,
        "path": None if files is None else str(files.path),
        "pictures": None if files is None or files.pictures is None else str(files.pictures),
        "reader": None if files is None else files.reader or None,
        "downloads": [
            {"what": part.what, "source": part.source, "to": [str(root / path) for path in part.to]}
            for part in entry.downloads
        ],
    }


@command("crosslens data formats", "crosslens data formats coco", reads_files=False)
def formats(
    name: Annotated[str | None, typer.Argument(help="Describe this reader in full.")] = None, json: Json = False
) -> None:
    """List the dataset readers and their options."""
    readers = list(data.READERS) if name is None else [data.READERS[name]]
    if json:
        content = [
            {"name": entry.name, "summary": entry.summary, "options": _options(entry.value)} for entry in readers
        ]
        print_json({"readers": content})
    elif name is None:
        print_list([(entry.name, entry.summary.replace("``", "")) for entry in readers])
        print_result("\nThe options of a reader: crosslens data formats NAME")
    else:
        text = (inspect.getdoc(readers[0].value) or "").replace("``", "")
        print_result(f"{name}: {text}")


def _card_notes(dataset: core.Dataset) -> list[str]:
    """What the reader had to say, such as which images it left out."""
    return [dataset.card.notes] if dataset.card.notes else []


def _options(reader: object) -> dict[str, str]:
    parameters = inspect.signature(reader).parameters  # type: ignore[arg-type]
    return {key: str(parameter.annotation) for key, parameter in parameters.items()}
