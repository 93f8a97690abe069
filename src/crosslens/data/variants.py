"""Datasets changed before use: images without captions in the gallery, the captions of one style, other image ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import InputError, UnknownNameError, reading
from crosslens.data.files import existing_file, format_stem, format_suffix, numbered_lines, read_json
from crosslens.data.rows import (
    IMAGE_COLUMNS,
    RowName,
    check_ids,
    no_captions,
    on_lines,
    read_records,
    read_table,
    split_csv,
    split_lines,
    text_table,
)
from crosslens.values import Dataset, ImageName, images_below, unknown_images

EXTRA_IMAGES = "extra_images"
"""The option of every dataset that names them."""

_IDS, _FILES = ("id", *IMAGE_COLUMNS[:-1]), ("file", IMAGE_COLUMNS[-1])
_EXPECTED = "an image per row: its id or its file, or an object (a row) with id, file or both"


def read_image_names(path: str | Path) -> list[ImageName]:
    """The images that a list names by id, by file or by both, one per row.

    The list is a text (one image per line), a CSV, TSV or Parquet table (a column ``id`` or ``image``, a column
    ``file`` or ``file_name``; or one column without a header), JSON (an array, also under the key ``images``, as in
    COCO's files) or JSON lines.
    """
    path = existing_file(path)
    with reading(path):
        rows, row_name = _rows(path)
        return [_image_name(row, index, row_name) for index, row in enumerate(rows)]


def _rows(path: Path) -> tuple[Sequence[Any], RowName]:
    suffix = format_suffix(path)
    if suffix == ".json":
        content = read_json(path)
        content = content.get("images") if isinstance(content, dict) else content
        if not isinstance(content, list):
            fix = "write an array, or an object with an array under 'images'"
            raise InputError("no array of images", expected=_EXPECTED, fix=fix)
        return content, lambda index: f"image {index}"
    if suffix == ".jsonl":
        records = read_records(path)
        return records.rows, records.row_name
    header = ["", ""] if suffix == ".parquet" else []
    if suffix in (".csv", ".tsv"):
        header, _, _ = split_csv(path) if suffix == ".csv" else split_lines(path, "\t")
    # A table of one column may begin with the first image instead of a header.
    if len(header) > 1 or set(header) & {*_IDS, *_FILES}:
        frame, row_name = read_table(path)
        return frame.rows(named=True), row_name
    lines, numbers = numbered_lines(path)
    return [line.strip().strip('"') for line in lines], on_lines(numbers)


def _image_name(row: Any, index: int, row_name: RowName) -> ImageName:
    if not isinstance(row, dict):
        return ImageName.of(check_ids([row], "image id", lambda _: row_name(index))[0])
    given_values = (next((row[key] for key in keys if row.get(key) not in (None, "")), None) for keys in (_IDS, _FILES))
    values = check_ids([value for value in given_values if value is not None], "image", lambda _: row_name(index))
    if not values:
        keys = ", ".join(map(str, row)) or "none"
        fix = f"name a column {' or '.join((_IDS[0], _IDS[1], _FILES[0]))}"
        raise InputError(f"no image (found: {keys})", row=row_name(index), expected=_EXPECTED, fix=fix)
    return ImageName.of(values[0]) if len(values) == 1 else ImageName(values[0], values[1].replace("\\", "/"))


def read_images(path: str | Path) -> Dataset:
    """The images in a folder, or those that a list names, as a dataset without captions.

    A list may name an image several times: a table of captions is a list of its images, too.
    """
    path = Path(path).expanduser()
    is_folder = path.is_dir()
    names = [ImageName.of(name) for name in images_below(path)] if is_folder else read_image_names(path)
    with reading(path):
        images = unknown_images(list(dict.fromkeys(names)), (), ())
        table = text_table(image=images, file=images.values())
        name, home = (path.name, path) if is_folder else (format_stem(path), path.parent)
        return Dataset(name, table, no_captions(), home=home)


_MOST = 24
"""A column with more values than this does not hold kinds of captions but something else, such as ids."""


def rename_images(dataset: Dataset, names: Sequence[str]) -> Dataset:
    """The dataset with these image ids, in the order of its own."""
    new_name = {old: new for old, new in zip(dataset.image_ids, names, strict=True) if old != new}
    if not new_name:
        return dataset
    tables = {name: getattr(dataset, name) for name in ("images", "captions", "objects", "relations")}
    renamed = pl.col("image").replace(new_name)
    changed: dict[str, Any] = {name: table.with_columns(renamed) for name, table in tables.items() if table is not None}
    return replace(dataset, **changed)


def captions_by(dataset: Dataset, column: str) -> dict[str, Dataset]:
    """One dataset per value of a caption (or image) column, in the order in which values appear.

    All of them have all images, so that they can be compared image by image; captions without a value are in none.
    """
    captions = dataset.captions
    if column in captions.columns:
        labels = captions[column]
    elif column in dataset.images.columns:
        labels = captions.join(dataset.images, on="image", how="left", maintain_order="left")[column]
    else:
        raise UnknownNameError("column", column, [*captions.columns, *dataset.images.columns])
    labels = labels.cast(pl.String)
    values = labels.drop_nulls().unique(maintain_order=True).to_list()
    if len(values) > _MOST:
        expected = f"a column that makes at most {_MOST} sets of captions"
        fix = "choose another, such as one for the style or the source of captions"
        raise InputError(f"the column {column!r} has {len(values):,} different values", expected=expected, fix=fix)
    return {value: replace(dataset, name=value, captions=captions.filter(labels == value)) for value in values}


def captions_where(dataset: Dataset, column: str, value: str) -> Dataset:
    """The captions whose ``column`` is ``value``, with all images of the dataset."""
    parts = captions_by(dataset, column)
    if value not in parts:
        raise UnknownNameError(f"value of {column}", value, parts)
    return parts[value]
