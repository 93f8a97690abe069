"""``crosslens data``: describe datasets and convert them."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from crosslens import data, synth as synthesis
from crosslens.cli.answers import CommandAnswer
from crosslens.cli.console import print_json, print_note, print_notes, progress_bar
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, command, positional
from crosslens.core import FactList, Text, UsageError, option

_NAMED = ("folder", "karpathy")
"""Formats that hold the name of a dataset."""

_SOURCE = positional(..., "A known dataset, a reader's name, or a dataset's path.", metavar="NAME|PATH")
Reader = Annotated[DatasetOptions, Flags(without=("dataset",))]


@command(
    "crosslens data describe coco --captions captions_val2017.json",
    "crosslens data describe captions.jsonl",
    "crosslens data describe flickr --captions Flickr8k.token.txt --json",
)
def describe(reader: Reader, source: str = _SOURCE) -> data.DatasetDescription:
    """Print what a dataset holds, and likely problems.

    Counts, captions per image, lengths, repeated captions, columns to group by, problems.
    """
    return data.describe(reader.load(source))


@command(
    "crosslens data convert coco my-dataset --captions captions_val2017.json",
    "crosslens data convert captions.csv my-captions.json --to coco",
    "crosslens data convert captions.csv my-dataset --name street-scenes",
    "crosslens data convert visual_genome joined -D folder=visual-genome -D coco_captions=coco/annotations",
    group="Output",
    common=("captions", "split", "to", "name"),
)
def convert(
    reader: Reader,
    source: str = _SOURCE,
    output: Path = positional(..., "The folder or file to write."),
    to: str | None = option(
        None,
        "folder, plain, coco, coco_instances, visual_genome, karpathy or flickr. [default: plain for .jsonl, "
        ".csv, .tsv and .parquet, otherwise folder]",
        metavar="FORMAT",
    ),
    name: str | None = option(None, "The dataset's new name, for folder and karpathy.", metavar="TEXT"),
    images_output: Path | None = option(None, "For plain: a second file with one row per image."),
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
    notes = [*filter(None, (dataset.card.notes,)), *data.left_out(dataset, output, form, images=images_output)]
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
    name: str | None = positional(None, "Say of this dataset where it is, or where to get it.", names="KNOWN DATASET"),
    data_folder: Path | None = option(
        None, "Where they are looked for. [default: $CROSSLENS_DATA, and the current folder]"
    ),
) -> CommandAnswer:
    """List the datasets that are known by name.

    For each, whether it is here, and if not, what to download from where, and under which licence.
    """
    entries = list(data.KNOWN.values()) if name is None else [data.known_dataset(name)]
    present = {entry.name: data.look_for_known(entry.name, data_folder) for entry in entries}
    root = data.data_roots(data_folder)[0]
    datasets = []
    for entry in entries:
        files = present[entry.name]
        stated = {key: getattr(entry, key) for key in ("name", "title", "purpose", "licence", "relevance", "folds")}
        here = {key: getattr(files, key, None) or None for key in ("path", "pictures", "reader")}
        downloads = [
            {"what": part.what, "source": part.source, "to": [str(root / path) for path in part.to]}
            for part in entry.downloads
        ]
        datasets.append({**stated, **here, "downloads": downloads})
    content = {"datasets": datasets}
    if name is None:
        rows = tuple((f"{'✓' if present[entry.name] else ' '} {entry.name}", entry.title) for entry in entries)
        how = "✓: here. Where to get one: crosslens data known NAME"
        return CommandAnswer("Known datasets", (FactList(rows), Text.of(how)), content)
    (entry,) = entries
    files = present[entry.name]
    facts = [f"here: {'no' if files is None else files.path}"]
    if files is not None and files.pictures is not None:
        facts.append(f"pictures: {files.pictures}")
    title = f"{entry.name}: {entry.title}"
    return CommandAnswer(title, (Text.of(title), Text.of(*facts, *data.where_to_get(entry, root))), content)


@command("crosslens data formats", "crosslens data formats coco", reads_files=False)
def formats(
    name: str | None = positional(None, "Describe this reader in full.", names="READER"),
) -> CommandAnswer:
    """List the dataset readers and their options."""
    readers = list(data.READERS) if name is None else [data.READERS[name]]
    content = {
        "readers": [
            {
                "name": entry.name,
                "summary": entry.summary,
                "options": {
                    key: str(parameter.annotation)
                    for key, parameter in inspect.signature(entry.value).parameters.items()
                },
            }
            for entry in readers
        ]
    }
    if name is None:
        rows = tuple((entry.name, entry.summary.replace("``", "")) for entry in readers)
        how = (
            "The options of a reader: crosslens data formats NAME. Commands take --captions, --instances, --images and "
            "--split as flags, any other option as -D KEY=VALUE."
        )
        return CommandAnswer("Readers", (FactList(rows), Text.of(how)), content)
    text = re.sub(r"\n +", " ", (inspect.getdoc(readers[0].value) or "").replace("``", ""))
    return CommandAnswer(f"The reader {name}", (Text(tuple(f"{name}: {text}".splitlines())),), content)


@command(
    "crosslens synth --images 1000 --tasks all --seed 7 -o scenes/",
    "crosslens synth --images 500 --tasks colour,count,ocr -o few/",
    "crosslens synth --images 1000 --version v2 --gallery 16000 -o hard/",
)
def synth(
    output: Path = option(..., "Where the dataset is written.", metavar="FOLDER", flags=OUTPUT),
    images: int = option(1000, "How many captioned scenes to draw.", minimum=1, maximum=100_000_000),
    tasks: str = option("all", "all, or names separated by commas.", joins=","),
    seed: int = option(0, "The same seed gives the same files."),
    version: str = option("v0", "v0; v1 adds a confusable twin of each scene; v2 similar scenes without captions."),
    gallery: int | None = option(None, "For v2: images in all. [default: 16 times --images]"),
    workers: int | None = option(None, "Drawing processes. [default: one per core]", minimum=1, maximum=4096),
    overwrite: Overwrite = False,
) -> CommandAnswer:
    """Draw scenes with captions, objects and boxes.

    The twelve tasks: colour, count, location, figure, object, action, scene, ocr, landmark, calculation, code,
    translation. A thirteenth, area, draws figures whose area is to be calculated; all does not include it, and its
    scenes are of the task calculation. Running the same command again resumes where it was interrupted.
    """
    dataset = synthesis.write_scenes(
        output,
        images,
        tasks,
        seed,
        version=version,
        gallery=gallery,
        workers=workers,
        overwrite=overwrite,
        progress=progress_bar(),
    )
    per_task = dict(dataset.images["task"].value_counts(sort=True).sort("task").iter_rows())
    images_drawn, captions = len(dataset.image_ids), len(dataset.caption_ids)
    lines = (
        f"{images_drawn:,} pictures and {captions:,} captions in {output}",
        "  " + ", ".join(f"{task} {count:,}" for task, count in per_task.items()),
        f"Look at it: crosslens data describe {output}/",
    )
    facts = {
        "output": str(output),
        "name": dataset.name,
        "images": images_drawn,
        "captions": captions,
        "tasks": per_task,
        "fingerprint": dataset.fingerprint,
    }
    return CommandAnswer(dataset.name, (Text(lines),), facts)
