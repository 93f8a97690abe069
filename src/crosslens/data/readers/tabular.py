"""Tables of captions: the plain format (with a second table for the images), Flickr's token files, Kaggle's tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import InputError, UsageError, argument, reading
from crosslens.data.files import existing_file, format_stem, format_suffix, numbered_lines, read_lines, read_text
from crosslens.data.loading import READERS
from crosslens.data.rows import (
    CAPTION_COLUMNS,
    IMAGE_COLUMNS,
    OBJECT_TYPES,
    PLAIN_SUFFIXES,
    TEXT_COLUMNS,
    Records,
    RowName,
    as_numbers,
    box_columns,
    box_of,
    caption_table,
    check_ids,
    check_known,
    check_texts,
    check_unique,
    find_column,
    ids_or_numbers,
    number_within,
    on_lines,
    read_records,
    read_table,
    require_column,
    split_csv,
    split_lines,
    text_table,
    wrong_width,
)
from crosslens.storage import csv_delimiter
from crosslens.values import Dataset, match_ids, spelled_as, unescape_ids, without_image_ending

_ROW = '{"image": …, "text": …} for a caption, or {"image": …, "captions": [ … ]} for an image'
_LISTS = ("captions", "objects", "relations")
_Images = tuple[pl.DataFrame, pl.DataFrame | None, pl.DataFrame | None]
"""The images, their objects and their relations."""


@READERS.register("plain", suffixes=PLAIN_SUFFIXES)
def read_plain(
    captions: str | Path,
    images: str | Path | None = None,
    image_column: str | None = None,
    caption_column: str | None = None,
    text_column: str | None = None,
    delimiter: str | None = None,
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
    delimiter: the character that separates the columns of a .csv, or ``tab``; by default the comma, semicolon, tab or
        bar that its first line holds

    Further columns are kept. Without ``images``, the images come in the order in which they first appear.
    """
    delimiter = "\t" if delimiter == "tab" else delimiter
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise UsageError(f"the delimiter is {delimiter!r}", fix="pass one character, such as ';', or 'tab'")
    if delimiter is not None and ".csv" not in (format_suffix(captions), images and format_suffix(images)):
        raise UsageError(f"{argument('delimiter')} is for .csv files", fix=f"leave it out, or rename {captions}")
    with reading(captions):
        if _suffix(captions) == ".jsonl":
            (image_table, objects, relations), table, row_name = _read_caption_lines(
                existing_file(captions), image_column, caption_column, text_column
            )
        else:
            frame, row_name = read_table(captions, delimiter, optional=True)
            text_at = require_column(frame, "caption's text", TEXT_COLUMNS, text_column, "text_column")
            image_at = require_column(frame, "image", IMAGE_COLUMNS, image_column, "image_column")
            usual = [name for name in CAPTION_COLUMNS if name not in (text_at, image_at)]
            caption_at = find_column(frame, caption_column, usual, "caption_column")
            frame = _unescaped(frame, captions, image_at, caption_at)
            table = caption_table(frame, row_name, image_at, text_at, caption_at)
            image_table, objects, relations = text_table(image=dict.fromkeys(table["image"])), None, None
        if images is not None:
            # The option names the captions' column; the images' file need not call it the same.
            with reading(images):
                if _suffix(images) == ".jsonl":
                    records = read_records(existing_file(images))
                    key = image_column if image_column and records.has(image_column) else _usual(records, IMAGE_COLUMNS)
                    ids = records.ids(key, unique="image")
                    image_table, their_objects, their_relations = _images_in(records, ids, range(len(ids)), key)
                    objects = objects if their_objects is None else their_objects
                    relations = relations if their_relations is None else their_relations
                else:
                    frame, image_row = read_table(images, delimiter, optional=True)
                    name = image_column if image_column in frame.columns else None
                    image_at = require_column(frame, "image", IMAGE_COLUMNS, name, "image_column")
                    frame = _unescaped(frame, images, image_at)
                    ids = check_ids(frame[image_at].to_list(), "image id", image_row)
                    check_unique(ids, "image", image_row)
                    free = {name: as_numbers(frame[name]) for name in frame.columns if name not in (image_at, "image")}
                    image_table = text_table(free, image=ids)
            owners = spelled_as(image_table["image"].to_list(), table["image"].to_list())
            check_known(owners, set(image_table["image"]), "image", row_name)
            table = table.with_columns(pl.Series("image", owners, pl.String))
        return Dataset(format_stem(captions), image_table, table, objects, relations)


def _unescaped(frame: pl.DataFrame, path: str | Path, *columns: str | None) -> pl.DataFrame:
    """The table with its ids as they were: a .tsv file has no quotes, and escapes those that it could not hold."""
    if format_suffix(path) != ".tsv":
        return frame
    return frame.with_columns(pl.Series(name, unescape_ids(frame[name]), pl.String) for name in columns if name)


def _suffix(path: str | Path) -> str:
    suffix = format_suffix(path)
    if suffix not in PLAIN_SUFFIXES:
        raise UsageError(f"{path} ends in {suffix!r}", fix=f"use one of: {', '.join(PLAIN_SUFFIXES)}")
    return suffix


def _read_caption_lines(
    path: Path, image_key: str | None, caption_key: str | None, text_key: str | None
) -> tuple[_Images, pl.DataFrame, RowName]:
    """Rows per caption, rows per image, or both; and the name of each caption's row."""
    records = read_records(path)
    per_image = [index for index, row in enumerate(records.rows) if "captions" in row]
    image_key = image_key or _usual(records, IMAGE_COLUMNS)
    owners = records.ids(image_key)
    check_unique([owners[index] for index in per_image], "image", records.only(per_image).row_name)
    # One record per caption, its image's id under image.
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
    flat = Records(rows, row_names.__getitem__)
    text_key = text_key or _usual(flat, TEXT_COLUMNS)
    usual = [name for name in CAPTION_COLUMNS if name != text_key and flat.has(name)]
    caption_key = caption_key or (usual[0] if usual else None)
    texts = check_texts(flat.values(text_key), flat.row_name)
    images = [row["image"] for row in flat.rows]
    ids = flat.optional(caption_key) if caption_key else [None] * len(images)
    ids = ids_or_numbers(ids, images, "caption id", flat.row_name)
    check_unique(ids, "caption", flat.row_name)
    free = flat.free(("caption", "image", "text", image_key, text_key, caption_key or "caption", *_LISTS))
    table = text_table(free, caption=ids, image=images, text=texts)
    return _images_in(records, owners, per_image, image_key), table, flat.row_name


def _usual(records: Records, names: Sequence[str]) -> str:
    return next((name for name in names if records.has(name)), names[0])


def _images_in(records: Records, owners: list[str], rows: Sequence[int], image_key: str) -> _Images:
    """Images in order of appearance, with the columns that the rows per image hold, their objects and relations."""
    free = records.only(rows).free((image_key, "image", *_LISTS))
    columns = text_table(free, image=[owners[index] for index in rows])
    images = text_table(image=dict.fromkeys(owners)).join(columns, on="image", how="left", maintain_order="left")

    def nested(key: str) -> tuple[Records, list[str]]:
        """The records in the lists ``key`` of the rows that have one, and the image of each."""
        having = [index for index, row in enumerate(records.rows) if row.get(key)]
        inner, within = records.only(having).nested(key, key.removesuffix("s"))
        return inner, [owners[having[index]] for index in within]

    objects = relations = None
    object_rows, object_images = nested("objects")
    if object_images:
        ids = [row.get("object", row.get("id")) for row in object_rows.rows]
        ids = ids_or_numbers(ids, object_images, "object id", object_rows.row_name, mark="/")
        check_unique(ids, "object", object_rows.row_name)
        boxes = [box_of(row) if row.get("box") is None else row["box"] for row in object_rows.rows]
        object_columns: dict[str, Any] = {
            "image": object_images,
            "object": ids,
            "name": object_rows.strings("name"),
            "synset": object_rows.strings("synset", optional=True),
            **box_columns(boxes, object_rows.row_name),
            "attributes": [[str(word) for word in words] or None for words in object_rows.lists("attributes")],
        }
        more = object_rows.free((*object_columns, "id", "box"))
        objects = pl.DataFrame({**object_columns, **more}, schema_overrides=OBJECT_TYPES)
    relation_rows, relation_images = nested("relations")
    if relation_images:
        ends = {end: relation_rows.ids(end) for end in ("subject", "object")}
        there = dict.fromkeys(objects.select("object", "image").rows()) if objects is not None else {}
        for ids in ends.values():  # both ends must be objects of the same image
            pairs = enumerate(zip(ids, relation_images, strict=True))
            unknown = [index for index, pair in pairs if pair not in there]
            if unknown:
                in_image = {object_id for object_id, image in there if image == relation_images[unknown[0]]}
                check_known([ids[unknown[0]]], in_image, "object", relation_rows.only(unknown).row_name)
        relations = pl.DataFrame({"image": relation_images, **ends, "predicate": relation_rows.strings("predicate")})
    return images, objects, relations


@READERS.register("flickr", suggested_for=(".token", ".txt"))
def read_flickr(captions: str | Path, images: str | Path | None = None) -> Dataset:
    """Flickr token files: a photo's name, ``#`` and a number, a tab, and the caption.

    captions: the token file, such as ``Flickr8k.token.txt`` or ``results_20130124.token`` (may be .gz)
    images: a file that lists the photos to keep, one name per line, such as ``Flickr_8k.testImages.txt``; the images
        then come in its order

    An image's id is the photo's name as the token file spells it; a caption's id is ``photo.jpg#0``.
    """
    with reading(captions):
        lines, numbers = numbered_lines(captions)
        row_name = on_lines(numbers)
        ids, owners, texts = [], [], []
        for number, line in zip(numbers, lines, strict=True):
            caption, tab, text = line.partition("\t")
            # Names may hold further dots and hashes (Flickr8k has photo.jpg.1#0): only the last # counts.
            image, mark, count = caption.rpartition("#")
            if not (tab and mark and image and count.strip().isdigit()):
                expected = "photo.jpg#0, a tab, and the caption"
                fix = "check that the file is a token file, and that the tab was not lost"
                raise InputError(f"{line!r:.60} is not a caption", row=f"line {number}", expected=expected, fix=fix)
            image = unescape_ids([image.strip()])[0]
            ids.append(f"{image}#{count.strip()}")
            owners.append(image)
            texts.append(text)
        check_texts(texts, row_name)
        check_unique(ids, "caption", row_name)
        photos = list(dict.fromkeys(owners))
        tables = text_table(image=photos, file=photos), text_table(caption=ids, image=owners, text=texts)
        dataset = Dataset(Path(captions).name.partition(".")[0], *tables)
    if images is None:
        return dataset
    with reading(images):
        lines, numbers = numbered_lines(images)
        ids_read, names = set(dataset.image_ids), [line.strip() for line in lines]
        # A name with and without its ending is one photo, listed twice.
        listed = []
        rows = match_ids([without_image_ending(name) for name in names], dataset.image_ids)
        for number, name, row in zip(numbers, names, rows, strict=True):
            if name not in ids_read and row < 0:
                problem = f"photo {name!r} has no captions in the token file"
                fix = "check that the list and the token file belong together, or remove this line"
                raise InputError(problem, row=f"line {number}", expected=f"one of the {len(ids_read)} photos", fix=fix)
            listed.append(name if name in ids_read else dataset.image_ids[row])
        check_unique(listed, "image", on_lines(numbers))
    return dataset.select(listed)


_IMAGE = ("image", "image_name", "image_id", "filename", "file_name")
_TEXT = ("caption", "comment", "text")
_NUMBER = ("comment_number", "caption_number")


@READERS.register("csv")
def read_kaggle_csv(captions: str | Path) -> Dataset:
    """Kaggle-style caption tables: ``image,caption`` or ``image_name| comment_number| comment``.

    captions: the file, such as Flickr8k's ``captions.txt`` or Flickr30k's ``results.csv`` (may be .gz)

    The first line names the columns, and the caption comes last; commas in it need no quotes. An image's id is the
    photo's name; a caption's id is ``photo.jpg#0``, with the number of the file where it has one.
    """
    with reading(captions):
        mark = "|" if "|" in read_lines(captions)[0] else csv_delimiter(read_text(captions))
        header, rows, lines = split_lines(captions, mark) if mark == "|" else split_csv(captions, mark)
        last = len(header) - 1
        for row, line in zip(rows, lines, strict=True):
            # Every copy of Flickr30k's results.csv has one line that lost its second mark: "photo.jpg| 4   A dog …".
            if mark == "|" and len(row) == 2 and last == 2 and (lost := re.fullmatch(r"\s*(\d+)\s+(\S.*)", row[1])):
                row[1:] = [lost[1], lost[2]]
            if len(row) < len(header):
                expected = f"{len(header)} columns: {', '.join(header)}"
                raise wrong_width(row, f"line {line}", expected, "add what is missing, or remove the line")
            # The caption comes last, so whatever follows belongs to it: it was written without quotes.
            row[last:] = [mark.join(row[last:])]
        lower = [name.lower() for name in header]
        image_at, number_at = (
            next((lower.index(name) for name in names if name in lower), None) for names in (_IMAGE, _NUMBER)
        )
        if image_at is None or lower[-1] not in _TEXT:
            expected = "a header such as image,caption or image_name| comment_number| comment, the caption last"
            options = f"{argument('image_column')} and {argument('text_column')}"
            fix = f"add the header, or read the file as 'plain' with {options}"
            raise InputError(f"the first line is {', '.join(header)!r:.80}", row="line 1", expected=expected, fix=fix)
        row_name = on_lines(lines)
        owners = check_ids([row[image_at].strip() for row in rows], "photo's name", row_name)
        texts = check_texts([row[-1].strip() for row in rows], row_name)
        ids = number_within(owners)
        if number_at is not None:
            ids = [f"{image}#{row[number_at].strip()}" for image, row in zip(owners, rows, strict=True)]
        check_unique(ids, "caption", row_name)
        photos = dict.fromkeys(owners)
        tables = text_table(image=photos, file=photos), text_table(caption=ids, image=owners, text=texts)
        return Dataset(format_stem(captions), *tables)
