"""Hashes of images, and near duplicates by hash and by vector."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.analyze import HASH_BITS, NearDuplicates, hash_files
from crosslens.analyze.near_duplicates import perceptual_hash
from crosslens.build import RecosSettings
from crosslens.core import InputError

Image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[scenes]'")


def pictures(count: int) -> list[Any]:
    from crosslens.synth import generate

    return [scene.render() for scene in generate(count, "object,colour,count,location", seed=5)]


def different(picture: Any, second_picture: Any) -> int:
    return int((perceptual_hash(picture) != perceptual_hash(second_picture)).sum())


def test_the_same_picture_saved_otherwise_has_nearly_the_same_hash() -> None:
    for picture in pictures(12):
        packed = io.BytesIO()
        picture.save(packed, "JPEG", quality=60)
        assert different(picture, picture.copy()) == 0
        assert different(picture, Image.open(packed)) <= RecosSettings.duplicate_bits
        assert different(picture, picture.resize((150, 150))) <= RecosSettings.duplicate_bits


def test_other_pictures_have_other_hashes() -> None:
    drawn = pictures(12)
    least = min(different(picture, earlier) for row, picture in enumerate(drawn) for earlier in drawn[:row])
    assert least > 2 * RecosSettings.duplicate_bits


def test_a_picture_in_other_colours_is_another_picture() -> None:
    picture = pictures(1)[0]
    red, green, blue = picture.split()
    assert different(picture, Image.merge("RGB", (blue, red, green))) > 0
    grey = picture.convert("L")
    bits = perceptual_hash(grey).reshape(3, 64)
    assert (bits[0] == bits[1]).all(), "of a grey picture all channels say the same"


def test_a_plain_picture_has_a_plain_hash() -> None:
    assert not perceptual_hash(Image.new("RGB", (50, 40), (10, 200, 90))).reshape(3, 64)[:, 1:].any()


def test_an_unreadable_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"bad\.png"):
        hash_files([str(tmp_path / "bad.png")])


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0), st.integers(-1, 12))
def test_near_duplicates_are_all_pairs_that_are_near(seed: int, cosine: float, bits: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((20, 3))
    vectors[7] = 3 * vectors[2]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    hashes = rng.random((20, HASH_BITS)) < 0.5
    hashes[11] = hashes[4]
    hashes[11, :5] ^= True
    duplicates = NearDuplicates(vectors, hashes, cosine, bits)
    for row in range(20):
        near = {
            column
            for column in range(20)
            if column != row
            and (vectors[row] @ vectors[column] >= cosine or (hashes[row] != hashes[column]).sum() <= bits)
        }
        clear = {o for o in range(20) if abs(vectors[row] @ vectors[o] - cosine) > 1e-8}
        for column in set(range(20)) - {row}:
            if column in clear:
                assert (duplicates.among(row, [column]) is not None) == (column in near)
        first = duplicates.among(row, range(20))
        if near <= clear:
            assert (None if first is None else first[0]) == min(near, default=None)


def test_why_two_are_one() -> None:
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    hashes = np.zeros((3, HASH_BITS), bool)
    hashes[1, :30] = True
    hashes[2, :3] = True
    duplicates = NearDuplicates(vectors, hashes, 0.98, 12)
    assert duplicates.among(0, {1}) == (1, ("vectors", 1.0))
    assert duplicates.among(0, {2}) == (2, ("hash", 3.0))
    assert NearDuplicates(vectors, None, 2, 12).among(0, {1, 2}) is None
    assert NearDuplicates(vectors, hashes, 2, -1).among(0, {1, 2}) is None
