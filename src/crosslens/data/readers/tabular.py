"""The plain format: a table with one row per caption, or JSON lines; a second one for the images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import Dataset, InputError, UsageError, reading, spelled_as
from crosslens.data.io.checks import (
    RowName,
    check_ids,
    check_known,
    check_texts,
    check_unique,
    ids_or_numbers,
    number_within,
)
from crosslens.data.io.files import existing_file, format_stem, format_suffix
from crosslens.data.io.records import (
    CAPTION_COLUMNS,
    IMAGE_COLUMNS,
    TEXT_COLUMNS,
    DatasetTables,
    Records,
    objects_in,
    read_records,
    relations_in,
    text_columns,
)
from crosslens.data.io.tables import PLAIN_SUFFIXES, find_column, read_table, require_column, typed
from crosslens.data.loading import READERS

_ROW = '{"image": …, "text": …} for a caption, or {"image": …, "captions": [ … ]} for an image'
_LISTS = ("captions", "objects", "relations")


@READERS.register("plain", suffixes=PLAIN_SUFFIXES)
def read_plain(
    captions: str | Path,
    images: str | Path | None = None,
    image_column: str | None = None,
    caption_column: str | None = None,
    text_column: str | None = None,
) -> Dataset:
    """A table that a person can write: JSONL, CSV, TSV or Parquet, one row per caption.

    captions: the file (.jsonl, .csv, .tsv or .parquet; all but Parquet may be .gz); a JSONL row may also describe one
        image, with a list ``captions`` (texts, or objects with ``text``) and lists ``objects`` and ``relations``
    images: a second file of any of these forms with one row per image, whose columns (a category, say) become the
        images' columns; the images then come in its order
    image_column: the column that holds the image's id; by default ``image`` (or ``image_id``, ``image_name``,
        ``file_name``)
    caption_column: the column that holds the caption's id; by default ``caption_id``, or ``caption`` beside a column
        ``text``; without one, captions are called ``<image>#<n>``
    text_column: the column that holds the caption; by default ``text`` (or ``caption_text``, ``caption``)

    Further columns are kept. Without ``images``, the images come in the order in which they first appear.
    """
    names = (image_column, caption_column, text_column)
    with reading(captions):
        if _suffix(captions) == ".jsonl":
            tables, row_name = _read_caption_lines(existing_file(captions), *names)
        else:
            tables, row_name = _read_caption_table(captions, *names)
        check_unique(tables.captions["caption"].to_list(), "caption", row_name)
        if images is not None:
            tables = tables.with_images(_read_images(images, image_column))
            owners = spelled_as(tables.images["image"].to_list(), tables.captions["image"].to_list())
            tables = replace(tables, captions=tables.captions.with_columns(pl.Series("image", owners, pl.String)))
            check_known(tables.captions["image"].to_list(), set(tables.images["image"]), "image", row_name)
        return Dataset(format_stem(captions), tables.images, tables.captions, tables.objects, tables.relations)


def _suffix(path: str | Path) -> str:
    suffix = format_suffix(path)
    if suffix not in PLAIN_SUFFIXES:
        raise UsageError(f"{path} ends in {suffix!r}", fix=f"use one of: {', '.join(PLAIN_SUFFIXES)}")
    return suffix


def _read_caption_table(
    path: str | Path, image_column: str | None, caption_column: str | None, text_column: str | None
) -> tuple[DatasetTables, RowName]:
    frame, row_name = read_table(path)
    text_at = require_column(frame, "caption's text", TEXT_COLUMNS, text_column, "text_column")
    image_at = require_column(frame, "image", IMAGE_COLUMNS, image_column, "image_column")
    usual = [name for name in CAPTION_COLUMNS if name not in (text_at, image_at)]
    caption_at = find_column(frame, caption_column, usual, "caption_column")
    owners = check_ids(frame[image_at].to_list(), "image id", row_name)
    texts = check_texts(frame[text_at].to_list(), row_name)
    if caption_at is None:
        ids = number_within(owners)
    else:
        ids = check_ids(frame[caption_at].to_list(), "caption id", row_name)
    free = {
        f"{name}_" if name in ("caption", "image", "text") else name: typed(frame[name])
        for name in frame.columns
        if name not in (image_at, text_at, caption_at)
    }
    captions = pl.DataFrame({**text_columns(caption=ids, image=owners, text=texts), **free})
    return DatasetTables(_distinct_images(owners), captions), row_name


def _read_images(path: str | Path, image_column: str | None) -> DatasetTables:
    """The images file: ids and columns, and in JSONL objects and relations."""
    with reading(path):
        if _suffix(path) == ".jsonl":
            return _read_image_lines(existing_file(path), image_column)
        frame, row_name = read_table(path)
        # The option names the captions' column; the images' file need not call it the same.
        name = image_column if image_column in frame.columns else None
        image_at = require_column(frame, "image", IMAGE_COLUMNS, name, "image_column")
        ids = check_ids(frame[image_at].to_list(), "image id", row_name)
        check_unique(ids, "image", row_name)
        free = {name: typed(frame[name]) for name in frame.columns if name not in (image_at, "image")}
        return DatasetTables(pl.DataFrame({**text_columns(image=ids), **free}))


def _read_caption_lines(
    path: Path, image_key: str | None, caption_key: str | None, text_key: str | None
) -> tuple[DatasetTables, RowName]:
    """Rows per caption, rows per image, or both; and the name of each caption's row."""
    records = read_records(path)
    per_image = [index for index, row in enumerate(records.rows) if "captions" in row]
    image_key = image_key or _usual(records, IMAGE_COLUMNS)
    owners = records.ids(image_key)
    check_unique([owners[index] for index in per_image], "image", records.only(per_image).row_name)
    flat = _flatten(records, owners, text_key)
    text_key = text_key or _usual(flat, TEXT_COLUMNS)
    usual = [name for name in CAPTION_COLUMNS if name != text_key and flat.has(name)]
    caption_key = caption_key or (usual[0] if usual else None)
    texts = check_texts(flat.values(text_key), flat.row_name)
    images = [row["image"] for row in flat.rows]
    ids = flat.optional(caption_key) if caption_key else [None] * len(images)
    columns = text_columns(caption=ids_or_numbers(ids, images, "caption id", flat.row_name), image=images, text=texts)
    free = flat.free((*columns, image_key, text_key, caption_key or "caption", *_LISTS))
    image_table = _image_table(records, owners, per_image, image_key)
    objects = objects_in(records, owners)
    relations = relations_in(records, owners, objects)
    return DatasetTables(image_table, pl.DataFrame(columns | free), objects, relations), flat.row_name


def _read_image_lines(path: Path, image_key: str | None) -> DatasetTables:
    """One row per image: its columns, objects and relations."""
    records = read_records(path)
    # The option names the captions' column; the images' file need not call it the same.
    image_key = image_key if image_key and records.has(image_key) else _usual(records, IMAGE_COLUMNS)
    owners = records.ids(image_key)
    check_unique(owners, "image", records.row_name)
    objects = objects_in(records, owners)
    images = _image_table(records, owners, range(len(owners)), image_key)
    return DatasetTables(images, objects=objects, relations=relations_in(records, owners, objects))


def _usual(records: Records, names: Sequence[str]) -> str:
    return next((name for name in names if records.has(name)), names[0])


def _flatten(records: Records, owners: list[str], text_key: str | None) -> Records:
    """One record per caption, its image's id under ``image``."""
    rows: list[dict[str, Any]] = []
    row_names: list[str] = []
    for index, (row, owner) in enumerate(zip(records.rows, owners, strict=True)):
        row_name = str(records.row_name(index))
        if "captions" not in row:
            rows.append({**row, "image": owner})
            row_names.append(row_name)
            continue
        if not isinstance(row["captions"], list):
            raise InputError(
                f"'captions' is {row['captions']!r:.60}", row=row_name, expected=_ROW, fix="put the captions in a list"
            )
        for number, caption in enumerate(row["captions"]):
            rows.append({**(caption if isinstance(caption, dict) else {text_key or "text": caption}), "image": owner})
            row_names.append(f"{row_name}, caption {number}")
    return Records(rows, row_names.__getitem__)


def _image_table(records: Records, owners: list[str], rows: Sequence[int], image_key: str) -> pl.DataFrame:
    """Images in order of appearance, with the columns that the rows per image hold."""
    free = records.only(rows).free((image_key, "image", *_LISTS))
    columns = pl.DataFrame({**text_columns(image=[owners[index] for index in rows]), **free})
    return _distinct_images(owners).join(columns, on="image", how="left", maintain_order="left")


def _distinct_images(owners: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(text_columns(image=list(dict.fromkeys(owners))))
