"""Tables: the plain format (captions, and a second file of images), Flickr token files, crosslens' own folder."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from crosslens.core import InputError, UsageError, argument
from crosslens.data.files import format_suffix, writing_bytes, writing_text
from crosslens.data.rows import PLAIN_SUFFIXES, number_within
from crosslens.data.writing import KEY_COLUMNS, WRITERS, by_image, check_image_order, lost_columns, lost_objects
from crosslens.storage import for_spreadsheets, parquet_bytes
from crosslens.values import ESCAPED_ON_LINES, Dataset, escape_ids

_FLAT_SUFFIXES = (".csv", ".tsv")
_BREAKS = r"[\t\n\r]"


def _lost(dataset: Dataset, path: Path, images: Path | None) -> list[str]:
    lost = _lost_lists("caption", dataset.captions, path)
    if images is None:
        return lost + lost_columns("image", dataset.images) + lost_objects(dataset)
    if format_suffix(images) == ".jsonl":
        return lost
    return lost + _lost_lists("image", dataset.images, images) + lost_objects(dataset)


def _lost_lists(what: str, table: pl.DataFrame, path: Path) -> list[str]:
    return lost_columns(what, table, nested_only=True) if format_suffix(path) in _FLAT_SUFFIXES else []


@WRITERS.register("plain", loses=_lost, second_file=True)
def write_plain(dataset: Dataset, path: Path, images: Path | None = None) -> None:
    """A .jsonl, .csv, .tsv or .parquet file with a row per caption; ``images``: a second one with a row per image."""
    if images is not None:
        rows = dataset.images
        for name, table in (("objects", dataset.objects), ("relations", dataset.relations)):
            if table is not None and format_suffix(images) == ".jsonl":  # as lists
                lists = table.group_by("image", maintain_order=True).agg(pl.struct(pl.exclude("image")).alias(name))
                rows = rows.join(lists, on="image", how="left", maintain_order="left")
        _write_table(rows, images)
    else:
        fix = f"pass {argument('images')} to write the images to a file of their own"
        check_image_order(dataset, dataset.captions["image"], path, fix)
    _write_table(dataset.captions.select(*KEY_COLUMNS, pl.exclude(KEY_COLUMNS)), path)


def _write_table(frame: pl.DataFrame, path: Path) -> None:
    suffix = format_suffix(path)
    if suffix not in PLAIN_SUFFIXES:
        raise UsageError(f"{path} ends in {suffix!r}", fix=f"use one of: {', '.join(PLAIN_SUFFIXES)}")
    flat = frame.select(name for name, kind in frame.schema.items() if not kind.is_nested())
    with writing_bytes(path) as out:
        if suffix == ".jsonl":
            frame.write_ndjson(out)
        elif suffix == ".parquet":
            out.write(parquet_bytes(frame))
        elif suffix == ".csv":
            for_spreadsheets(flat).write_csv(out)
        else:
            ids = [name for name in KEY_COLUMNS[:2] if name in flat.columns]
            flat = flat.with_columns(pl.Series(name, escape_ids(flat[name], ESCAPED_ON_LINES)) for name in ids)
            for name in flat.columns:
                if flat[name].dtype == pl.String and len(rows := flat[name].str.contains(_BREAKS).arg_true()):
                    row = int(rows[0])
                    problem = f"the {name} {flat[name][row]!r:.60} holds a tab or line break"
                    expected = "values on one line: a .tsv file has no quotes"
                    raise InputError(problem, file=path, row=row, expected=expected, fix="write a .csv or .jsonl file")
            for_spreadsheets(flat).write_csv(out, separator="\t", quote_style="never")


@WRITERS.register(
    "flickr",
    loses=lambda dataset, *_: [
        *lost_columns("caption", dataset.captions),
        *lost_columns("image", dataset.images, (*KEY_COLUMNS, "file")),
        *lost_objects(dataset),
    ],
    by_image=True,
    new_caption_ids=True,
)
def write_flickr(dataset: Dataset, path: Path) -> None:
    """Token file, image by image; line breaks inside captions become spaces."""
    captions = by_image(dataset)
    check_image_order(dataset, captions["image"], path, "write a format that lists images: coco, karpathy or folder")
    ids = number_within(escape_ids(captions["image"], ESCAPED_ON_LINES))
    with writing_text(path) as out:
        for caption, text in zip(ids, captions["text"], strict=True):
            out.write(f"{caption}\t{' '.join(text.split())}\n")


@WRITERS.register("folder")
def write_folder(dataset: Dataset, path: Path) -> None:
    """The folder of Parquet tables that ``Dataset.load`` reads; keeps everything."""
    dataset.save(path, overwrite=True)
