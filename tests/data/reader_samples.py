"""A small set of files for every registered reader: the contract suite runs each reader over its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.data import READERS
from tests.data import files
from tests.data.files import write, write_json, write_tar

LINES = [
    {
        "image": "a.jpg",
        "file": "photos/a.jpg",
        "width": 40,
        "height": 30,
        "captions": [{"caption_id": "c1", "text": "A dog runs."}, {"caption_id": "c2", "text": "A brown dog."}],
        "objects": [
            {"object": "o1", "name": "dog", "box": [1, 2, 3, 4], "synset": "dog.n.01", "attributes": ["brown"]},
            {"object": "o2", "name": "ball", "box": [5, 6, 7, 8]},
        ],
        "relations": [{"subject": "o1", "predicate": "chases", "object": "o2"}],
    },
    {
        "image": "b.jpg",
        "file": "photos/b.jpg",
        "width": 50,
        "height": 60,
        "captions": [{"caption_id": "c3", "text": "Two cats."}],
    },
]


class Sample(NamedTuple):
    """Files that a reader loads.

    ``options``   the reader's options for the files it wrote
    ``captions``  (id, image, text) of every caption
    ``objects``   how many objects there are
    ``writer``    the output format of the same name, if there is one, and the reader's option for what it writes
    """

    options: Callable[[Path], dict[str, Any]]
    captions: list[tuple[str, str, str]]
    objects: int = 0
    writer: tuple[str, str] | None = None


def _coco(folder: Path) -> dict[str, Any]:
    return {
        "captions": write_json(folder / "c.json", files.coco()),
        "instances": write_json(folder / "i.json", files.instances()),
    }


def _blip(folder: Path) -> dict[str, Any]:
    rows = [
        {"image": "photos/a.jpg", "caption": ["A dog runs.", "A brown dog."]},
        {"image": "photos/b.jpg", "caption": "Two cats."},
    ]
    return {"captions": write_json(folder / "flickr30k_test.json", rows)}


def _flickr(folder: Path) -> dict[str, Any]:
    return {"captions": write(folder / "t.token", "a.jpg#0\tA dog.\na.jpg#1\tThe dog.\nb.jpg#0\tA cat.\n")}


def _csv(folder: Path) -> dict[str, Any]:
    return {
        "captions": write(folder / "c.csv", "image_name| comment_number| comment\na.jpg| 0| A dog.\nb.jpg| 0| A cat.\n")
    }


def _plain(folder: Path) -> dict[str, Any]:
    return {"captions": write(folder / "c.jsonl", "".join(json.dumps(line) + "\n" for line in LINES))}


def _precomputed(folder: Path) -> dict[str, Any]:
    np.save(folder / "test_ims.npy", np.eye(2, dtype=np.float32))
    write(folder / "test_caps.txt", "A dog.\nThe dog.\nA cat.\nThe cat.\n")
    return {"folder": folder, "split": "test", "captions_per_image": 2}


def _fiftyone(folder: Path) -> dict[str, Any]:
    samples = [
        {"filepath": "/p/a.jpg", "image_id": "a", "tags": ["dark"], "captions": ["A dog.", "The dog."]},
        {"filepath": "/p/b.jpg", "image_id": "b", "tags": [], "captions": ["A cat."]},
    ]
    write_json(folder / "samples.json", {"samples": samples})
    return {"folder": folder}


def _huggingface(folder: Path) -> dict[str, Any]:
    pl.DataFrame({"image_id": ["a", "b"], "caption": [["A dog.", "The dog."], ["A cat."]]}).write_parquet(
        folder / "rows.parquet"
    )
    return {"dataset": str(folder / "rows.parquet")}


def _webdataset(folder: Path) -> dict[str, Any]:
    members = {"a.jpg": b"x", "a.txt": "A dog.", "b.png": b"x", "b.json": '{"captions": ["A cat.", "The cat."]}'}
    return {"shards": write_tar(folder / "shard.tar", members)}


def _clip_retrieval(folder: Path) -> dict[str, Any]:
    metadata = folder / "laion" / "metadata"
    metadata.mkdir(parents=True, exist_ok=True)
    rows = pl.DataFrame({"image_path": ["a", "b", "b"], "caption": ["A dog.", "A cat.", "The cat."]})
    for number, part in enumerate((rows[:2], rows[2:])):
        part.write_parquet(metadata / f"metadata_{number}.parquet")
    return {"folder": folder / "laion"}


SAMPLES = {
    "clip_retrieval": Sample(
        _clip_retrieval, [("a#0", "a", "A dog."), ("b#0", "b", "A cat."), ("b#1", "b", "The cat.")]
    ),
    "coco": Sample(
        _coco,
        [
            ("101", "25", "A giraffe eating leaves."),
            ("102", "9", "Trays of food.\n"),
            ("103", "25", "A giraffe by a tree."),
        ],
        objects=3,
        writer=("coco", "captions"),
    ),
    "csv": Sample(_csv, [("a.jpg#0", "a.jpg", "A dog."), ("b.jpg#0", "b.jpg", "A cat.")]),
    "blip": Sample(
        _blip,
        [
            ("a.jpg#0", "a.jpg", "A dog runs."),
            ("a.jpg#1", "a.jpg", "A brown dog."),
            ("b.jpg#0", "b.jpg", "Two cats."),
        ],
    ),
    "fine_grained": Sample(
        lambda folder: {"captions": write_json(folder / "fg.json", {"a": ["A dog.", "The dog."], "b": ["A cat."]})},
        [("a#0", "a", "A dog."), ("a#1", "a", "The dog."), ("b#0", "b", "A cat.")],
    ),
    "flickr": Sample(
        _flickr,
        [("a.jpg#0", "a.jpg", "A dog."), ("a.jpg#1", "a.jpg", "The dog."), ("b.jpg#0", "b.jpg", "A cat.")],
        writer=("flickr", "captions"),
    ),
    "fiftyone": Sample(_fiftyone, [("a#0", "a", "A dog."), ("a#1", "a", "The dog."), ("b#0", "b", "A cat.")]),
    "huggingface": Sample(_huggingface, [("a#0", "a", "A dog."), ("a#1", "a", "The dog."), ("b#0", "b", "A cat.")]),
    "karpathy": Sample(
        lambda folder: {"captions": write_json(folder / "dataset_coco.json", files.karpathy())},
        [
            ("0", "500", "A red bus."),
            ("1", "500", "The bus is red."),
            ("10", "501", "Two dogs run."),
            ("20", "502", "A cat sleeps."),
            ("21", "502", "Cat on a sofa."),
            ("22", "502", "A sleeping cat."),
        ],
        writer=("karpathy", "captions"),
    ),
    "plain": Sample(
        _plain,
        [("c1", "a.jpg", "A dog runs."), ("c2", "a.jpg", "A brown dog."), ("c3", "b.jpg", "Two cats.")],
        objects=2,
        writer=("plain", "captions"),
    ),
    "precomputed": Sample(
        _precomputed,
        [("0#0", "0", "A dog."), ("0#1", "0", "The dog."), ("1#0", "1", "A cat."), ("1#1", "1", "The cat.")],
    ),
    "visual_genome": Sample(
        lambda folder: {"folder": files.visual_genome(folder / "vg")},
        [("100", "1", "a green tree"), ("101", "1", "the man walks"), ("102", "2", "an empty street")],
        objects=3,
        writer=("visual_genome", "folder"),
    ),
    "webdataset": Sample(_webdataset, [("a#0", "a", "A dog."), ("b#0", "b", "A cat."), ("b#1", "b", "The cat.")]),
}


def json_samples() -> list[str]:
    """The readers of JSON that is recognised by its content."""
    return [entry.name for entry in READERS if entry.details.get("json_files")]


def json_sample(reader: str, folder: Path) -> Any:
    """What the captions file of such a reader's sample holds."""
    return json.loads(Path(SAMPLES[reader].options(folder)["captions"]).read_text("utf-8"))
