"""The plain form, written by hand: a table with one row per caption, or JSON lines; a second one for the images."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import UsageError, reading
from crosslens.data.checks import Place, check_ids, check_known, check_texts, check_unique, number_within
from crosslens.data.files import existing_file, format_stem, format_suffix
from crosslens.data.json_lines import read_caption_lines, read_image_lines
from crosslens.data.readers import READERS
from crosslens.data.scene import CAPTION_NAMES, IMAGE_NAMES, TEXT_NAMES, Scene
from crosslens.data.tables import TABLE_SUFFIXES, find_column, missing_column, read_table, typed

PLAIN_SUFFIXES = (*TABLE_SUFFIXES, ".jsonl")


@READERS.register("plain")
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
            scene, place = read_caption_lines(existing_file(captions), *names)
        else:
            scene, place = _caption_table(captions, *names)
        check_unique(scene.captions["caption"].to_list(), "caption", place)
        if images is not None:
            scene = scene.over(_images(images, image_column))
            check_known(scene.captions["image"].to_list(), set(scene.images["image"]), "image", place)
        return Dataset(format_stem(captions), scene.images, scene.captions, scene.objects, scene.relations)


def _suffix(path: str | Path) -> str:
    suffix = format_suffix(path)
    if suffix not in PLAIN_SUFFIXES:
        raise UsageError(f"{path} ends in {suffix!r}", fix=f"use one of: {', '.join(PLAIN_SUFFIXES)}")
    return suffix


def _caption_table(
    path: str | Path, image_column: str | None, caption_column: str | None, text_column: str | None
) -> tuple[Scene, Place]:
    table = read_table(path)
    frame, place = table.frame, table.place
    text_at = find_column(frame, text_column, TEXT_NAMES, "text_column")
    image_at = find_column(frame, image_column, IMAGE_NAMES, "image_column")
    if text_at is None:
        raise missing_column(frame, "caption's text", TEXT_NAMES, "text_column")
    if image_at is None:
        raise missing_column(frame, "image", IMAGE_NAMES, "image_column")
    usual = [name for name in CAPTION_NAMES if name not in (text_at, image_at)]
    caption_at = find_column(frame, caption_column, usual, "caption_column")
    owners = check_ids(frame[image_at].to_list(), "image id", place)
    texts = check_texts(frame[text_at].to_list(), place)
    ids = number_within(owners) if caption_at is None else check_ids(frame[caption_at].to_list(), "caption id", place)
    free = {
        {"caption": "caption_", "image": "image_", "text": "text_"}.get(name, name): typed(frame[name])
        for name in frame.columns
        if name not in (image_at, text_at, caption_at)
    }
    text_columns = {"caption": ids, "image": owners, "text": texts}
    columns = {name: pl.Series(values, dtype=pl.String) for name, values in text_columns.items()}
    images = columns["image"].unique(maintain_order=True)
    return Scene(pl.DataFrame({"image": images}), pl.DataFrame({**columns, **free})), place


def _images(path: str | Path, image_column: str | None) -> Scene:
    """The images file: its ids, its columns, and in JSONL what stands in the pictures."""
    with reading(path):
        if _suffix(path) == ".jsonl":
            return read_image_lines(existing_file(path), image_column)
        table = read_table(path)
        # The option names the captions' column; the images' file need not call it the same.
        wanted = image_column if image_column in table.frame.columns else None
        image_at = find_column(table.frame, wanted, IMAGE_NAMES, "image_column")
        if image_at is None:
            raise missing_column(table.frame, "image", IMAGE_NAMES, "image_column")
        ids = check_ids(table.frame[image_at].to_list(), "image id", table.place)
        check_unique(ids, "image", table.place)
        free = {name: typed(table.frame[name]) for name in table.frame.columns if name not in (image_at, "image")}
        return Scene(pl.DataFrame({"image": pl.Series(ids, dtype=pl.String), **free}))
