"""Writing datasets in the formats that other tools read, what each format loses, and what the writers share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import Registry, UsageError, argument
from crosslens.data.files import format_suffix, writing_text
from crosslens.storage import refuse_existing
from crosslens.values import Dataset

WRITERS: Registry[Callable[..., None]] = Registry("output format", "writers", ("crosslens.data.writers",))
"""Functions of a dataset and a path. Details: ``loses(dataset, path, images)`` gives phrases for what the format cannot
hold; ``second_file=True``: takes ``images``, the path of a file for the images; ``by_image=True``: writes the captions
of each image together; ``new_caption_ids=True``: does not keep the ids of captions.
"""


def write_dataset(
    dataset: Dataset, path: str | Path, to: str = "plain", *, images: str | Path | None = None, overwrite: bool = False
) -> Path:
    """Write a dataset; a format keeps what it has a field for (:func:`crosslens.data.left_out` says what it drops).

    ``coco``            captions JSON, with the columns of images and captions
    ``coco_instances``  instances JSON: the objects, their names as categories
    ``karpathy``        ``dataset_*.json``; the split is the images' column ``split``, or ``test``
    ``visual_genome``   a folder of five JSON files: captions as regions, objects, attributes and relationships
    ``flickr``          token file ``image#0<TAB>caption``, image by image; line breaks inside captions become spaces
    ``plain``           .jsonl, .csv, .tsv or .parquet, one row per caption
    ``folder``          the folder of Parquet tables that ``Dataset.load`` reads

    Args:
        dataset: What is written. A file that would lose an image, or give the images another order, is refused.
        path: The file or folder; gzipped where the name ends in ``.gz``.
        to: The format.
        images: Of ``plain``, a second file with one row per image, and in JSONL its objects and relations.
        overwrite: Replace what is there.
    """
    writer = WRITERS[to]
    if images is not None and not writer.details.get("second_file"):
        raise UsageError(f"the format {to!r} has no second file", fix=f"leave out {argument('images')}")
    second = {} if images is None else {"images": Path(images)}
    for file in (path, *second.values()):
        refuse_existing(file, overwrite)
    writer.value(dataset, Path(path), **second)
    return Path(path)


def check_image_order(dataset: Dataset, owners: pl.Series, path: str | Path, fix: str) -> None:
    """A file of captions alone gives its images the order in which they appear; that must be the dataset's."""
    if tuple(dict.fromkeys(owners)) == dataset.image_ids:
        return
    lost = len(set(dataset.image_ids) - set(owners))
    problem = f"images without a caption: {lost}" if lost else "the captions do not come in the order of the images"
    raise UsageError(f"{problem}; read back from {path} the images would not be the same", fix=fix)


KEY_COLUMNS = ("image", "caption", "text")
OBJECT_KEYS = ("image", "object", "name", "x", "y", "w", "h")


def left_out(dataset: Dataset, path: str | Path, to: str = "plain", *, images: str | Path | None = None) -> list[str]:
    """Sentences on what :func:`crosslens.data.write_dataset` with these arguments leaves out or changes."""
    details = WRITERS[to].details
    lost = details["loses"](dataset, path, images) if "loses" in details else []
    notes = []
    if lost:
        subject = f"a {format_suffix(path)} file of captions alone (without a second, .jsonl file for the images) has"
        if to != "plain":
            subject = f"the format {to} has"
        elif images is not None:
            endings = dict.fromkeys((format_suffix(path), format_suffix(images)))
            subject = f"{' and '.join(endings)} files have"
        notes.append(f"left out, as {subject} no field for them: {', '.join(lost)}")
    if details.get("new_caption_ids"):
        notes.append("the captions get new ids: the image's id, # and a number")
    if details.get("by_image") and not dataset.captions["caption"].equals(by_image(dataset)["caption"]):
        notes.append("the captions come image by image: caption embeddings in the old order no longer fit")
    return notes


def by_image(dataset: Dataset) -> pl.DataFrame:
    """The captions, those of the first image first."""
    return dataset.images.select("image").join(dataset.captions, on="image", how="inner", maintain_order="left_right")


def lost_columns(
    what: str, table: pl.DataFrame | None, stored: Collection[str] = KEY_COLUMNS, *, nested_only: bool = False
) -> list[str]:
    """Columns with content that are not written, as one phrase; ``nested_only``: only lists are not."""
    if table is None:
        return []
    names = [
        name
        for name, kind in table.schema.items()
        if name not in stored and (kind.is_nested() or not nested_only) and table[name].null_count() < table.height
    ]
    return [f"the {what} {'column' if len(names) == 1 else 'columns'} {' and '.join(names)}"] if names else []


def lost_rows(table: pl.DataFrame | None, what: str) -> list[str]:
    """All rows of a table, as a phrase."""
    return [] if table is None or table.is_empty() else [f"{table.height:,} {what}"]


def lost_objects(dataset: Dataset, aside: str = "") -> list[str]:
    """All objects and relations, as phrases."""
    return lost_rows(dataset.objects, f"objects{aside}") + lost_rows(dataset.relations, "relations")


def with_json_ids(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The row without empty values, the ids under ``keys`` as numbers where they look like one."""
    stated = {key: value for key, value in row.items() if value is not None}
    return stated | {key: int(stated[key]) for key in keys if is_number(stated[key])}


def is_number(text: str) -> bool:
    """Whether a whole number is written exactly like this: ``7``, but not ``07``."""
    return re.fullmatch(r"0|[1-9][0-9]{0,4299}", text) is not None  # of more digits Python reads no number


def to_json(value: Any) -> str:
    """The value as one line of JSON; dates from Parquet files become texts."""
    return json.dumps(value, ensure_ascii=False, default=str)


def write_json(value: Any, path: Path) -> None:
    """A JSON file with this value."""
    with writing_text(path) as out:
        out.write(to_json(value) + "\n")
