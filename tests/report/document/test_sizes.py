"""The size of a report: pictures are made to fit, the most instructive are kept, and 5,000 queries take under 5 MB."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.report import Report, report_inputs
from crosslens.report.forms.pictures import shared_pictures

from .conftest import NASTY, Study, drawn_pictures


def filled(files: list[str], budget: int) -> tuple[list[str], int]:
    """Which pictures are shown, and how many bytes they take."""
    drawn, store = shared_pictures(dict.fromkeys(files, False), budget)
    return list(drawn), sum(map(len, re.findall(r'href="(data:[^"]*)"', store)))


def test_the_first_pictures_are_kept(study: Study) -> None:
    files = [str(path) for path in sorted((study.folder / "photos").iterdir())]
    everything, size = filled(files, 10_000_000)
    assert everything == files
    some, kept = filled(files, size // 4)
    assert 0 < kept <= size // 4
    assert some == files[: len(some)]
    assert 0 < len(some) < len(files)
    assert filled(files, 10) == ([], 0)


def test_a_large_picture_comes_before_small_ones(study: Study) -> None:
    files = [str(path) for path in sorted((study.folder / "photos").iterdir())]
    drawn, _ = shared_pictures({**dict.fromkeys(files, False), files[-1]: True}, 10_000_000)
    assert next(iter(drawn)) == files[-1]
    assert len({picture.address for picture in drawn.values()}) == len(files)


def test_a_picture_is_in_the_page_once(study: Study) -> None:
    report = Report(report_inputs(study.runs, image_folder=study.folder / "photos"))
    stored = re.findall(r'href="(data:image[^"]*)"', report.page)
    assert len(stored) == len(set(stored)) == report.pictures > 0
    assert len(re.findall(r'<use href="#p\d+"', report.page)) > report.pictures


def test_an_unreadable_picture_is_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_text("no picture")
    assert shared_pictures({str(broken): False}, 1_000_000) == ({}, "")


@pytest.mark.slow
def test_five_thousand_queries_take_less_than_five_megabytes(tmp_path: Path) -> None:
    images, per_image = 1000, 5
    ids = [f"image-{number:04}" for number in range(images)]
    drawn_pictures(tmp_path / "photos", [f"{image}.png" for image in ids], side=200)
    captions = {
        image: [NASTY, *(f"caption {number} of image {row} with a good many words" for number in range(1, per_image))]
        for row, image in enumerate(ids)
    }
    groups = [f"group {row % 12}" for row in range(images)]
    dataset = cl.Dataset.of(captions, images={"file": [f"{i}.png" for i in ids], "kind": groups}, name="large")
    random = np.random.default_rng(0)
    owner = np.repeat(np.arange(images), per_image)
    runs = []
    for name, noise in (("a", 0.5), ("b", 0.6)):
        scores = (np.arange(images)[:, None] == owner) + noise * random.standard_normal((images, len(owner)))
        runs.append(cl.evaluate(dataset, scores=scores.astype(np.float32), name=name, resamples=200))
    inputs = report_inputs(runs, dataset=dataset, image_folder=tmp_path / "photos", queries=40)
    report = Report(inputs)
    assert len(runs[0]["t2i/Hit@1"].query_ids) == 5000
    assert len(report.page.encode()) < 5_000_000
    assert report.pictures > 100
    small = Report(report_inputs(runs, dataset=dataset, image_folder=tmp_path / "photos", size=400_000, queries=40))
    assert len(small.page.encode()) < 400_000
    assert 0 < small.pictures < small.pictures_wanted < report.pictures_wanted
    assert any("would exceed 0.4 MB" in note for note in small.notes)
