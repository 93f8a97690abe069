"""One picture saved twice is one picture; whatever differs in a region is another one."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.analyze import Subject, look_at_labels
from crosslens.analyze.label_quality.look import plant_same_image
from crosslens.analyze.label_quality.pictures import SamePicture, is_same_picture, same_pictures
from crosslens.core import InputError
from crosslens.synth import generate
from crosslens.values import Dataset

image_module = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[scenes]'")


def saved(picture: Any, kind: str, **options: Any) -> Any:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return image_module.open(file).convert("RGB")


def saved_again(picture: Any) -> Iterator[tuple[str, Any]]:
    for quality in (95, 75, 50):
        yield f"JPEG {quality}", saved(picture, "JPEG", quality=quality)
    yield "PNG", saved(picture, "PNG")
    yield "WebP", saved(picture, "WEBP", quality=80)
    smaller = picture.resize((round(picture.width * 0.9), round(picture.height * 0.9)), image_module.Resampling.LANCZOS)
    yield "90 %", smaller
    yield "90 %, JPEG 75", saved(smaller, "JPEG", quality=75)


def changed(picture: Any, random: np.random.Generator) -> Iterator[tuple[str, Any]]:
    for side, levels in ((6, 40), (10, 25), (16, 15)):
        pixels = np.asarray(picture).astype(np.int64)
        x, y = (int(random.integers(0, most - side)) for most in picture.size)
        part = pixels[y : y + side, x : x + side]
        part += levels if part.mean() < 128 else -levels
        yield f"a patch of {side} pixels", image_module.fromarray(pixels.clip(0, 255).astype(np.uint8))
    yield "cropped", picture.crop((2, 2, picture.width, picture.height))
    yield "moved", picture.transform(picture.size, image_module.Transform.AFFINE, (1, 0, 1, 0, 1, 0))
    yield "mirrored", picture.transpose(image_module.Transpose.FLIP_LEFT_RIGHT)


def pictures() -> list[Any]:
    drawn = [scene.render() for scene in generate(6, seed=4)]
    data = os.environ.get("CROSSLENS_DATA")
    photos = sorted(Path(data, "flickr8k", "images").glob("*"))[:6] if data else []
    return [*drawn, *(image_module.open(path).convert("RGB") for path in photos)]


def test_saved_again_is_the_same_and_changed_is_not() -> None:
    random = np.random.default_rng(0)
    for number, picture in enumerate(pictures()):
        for how, variant in saved_again(picture):
            assert is_same_picture(picture, variant), (number, how)
        for how, variant in changed(picture, random):
            assert not is_same_picture(picture, variant), (number, how)
            assert not is_same_picture(picture, saved(variant, "JPEG", quality=75)), (number, how, "JPEG")


def test_twins_of_drawn_scenes_are_different_pictures() -> None:
    scenes = list(generate(24, seed=5, version="v1"))
    for original, twin in zip(scenes[:24], scenes[24:], strict=True):
        assert not is_same_picture(original.render(), saved(twin.render(), "JPEG", quality=75))


def test_files_hashes_and_vectors_propose_and_pixels_decide(tmp_path: Path) -> None:
    drawn = [scene.render() for scene in generate(2, seed=5, tasks="ocr", version="v1")]
    drawn[0].save(tmp_path / "a.png")
    drawn[0].save(tmp_path / "b.png")
    drawn[0].save(tmp_path / "c.jpg", quality=80)
    drawn[2].save(tmp_path / "d.png")  # the twin: another word on the sign
    drawn[1].save(tmp_path / "e.png")
    dataset = Dataset.of({name: ["A sign."] for name in "abcde"})
    files = {path.stem: str(path) for path in tmp_path.iterdir()}
    expected = [SamePicture(0, 1, True), SamePicture(0, 2, False), SamePicture(1, 2, False)]
    assert same_pictures(dataset, files, bits=192, cosine=2) == expected
    assert same_pictures(dataset, files, bits=-1, cosine=2) == expected[:1]
    (tmp_path / "d.png").unlink()
    with pytest.raises(InputError, match=r"d\.png"):
        same_pictures(dataset, files, bits=-1, cosine=2)


def test_planted_copies_are_found_and_excuse_what_retrieves_them(tmp_path: Path) -> None:
    scenes = list(generate(20, seed=6))
    files = {}
    for number, scene in enumerate(scenes):
        scene.render().save(tmp_path / f"{number}.png")
        files[str(number)] = str(tmp_path / f"{number}.png")
    dataset = Dataset.of({str(number): [f"picture {number}"] for number in range(20)})
    vectors = np.random.default_rng(0).normal(size=(20, 8))
    subject = Subject.of(dataset, vectors, vectors, pictures=files)
    assert [item.effect.value for item in look_at_labels(subject).findings() if item.kind == "same-image"] == [0]
    planted = plant_same_image(subject, 0.1, np.random.default_rng(0))
    observed = {item.kind: item for item in look_at_labels(planted.subject).findings()}
    assert {name for entry in observed["same-image"].evidence for name in entry["items"]} == planted.ids
    assert observed["same-image"].p == 0
    assert observed["same-image"].words["excused"] == "; 1 of 3 misses retrieves such a picture"
