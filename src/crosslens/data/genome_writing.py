"""Datasets out in the form of Visual Genome: five JSON files in a folder, as its reader takes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.atomic import atomic_folder
from crosslens.core.dataset import Dataset
from crosslens.core.errors import ConflictError, InputError
from crosslens.data.files import writing_text
from crosslens.data.numbered import numbered

REGION_SIDES = ("x", "y", "width", "height")
IMAGE_KEYS = ("image_id", "url")
"""What Visual Genome has a meaning of its own for, so that no free column of the images can be called so."""

Row = dict[str, Any]
Rows = dict[str, list[Row]]


def write_visual_genome(dataset: Dataset, folder: Path) -> None:
    """``image_data``, ``region_descriptions`` and, where there are objects, ``objects``, ``attributes`` and
    ``relationships``.

    A caption is the region that its columns x, y, width and height say, or one as large as its picture.
    """
    if folder.exists() and not (folder / "image_data.json").exists():
        raise ConflictError(
            f"{folder} exists and holds no image_data.json", fix="choose another place: it is not replaced"
        )
    images = list(_images(dataset.images))
    captions, objects, relations = map(_by_image, (dataset.captions, dataset.objects, dataset.relations))

    def per_image(key: str, entries: Callable[[Row], list[Row]], image_id: str = "image_id") -> Iterator[Row]:
        return (numbered({image_id: row["image"], key: entries(row)}, image_id) for row in images)

    with atomic_folder(folder) as place:
        _write(place / "image_data.json", (_image(row) for row in images))
        regions = per_image("regions", lambda row: [_region(one, row) for one in captions.get(row["image"], [])], "id")
        _write(place / "region_descriptions.json", regions)
        if objects or relations:
            for name, keys in (("objects", ()), ("attributes", ("attributes",))):
                things = per_image(name, lambda row, keys=keys: _objects(objects.get(row["image"], []), *keys))  # type: ignore[misc]
                _write(place / f"{name}.json", things)
            links = _Relationships(objects, relations)
            _write(place / "relationships.json", per_image("relationships", links.of))


def _images(table: pl.DataFrame) -> Iterator[Row]:
    flat = [name for name, kind in table.schema.items() if not kind.is_nested() and name not in IMAGE_KEYS]
    return table.select(flat).iter_rows(named=True)


def _by_image(table: pl.DataFrame | None) -> Rows:
    found: Rows = {}
    for row in () if table is None else table.iter_rows(named=True):
        found.setdefault(row["image"], []).append(row)
    return found


def _image(row: Row) -> Row:
    first = {"image_id": row["image"], "url": row.get("file"), "width": row.get("width"), "height": row.get("height")}
    return numbered(first | {key: value for key, value in row.items() if key not in ("image", "file")}, "image_id")


def _region(caption: Row, image: Row) -> Row:
    place = {side: caption.get(side) for side in REGION_SIDES}
    if None in place.values():
        whole = {"x": 0, "y": 0, "width": image.get("width"), "height": image.get("height")}
        place = {} if None in whole.values() else whole
    entry = {"region_id": caption["caption"], "image_id": image["image"], "phrase": caption["text"]}
    return numbered(entry | _whole(place), "region_id", "image_id")


def _objects(rows: Iterable[Row], *keys: str) -> list[Row]:
    return [_object(row, *keys) for row in rows]


def _object(row: Row, *keys: str) -> Row:
    if row["name"] is None:
        raise InputError(
            f"object {row['object']!r} in image {row['image']!r} has no name",
            expected="a name for every object: Visual Genome has no place for one without",
            fix="filter such objects out first",
        )
    synsets = [] if row["synset"] is None else [row["synset"]]
    more = {key: row[key] or [] for key in keys}
    entry = {"object_id": row["object"], "names": [row["name"]], "synsets": synsets}
    return numbered(entry | _whole({side: row[side] for side in "xywh"}) | more, "object_id")


class _Relationships:
    """Relations with both of their objects written out, numbered from 1."""

    def __init__(self, objects: Rows, relations: Rows) -> None:
        self._objects, self._relations = objects, relations
        self._count = 0

    def of(self, image: Row) -> list[Row]:
        rows = self._relations.get(image["image"], [])
        known = {row["object"]: row for row in self._objects.get(image["image"], [])} if rows else {}
        return [self._entry(row, known) for row in rows]

    def _entry(self, row: Row, known: dict[str, Row]) -> Row:
        for end in ("subject", "object"):
            if row[end] not in known:
                raise InputError(
                    f"a relation of image {row['image']!r} has the {end} {row[end]!r}, which is no object of it",
                    expected="relations between objects of one image",
                    fix="add the object, or remove the relation",
                )
        self._count += 1
        ends = {end: _object(known[row[end]]) for end in ("subject", "object")}
        return {"relationship_id": self._count, "predicate": row["predicate"], **ends}


def _whole(sides: Row) -> Row:
    """Coordinates without a needless ``.0``: in Visual Genome they are whole numbers."""
    return {side: int(value) if value is not None and value == int(value) else value for side, value in sides.items()}


def _write(file: Path, entries: Iterable[Row]) -> None:
    # Entry by entry: a hundred thousand scene graphs as one value would take ten times the room of the file.
    with writing_text(file) as out:
        out.write("[")
        for place, entry in enumerate(entries):
            out.write((",\n" if place else "") + json.dumps(entry, ensure_ascii=False, default=str))
        out.write("]\n")
