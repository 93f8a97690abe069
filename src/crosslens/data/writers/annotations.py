"""JSON annotations: COCO's captions and instances, Karpathy's ``dataset_*.json``, Visual Genome's folder of files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import InputError, UsageError
from crosslens.data.files import writing_text
from crosslens.data.rows import REGION_SIDES
from crosslens.data.writing import (
    KEY_COLUMNS,
    OBJECT_KEYS,
    WRITERS,
    is_number,
    lost_columns,
    lost_objects,
    lost_rows,
    to_json,
    with_json_ids,
    write_json,
)
from crosslens.storage import Layout, atomic_folder
from crosslens.values import Dataset


@WRITERS.register(
    "coco", loses=lambda dataset, *_: lost_objects(dataset, " (write them with the format coco_instances)")
)
def write_captions(dataset: Dataset, path: Path) -> None:
    """Captions JSON, with the columns of images and captions."""
    captions = dataset.captions.rename({"caption": "id", "image": "image_id", "text": "caption"})
    annotations = [with_json_ids(row, "id", "image_id") for row in captions.iter_rows(named=True)]
    write_json({"images": _images(dataset), "annotations": annotations}, path)


def _lost_in_instances(dataset: Dataset, *_: object) -> list[str]:
    return [
        f"{dataset.captions.height:,} captions (write them with the format coco)",
        *lost_columns("object", dataset.objects, (*OBJECT_KEYS, "iscrowd")),
        *lost_rows(dataset.relations, "relations"),
    ]


@WRITERS.register("coco_instances", loses=_lost_in_instances)
def write_instances(dataset: Dataset, path: Path) -> None:
    """Instances JSON: the objects, their names as categories."""
    if dataset.objects is None:
        raise UsageError(f"dataset {dataset.name!r} has no objects", fix="write its captions: to='coco'")
    names = sorted(set(dataset.objects["name"].drop_nulls()))
    category_ids = {name: number for number, name in enumerate(names, start=1)}
    annotations = []
    for row in dataset.objects.iter_rows(named=True):
        if row["name"] is None or row["x"] is None:
            raise InputError(
                f"object {row['object']!r} in image {row['image']!r} has no {'name' if row['name'] is None else 'box'}",
                expected="a name and a box for every object: COCO has no field for objects without",
                fix="filter such objects out first",
            )
        entry = {"id": row["object"], "image_id": row["image"], "category_id": category_ids[row["name"]]}
        entry |= {"bbox": [row[side] for side in "xywh"], "area": row["w"] * row["h"]}
        annotations.append(with_json_ids(entry | {"iscrowd": row.get("iscrowd") or 0}, "id", "image_id"))
    categories = [{"id": number, "name": name} for name, number in category_ids.items()]
    write_json({"images": _images(dataset), "annotations": annotations, "categories": categories}, path)


def _images(dataset: Dataset) -> list[dict[str, Any]]:
    images = dataset.images.rename({"image": "id", "file": "file_name"}, strict=False)
    return [with_json_ids(row, "id") for row in images.iter_rows(named=True)]


@WRITERS.register(
    "karpathy",
    loses=lambda dataset, *_: lost_columns("caption", dataset.captions) + lost_objects(dataset),
    by_image=True,
)
def write_karpathy(dataset: Dataset, path: Path) -> None:
    """``dataset_*.json``; the split is the images' column ``split``, or ``test``."""
    sentences: dict[str, list[dict[str, Any]]] = {image: [] for image in dataset.image_ids}
    number_of = {image: number for number, image in enumerate(dataset.image_ids)}
    for caption, image, text in dataset.captions.select("caption", "image", "text").iter_rows():
        tokens = re.findall(r"[\w']+", text.lower())
        sentence = {"tokens": tokens, "raw": text, "imgid": number_of[image], "sentid": caption}
        sentences[image].append(with_json_ids(sentence, "sentid"))
    images = []
    for row in dataset.images.iter_rows(named=True):
        image = row.pop("image")
        folder, _, name = (row.pop("file", None) or image).rpartition("/")
        entry = {"filepath": folder, "filename": name, "imgid": number_of[image], "split": row.pop("split", "test")}
        if is_number(image):
            entry["cocoid"] = int(image)
        sentids = [sentence["sentid"] for sentence in sentences[image]]
        images.append(entry | row | {"sentids": sentids, "sentences": sentences[image]})
    write_json({"images": images, "dataset": dataset.name.partition("/")[0]}, path)


_FILES = ("region_descriptions.json", "objects.json", "attributes.json", "relationships.json")
VISUAL_GENOME_LAYOUT = Layout("a folder of Visual Genome", "image_data.json", _FILES)
_IMAGE_KEYS = ("image_id", "url")
"""What Visual Genome has a meaning of its own for, so that no free column of the images can be called so."""

Row = dict[str, Any]
Rows = dict[str, list[Row]]


def _written_columns(images: pl.DataFrame) -> list[str]:
    return [name for name, kind in images.schema.items() if not kind.is_nested() and name not in _IMAGE_KEYS]


def _lost_in_genome(dataset: Dataset, *_: object) -> list[str]:
    return [
        *lost_columns("image", dataset.images, _written_columns(dataset.images)),
        *lost_columns("caption", dataset.captions, (*KEY_COLUMNS, *REGION_SIDES)),
        *lost_columns("object", dataset.objects, (*OBJECT_KEYS, "synset", "attributes")),
    ]


@WRITERS.register("visual_genome", loses=_lost_in_genome, by_image=True)
def write_visual_genome(dataset: Dataset, path: Path) -> None:
    """A folder of five JSON files: captions as regions, objects, attributes and relationships.

    A caption's region is that of its columns x, y, width and height, or the whole image.
    """
    images = list(dataset.images.select(_written_columns(dataset.images)).iter_rows(named=True))
    captions, objects, relations = map(_by_image, (dataset.captions, dataset.objects, dataset.relations))

    def per_image(key: str, entries: Callable[[Row], list[Row]], image_id: str = "image_id") -> Iterator[Row]:
        return (with_json_ids({image_id: row["image"], key: entries(row)}, image_id) for row in images)

    def objects_of(image: Row, *keys: str) -> list[Row]:
        return [_object(row, *keys) for row in objects.get(image["image"], [])]

    def described(row: Row) -> Row:
        first = {"image_id": row["image"], "url": row.get("file")} | {
            side: row.get(side) for side in ("width", "height")
        }
        more = {key: value for key, value in row.items() if key not in ("image", "file")}
        return with_json_ids(first | more, "image_id")

    def regions_of(image: Row) -> list[Row]:
        whole = {"x": 0, "y": 0, "width": image.get("width"), "height": image.get("height")}
        regions = []
        for caption in captions.get(image["image"], []):
            entry = {"region_id": caption["caption"], "image_id": image["image"], "phrase": caption["text"]}
            boxes = ({side: caption.get(side) for side in REGION_SIDES}, whole)
            box = next((box for box in boxes if None not in box.values()), {})
            regions.append(with_json_ids(entry | _whole(box), "region_id", "image_id"))
        return regions

    files: dict[str, Iterable[Row]] = {
        "image_data": map(described, images),
        "region_descriptions": per_image("regions", regions_of, "id"),
    }
    if objects or relations:
        files["objects"] = per_image("objects", objects_of)
        files["attributes"] = per_image("attributes", lambda image: objects_of(image, "attributes"))
        files["relationships"] = per_image("relationships", partial(_relationships, objects, relations, count(1)))
    with atomic_folder(path, VISUAL_GENOME_LAYOUT) as folder:
        for name, entries in files.items():
            # Entry by entry: a hundred thousand scene graphs as one value would take ten times the memory of the file.
            with writing_text(folder / f"{name}.json") as out:
                out.write("[")
                for number, entry in enumerate(entries):
                    out.write((",\n" if number else "") + to_json(entry))
                out.write("]\n")


def _by_image(table: pl.DataFrame | None) -> Rows:
    groups: Rows = {}
    for row in () if table is None else table.iter_rows(named=True):
        groups.setdefault(row["image"], []).append(row)
    return groups


def _object(row: Row, *keys: str) -> Row:
    if row["name"] is None:
        expected = "a name for every object: Visual Genome has no field for objects without"
        fix = "filter such objects out first"
        raise InputError(f"object {row['object']!r} in image {row['image']!r} has no name", expected=expected, fix=fix)
    synsets = [] if row["synset"] is None else [row["synset"]]
    more = {key: row[key] or [] for key in keys}
    entry = {"object_id": row["object"], "names": [row["name"]], "synsets": synsets}
    return with_json_ids(entry | _whole({side: row[side] for side in "xywh"}) | more, "object_id")


def _relationships(objects: Rows, relations: Rows, numbers: Iterator[int], image: Row) -> list[Row]:
    """Relations with both of their objects written out."""
    related = relations.get(image["image"], [])
    by_id = {row["object"]: row for row in objects.get(image["image"], [])} if related else {}
    entries = []
    for row in related:
        ends = {}
        for end in ("subject", "object"):
            if row[end] not in by_id:
                raise InputError(
                    f"a relation of image {row['image']!r} has the {end} {row[end]!r}, which is no object of the image",
                    expected="relations between objects of one image",
                    fix="add the object, or remove the relation",
                )
            ends[end] = _object(by_id[row[end]])
        entries.append({"relationship_id": next(numbers), "predicate": row["predicate"], **ends})
    return entries


def _whole(sides: Row) -> Row:
    """Coordinates without a needless ``.0``: in Visual Genome they are whole numbers."""
    return {side: int(value) if value is not None and value == int(value) else value for side, value in sides.items()}
