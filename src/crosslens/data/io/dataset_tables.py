"""The tables of a dataset while it is read: the usual names of their columns, objects and relations from JSON rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from crosslens.core import OBJECT_COLUMNS
from crosslens.data.io.checks import box_columns, check_known, check_unique, ids_or_numbers
from crosslens.data.io.records import Records

IMAGE_COLUMNS = ("image", "image_id", "image_name", "file_name")
TEXT_COLUMNS = ("text", "caption_text", "caption")
CAPTION_COLUMNS = ("caption_id", "caption")
REGION_SIDES = ("x", "y", "width", "height")
"""The columns of captions that say which part of its image a caption describes."""
OBJECT_TYPES = {name: OBJECT_COLUMNS[name] for name in ("synset", "x", "y", "w", "h", "attributes")}
"""Columns that may hold nothing but nulls, from which their type would not show."""


def text_columns(**columns: Sequence[str | None]) -> dict[str, pl.Series]:
    """Columns of text, also where there are no rows."""
    return {name: pl.Series(name, values, dtype=pl.String) for name, values in columns.items()}


def no_captions() -> pl.DataFrame:
    """A table of captions without rows."""
    return pl.DataFrame(text_columns(caption=[], image=[], text=[]))


@dataclass(frozen=True)
class DatasetTables:
    """The tables of a dataset while it is being read."""

    images: pl.DataFrame
    captions: pl.DataFrame = field(default_factory=no_captions)
    objects: pl.DataFrame | None = None
    relations: pl.DataFrame | None = None

    def with_images(self, other: DatasetTables) -> DatasetTables:
        """The same captions over the images of ``other``, with its objects and relations where it has any."""
        return replace(
            self,
            images=other.images,
            objects=self.objects if other.objects is None else other.objects,
            relations=self.relations if other.relations is None else other.relations,
        )


def objects_in(records: Records, images: list[str]) -> pl.DataFrame | None:
    """The lists ``objects`` of the rows that have one; ``images`` names the image of every row."""
    objects, owners = _nested(records, images, "objects")
    if not owners:
        return None
    ids = [row.get("object", row.get("id")) for row in objects.rows]
    ids = ids_or_numbers(ids, owners, "object id", objects.row_name, mark="/")
    check_unique(ids, "object", objects.row_name)
    columns: dict[str, Any] = {
        "image": owners,
        "object": ids,
        "name": objects.strings("name"),
        "synset": objects.strings("synset", optional=True),
        **box_columns([_box(row) for row in objects.rows], objects.row_name),
        "attributes": [[str(word) for word in words] or None for words in objects.lists("attributes")],
    }
    return pl.DataFrame({**columns, **objects.free((*columns, "id", "box"))}, schema_overrides=OBJECT_TYPES)


def relations_in(records: Records, images: list[str], objects: pl.DataFrame | None) -> pl.DataFrame | None:
    """The lists ``relations`` of the rows that have one; both ends must be objects of the same image."""
    relations, owners = _nested(records, images, "relations")
    if not owners:
        return None
    ends = {end: relations.ids(end) for end in ("subject", "object")}
    known = dict.fromkeys(objects.select("object", "image").rows()) if objects is not None else {}
    for ids in ends.values():
        unknown = [index for index, pair in enumerate(zip(ids, owners, strict=True)) if pair not in known]
        if unknown:
            in_image = {object_id for object_id, image in known if image == owners[unknown[0]]}
            check_known([ids[unknown[0]]], in_image, "object", relations.only(unknown).row_name)
    return pl.DataFrame({"image": owners, **ends, "predicate": relations.strings("predicate")})


def box_of(row: Mapping[str, Any]) -> list[Any] | None:
    """The entries x, y, w, h of a row; None where it has none of them."""
    sides = [row.get(side) for side in "xywh"]
    return None if all(side is None for side in sides) else sides


def _box(row: Mapping[str, Any]) -> Any:
    return box_of(row) if row.get("box") is None else row["box"]


def _nested(records: Records, images: list[str], key: str) -> tuple[Records, list[str]]:
    """The records in the lists ``key`` of the rows that have one, and the image of each."""
    having = [index for index, row in enumerate(records.rows) if row.get(key)]
    rows, owners = records.only(having).nested(key, key.removesuffix("s"))
    return rows, [images[having[owner]] for owner in owners]
