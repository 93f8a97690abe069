"""What a training reads: words, feature sets, nested fractions, and the plan of batches."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from crosslens.core import CrosslensError, InputError, UnknownNameError, UsageError
from crosslens.train import ImageFeatures, Split, TrainingData, load_features
from crosslens.train.captions import BatchPlan, CaptionVocabulary, words_of
from crosslens.values import Dataset, Embeddings

from .conftest import write_flickr8k

# Words


def test_words_are_lower_case_without_punctuation() -> None:
    assert words_of("A man's dog, two cats; café_bar №5!") == ["a", "man's", "dog", "two", "cats", "café", "bar", "5"]


def test_vocabulary_keeps_frequent_words() -> None:
    vocabulary = CaptionVocabulary.of(["b a a", "c b a", "c"], least=2)
    assert vocabulary.words == ("a", "b", "c")
    assert len(vocabulary) == 5
    assert CaptionVocabulary.of(["b a a", "c b a", "c"], least=3).words == ("a",)


def test_captions_become_numbers() -> None:
    words, lengths = CaptionVocabulary(("a", "b")).encode(["B a new b", "...", "a"])
    assert words.tolist() == [[3, 2, 1, 3], [1, 0, 0, 0], [2, 0, 0, 0]]
    assert lengths.tolist() == [4, 1, 1]
    assert CaptionVocabulary(("a",)).encode(["a " * 99])[1].tolist() == [64]


# Feature sets


def write_precomp(folder: Path, *, repeated: bool = False, captions: int = 15, rows: int = 3) -> np.ndarray:
    features = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    for split in ("train", "dev", "test"):
        (folder / f"{split}_caps.txt").write_text("".join(f"{split} caption {k}\n" for k in range(captions)))
        np.save(folder / f"{split}_ims.npy", np.repeat(features, 5, axis=0) if repeated else features)
    return features


@pytest.mark.parametrize("repeated", [False, True])
def test_precomputed_features(tmp_path: Path, repeated: bool) -> None:
    features = write_precomp(tmp_path, repeated=repeated)
    data = load_features("precomp", tmp_path, {"validation": "test"})
    assert np.array_equal(data.train.features.vectors, features)
    assert data.train.dataset.texts[5:10] == tuple(f"train caption {k}" for k in range(5, 10))
    assert np.asarray(data.train.dataset.caption_image).tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert data.validation.dataset.texts[0] == "test caption 0"


@pytest.mark.parametrize(("captions", "rows"), [(14, 3), (15, 4), (10, 3), (20, 3)])
def test_wrong_counts_name_the_file(tmp_path: Path, captions: int, rows: int) -> None:
    write_precomp(tmp_path, captions=captions, rows=rows)
    with pytest.raises(InputError, match=rf"train_(caps.txt|ims.npy): .*{captions} captions"):
        load_features("precomp", tmp_path, {})


def test_wrong_features_are_refused(tmp_path: Path) -> None:
    write_precomp(tmp_path)
    np.save(tmp_path / "dev_ims.npy", np.zeros((3, 5), np.float32))
    with pytest.raises(InputError, match=r"shape \(5,\) in validation and \(4,\) in train"):
        load_features("precomp", tmp_path, {})
    np.save(tmp_path / "dev_ims.npy", np.array([[0.0] * 4, [np.nan] * 4, [0.0] * 4]))
    with pytest.raises(InputError, match=r"dev_ims.npy, row 1: NaN"):
        load_features("precomp", tmp_path, {})
    (tmp_path / "dev_ims.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match=r"dev_ims.npy"):
        load_features("precomp", tmp_path, {})
    (tmp_path / "dev_ims.npy").unlink()
    with pytest.raises(CrosslensError, match=r"dev_ims.npy"):
        load_features("precomp", tmp_path, {})
    with pytest.raises(InputError, match="one row per image"):
        Split(Dataset.of({"a": ["x"]}), ImageFeatures(np.zeros((2, 3))))
    with pytest.raises(InputError, match="images × dimension"):
        ImageFeatures(np.zeros(1))
    with pytest.raises(InputError, match="no features"):
        ImageFeatures()
    with pytest.raises(InputError, match="2 rows of vectors and 3 rows of regions"):
        ImageFeatures(np.zeros((2, 3)), np.zeros((3, 4, 5)))
    with pytest.raises(InputError, match="at most one"):
        ImageFeatures.of(np.zeros((2, 3)), np.zeros((2, 5)))


def test_an_empty_caption_is_refused(tmp_path: Path) -> None:
    write_precomp(tmp_path)
    (tmp_path / "test_caps.txt").write_text("a\n\nb\nc\nd\n" * 3)
    with pytest.raises(InputError, match=r"test_caps.txt"):
        load_features("precomp", tmp_path, {})


def test_flickr8k_pairs_images_with_their_features(tmp_path: Path, data: TrainingData) -> None:
    folder = write_flickr8k(tmp_path / "flickr8k", data)
    read = load_features("flickr8k", folder, {})
    for split, expected in zip(vars(read).values(), vars(data).values(), strict=True):
        assert list(split.dataset.image_ids) == list(expected.dataset.image_ids)
        assert split.dataset.texts == expected.dataset.texts
        assert np.array_equal(split.features.vectors, expected.features.vectors.astype(np.float16))
    grid = np.arange(80 * 2 * 3, dtype=np.float32).reshape(80, 2, 3)
    np.save(folder / "features" / "grid.npy", grid)
    both = load_features("flickr8k", folder, {"features": "efficientnet_lite0_global.npy + grid.npy"})
    row = (folder / "features" / "names.txt").read_text().split().index("test-3.jpg")
    assert np.array_equal(both.test.features.regions[3], grid[row])
    assert np.array_equal(both.test.features.vectors, read.test.features.vectors)
    ids = [image for split in vars(data).values() for image in split.dataset.image_ids][::-1]
    Embeddings(ids, grid).save(folder / "features" / "clip" / "images")
    encoded = load_features("flickr8k", folder, {"features": "efficientnet_lite0_global.npy + clip/images"})
    assert np.array_equal(encoded.test.features.regions[3], grid[ids.index("test-3.jpg")])
    Embeddings(ids[1:], grid[1:]).save(folder / "features" / "part" / "images")
    with pytest.raises(InputError, match=r"images: no features of test-19.jpg"):
        load_features("flickr8k", folder, {"features": "part/images"})
    names = folder / "features" / "names.txt"
    whole = names.read_text()
    names.write_text(whole.replace("dev-3.jpg", "other.jpg"))
    with pytest.raises(InputError, match=r"names.txt: no features of dev-3.jpg"):
        load_features("flickr8k", folder, {})
    names.write_text(whole + "one-more.jpg\n")
    with pytest.raises(InputError, match=r"81 names for 80 rows"):
        load_features("flickr8k", folder, {})


def test_unknown_layouts_options_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="precomp"):
        load_features("precmp", tmp_path, {})
    with pytest.raises(InputError, match=r"my.toml.*\[data\] precomp has no setting 'trian'"):
        load_features("precomp", tmp_path, {"trian": "x"}, "my.toml")
    with pytest.raises(InputError, match=r"train of .* is 3"):
        load_features("precomp", tmp_path, {"train": 3})
    with pytest.raises(UsageError, match="is not a folder"):
        load_features("precomp", tmp_path / "nowhere", {})


# Fractions and batches


def test_smaller_fractions_are_parts_of_larger_ones(data: TrainingData) -> None:
    shares = (0.03, 0.05, 0.1, 0.25, 1.0)
    parts = [data.train.part(share, seed=7) for share in shares]
    assert [len(part.features) for part in parts] == [1, 2, 4, 10, 40]
    for smaller, larger in pairwise(parts):
        assert set(smaller.dataset.image_ids) < set(larger.dataset.image_ids)
    whole = dict(zip(data.train.dataset.image_ids, data.train.features.vectors, strict=True))
    for image, row in zip(parts[3].dataset.image_ids, parts[3].features.vectors, strict=True):
        assert np.array_equal(whole[image], row)
    assert list(data.train.part(0.25, 8).dataset.image_ids) != list(parts[3].dataset.image_ids)
    for share in (0, -1, 1.5, float("nan")):
        with pytest.raises(UsageError, match="fraction"):
            data.train.part(share, 0)


def test_every_caption_once_per_epoch(data: TrainingData) -> None:
    plan = BatchPlan(data.train, 20, seed=5)
    assert plan.per_epoch == 10
    epochs = [np.concatenate([plan.rows(step) for step in range(10 * e, 10 * e + 10)]) for e in range(2)]
    for rows in epochs:
        assert Counter(rows.tolist()) == Counter(range(200))
    assert not np.array_equal(*epochs)


def test_a_batch_follows_from_seed_and_step(data: TrainingData) -> None:
    plan = BatchPlan(data.train, 30, seed=5)
    assert plan.per_epoch == 6  # the last 20 captions of an epoch are left out
    forward = [plan.rows(step) for step in range(14)]
    for step in (13, 2, 7, 0):
        assert np.array_equal(BatchPlan(data.train, 30, seed=5).rows(step), forward[step])
        assert np.array_equal(plan.rows(step), forward[step])
    assert not np.array_equal(BatchPlan(data.train, 30, seed=6).rows(0), forward[0])


def test_a_batch_larger_than_the_data_is_refused(data: TrainingData) -> None:
    with pytest.raises(UsageError, match="a batch of 201 pairs from 200 training captions"):
        BatchPlan(data.train, 201, seed=0)
