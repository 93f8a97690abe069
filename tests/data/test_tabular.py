"""The plain form: the tables and JSON lines that people write by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from crosslens.data import load_dataset
from tests.data.files import write

CSV = """image,caption,annotator,score
a.jpg,"A dog, running",01,1
b.jpg,A cat,02,2.5
a.jpg,"He said ""hi""
and left",03,
"""


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_csv_by_its_path(tmp_path: Path, suffix: str) -> None:
    dataset = load_dataset(write(tmp_path / f"captions{suffix}", CSV))
    assert dataset.name == "captions"
    assert dataset.image_ids == ("a.jpg", "b.jpg")
    assert dataset.caption_ids == ("a.jpg#0", "b.jpg#0", "a.jpg#1")
    assert dataset.texts == ("A dog, running", "A cat", 'He said "hi"\nand left')
    # 01 is not how a number is written: it stays a name. An empty value is null.
    assert dataset.captions["annotator"].to_list() == ["01", "02", "03"]
    assert dataset.captions["score"].to_list() == [1.0, 2.5, None]


def test_tsv_quotes_nothing(tmp_path: Path) -> None:
    rows = 'image_id\tcaption_id\ttext\n1\tx\t"Stop" sign, red\n1\ty\tA 6" bench\n'
    dataset = load_dataset(str(write(tmp_path / "t.tsv", rows)))
    assert dataset.caption_ids == ("x", "y")
    assert dataset.texts == ('"Stop" sign, red', 'A 6" bench')


def test_caption_is_an_id_only_beside_a_text(tmp_path: Path) -> None:
    assert load_dataset(write(tmp_path / "a.csv", "image,caption,text\n1,c7,A dog\n")).caption_ids == ("c7",)
    assert load_dataset(write(tmp_path / "b.csv", "image,caption\n1,c7\n")).texts == ("c7",)


def test_parquet_with_an_images_file(tmp_path: Path) -> None:
    pl.DataFrame({"image": [2, 1], "caption_text": ["A cat", "A dog"]}).write_parquet(tmp_path / "c.parquet")
    images = write(tmp_path / "images.csv", "image,category,size\n1,animal,30\n2,animal,40\n3,,50\n")
    dataset = load_dataset(tmp_path / "c.parquet", images=images)
    assert dataset.image_ids == ("1", "2", "3")
    assert dataset.images["category"].to_list() == ["animal", "animal", None]
    assert dataset.images["size"].to_list() == [30, 40, 50]
    assert dataset.caption_image.tolist() == [1, 0]


JSONL = """
{"image": 1, "captions": ["A dog", {"text": "The dog", "caption_id": "x", "mood": "calm"}], "category": "animal",
 "objects": [{"name": "dog", "box": [1, 2, 3, 4], "attributes": ["brown"]}, {"name": "ball", "id": "b"}],
 "relations": [{"subject": "1/0", "predicate": "with", "object": "b"}]}
{"image": 2, "captions": [], "category": "nothing"}
{"image": 3, "text": "A cat", "mood": "wild"}
""".replace(",\n ", ", ")


def test_json_lines_per_image_and_per_caption(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path / "d.jsonl", JSONL))
    assert dataset.images.rows() == [("1", "animal"), ("2", "nothing"), ("3", None)]
    assert dataset.captions.rows() == [
        ("1#0", "1", "A dog", None),
        ("x", "1", "The dog", "calm"),
        ("3#0", "3", "A cat", "wild"),
    ]
    assert dataset.objects is not None
    assert dataset.relations is not None
    assert dataset.objects.select("image", "object", "name", "x", "w", "attributes").rows() == [
        ("1", "1/0", "dog", 1.0, 3.0, ["brown"]),
        ("1", "b", "ball", None, None, None),
    ]
    assert dataset.relations.rows() == [("1", "1/0", "with", "b")]


def test_json_lines_for_the_images(tmp_path: Path) -> None:
    captions = write(tmp_path / "c.csv", "picture,text\n2,A cat\n1,A dog\n")
    images = write(tmp_path / "i.jsonl.gz", '{"image": 1, "objects": [{"name": "dog"}], "w": 5}\n{"image": 2}\n')
    dataset = load_dataset("plain", captions=captions, images=images, image_column="picture")
    assert dataset.image_ids == ("1", "2")
    assert dataset.objects is not None
    assert dataset.objects["name"].to_list() == ["dog"]


def test_the_karpathy_test_split(shared_data: Path) -> None:
    dataset = load_dataset(
        "plain",
        captions=shared_data / "coco_karpathy_test" / "captions.tsv.gz",
        image_column="coco_image_id",
        caption_column="coco_caption_id",
        text_column="raw_caption",
    )
    assert (len(dataset.image_ids), len(dataset.caption_ids)) == (5000, 25000)
    assert dataset.image_ids[0] == "391895"
    assert dataset.caption_ids[:2] == ("770337", "771687")
    first_seen = dict.fromkeys(dataset.captions["image"])
    assert dataset.image_ids == tuple(first_seen)
