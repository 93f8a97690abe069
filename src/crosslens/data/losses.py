"""What a dataset loses when it is written in another form."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.data.files import format_suffix
from crosslens.data.genome_writing import IMAGE_KEYS, REGION_SIDES

_KEY_COLUMNS = ("image", "caption", "text")
_OBJECT_KEYS = ("image", "object", "name", "x", "y", "w", "h")
_INSTANCE_COLUMNS = (*_OBJECT_KEYS, "iscrowd")
_GENOME_COLUMNS = (*_OBJECT_KEYS, "synset", "attributes")


def left_out(dataset: Dataset, path: str | Path, to: str = "plain", *, images: str | Path | None = None) -> list[str]:
    """Sentences on what :func:`crosslens.data.write_dataset` with these arguments leaves out or changes."""
    lost = _lost(dataset, path, to, images)
    found = [f"left out, as {_form(path, to, images)} no place for them: {', '.join(lost)}"] if lost else []
    if to == "flickr":
        found.append("the captions get new ids: the image's id, # and a number")
    if to in ("flickr", "karpathy", "visual_genome") and not dataset.captions["caption"].equals(
        by_image(dataset)["caption"]
    ):
        found.append("the captions come image by image: caption embeddings in the old order no longer fit")
    return found


def by_image(dataset: Dataset) -> pl.DataFrame:
    """The captions, those of the first image first."""
    return dataset.images.select("image").join(dataset.captions, on="image", how="inner", maintain_order="left_right")


def _lost(dataset: Dataset, path: str | Path, to: str, images: str | Path | None) -> list[str]:
    if to == "folder":
        return []
    if to == "plain":
        flat = format_suffix(path) in (".csv", ".tsv")
        lost = _columns("caption", dataset.captions, nested_only=True) if flat else []
        if images is None:
            return lost + _columns("image", dataset.images) + _things(dataset)
        if format_suffix(images) == ".jsonl":
            return lost
        flat = format_suffix(images) in (".csv", ".tsv")
        return lost + (_columns("image", dataset.images, nested_only=True) if flat else []) + _things(dataset)
    if to == "coco_instances":
        extra = [] if dataset.objects is None else _columns("object", dataset.objects, _INSTANCE_COLUMNS)
        return [f"{dataset.captions.height:,} captions (write them with the form coco)", *extra, *_relations(dataset)]
    if to == "visual_genome":
        return _lost_in_genome(dataset)
    lost = [] if to == "coco" else _columns("caption", dataset.captions)
    lost += _columns("image", dataset.images, (*_KEY_COLUMNS, "file")) if to == "flickr" else []
    aside = " (write them with the form coco_instances)" if to == "coco" else ""
    return lost + _things(dataset, aside)


def _lost_in_genome(dataset: Dataset) -> list[str]:
    lists = [name for name, kind in dataset.images.schema.items() if kind.is_nested()]
    unwritten = {*lists, *IMAGE_KEYS}
    return [
        *_columns("image", dataset.images, [name for name in dataset.images.columns if name not in unwritten]),
        *_columns("caption", dataset.captions, (*_KEY_COLUMNS, *REGION_SIDES)),
        *([] if dataset.objects is None else _columns("object", dataset.objects, _GENOME_COLUMNS)),
    ]


def _form(path: str | Path, to: str, images: str | Path | None) -> str:
    if to != "plain":
        return f"the form {to} has"
    if images is not None:
        endings = dict.fromkeys((format_suffix(path), format_suffix(images)))
        return f"{' and '.join(endings)} files have"
    return f"a {format_suffix(path)} file of captions alone (without a second, .jsonl file for the images) has"


def _things(dataset: Dataset, aside: str = "") -> list[str]:
    count = 0 if dataset.objects is None else dataset.objects.height
    return ([f"{count:,} objects{aside}"] if count else []) + _relations(dataset)


def _relations(dataset: Dataset) -> list[str]:
    count = 0 if dataset.relations is None else dataset.relations.height
    return [f"{count:,} relations"] if count else []


def _columns(
    what: str, table: pl.DataFrame, known: Collection[str] = _KEY_COLUMNS, *, nested_only: bool = False
) -> list[str]:
    """Columns with something in them that are not written, as one phrase."""
    names = [
        name
        for name, kind in table.schema.items()
        if name not in known and (kind.is_nested() or not nested_only) and table[name].null_count() < table.height
    ]
    if not names:
        return []
    return [f"the {what} {'column' if len(names) == 1 else 'columns'} {' and '.join(names)}"]
