"""Images without captions: which are added, under which ids, from folders and from lists of every form."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest

import crosslens as cl
from crosslens.core import InputError
from crosslens.data import image_files, read_image_names
from crosslens.values import ImageName


def dataset_of(*ids: str, files: list[str | None] | None = None) -> cl.Dataset:
    return cl.Dataset.of({image: ["a caption"] for image in ids}, images=None if files is None else {"file": files})


def added(dataset: cl.Dataset, *names: str) -> list[str]:
    larger = dataset.with_extra_images(names)
    assert larger.image_ids[: len(dataset.image_ids)] == dataset.image_ids
    assert larger.captions.equals(dataset.captions)
    return list(larger.image_ids[len(dataset.image_ids) :])


class TestIds:
    def test_as_the_dataset_names_its_images(self) -> None:
        coco = "COCO_val2014_000000391895.jpg", "COCO_val2014_000000000042.jpg"
        assert added(dataset_of("beach.jpg"), "b.jpg", "a.jpg", "beach.jpg") == ["b.jpg", "a.jpg"]
        assert added(dataset_of("beach", files=["beach.jpg"]), "a.jpg", "beach.jpg") == ["a"]
        assert added(dataset_of("391895", files=[coco[0]]), *coco) == ["42"]
        assert added(dataset_of("391895"), *coco) == ["42"]
        assert added(dataset_of("x/1.jpg"), "x/1.jpg", "x/2.jpg", "y/1.jpg") == ["x/2.jpg", "y/1.jpg"]
        assert added(dataset_of("x/1", files=["x/1.jpg"]), "x/1.jpg", "x/2.jpg") == ["x/2"]

    def test_an_own_image_is_known_by_its_id_or_the_name_of_its_file(self) -> None:
        dataset = dataset_of("one", "two", files=["photos/1.jpg", "photos/2.jpg"])
        assert added(dataset, "two", "2.jpg", "elsewhere/1.jpg", "3.jpg") == ["3.jpg"]
        assert added(dataset_of("beach"), "beach.png") == []

    def test_ids_without_files(self) -> None:
        larger = dataset_of("a").with_extra_images(["7", "8"])
        assert larger.image_ids == ("a", "7", "8")
        assert "file" not in larger.images.columns

    def test_absolute_paths_give_plain_names(self) -> None:
        assert added(dataset_of("beach.jpg"), "/photos/a.jpg", "/photos/beach.jpg") == ["a.jpg"]
        assert added(dataset_of("beach.jpg"), "/p/a.jpg", "/q/a.jpg") == ["/p/a.jpg", "/q/a.jpg"]

    def test_twice_is_a_mistake(self) -> None:
        with pytest.raises(InputError, match="the image 'x' is named twice"):
            dataset_of("a").with_extra_images(["x", "x"])

    def test_free_columns_are_empty_and_the_order_of_calls_does_not_matter_for_files(self, tmp_path: Path) -> None:
        dataset = cl.Dataset.of({"a.jpg": ["a"]}, images={"category": ["x"], "width": [3]})
        for sub in ("first", "second"):
            (tmp_path / sub).mkdir()
            (tmp_path / sub / f"{sub}.jpg").touch()
        larger = dataset.with_extra_images(tmp_path / "first").with_extra_images(tmp_path / "second")
        assert larger.images["category"].to_list() == ["x", None, None]
        (tmp_path / "a.jpg").touch()
        files = image_files(larger, tmp_path)
        assert [Path(file).relative_to(tmp_path).as_posix() for file in files] == [
            "a.jpg", "first/first.jpg", "second/second.jpg",
        ]  # fmt: skip
        (tmp_path / "second" / "second.jpg").unlink()
        with pytest.raises(InputError, match=r"1 of 3 image files is not there, that of image 'second\.jpg'"):
            image_files(larger, tmp_path)


class TestFolder:
    def test_images_of_all_folders_sorted_and_nothing_else(self, tmp_path: Path) -> None:
        for name in ("b.JPG", "sub/a.png", "notes.txt", "._b.JPG", "a.webp"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        (tmp_path / "folder.jpg").mkdir()
        larger = dataset_of("own").with_extra_images(tmp_path)
        assert larger.images["file"].to_list() == [None, "a.webp", "b.JPG", "sub/a.png"]
        assert larger.image_ids == ("own", "a.webp", "b.JPG", "a.png")

    def test_not_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no such folder"):
            dataset_of("a").with_extra_images(tmp_path / "nowhere")
        (tmp_path / "list.txt").write_text("x")
        with pytest.raises(InputError, match=r"not a folder(.|\n)*extra_images="):
            dataset_of("a").with_extra_images(tmp_path / "list.txt")
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match="no images in the folder"):
            dataset_of("a").with_extra_images(tmp_path / "empty")


PLAIN = [ImageName(None, "x.jpg"), ImageName("7", None)]
BOTH = [ImageName("7", "x.jpg"), ImageName("8", "y.jpg")]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("l.txt", "x.jpg\n\n7\n", PLAIN),
        ("l.lst", "x.jpg\r\n7", PLAIN),
        ("l.csv", "x.jpg\n7\n", PLAIN),
        ("l.csv", "image\nx.jpg\n7\n", PLAIN),
        ("l.csv", "id,file\n7,x.jpg\n8,y.jpg\n", BOTH),
        ("l.tsv", "image_id\tfile_name\n7\tx.jpg\n8\ty.jpg\n", BOTH),
        ("l.json", '["x.jpg", 7]', PLAIN),
        ("l.json", '{"images": [{"id": 7, "file_name": "x.jpg"}, {"id": 8, "file_name": "y.jpg"}]}', BOTH),
        ("l.jsonl", '{"file": "x.jpg"}\n{"image": 7}\n', PLAIN),
    ],
)
def test_lists(tmp_path: Path, name: str, content: str, expected: list[ImageName]) -> None:
    (tmp_path / name).write_text(content)
    assert read_image_names(tmp_path / name) == expected


def test_parquet(tmp_path: Path) -> None:
    pl.DataFrame({"id": [7, 8], "file": ["x.jpg", "y.jpg"]}).write_parquet(tmp_path / "l.parquet")
    assert read_image_names(tmp_path / "l.parquet") == BOTH


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.txt", "", "the file is empty"),
        ("l.json", "3", "no array of images"),
        ("l.json", '{"annotations": []}', "no array of images"),
        ("l.json", '["x", null]', "image 1: the image id is missing"),
        ("l.json", '["x", {"name": "y"}]', r"image 1: no image \(found: name\)"),
        ("l.json", '["x", {"id": [1]}]', "image 1: the image is a list"),
        ("l.csv", "name,size\nx,3\n", r"line 2: no image \(found: name, size\)"),
        ("l.csv", 'id\n"x\n', "badly quoted"),
        ("l.txt", "x\nx\n", "the image 'x' is named twice"),
        ("l.json", '["\\ud800"]', "half of a character"),
    ],
)
def test_what_is_no_list(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    dataset_of("a").save(tmp_path / "data")
    with pytest.raises(InputError, match=message) as caught:
        cl.load_dataset(tmp_path / "data", extra_images=tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_a_missing_or_special_file(tmp_path: Path) -> None:
    dataset_of("a").save(tmp_path / "data")
    with pytest.raises(InputError, match="no such file"):
        cl.load_dataset(tmp_path / "data", extra_images=tmp_path / "nowhere.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(InputError, match="named pipe"):
        cl.load_dataset(tmp_path / "data", extra_images=tmp_path / "pipe.txt")


def test_files_of_a_list_start_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "lists" / "more").mkdir(parents=True)
    (tmp_path / "lists" / "more" / "x.jpg").touch()
    (tmp_path / "a.jpg").touch()
    (tmp_path / "lists" / "l.json").write_text(json.dumps(["more/x.jpg"]))
    dataset_of("a.jpg").save(tmp_path / "data")
    larger = cl.load_dataset(tmp_path / "data", extra_images=str(tmp_path / "lists" / "l.json"))
    assert image_files(larger, tmp_path)[1] == str(tmp_path / "lists" / "more" / "x.jpg")
    again = cl.load_dataset(tmp_path / "data", extra_images=str(tmp_path / "lists" / "l.json"))
    assert again.fingerprint == larger.fingerprint != cl.load_dataset(tmp_path / "data").fingerprint
