"""Training on embeddings that ``crosslens encode`` wrote: where they are, which dataset they belong to, mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.core import CrosslensError, InputError
from crosslens.train import load_features
from crosslens.values import Dataset, Embeddings

SPLITS = ("train", "validation", "test")
OPTIONS = {split: f"{split}-captions" for split in SPLITS}


def vectors_of(split: str, shape: tuple[int, ...] = (3, 4)) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 100 * SPLITS.index(split)


def write(folder: Path, shape: tuple[int, ...] = (3, 4), model: str = "clip:x@123") -> Path:
    """Captions and embeddings of three images per split, whose rows are in another order than the images."""
    for split in SPLITS:
        ids = [f"{split}-{n}.jpg" for n in range(shape[0])]
        Dataset.of({image: ["a", "b"] for image in ids}, name=split).save(folder / f"{split}-captions")
        Embeddings(ids[::-1], vectors_of(split, shape)[::-1], model=model).save(folder / split / "images")
    return folder


def test_rows_are_matched_by_their_ids(tmp_path: Path) -> None:
    data = load_features("embeddings", write(tmp_path), OPTIONS)
    for split in SPLITS:
        assert np.array_equal(getattr(data, split).features.vectors, vectors_of(split))
        assert getattr(data, split).dataset.name == split
    assert data.train.origin is not None
    assert data.train.origin.encoder == "clip:x@123"
    assert data.train.origin.seen_from(tmp_path / "models" / "x")["folder"] == "../.."
    regions = load_features("embeddings", write(tmp_path / "regions", (3, 2, 5)), OPTIONS)
    assert np.array_equal(regions.test.features.regions, vectors_of("test", (3, 2, 5)))


def test_one_folder_for_all_images_and_folders_by_name(tmp_path: Path) -> None:
    write(tmp_path)
    parts = [Embeddings.load(tmp_path / split / "images") for split in SPLITS]
    ids = [image for part in parts for image in part.ids]
    Embeddings(ids, np.concatenate([part.vectors for part in parts]), model="m").save(tmp_path / "all" / "images")
    for split in SPLITS:
        Dataset.load(tmp_path / f"{split}-captions").save(tmp_path / "all" / f"{split}-captions")
    data = load_features("embeddings", tmp_path / "all", OPTIONS)
    assert np.array_equal(data.test.features.vectors, vectors_of("test"))
    sets = {split: {"source": f"{split}-captions", "embeddings": "all"} for split in SPLITS}
    data = load_features("embeddings", tmp_path, sets)
    assert np.array_equal(data.validation.features.vectors, vectors_of("validation"))


def test_a_reader_with_its_options(tmp_path: Path) -> None:
    write(tmp_path)
    lines = "".join(f"test-{n}.jpg#{k}\tcaption {k}\n" for n in range(3) for k in range(5))
    (tmp_path / "captions.txt").write_text(lines)
    options: dict[str, Any] = {**OPTIONS, "test": {"source": "flickr", "captions": "captions.txt"}}
    data = load_features("embeddings", tmp_path, options)
    assert len(data.test.dataset.texts) == 15
    assert np.array_equal(data.test.features.vectors, vectors_of("test"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test": 3}, r"my.toml.*\[data\] embeddings: test is 3"),
        ({"test": {"captions": "x"}}, "write a path, or a table"),
        ({"test": "nowhere"}, "nowhere"),
        ({"test": {"source": "test-captions", "embeddings": "nowhere"}}, r"nowhere: no embeddings of the test images"),
        ({"tset": "x"}, "no setting 'tset'"),
        ({"encoder": 3}, "encoder of"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write(tmp_path)
    with pytest.raises(CrosslensError, match=message):
        load_features("embeddings", tmp_path, {**OPTIONS, **changes}, "my.toml")


def test_missing_splits_images_and_mixed_encoders_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(CrosslensError, match=r"validation.jsonl"):
        load_features("embeddings", tmp_path, {"train": "train-captions", "test": "test-captions"}, "my.toml")
    stored = Embeddings.load(tmp_path / "test" / "images")
    Embeddings(stored.ids, stored.vectors, model="other").save(tmp_path / "other" / "images")
    mixed = {**OPTIONS, "test": {"source": "test-captions", "embeddings": "other"}}
    with pytest.raises(InputError, match="features by other in test and by clip:x@123 in train"):
        load_features("embeddings", tmp_path, mixed)
    Embeddings(stored.ids[:2], stored.vectors[:2], model="clip:x@123").save(tmp_path / "few" / "images")
    few = {**OPTIONS, "test": {"source": "test-captions", "embeddings": "few"}}
    with pytest.raises(InputError, match=r"few.*test-0.jpg"):
        load_features("embeddings", tmp_path, few)
