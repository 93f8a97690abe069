"""COCO: captions JSON and instances JSON, and Karpathy's ``dataset_*.json``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from crosslens.core import Dataset, InputError, UsageError
from crosslens.data.writing import (
    OBJECT_KEYS,
    WRITERS,
    is_number,
    lost_columns,
    lost_objects,
    lost_rows,
    with_json_ids,
    write_json,
)


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


def _lost_in_sentences(dataset: Dataset, *_: object) -> list[str]:
    return lost_columns("caption", dataset.captions) + lost_objects(dataset)


@WRITERS.register("karpathy", loses=_lost_in_sentences, by_image=True)
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
