"""Datasets written in other forms come back as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from crosslens.core import ConflictError, InputError, UnknownNameError, UsageError
from crosslens.data import left_out, load_dataset, write_dataset
from crosslens.values import Dataset
from tests.data import files
from tests.data.files import write_json


@pytest.fixture
def coco(tmp_path: Path) -> Dataset:
    """Captions out of the images' order, an image column, objects, one of them a crowd."""
    content = files.instances()
    content["annotations"] = [annotation for annotation in content["annotations"] if annotation["bbox"][3] > 0]
    return load_dataset(
        "coco",
        captions=write_json(tmp_path / "source" / "captions.json", files.coco()),
        instances=write_json(tmp_path / "source" / "instances.json", content),
    )


@pytest.fixture
def scenes() -> Dataset:
    """Names for ids, an image without captions, columns on both sides, objects with and without boxes, a relation."""
    return Dataset(
        "scenes",
        pl.DataFrame({"image": ["b c.jpg", "a.jpg", "z.jpg"], "category": ["x", "y", None], "depth": [0.5, 1.0, 2.0]}),
        pl.DataFrame(
            {
                "caption": ["k1", "k2", "k3"],
                "image": ["a.jpg", "b c.jpg", "a.jpg"],
                "text": ['A "red" ball, and é', "Two\nlines", "NA"],
                "annotator": ["u", "v", "u"],
            }
        ),
        pl.DataFrame(
            {
                "image": ["a.jpg", "a.jpg"],
                "object": ["o1", "o2"],
                "name": ["ball", "box"],
                "synset": ["ball.n.01", None],
                "x": [1.0, None],
                "y": [2.0, None],
                "w": [3.0, None],
                "h": [4.5, None],
                "attributes": [["red"], None],
            }
        ),
        pl.DataFrame({"image": ["a.jpg"], "subject": ["o1"], "predicate": ["in"], "object": ["o2"]}),
    )


def same(written: Dataset, read: Dataset, *tables: str) -> None:
    for table in tables:
        assert_frame_equal(getattr(written, table), getattr(read, table), check_column_order=False)


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_coco(coco: Dataset, tmp_path: Path, suffix: str) -> None:
    captions = write_dataset(coco, tmp_path / f"c{suffix}", to="coco")
    instances = write_dataset(coco, tmp_path / f"i{suffix}", to="coco_instances")
    same(load_dataset("coco", captions=captions, instances=instances), coco, "images", "captions", "objects")


def test_coco_with_names_for_ids(scenes: Dataset, tmp_path: Path) -> None:
    again = load_dataset("coco", captions=write_dataset(scenes, tmp_path / "c.json", to="coco"))
    same(again, scenes, "images", "captions")


def test_karpathy(tmp_path: Path) -> None:
    dataset = load_dataset("karpathy", captions=write_json(tmp_path / "dataset_coco.json", files.karpathy()))
    again = load_dataset("karpathy", captions=write_dataset(dataset, tmp_path / "again.json.gz", to="karpathy"))
    same(again, dataset, "images", "captions")
    assert again.name == dataset.name


def test_flickr(tmp_path: Path) -> None:
    dataset = Dataset.of({"a.jpg": ["A dog .", "The\tdog\n"], "b#1.jpg": ["A cat"]})
    again = load_dataset("flickr", captions=write_dataset(dataset, tmp_path / "x.token", to="flickr"))
    assert again.caption_ids == dataset.caption_ids
    assert again.texts == ("A dog .", "The dog", "A cat")


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet"])
def test_plain_with_an_images_file(scenes: Dataset, tmp_path: Path, suffix: str) -> None:
    images = tmp_path / f"images{suffix}"
    captions = write_dataset(scenes, tmp_path / f"captions{suffix}", images=images)
    again = load_dataset(captions, images=images)
    same(again, scenes, "images", "captions")
    if suffix.startswith(".jsonl"):
        same(again, scenes, "objects", "relations")


def test_plain_tsv(tmp_path: Path) -> None:
    dataset = Dataset.of({"a": ['"Stop" sign', "A dog, running"], "b": ["A cat"]})
    again = load_dataset(write_dataset(dataset, tmp_path / "c.tsv.gz"))
    same(again, dataset, "images", "captions")


def test_folder(scenes: Dataset, tmp_path: Path) -> None:
    again = load_dataset(write_dataset(scenes, tmp_path / "saved", to="folder"))
    assert again.fingerprint == scenes.fingerprint


def test_what_would_change_the_images_is_refused(scenes: Dataset, coco: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"images without a caption: 1(.|\n)*pass images="):
        write_dataset(scenes, tmp_path / "c.csv")
    with pytest.raises(UsageError, match="not come in the order of the images"):
        write_dataset(coco, tmp_path / "c.csv")
    with pytest.raises(UsageError, match=r"images without a caption: 1(.|\n)*write a format that lists images"):
        write_dataset(scenes, tmp_path / "x.token", to="flickr")


def test_flickr_comes_image_by_image(coco: Dataset, tmp_path: Path) -> None:
    again = load_dataset("flickr", captions=write_dataset(coco, tmp_path / "x.token", to="flickr"))
    assert again.image_ids == coco.image_ids
    assert again.texts == ("Trays of food.", "A giraffe eating leaves.", "A giraffe by a tree.")


@pytest.mark.parametrize(
    ("path", "to", "images", "phrases"),
    [
        ("out", "folder", None, []),
        ("c.jsonl", "plain", "i.jsonl", []),
        ("c.csv", "plain", "i.csv", [".csv files have no field for them: 2 objects, 1 relations"]),
        ("c.parquet", "plain", "i.csv", [".parquet and .csv files have no field for them: 2 objects, 1 relations"]),
        ("c.csv", "plain", None, ["the image columns category and depth, 2 objects, 1 relations"]),
        (
            "c.json",
            "coco",
            None,
            ["the format coco has no field for them: 2 objects (write them with the format"],
        ),
        ("c.json", "coco_instances", None, ["3 captions", "object columns synset and attributes, 1 relations"]),
        ("c.json", "karpathy", None, ["the caption column annotator, 2 objects", "come image by image"]),
        ("c.token", "flickr", None, ["column annotator", "columns category and depth", "new ids", "image by image"]),
    ],
)
def test_what_is_left_out_is_said(scenes: Dataset, path: str, to: str, images: str | None, phrases: list[str]) -> None:
    text = "\n".join(left_out(scenes, path, to, images=images))
    assert bool(text) == bool(phrases)
    assert not [phrase for phrase in phrases if phrase not in text], text


def test_mistakes(scenes: Dataset, coco: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean coco"):
        write_dataset(coco, tmp_path / "x.json", to="cocoo")
    with pytest.raises(UsageError, match="no second file"):
        write_dataset(coco, tmp_path / "x.json", to="coco", images="i.csv")
    with pytest.raises(UsageError, match=r"use one of: \.csv, \.tsv, \.parquet, \.jsonl"):
        write_dataset(Dataset.of({"a": ["x"]}), tmp_path / "x.xlsx")
    with pytest.raises(InputError, match=r"row 1: the text 'Two\\nlines' holds a tab(.|\n)*write a .csv"):
        write_dataset(scenes, tmp_path / "c.tsv", images=tmp_path / "i.csv")
    with pytest.raises(InputError, match=r"object 'o2' in image 'a\.jpg' has no box"):
        write_dataset(scenes, tmp_path / "i.json", to="coco_instances")
    with pytest.raises(UsageError, match="has no objects"):
        write_dataset(Dataset.of({"a": ["x"]}), tmp_path / "i.json", to="coco_instances")
    (tmp_path / "there.json").write_text("{}")
    with pytest.raises(ConflictError, match="already exists"):
        write_dataset(coco, tmp_path / "there.json", to="coco")
    write_dataset(coco, tmp_path / "there.json", to="coco", overwrite=True)


@pytest.mark.slow  # every format is written above
def test_real_files(shared_data: Path, tmp_path: Path) -> None:
    """A real COCO split through every form that can hold it."""
    folder = shared_data / "coco_val2017_1k"
    dataset = load_dataset("coco", captions=folder / "captions.json", instances=folder / "instances.json")
    coco = load_dataset("coco", captions=write_dataset(dataset, tmp_path / "c.json", to="coco"))
    same(coco, dataset, "images", "captions")
    images = tmp_path / "i.jsonl"
    plain = load_dataset(write_dataset(dataset, tmp_path / "c.jsonl", images=images), images=images)
    assert plain.caption_ids == dataset.caption_ids
    same(plain, dataset, "images", "captions")
    assert plain.objects is not None
    assert dataset.objects is not None
    assert plain.objects.height == dataset.objects.height


def test_visual_genome(scenes: Dataset, tmp_path: Path) -> None:
    folder = write_dataset(scenes, tmp_path / "genome", to="visual_genome")
    again = load_dataset("visual_genome", folder=folder)
    same(again, scenes, "objects", "relations")
    assert_frame_equal(again.images.drop("file", "width", "height"), scenes.images)
    in_order = scenes.images.select("image").join(scenes.captions, on="image", maintain_order="left_right")
    assert (
        again.captions.select("caption", "image", "text").rows() == in_order.select("caption", "image", "text").rows()
    )
    notes = left_out(scenes, folder, "visual_genome")
    assert "the caption column annotator" in notes[0]
    assert "image by image" in notes[1]


def test_visual_genome_as_published_comes_back(tmp_path: Path) -> None:
    genome = load_dataset("visual_genome", folder=files.visual_genome(tmp_path / "source"))
    again = load_dataset("visual_genome", folder=write_dataset(genome, tmp_path / "again", to="visual_genome"))
    same(again, genome, "images", "captions", "objects", "relations")
    assert left_out(genome, tmp_path / "again", "visual_genome") == []
    entry = json.loads((tmp_path / "again" / "objects.json").read_text())[0]["objects"][0]
    assert entry == {"object_id": 11, "names": ["tree"], "synsets": ["tree.n.01"], "x": 0, "y": 0, "w": 50, "h": 90}


def test_visual_genome_of_captions_alone(tmp_path: Path) -> None:
    dataset = Dataset.of(
        {"a": ["A dog"], "b": []}, images={"file": ["x/y/a.jpg", None], "width": [8, 8], "height": [6, 6]}
    )
    folder = write_dataset(dataset, tmp_path / "genome", to="visual_genome")
    assert sorted(file.name for file in folder.iterdir()) == ["image_data.json", "region_descriptions.json"]
    again = load_dataset("visual_genome", folder=folder)
    same(again, dataset, "images")
    assert again.captions.row(0) == ("a#0", "a", "A dog", 0, 0, 8, 6)
    assert again.objects is None


def test_visual_genome_refuses_what_it_cannot_hold(scenes: Dataset, tmp_path: Path) -> None:
    assert scenes.objects is not None
    assert scenes.relations is not None
    nameless = replace(scenes, objects=scenes.objects.with_columns(name=pl.lit(None, pl.String)))
    with pytest.raises(InputError, match=r"object 'o1' in image 'a.jpg' has no name"):
        write_dataset(nameless, tmp_path / "genome", to="visual_genome")
    stray = replace(scenes, relations=scenes.relations.with_columns(subject=pl.lit("o9")))
    with pytest.raises(InputError, match=r"the subject 'o9', which is no object of the image"):
        write_dataset(stray, tmp_path / "genome", to="visual_genome")
    assert not (tmp_path / "genome").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ConflictError, match="is not a folder of Visual Genome"):
        write_dataset(scenes, tmp_path / "mine", to="visual_genome", overwrite=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_dates_become_texts(tmp_path: Path) -> None:
    dataset = Dataset.of({"a": ["A dog"]}, images={"taken": [date(2024, 5, 1)]})
    again = load_dataset("coco", captions=write_dataset(dataset, tmp_path / "c.json", to="coco"))
    assert again.images["taken"].to_list() == ["2024-05-01"]
