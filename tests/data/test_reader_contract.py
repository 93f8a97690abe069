"""What every registered reader must do; a reader without a sample in ``reader_samples`` fails."""

from __future__ import annotations

import inspect
import typing
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crosslens.core import CrosslensError, UsageError
from crosslens.data import READERS, WRITERS, is_dataset_path, load_dataset, path_options, reader_options, write_dataset
from crosslens.values import Dataset
from tests.data.reader_samples import SAMPLES, Sample

NAMES = [entry.name for entry in READERS]


@pytest.fixture(params=NAMES)
def reader(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sample(reader: str) -> Sample:
    assert reader in SAMPLES, f"add files for the reader {reader!r} to tests/data/reader_samples.py"
    return SAMPLES[reader]


@pytest.fixture
def dataset(reader: str, sample: Sample, tmp_path: Path) -> Dataset:
    return load_dataset(reader, **sample.options(tmp_path))


def captions_of(dataset: Dataset) -> list[tuple[str, str, str]]:
    return dataset.captions.select("caption", "image", "text").rows()


def objects_of(dataset: Dataset) -> list[tuple[Any, ...]]:
    if dataset.objects is None:
        return []
    return dataset.objects.select("image", "object", "name", "x", "y", "w", "h").rows()


def test_ids_texts_and_objects(dataset: Dataset, sample: Sample) -> None:
    assert captions_of(dataset) == sample.captions
    assert len(objects_of(dataset)) == sample.objects
    assert set(dataset.captions["image"]) <= set(dataset.image_ids)
    assert dataset.name


def test_reading_again_gives_the_same(reader: str, sample: Sample, dataset: Dataset, tmp_path: Path) -> None:
    assert load_dataset(reader, **sample.options(tmp_path)).fingerprint == dataset.fingerprint


def test_the_folder_format_keeps_everything(dataset: Dataset, tmp_path: Path) -> None:
    assert load_dataset(write_dataset(dataset, tmp_path / "saved", to="folder")).fingerprint == dataset.fingerprint


def test_the_plain_format_keeps_captions_and_objects(dataset: Dataset, tmp_path: Path) -> None:
    images = tmp_path / "images.jsonl"
    path = write_dataset(dataset, tmp_path / "out.jsonl", images=images)
    again = load_dataset(path, images=images)
    assert again.image_ids == dataset.image_ids
    assert captions_of(again) == captions_of(dataset)
    assert sorted(objects_of(again), key=str) == sorted(objects_of(dataset), key=str)  # they come image by image


def test_its_own_format_comes_back(reader: str, sample: Sample, dataset: Dataset, tmp_path: Path) -> None:
    assert (sample.writer is not None) == (reader in WRITERS), f"name the writer of {reader!r} in its sample"
    if sample.writer is None:  # nothing writes it
        return
    to, option = sample.writer
    more = {"images": tmp_path / "images.jsonl"} if to == "plain" else {}
    path = write_dataset(dataset, tmp_path / "out.jsonl", to=to, **more)
    written: dict[str, Any] = {option: path, **more}
    if to == "coco":
        boxed = replace(dataset, objects=boxed_objects(dataset))
        written["instances"] = write_dataset(boxed, tmp_path / "instances.json", to="coco_instances")
        dataset = boxed
    again = load_dataset(reader, **written)
    assert again.image_ids == dataset.image_ids
    assert captions_of(again) == captions_of(dataset)
    assert objects_of(again) == objects_of(dataset)
    if dataset.relations is not None:
        assert again.relations is not None
        assert again.relations.equals(dataset.relations)


def boxed_objects(dataset: Dataset) -> pl.DataFrame:
    """COCO has no field for objects without a box."""
    assert dataset.objects is not None
    return dataset.objects.filter(pl.col("x").is_not_null())


def test_options_are_typed_and_documented(reader: str, sample: Sample, tmp_path: Path) -> None:
    function = READERS[reader].value
    assert typing.get_type_hints(function)["return"] is Dataset
    options = reader_options(reader)
    assert list(options) == list(inspect.signature(function).parameters)
    for option in options.values():
        assert option.type.only_plain, f"{reader}: {option.name} is not of plain types"
        assert option.help, f"{reader}: {option.name} is not explained in the docstring"
        assert option.accepts(option.default) or option.is_required
    for name, value in sample.options(tmp_path).items():
        assert options[name].accepts(value)
        assert options[name].is_path == isinstance(value, Path)


def test_unknown_missing_and_mistyped_options(reader: str, sample: Sample, tmp_path: Path) -> None:
    options = sample.options(tmp_path)
    with pytest.raises(UsageError, match="has no option 'colour'"):
        load_dataset(reader, **options, colour="red")
    required = [option.name for option in reader_options(reader).values() if option.is_required]
    assert required, "every reader needs to be told what to read"
    for name in required:
        with pytest.raises(UsageError) as caught:
            load_dataset(reader, **{**options, name: None})
        assert caught.value.option == name
    for name in options:
        with pytest.raises(UsageError) as caught:
            load_dataset(reader, **{**options, name: {"a": 1}})
        assert caught.value.option == name


@pytest.mark.parametrize("content", [b"", b"\x00\x01\xff", b"[1, 2", b'{"a": 1}', b"one line of text\n"])
def test_bad_files_raise_an_error_with_a_fix(reader: str, sample: Sample, tmp_path: Path, content: bytes) -> None:
    options = sample.options(tmp_path)
    for file in [path for path in tmp_path.rglob("*") if path.is_file()]:
        file.write_bytes(content)
    with pytest.raises(CrosslensError) as caught:
        load_dataset(reader, **options)
    assert caught.value.fix


def test_missing_files_raise_an_error_with_a_fix(reader: str, sample: Sample, tmp_path: Path) -> None:
    options = sample.options(tmp_path)
    for file in [path for path in tmp_path.rglob("*") if path.is_file()]:
        file.unlink()
    with pytest.raises(CrosslensError) as caught:
        load_dataset(reader, **options)
    assert caught.value.fix


class TestOptions:
    def test_command_line_text_becomes_a_value(self) -> None:
        assert reader_options("precomputed")["captions_per_image"].parse("3") == 3
        assert reader_options("karpathy")["restval"].parse("Yes") is True
        assert reader_options("coco")["split"].parse("2017") == "2017"
        assert reader_options("coco")["captions"].parse("c.json") == "c.json"
        with pytest.raises(UsageError, match=r"captions_per_image = 'many'(.|\n)*a whole number") as caught:
            reader_options("precomputed")["captions_per_image"].parse("many")
        assert caught.value.option == "captions_per_image"

    def test_values_are_checked(self) -> None:
        count, restval = reader_options("precomputed")["captions_per_image"], reader_options("karpathy")["restval"]
        assert count.accepts(5)
        assert not count.accepts(True)
        assert not count.accepts("5")
        assert restval.accepts(False)
        assert not restval.accepts(1)
        assert (count.expected, restval.expected) == ("a whole number", "true or false")

    def test_a_path_has_the_options_of_all_readers_it_may_lead_to(self) -> None:
        options = reader_options("captions.json")
        assert {"captions", "instances", "images", "restval", "split", "coco_ids"} <= set(options)
        assert "shards" not in options

    def test_which_entries_of_a_recipe_are_paths(self, tmp_path: Path) -> None:
        entries = {"captions": "c.json", "instances": "i.json", "split": "val"}
        assert path_options("coco", entries) == {"captions", "instances"}
        assert path_options("c.json", {"instances": "i.json"}, tmp_path) == {"source", "instances"}
        assert path_options(None, entries) == set()
        assert not is_dataset_path("coco", tmp_path)
        assert not is_dataset_path("word", tmp_path)
        (tmp_path / "word").mkdir()
        assert is_dataset_path("word", tmp_path)
