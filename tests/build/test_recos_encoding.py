"""RECOS from images, captions or stored vectors; missing columns and too few candidates."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.build import Recos
from crosslens.core import InputError, UsageError
from tests.build.recos_builds import SETTINGS, build
from tests.build.toy_models import OnlyTexts, Words


def test_text_only(scenes: cl.Dataset, folder: Path) -> None:
    with pytest.raises(UsageError, match="encodes no images"):
        build(scenes, folder, encoder=OnlyTexts())
    settings = replace(SETTINGS, eta=0.9)
    with pytest.raises(UsageError, match="no logit scale") as caught:
        build(scenes, folder, settings, encoder=OnlyTexts(), image_text="mean")
    proposed = float(str(caught.value).split("CLIP's; ")[1].split()[0])
    benchmark = build(scenes, folder, replace(settings, temperature=proposed), encoder=OnlyTexts(), image_text="mean")
    assert np.median(benchmark.check.values) == pytest.approx(math.log(10) / 2, rel=0.05)
    assert any("that of their captions" in note for note in benchmark.notes)
    vectors = Words().encode_texts(scenes.texts).astype(np.float64)
    image_of_caption = scenes.caption_image
    means = np.stack([vectors[image_of_caption == row].mean(axis=0) for row in range(len(scenes.image_ids))])
    text = vectors[7] / np.linalg.norm(vectors[7])
    cosines = np.delete((means / np.linalg.norm(means, axis=1, keepdims=True)) @ text, image_of_caption[7])
    np.testing.assert_allclose(benchmark.check.neighbours.cosines[7], np.sort(cosines)[::-1][:10], atol=1e-6)


def test_images_without_captions_and_a_text_encoder(scenes: cl.Dataset, folder: Path) -> None:
    some = replace(scenes, captions=scenes.captions.filter(pl.col("image").cast(pl.Int64) <= 50))
    settings = replace(SETTINGS, temperature=0.1, eta=1.0)
    alone = build(some, folder, settings, encoder=OnlyTexts(), image_text="mean")
    assert any("10 images without captions are left out" in note for note in alone.notes)
    both = build(some, folder, settings, encoder=OnlyTexts(), image_text="mean", image_encoder=Words())
    assert len(both.check.neighbours.items) == some.captions.height
    assert not any("left out" in note for note in both.notes)
    assert {str(number) for number in range(51, 61)} & set(both.versions["v2"].image_ids)


def test_stored_images_with_a_text_encoder_are_as_good_as_the_model(
    scenes: cl.Dataset, folder: Path, built_recos: tuple[Recos, Path], tmp_path: Path
) -> None:
    from crosslens.encode import encode_dataset, load_encoder

    whole = built_recos[0]
    vectors = encode_dataset(scenes, load_encoder(Words()), image_folder=folder)
    assert vectors.images is not None
    assert vectors.captions is not None
    vectors.images.save(tmp_path / "images")
    stored = f"file:{tmp_path}"
    settings = replace(SETTINGS, temperature=1 / 20)
    halves = build(scenes, folder, settings, encoder=stored, text_encoder=OnlyTexts())
    assert halves.versions["v2"].fingerprint == whole.versions["v2"].fingerprint
    with pytest.raises(UsageError, match="does not encode texts"):
        build(scenes, folder, settings, encoder=stored)
    vectors.captions.save(tmp_path / "captions")
    only = build(scenes, folder, settings, encoder=stored)
    assert any("nothing encodes new descriptions" in note for note in only.notes)
    assert set(only.versions["v1"].captions["origin"]) == {"candidate"}
    np.testing.assert_array_equal(only.check.values, whole.check.values)


def test_missing_columns_are_said_aloud(scenes: cl.Dataset, folder: Path) -> None:
    bare = replace(scenes, images=scenes.images.select("image", "file"))
    benchmark = build(bare, folder, replace(SETTINGS, source_column="source"))
    assert sum("no column" in note for note in benchmark.notes) == 2
    assert set(benchmark.versions["v0"].images["task"]) == {"all"}
    with pytest.raises(UsageError, match="no column 'kind'"):
        build(bare, folder, replace(SETTINGS, task_column="kind", source_column="source"))
    holes = replace(scenes, images=scenes.images.with_columns(task=pl.lit(None, pl.String)))
    with pytest.raises(InputError, match="no task"):
        build(holes, folder)


def test_too_few_candidates(scenes: cl.Dataset, folder: Path) -> None:
    with pytest.raises(UsageError, match="k = 10 and 8 images"):
        build(scenes.select(scenes.image_ids[:8]), folder)
    with pytest.raises(UsageError, match="no image is left"):
        build(scenes, folder, replace(SETTINGS, temperature=100.0, attempts=0))


@pytest.mark.slow
def test_copied_pictures_make_a_folder_that_can_be_moved(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    from crosslens.encode import encode_dataset, load_encoder

    build(scenes, folder, output=tmp_path / "bench", copy_images=True)
    (tmp_path / "bench").rename(tmp_path / "moved")
    v2 = cl.load_dataset(tmp_path / "moved" / "v2")
    assert len(list((tmp_path / "moved" / "images").iterdir())) == len(v2.image_ids)
    copied = encode_dataset(v2, load_encoder(Words())).images
    original = encode_dataset(scenes.select(v2.image_ids), load_encoder(Words()), image_folder=folder).images
    assert copied is not None
    assert original is not None
    np.testing.assert_array_equal(copied.vectors, original.vectors)
