"""What a dataset loses when it is written in another format."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import polars as pl

from crosslens.core import Dataset
from crosslens.data.io.files import format_suffix
from crosslens.data.registries import WRITERS

KEY_COLUMNS = ("image", "caption", "text")
OBJECT_KEYS = ("image", "object", "name", "x", "y", "w", "h")


def left_out(dataset: Dataset, path: str | Path, to: str = "plain", *, images: str | Path | None = None) -> list[str]:
    """Sentences on what :func:`crosslens.data.write_dataset` with these arguments leaves out or changes."""
    details = WRITERS[to].details
    lost = details["loses"](dataset, path, images) if "loses" in details else []
    notes = [f"left out, as {_subject(path, to, images)} no field for them: {', '.join(lost)}"] if lost else []
    if details.get("new_caption_ids"):
        notes.append("the captions get new ids: the image's id, # and a number")
    if details.get("by_image") and not dataset.captions["caption"].equals(by_image(dataset)["caption"]):
        notes.append("the captions come image by image: caption embeddings in the old order no longer fit")
    return notes


def by_image(dataset: Dataset) -> pl.DataFrame:
    """The captions, those of the first image first."""
    return dataset.images.select("image").join(dataset.captions, on="image", how="inner", maintain_order="left_right")


def lost_columns(
    what: str, table: pl.DataFrame | None, kept: Collection[str] = KEY_COLUMNS, *, nested_only: bool = False
) -> list[str]:
    """Columns with something in them that are not kept, as one phrase; ``nested_only``: only lists are not kept."""
    if table is None:
        return []
    names = [
        name
        for name, kind in table.schema.items()
        if name not in kept and (kind.is_nested() or not nested_only) and table[name].null_count() < table.height
    ]
    return [f"the {what} {'column' if len(names) == 1 else 'columns'} {' and '.join(names)}"] if names else []


def lost_objects(dataset: Dataset, aside: str = "") -> list[str]:
    """All objects and relations, as phrases."""
    count = 0 if dataset.objects is None else dataset.objects.height
    return ([f"{count:,} objects{aside}"] if count else []) + lost_relations(dataset)


def lost_relations(dataset: Dataset) -> list[str]:
    """All relations, as a phrase."""
    count = 0 if dataset.relations is None else dataset.relations.height
    return [f"{count:,} relations"] if count else []


def _subject(path: str | Path, to: str, images: str | Path | None) -> str:
    if to != "plain":
        return f"the format {to} has"
    if images is not None:
        endings = dict.fromkeys((format_suffix(path), format_suffix(images)))
        return f"{' and '.join(endings)} files have"
    return f"a {format_suffix(path)} file of captions alone (without a second, .jsonl file for the images) has"
