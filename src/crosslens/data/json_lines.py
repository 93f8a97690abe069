"""The plain form as JSON lines: a row per caption, or a row per image with its captions, objects and relations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.errors import InputError
from crosslens.data.checks import Place, check_texts, check_unique, ids_or_numbers, on_lines
from crosslens.data.files import parse_json, read_lines
from crosslens.data.records import Records
from crosslens.data.scene import CAPTION_NAMES, IMAGE_NAMES, TEXT_NAMES, Scene, objects_in, relations_in

_ROW = '{"image": …, "text": …} for a caption, or {"image": …, "captions": [ … ]} for an image'
_THINGS = ("captions", "objects", "relations")


def read_records(path: str | Path) -> Records:
    """One JSON object per line."""
    rows: list[Any] = []
    lines: list[int] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise InputError(
                f"not valid JSON: {error}",
                row=f"line {number}",
                expected="one JSON object per line",
                fix="put each object on a line of its own, complete",
            ) from error
        except InputError as error:
            error.row = f"line {number}"
            raise
        if not isinstance(row, dict):
            raise InputError(
                f"{row!r:.60} is not an object",
                row=f"line {number}",
                expected="one JSON object per line",
                fix="write {…} on each line",
            )
        rows.append(row)
        lines.append(number)
    return Records(rows, on_lines(lines))


def read_caption_lines(
    path: Path, image_key: str | None, caption_key: str | None, text_key: str | None
) -> tuple[Scene, Place]:
    """Rows per caption, rows per image, or both; and where each caption stands."""
    records = read_records(path)
    per_image = [index for index, row in enumerate(records.rows) if "captions" in row]
    image_key = image_key or _usual(records, IMAGE_NAMES)
    owners = records.ids(image_key)
    check_unique([owners[index] for index in per_image], "image", records.only(per_image).place)
    flat = _flatten(records, owners, text_key)
    text_key = text_key or _usual(flat, TEXT_NAMES)
    usual = [name for name in CAPTION_NAMES if name != text_key and flat.has(name)]
    caption_key = caption_key or (usual[0] if usual else None)
    texts = check_texts(flat.values(text_key), flat.place)
    images = [row["image"] for row in flat.rows]
    given = flat.optional(caption_key) if caption_key else [None] * len(images)
    columns = {"caption": ids_or_numbers(given, images, "caption id", flat.place), "image": images, "text": texts}
    free = flat.free((*columns, image_key, text_key, caption_key or "caption", *_THINGS))
    captions = pl.DataFrame({name: pl.Series(values, dtype=pl.String) for name, values in columns.items()} | free)
    objects = objects_in(records, owners)
    relations = relations_in(records, owners, objects)
    return Scene(_image_table(records, owners, per_image, image_key), captions, objects, relations), flat.place


def read_image_lines(path: Path, image_key: str | None) -> Scene:
    """One row per image: its columns, and what stands in it."""
    records = read_records(path)
    # The option names the captions' column; the images' file need not call it the same.
    image_key = image_key if image_key and records.has(image_key) else _usual(records, IMAGE_NAMES)
    owners = records.ids(image_key)
    check_unique(owners, "image", records.place)
    objects = objects_in(records, owners)
    images = _image_table(records, owners, range(len(owners)), image_key)
    return Scene(images, objects=objects, relations=relations_in(records, owners, objects))


def _usual(records: Records, names: Sequence[str]) -> str:
    return next((name for name in names if records.has(name)), names[0])


def _flatten(records: Records, owners: list[str], text_key: str | None) -> Records:
    """One record per caption, its image's id under ``image``."""
    rows: list[dict[str, Any]] = []
    places: list[str] = []
    for index, (row, owner) in enumerate(zip(records.rows, owners, strict=True)):
        place = str(records.place(index))
        if "captions" not in row:
            rows.append({**row, "image": owner})
            places.append(place)
            continue
        if not isinstance(row["captions"], list):
            raise InputError(
                f"'captions' is {row['captions']!r:.60}", row=place, expected=_ROW, fix="put the captions in a list"
            )
        for number, one in enumerate(row["captions"]):
            rows.append({**(one if isinstance(one, dict) else {text_key or "text": one}), "image": owner})
            places.append(f"{place}, caption {number}")
    return Records(rows, places.__getitem__)


def _image_table(records: Records, owners: list[str], rows: Sequence[int], image_key: str) -> pl.DataFrame:
    """Images in order of appearance, with the columns that the rows per image hold."""
    images = pl.DataFrame({"image": pl.Series(owners, dtype=pl.String).unique(maintain_order=True)})
    free = records.only(rows).free((image_key, "image", *_THINGS))
    columns = pl.DataFrame({"image": pl.Series([owners[index] for index in rows], dtype=pl.String), **free})
    return images.join(columns, on="image", how="left", maintain_order="left")
