"""COCO: a captions file, and an instances file with boxes, as published at cocodataset.org."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import Dataset, InputError, UsageError, argument, reading
from crosslens.data.io.checks import box_columns, check_known, check_unique
from crosslens.data.io.files import json_file, read_json
from crosslens.data.io.records import Records, as_series, text_columns
from crosslens.data.loading import READERS, JsonFile

CAPTIONS_LAYOUT = '{"images": [{"id", "file_name", …}], "annotations": [{"id", "image_id", "caption"}]}'
INSTANCES_LAYOUT = '{"annotations": [{"id", "image_id", "category_id", "bbox"}], "categories": [{"id", "name"}]}'
# What every published image entry carries and nobody groups results by.
_BOOKKEEPING = ("license", "flickr_url", "coco_url", "date_captured")


def _annotations(content: Any) -> list[Any] | None:
    """The first annotations of a file that is laid out like COCO's; None of any other."""
    annotations = content.get("annotations") if isinstance(content, dict) else None
    return [row for row in annotations[:100] if isinstance(row, dict)] if isinstance(annotations, list) else None


def _holds_captions(content: Any) -> bool:
    rows = _annotations(content)
    if rows is None or not isinstance(content.get("images"), list):
        return False
    return any("caption" in row for row in rows) if rows else "categories" not in content


def _holds_instances(content: Any) -> bool:
    rows = _annotations(content)
    if rows is None or not isinstance(content.get("categories"), list):
        return False
    return not rows or any("category_id" in row for row in rows)


@READERS.register(
    "coco",
    json_files=(
        JsonFile("captions", "COCO captions", CAPTIONS_LAYOUT, _holds_captions),
        JsonFile("instances", "COCO instances", INSTANCES_LAYOUT, _holds_instances),
    ),
)
def read_coco(captions: str | Path, instances: str | Path | None = None, split: str | None = None) -> Dataset:
    """COCO captions, with the boxes of an instances file.

    captions: the captions JSON (may be .gz), or the folder that holds ``captions_<split>.json``
    instances: the instances JSON, or its folder; its boxes become the dataset's objects, crowds marked in ``iscrowd``
    split: which file of the folder to read, such as ``val2017``; of a single file, keep the images whose entry
        ``split`` has this value

    Other single values in the image and annotation entries become columns. Images come in the order of the file.
    Objects of images that only the instances file knows are left out; a box of no width or height is kept as an object
    without a box.
    """
    content, file = _open(captions, "captions", split)
    with reading(file):
        images = Records.under(content, "images", "image", CAPTIONS_LAYOUT)
        annotations = Records.under(content, "annotations", "annotation", CAPTIONS_LAYOUT)
        image_ids, caption_ids = images.ids("id"), annotations.ids("id")
        check_unique(image_ids, "image", images.row_name)
        check_unique(caption_ids, "caption", annotations.row_name)
        owners = annotations.ids("image_id")
        check_known(owners, image_ids, "image", annotations.row_name)
        columns = text_columns(caption=caption_ids, image=owners, text=annotations.texts("caption"))
        dataset = Dataset(
            "coco" if split is None else f"coco/{split}",
            _images(images, image_ids),
            pl.DataFrame({**columns, **annotations.free(("id", "image_id", "caption", "text", "image"))}),
        )
    if instances is not None:
        dataset = _with_objects(dataset, instances, split)
    if split is not None and Path(captions).is_file():
        dataset = _only(dataset, split, file)
    return dataset


def _open(path: str | Path, kind: str, split: str | None) -> tuple[Any, Path]:
    path = Path(path)
    if path.is_dir():
        if split is None:
            names = sorted(file.name for file in path.glob(f"{kind}_*.json*"))
            known = ", ".join(name.removeprefix(f"{kind}_").partition(".")[0] for name in names) or "none here"
            raise UsageError(
                f"{path} is a folder",
                fix=f"name the file, or pass {argument('split')} for one of its {kind} files ({known})",
            )
        path = json_file(path, f"{kind}_{split}")
    return read_json(path), path


def _images(images: Records, ids: list[str]) -> pl.DataFrame:
    columns = text_columns(image=ids)
    if images.has("file_name"):
        columns |= text_columns(file=images.strings("file_name"))
    for side in ("width", "height"):
        if images.has(side):
            columns[side] = pl.Series(images.numbers(side), dtype=pl.Int64)
    known = ("id", "image", "file", "file_name", "width", "height", *_BOOKKEEPING)
    return pl.DataFrame({**columns, **images.free(known)})


def _with_objects(dataset: Dataset, instances: str | Path, split: str | None) -> Dataset:
    content, file = _open(instances, "instances", split)
    with reading(file):
        annotations = Records.under(content, "annotations", "annotation", INSTANCES_LAYOUT)
        categories = Records.under(content, "categories", "category", INSTANCES_LAYOUT)
        category_ids = categories.ids("id")
        check_unique(category_ids, "category", categories.row_name)
        name_of = dict(zip(category_ids, categories.strings("name"), strict=True))
        ids, owners = annotations.ids("id"), annotations.ids("image_id")
        named = annotations.ids("category_id")
        check_unique(ids, "object", annotations.row_name)
        check_known(named, name_of, "category", annotations.row_name)
        # An object's image must be in one of the two files.
        listed = content.get("images")
        more = Records.of(listed, "image", INSTANCES_LAYOUT).ids("id") if isinstance(listed, list) else []
        check_known(owners, {*dataset.image_ids, *more}, "image", annotations.row_name)
        columns: dict[str, Any] = {"image": owners, "object": ids, "name": [name_of[category] for category in named]}
        columns |= box_columns(annotations.values("bbox"), annotations.row_name)
        columns["iscrowd"] = as_series("iscrowd", [int(bool(crowd)) for crowd in annotations.optional("iscrowd")])
        objects = pl.DataFrame(columns, schema_overrides=dict.fromkeys("xywh", pl.Float64))
        # The instances file of a full split may cover more images than a captions file cut to some of them.
        objects = objects.filter(pl.col("image").is_in(list(dataset.image_ids)))
        return Dataset(dataset.name, dataset.images, dataset.captions, objects)


def _only(dataset: Dataset, split: str, file: Path) -> Dataset:
    if "split" not in dataset.images.columns:
        expected = f"entries with 'split': {split!r}"
        fix = "leave split out, or pass the folder that holds one file per split"
        raise InputError("the image entries have no key 'split'", file=file, expected=expected, fix=fix)
    kept = dataset.images.filter(pl.col("split") == split)["image"]
    if not len(kept):
        known = ", ".join(str(name) for name in dataset.images["split"].unique(maintain_order=True))
        raise UsageError(f"no image has the split {split!r}", fix=f"use one of: {known}")
    return dataset.select(kept)
