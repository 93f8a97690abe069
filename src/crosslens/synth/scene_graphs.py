"""A dataset's objects, attributes and relations in the form of Visual Genome."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.data.files import writing_text

_PER_IMAGE = 1000


def write_scene_graphs(dataset: Dataset, folder: Path) -> None:
    """``image_data``, ``region_descriptions``, ``objects``, ``attributes`` and ``relationships`` as JSON files.

    A caption is a region as large as its picture.
    """
    assert dataset.objects is not None
    assert dataset.relations is not None
    images = dataset.images.select("image", "file", "width", "height").rows(named=True)
    captions, objects, relations = (
        _by_image(table) for table in (dataset.captions, dataset.objects, dataset.relations)
    )
    _write(folder / "image_data.json", (_image(row) for row in images))
    _write(
        folder / "region_descriptions.json",
        (
            {"id": int(row["image"]), "regions": [_region(one, row) for one in captions.get(row["image"], [])]}
            for row in images
        ),
    )
    for name, keys in (("objects", ()), ("attributes", ("attributes",))):
        _write(
            folder / f"{name}.json",
            (
                {"image_id": int(row["image"]), name: [_object(one, *keys) for one in objects.get(row["image"], [])]}
                for row in images
            ),
        )
    _write(
        folder / "relationships.json",
        (
            {
                "image_id": int(row["image"]),
                "relationships": _relationships(relations.get(row["image"], []), objects.get(row["image"], [])),
            }
            for row in images
        ),
    )


def _by_image(table: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.iter_rows(named=True):
        found.setdefault(row["image"], []).append(row)
    return found


def _image(row: dict[str, Any]) -> dict[str, Any]:
    return {"image_id": int(row["image"]), "url": row["file"], "width": row["width"], "height": row["height"]}


def _region(caption: dict[str, Any], image: dict[str, Any]) -> dict[str, Any]:
    place = {"x": 0, "y": 0, "width": image["width"], "height": image["height"]}
    return {
        "region_id": int(caption["caption"]),
        "image_id": int(image["image"]),
        "phrase": caption["text"],
        **place,
    }


def _object(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    box = {side: round(row[side]) for side in "xywh"}
    more = {key: row[key] for key in keys}
    return {"object_id": int(row["object"]), "names": [row["name"]], "synsets": [row["synset"]], **box, **more}


def _relationships(relations: list[dict[str, Any]], objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known = {row["object"]: _object(row) for row in objects}
    return [
        {
            "relationship_id": int(row["image"]) * _PER_IMAGE + place,
            "predicate": row["predicate"],
            "subject": known[row["subject"]],
            "object": known[row["object"]],
        }
        for place, row in enumerate(relations, start=1)
    ]


def _write(file: Path, entries: Iterator[dict[str, Any]]) -> None:
    with writing_text(file) as out:
        out.write("[")
        for place, entry in enumerate(entries):
            out.write((",\n" if place else "") + json.dumps(entry, ensure_ascii=False))
        out.write("]\n")
