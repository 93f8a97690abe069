"""The tables of a dataset in the plain form: what its columns are usually called, and what stands in the pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from crosslens.core.dataset import OBJECT_COLUMNS
from crosslens.data.checks import box_columns, check_known, check_unique, ids_or_numbers
from crosslens.data.records import Records

IMAGE_NAMES = ("image", "image_id", "image_name", "file_name")
TEXT_NAMES = ("text", "caption_text", "caption")
CAPTION_NAMES = ("caption_id", "caption")
OBJECT_KINDS = {name: OBJECT_COLUMNS[name] for name in ("synset", "x", "y", "w", "h", "attributes")}
"""Columns that may hold nothing but nulls, from which their type would not show."""
_CAPTION_COLUMNS = {"caption": pl.String, "image": pl.String, "text": pl.String}


@dataclass(frozen=True)
class Scene:
    """The tables of a dataset while it is being read."""

    images: pl.DataFrame
    captions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_CAPTION_COLUMNS))
    objects: pl.DataFrame | None = None
    relations: pl.DataFrame | None = None

    def over(self, other: Scene) -> Scene:
        """The same captions over the images of ``other``, and what stands in those."""
        return replace(
            self,
            images=other.images,
            objects=self.objects if other.objects is None else other.objects,
            relations=self.relations if other.relations is None else other.relations,
        )


def objects_in(records: Records, images: list[str]) -> pl.DataFrame | None:
    """The lists ``objects`` of the rows that have one; ``images`` names the image of every row."""
    having = [index for index, row in enumerate(records.rows) if row.get("objects")]
    if not having:
        return None
    found, inside = records.only(having).nested("objects", "object")
    owners = [images[having[at]] for at in inside]
    given = [row.get("object", row.get("id")) for row in found.rows]
    ids = ids_or_numbers(given, owners, "object id", found.place, mark="/")
    check_unique(ids, "object", found.place)
    columns: dict[str, Any] = {
        "image": owners,
        "object": ids,
        "name": found.strings("name"),
        "synset": found.strings("synset", optional=True),
        **box_columns([_box(row) for row in found.rows], found.place),
        "attributes": [[str(word) for word in words] or None for words in found.lists("attributes")],
    }
    return pl.DataFrame({**columns, **found.free((*columns, "id", "box"))}, schema_overrides=OBJECT_KINDS)


def relations_in(records: Records, images: list[str], objects: pl.DataFrame | None) -> pl.DataFrame | None:
    """The lists ``relations`` of the rows that have one; both ends must be objects of the same image."""
    having = [index for index, row in enumerate(records.rows) if row.get("relations")]
    if not having:
        return None
    found, inside = records.only(having).nested("relations", "relation")
    owners = [images[having[at]] for at in inside]
    ends = {end: found.ids(end) for end in ("subject", "object")}
    known = dict.fromkeys(objects.select("object", "image").rows()) if objects is not None else {}
    for ids in ends.values():
        here = [index for index, pair in enumerate(zip(ids, owners, strict=True)) if pair not in known]
        if here:
            inside_image = {one for one, image in known if image == owners[here[0]]}
            check_known([ids[here[0]]], inside_image, "object", found.only(here).place)
    return pl.DataFrame({"image": owners, **ends, "predicate": found.strings("predicate")})


def _box(row: Mapping[str, Any]) -> Any:
    if row.get("box") is not None:
        return row["box"]
    sides = [row.get(side) for side in "xywh"]
    return None if all(side is None for side in sides) else sides
