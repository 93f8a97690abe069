"""Small files for the tests, each written as its format specifies."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write(path: Path, content: str | bytes) -> Path:
    """A file with this content, gzipped if its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_json(path: Path, content: Any) -> Path:
    return write(path, json.dumps(content))


def write_tar(path: Path, members: Mapping[str, str | bytes]) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as tar:
        for name, content in members.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def coco() -> dict[str, Any]:
    return {
        "info": {"year": 2017},
        "images": [
            {"id": 9, "file_name": "000000000009.jpg", "width": 640, "height": 480, "license": 3, "scene": "kitchen"},
            {"id": 25, "file_name": "000000000025.jpg", "width": 640, "height": 426, "license": 1, "scene": "zoo"},
        ],
        "annotations": [
            {"id": 101, "image_id": 25, "caption": "A giraffe eating leaves."},
            {"id": 102, "image_id": 9, "caption": "Trays of food.\n"},
            {"id": 103, "image_id": 25, "caption": "A giraffe by a tree."},
        ],
    }


def instances() -> dict[str, Any]:
    return {
        "images": [{"id": 9}, {"id": 25}, {"id": 30}],
        "annotations": [
            {"id": 1, "image_id": 25, "category_id": 25, "bbox": [1.5, 2, 30, 40], "area": 1200, "iscrowd": 0},
            {"id": 2, "image_id": 9, "category_id": 51, "bbox": [0, 0, 10, 10], "iscrowd": 1},
            {"id": 3, "image_id": 9, "category_id": 51, "bbox": [5, 5, 7, 0], "iscrowd": 0},
            {"id": 4, "image_id": 30, "category_id": 51, "bbox": [5, 5, 7, 8], "iscrowd": 0},
        ],
        "categories": [{"id": 25, "name": "giraffe"}, {"id": 51, "name": "bowl"}],
    }


def karpathy() -> dict[str, Any]:
    def image(number: int, split: str, *texts: str) -> dict[str, Any]:
        sentences = [
            {"tokens": text.lower().split(), "raw": text, "imgid": number, "sentid": 10 * number + place}
            for place, text in enumerate(texts)
        ]
        return {
            "filepath": "val2014",
            "filename": f"COCO_val2014_{number:012d}.jpg",
            "imgid": number,
            "cocoid": number + 500,
            "split": split,
            "sentids": [sentence["sentid"] for sentence in sentences],
            "sentences": sentences,
        }

    return {
        "dataset": "coco",
        "images": [
            image(0, "test", "A red bus.", "The bus is red."),
            image(1, "restval", "Two dogs run."),
            image(2, "train", "A cat sleeps.", "Cat on a sofa.", "A sleeping cat."),
        ],
    }


def visual_genome(folder: Path, **changed: Any) -> Path:
    """The five files of Visual Genome; ``changed`` replaces the content of some."""
    tree = {"object_id": 11, "names": ["tree"], "synsets": ["tree.n.01"], "x": 0, "y": 0, "w": 50, "h": 90}
    man = {"object_id": 12, "names": ["man"], "synsets": ["man.n.01"], "x": 5, "y": 6, "w": 7, "h": 8}
    twin = {"object_id": 13, "name": "man", "synsets": ["man.n.01"], "x": 5, "y": 6, "w": 7, "h": 8}
    shade = {"object_id": 14, "name": "shade", "synsets": [], "x": 1, "y": 1, "w": 2, "h": 2}
    content: dict[str, Any] = {
        "image_data": [
            {"image_id": 1, "url": "https://example.org/VG_100K/1.jpg", "width": 800, "height": 600, "coco_id": None},
            {"image_id": 2, "url": "https://example.org/VG_100K_2/2.jpg", "width": 640, "height": 480, "coco_id": 7},
        ],
        "region_descriptions": [
            {"id": 1, "regions": [_region(100, "a green tree"), _region(101, "the man walks")]},
            {"id": 2, "regions": [_region(102, "an empty street")]},
        ],
        "objects": [
            {"image_id": 1, "objects": [tree, {**man, "merged_object_ids": [13]}]},
            {"image_id": 2, "objects": []},
        ],
        "attributes": [{"image_id": 1, "attributes": [{**tree, "attributes": ["green", " tall "]}, man]}],
        "relationships": [
            {
                "image_id": 1,
                "relationships": [
                    {"relationship_id": 1, "predicate": "NEAR", "subject": twin, "object": tree, "synsets": []},
                    {"relationship_id": 2, "predicate": "IN", "subject": man, "object": shade, "synsets": []},
                ],
            }
        ],
    }
    for name, value in (content | changed).items():
        if value is not None:
            write_json(folder / f"{name}.json", value)
    return folder


def _region(number: int, phrase: str) -> dict[str, Any]:
    return {"region_id": number, "image_id": 1, "phrase": phrase, "x": 3, "y": 4, "width": 50, "height": 60}
