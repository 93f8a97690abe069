"""Hugging Face datasets: saved ones, files, the hub; pictures stay undecoded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crosslens.core.errors import InputError, MissingExtraError, UsageError
from crosslens.data import load_dataset
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
