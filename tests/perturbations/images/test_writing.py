"""Datasets with changed pictures: readable, repeatable, resumable, and true about what is where."""

from __future__ import annotations

import hashlib
import io
import json
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import ConflictError, InputError, UnknownNameError
from crosslens.data import image_files
from crosslens.perturbations import IMAGE_PERTURBATIONS, perturb_images, perturb_picture
from crosslens.perturbations.images.writing import LEAST_LEFT, file_names
from crosslens.storage import Workspace
from crosslens.synth import write_scenes
from crosslens.values import Dataset
from tests.tables import rest_slow

Image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[scenes]'")

IMAGES = 16


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_scenes(tmp_path_factory.mktemp("scenes") / "set", IMAGES, "colour,count,location", seed=2, workers=1)


def content(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def pixels(dataset: Dataset) -> dict[str, np.ndarray[Any, Any]]:
    return {
        image: np.asarray(Image.open(file).convert("RGB"))
        for image, file in zip(dataset.image_ids, image_files(dataset), strict=True)
    }


def test_the_folder_is_the_dataset_with_other_pictures(scenes: Dataset, tmp_path: Path) -> None:
    scenes = scenes.select(scenes.image_ids[:8])
    blurred = perturb_images(scenes, "blur@4", tmp_path / "blurred", seed=3)
    read = cl.load_dataset(tmp_path / "blurred")
    assert read.fingerprint == blurred.fingerprint != scenes.fingerprint
    assert (read.image_ids, read.caption_ids, read.texts) == (scenes.image_ids, scenes.caption_ids, scenes.texts)
    assert read.objects is not None
    assert scenes.objects is not None
    assert read.objects.equals(scenes.objects)
    assert read.card.licence == scenes.card.licence
    assert "blur@4" in read.card.notes
    assert "seed 3" in read.card.notes
    before, after = pixels(scenes), pixels(read)
    for image in scenes.image_ids:
        expected = perturb_picture("blur@4", Image.fromarray(before[image]), seed=3, key=image)
        assert np.array_equal(after[image], np.asarray(expected)), "nothing is lost in the file"
    assert not [name for name in content(tmp_path / "blurred") if ".partial" in name]


@pytest.mark.parametrize("name", rest_slow([entry.name for entry in IMAGE_PERTURBATIONS], 2))
def test_any_number_of_threads_gives_the_same_bytes(name: str, scenes: Dataset, tmp_path: Path) -> None:
    few = scenes.select(scenes.image_ids[:4])
    perturb_images(few, name, tmp_path / "one", threads=1)
    perturb_images(few, name, tmp_path / "four", threads=4)
    assert content(tmp_path / "one") == content(tmp_path / "four")


def test_neighbours_and_order_do_not_matter(scenes: Dataset, tmp_path: Path) -> None:
    some = perturb_images(scenes.select(scenes.image_ids[5:2:-1]), "occlusion", tmp_path / "some")
    every = perturb_images(scenes, "occlusion", tmp_path / "all")
    whole = pixels(every)
    assert all(np.array_equal(picture, whole[image]) for image, picture in pixels(some).items())


def test_seeds_and_severities_are_other_datasets(scenes: Dataset, tmp_path: Path) -> None:
    few = scenes.select(scenes.image_ids[:2])
    copies = [
        perturb_images(few, name, tmp_path / f"{name}-{seed}", seed=seed)
        for name, seed in (("noise@1", 0), ("noise@2", 0), ("noise@1", 1))
    ]
    assert len({copy.fingerprint for copy in copies}) == 3, "or results of one would be taken for those of another"
    twice = perturb_images(copies[0], "blur", tmp_path / "twice")
    assert set(twice.images["perturbation"]) == {"noise@1 (seed 0), blur@3 (seed 0)"}


@pytest.mark.parametrize("name", rest_slow(["crop@3", "rotate@5", "crop@5", "rotate@3"], 2))
def test_boxes_stay_true(name: str, tmp_path: Path) -> None:
    """Every object is a colour of its own: its pixels in the changed picture lie in its box, and fill it."""
    side, colours = 200, [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)]
    boxes = [(10, 10, 60, 40), (120, 20, 50, 70), (30, 120, 40, 60), (110, 130, 80, 50)]
    source = tmp_path / "source"
    source.mkdir()
    picture = np.full((side, side, 3), 255, np.uint8)
    for (x, y, w, h), colour in zip(boxes, colours, strict=True):
        picture[y : y + h, x : x + w] = colour
    ids = [f"i{number}" for number in range(8)]
    for image_id in ids:
        Image.fromarray(picture).save(source / f"{image_id}.png")
    objects = pl.DataFrame(
        [(image, f"{image}/{n}", *box) for image in ids for n, box in enumerate(boxes)],
        schema=["image", "object", "x", "y", "w", "h"],
        orient="row",
    )
    relations = pl.DataFrame({"image": ids, "subject": [f"{image}/0" for image in ids], "predicate": "near",
                              "object": [f"{image}/3" for image in ids]})  # fmt: skip
    files = [f"{image}.png" for image in ids]
    # The boxes are noted for a picture twice as large as the file, as thumbnails of a dataset are.
    plain = Dataset.of({image: ["four blocks"] for image in ids}, images={"file": files, "width": 400, "height": 400})
    doubled = objects.with_columns(pl.col("x", "y", "w", "h") * 2)
    dataset = replace(plain, objects=doubled, relations=relations, home=source)
    perturbed = perturb_images(dataset, name, tmp_path / "made")
    assert perturbed.objects is not None
    assert perturbed.relations is not None
    kept = {(row["image"], row["object"]): row for row in perturbed.objects.iter_rows(named=True)}
    assert 0 < len(kept) <= objects.height
    for image, changed in pixels(perturbed).items():
        for number, (colour, box) in enumerate(zip(colours, boxes, strict=True)):
            block = np.argwhere((np.abs(changed.astype(int) - colour) < 60).all(axis=2))
            row = kept.get((image, f"{image}/{number}"))
            if row is None:
                assert name.startswith("rotate") or len(block) < (LEAST_LEFT + 0.02) * box[2] * box[3] * 200**2 / 40**2
                continue
            x, y, w, h = (row[each] / 2 for each in "xywh")
            assert x >= -1e-9
            assert y >= -1e-9
            assert x + w <= side + 1e-9
            assert y + h <= side + 1e-9
            if len(block):
                (top, left), (bottom, right) = block.min(0), block.max(0) + 1
                edges = np.array([left - x, top - y, x + w - right, y + h - bottom])
                assert edges.min() > -2.5
                assert name.startswith("rotate") or edges.max() < 4
    gone = objects.height - len(kept)
    assert (f"{gone} objects" in perturbed.card.notes) == bool(gone)
    for row in perturbed.relations.iter_rows(named=True):
        assert {(row["image"], row["subject"]), (row["image"], row["object"])} <= set(kept)


def test_regions_of_captions_are_emptied_where_things_move(scenes: Dataset, tmp_path: Path) -> None:
    few = scenes.select(scenes.image_ids[:2])
    regions = replace(few, captions=few.captions.with_columns(x=1, y=2, width=3, height=4))
    assert perturb_images(regions, "crop", tmp_path / "crop").captions["x"].null_count() == few.captions.height
    assert perturb_images(regions, "noise", tmp_path / "noise").captions["x"].null_count() == 0


def test_a_finished_folder_is_left_alone_and_another_is_not_replaced(scenes: Dataset, tmp_path: Path) -> None:
    few, folder = scenes.select(scenes.image_ids[:3]), tmp_path / "made"
    compressed = perturb_images(few, "jpeg", folder)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    assert perturb_images(few, "jpeg", folder).fingerprint == compressed.fingerprint
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == before
    with pytest.raises(ConflictError, match="different: perturbation, amount"):
        perturb_images(few, "jpeg@4", folder)
    with pytest.raises(ConflictError, match="different: seed"):
        perturb_images(few, "jpeg", folder, seed=1)
    perturb_images(few, "jpeg@4", folder, overwrite=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match=r"also holds notes\.txt"):
        perturb_images(few, "jpeg", folder, overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match="not a set of changed images"):
        perturb_images(few, "jpeg", tmp_path / "other", overwrite=True)
    with pytest.raises(UnknownNameError):
        perturb_images(few, "jpg", tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_after_a_kill_the_same_call_goes_on(scenes: Dataset, tmp_path: Path) -> None:
    assert scenes.home is not None
    code = (
        "import sys, time\n"
        "import crosslens as cl\n"
        "from crosslens.perturbations import perturb_images\n"
        "class Slow:\n"
        "    def start(self, label, total): pass\n"
        "    def advance(self, steps=1): time.sleep(0.05 * bool(steps))\n"
        "    def finish(self): pass\n"
        "perturb_images(cl.load_dataset(sys.argv[1]), 'noise@2', sys.argv[2], seed=4, threads=2, progress=Slow())\n"
    )
    folder, begun = tmp_path / "made", Workspace(tmp_path / "made").new
    running = subprocess.Popen([sys.executable, "-c", code, str(scenes.home), str(folder)])
    deadline = time.monotonic() + 120
    while len(list(begun.glob("images/[!.]*.png"))) < 5 and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    done = {file.name: file.stat().st_mtime_ns for file in begun.glob("images/[!.]*.png")}
    assert 5 <= len(done) < IMAGES
    assert not folder.exists()
    perturb_images(scenes, "noise@2", folder, seed=4, threads=1)
    assert {name: (folder / "images" / name).stat().st_mtime_ns for name in done} == done, (
        "what was there is not done again"
    )
    perturb_images(scenes, "noise@2", tmp_path / "whole", seed=4)
    assert content(folder) == content(tmp_path / "whole")


def test_bad_pictures_are_named_or_left_out(scenes: Dataset, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for image, picture in list(pixels(scenes).items())[:4]:
        Image.fromarray(picture).save(source / f"{image}.png")
    ids = scenes.image_ids[:4]
    (source / f"{ids[1]}.png").write_bytes((source / f"{ids[1]}.png").read_bytes()[:300])
    (source / f"{ids[2]}.png").write_bytes(b"")
    dataset = Dataset.of({image: ["a scene"] for image in ids}, images={"file": [f"{image}.png" for image in ids]})
    with pytest.raises(InputError, match=f"image '{ids[1]}' is not a readable image"):
        perturb_images(dataset, "blur", tmp_path / "made", image_folder=source)
    blurred = perturb_images(dataset, "blur", tmp_path / "made", image_folder=source, skip_bad=True)
    assert blurred.image_ids == (ids[0], ids[3])
    assert blurred.captions.height == 2
    assert "2 unreadable pictures" in blurred.card.notes
    with pytest.raises(InputError, match="2 unreadable images were left out"):
        perturb_images(dataset, "blur", tmp_path / "made", image_folder=source)
    again = perturb_images(dataset, "blur", tmp_path / "made", image_folder=source, skip_bad=True)
    assert again.image_ids == blurred.image_ids
    with pytest.raises(InputError, match="not there"):
        perturb_images(dataset, "blur", tmp_path / "elsewhere", image_folder=tmp_path)


def test_pictures_inside_an_archive(scenes: Dataset, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for image, picture in list(pixels(scenes).items())[:3]:
            target = io.BytesIO()
            Image.fromarray(picture).save(target, "PNG")
            for name, data in ((f"{image}.png", target.getvalue()), (f"{image}.txt", b"a scene")):
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    dataset = cl.load_dataset("webdataset", shards=str(tmp_path / "0.tar"))
    pixelated = perturb_images(dataset, "pixelate", tmp_path / "made")
    expected = perturb_images(scenes.select(scenes.image_ids[:3]), "pixelate", tmp_path / "plain")
    assert {k: v.tolist() for k, v in pixels(pixelated).items()} == {k: v.tolist() for k, v in pixels(expected).items()}


def test_other_pictures_under_the_same_names_are_noticed(scenes: Dataset, tmp_path: Path) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "a.png")
    dataset = Dataset.of({"a": ["black"]}, images={"file": ["a.png"]})
    perturb_images(dataset, "blur", tmp_path / "made", image_folder=tmp_path)
    Image.new("RGB", (90, 90), (9, 9, 200)).save(tmp_path / "a.png")
    with pytest.raises(ConflictError, match="different: pictures"):
        perturb_images(dataset, "blur", tmp_path / "made", image_folder=tmp_path)


def test_file_names() -> None:
    assert file_names(["12", "cats/7.jpg"]) == ["images/12.png", "images/cats-7.jpg.png"]
    for ids in (["a/b", "a-b"], ["A", "a"], ["x" * 300], ["..", "é" * 60]):
        assert file_names(ids) == [f"images/{row:07d}.png" for row in range(len(ids))]


def test_progress_counts_every_picture(scenes: Dataset, tmp_path: Path) -> None:
    calls: list[Any] = []

    class Watch:
        def start(self, label: str, total: int) -> None:
            calls.append((label, total))

        def advance(self, steps: int = 1) -> None:
            calls.append(steps)

        def finish(self) -> None:
            calls.append("done")

    few = scenes.select(scenes.image_ids[:4])
    perturb_images(few, "crop", tmp_path / "made", progress=Watch())
    assert (calls[0], sum(calls[1:-1]), calls[-1]) == (("changing images: crop@3", 4), 4, "done")
    told = json.loads((tmp_path / "made" / "perturbation.json").read_text())
    assert (told["perturbation"], told["seed"], told["amount"]) == ("crop@3", 0, 0.46)
