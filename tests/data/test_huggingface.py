"""Hugging Face datasets: saved ones, files, the hub; pictures stay undecoded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crosslens.core import InputError, MissingExtraError, UsageError
from crosslens.data import is_dataset_path, load_dataset, reader_options
from tests.data.test_readers import captions_of


@pytest.fixture
def library() -> Any:
    return pytest.importorskip("datasets", reason="needs the extra 'hf'")


def test_rows_per_caption_on_disk(library: Any, tmp_path: Path) -> None:
    rows = {"image_id": [7, 7, 8], "caption": ["a", "b", "c"], "source": ["x", "y", "x"]}
    library.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "saved"))
    dataset = load_dataset("huggingface", dataset=str(tmp_path / "saved"))
    assert dataset.image_ids == ("7", "8")
    assert captions_of(dataset) == [("7#0", "7", "a"), ("7#1", "7", "b"), ("8#0", "8", "c")]
    assert dataset.captions["source"].to_list() == ["x", "y", "x"]
    arrow = next((tmp_path / "saved").glob("*.arrow"))
    assert load_dataset("huggingface", dataset=str(arrow)).texts == ("a", "b", "c")


def test_lists_splits_and_pictures_that_are_never_decoded(library: Any, tmp_path: Path) -> None:
    features = library.Features(
        {
            "image": library.Image(),
            "filename": library.Value("string"),
            "caption": library.List(library.Value("string")),
            "sentids": library.List(library.Value("string")),
        }
    )
    broken = [{"bytes": b"not a picture", "path": "p.jpg"}] * 2  # decoding one would raise
    rows = {
        "image": broken,
        "filename": ["p.jpg", "q.jpg"],
        "caption": [["a", "b"], ["c"]],
        "sentids": [["1", "2"], ["3"]],
    }
    both = library.DatasetDict({name: library.Dataset.from_dict(rows, features=features) for name in ("train", "test")})
    both.save_to_disk(str(tmp_path / "both"))
    dataset = load_dataset(
        "huggingface",
        dataset=str(tmp_path / "both"),
        split="test",
        image_id="filename",
        caption_id="sentids",
    )
    assert captions_of(dataset) == [("1", "p.jpg", "a"), ("2", "p.jpg", "b"), ("3", "q.jpg", "c")]
    numbered = load_dataset("huggingface", dataset=str(tmp_path / "both"), split="test", image_id=None)
    addresses = [f"data-00000-of-00001.arrow::image/{row}" for row in range(2)]
    assert numbered.images.rows() == [("0", addresses[0], "p.jpg"), ("1", addresses[1], "q.jpg")]
    assert numbered.home == tmp_path / "both" / "test"


def test_parquet_needs_no_library(tmp_path: Path) -> None:
    frame = pl.DataFrame({"image": [{"bytes": b"", "path": "p"}], "image_id": [3], "caption": ["a dog"]})
    frame.write_parquet(tmp_path / "rows.parquet")
    dataset = load_dataset("huggingface", dataset=str(tmp_path / "rows.parquet"))
    assert captions_of(dataset) == [("3#0", "3", "a dog")]


def test_the_hub_cannot_be_reached(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route to the hub\nand more")

    monkeypatch.setattr(library, "load_dataset", unreachable)
    with pytest.raises(InputError, match=r"owner/name: cannot be read: no route to the hub\n(.|\n)*fix: check"):
        load_dataset("huggingface", dataset="owner/name", split="test")


def test_several_splits_are_named(library: Any, tmp_path: Path) -> None:
    rows = library.Dataset.from_dict({"image_id": [1], "caption": ["a"]})
    library.DatasetDict({"train": rows, "test": rows}).save_to_disk(str(tmp_path / "both"))
    with pytest.raises(UsageError, match=r"several splits(.|\n)*one of: train, test"):
        load_dataset("huggingface", dataset=str(tmp_path / "both"))


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crosslens\[hf\]'"):
        load_dataset("huggingface", dataset="owner/name")


def test_a_saved_folder_is_recognised_by_its_path(library: Any, tmp_path: Path) -> None:
    """With the columns that the hub's image-text datasets have, no option is needed."""
    rows = {"filename": ["p.jpg", "q.jpg"], "captions": [["a", "b"], ["c"]]}
    library.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "saved"))
    assert captions_of(load_dataset(tmp_path / "saved")) == [
        ("p.jpg#0", "p.jpg", "a"), ("p.jpg#1", "p.jpg", "b"), ("q.jpg#0", "q.jpg", "c"),
    ]  # fmt: skip
    unnamed = library.Dataset.from_dict({"sentences": [["a", "b"], ["c"]], "width": [3, 4]})
    library.DatasetDict({"test": unnamed, "train": unnamed}).save_to_disk(str(tmp_path / "splits"))
    dataset = load_dataset(tmp_path / "splits", split="test")
    assert (dataset.image_ids, dataset.texts) == (("0", "1"), ("a", "b", "c"))
    with pytest.raises(UsageError, match="has several splits"):
        load_dataset(tmp_path / "splits")
    library.Dataset.from_dict({"text": ["a", "b"], "n": [1, 2]}).save_to_disk(str(tmp_path / "no-ids"))
    with pytest.raises(InputError, match=r"no column 'image_id'(.|\n)*image_id= one of: text, n \(or None"):
        load_dataset(tmp_path / "no-ids")  # rows of one caption may share an image: nothing is guessed


def test_a_dataset_of_the_hub_by_its_name(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def stored(name: str, config: str | None, **options: Any) -> Any:
        asked.append((name, config, options))
        return library.Dataset.from_dict({"img_id": [5], "caption": [["a dog", "a brown dog"]]})

    monkeypatch.setattr(library, "load_dataset", stored)
    dataset = load_dataset("hf:owner/name", split="test", revision="main", config="small")
    assert asked == [("owner/name", "small", {"split": "test", "revision": "main"})]
    assert (dataset.name, captions_of(dataset)[0]) == ("owner/name/test", ("5#0", "5", "a dog"))
    assert not is_dataset_path("hf:owner/name")
    assert is_dataset_path("hf://datasets/owner/name"), "an address of a file, as elsewhere"
    assert "split" in reader_options("hf:owner/name")


@pytest.mark.slow
def test_a_dataset_in_the_hubs_cache_needs_no_network(library: Any, tmp_path: Path) -> None:
    """As the library leaves it after a download, read in a process that may not reach the hub."""
    cache = tmp_path / "owner___name" / "default" / "0.0.0" / ("0" * 40)
    rows = library.Dataset.from_dict({"image_id": ["x", "x"], "caption": ["a", "b"]})
    rows.save_to_disk(str(tmp_path / "saved"))
    cache.mkdir(parents=True)
    next((tmp_path / "saved").glob("*.arrow")).rename(cache / "name-test.arrow")
    features = {name: {"dtype": "string", "_type": "Value"} for name in ("image_id", "caption")}
    info = {
        "builder_name": "parquet", "dataset_name": "name", "config_name": "default", "features": features,
        "version": {"version_str": "0.0.0", "major": 0, "minor": 0, "patch": 0},
        "splits": {"test": {"name": "test", "num_bytes": 1, "num_examples": 2, "dataset_name": "name"}},
    }  # fmt: skip
    (cache / "dataset_info.json").write_text(json.dumps(info))
    code = "import crosslens as cl; print(cl.load_dataset('hf:owner/name', split='test').texts)"
    environment = {**os.environ, "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "('a', 'b')", done.stderr[-2_000:]
