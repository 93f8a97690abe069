"""The size of a report: pictures are made to fit, the most instructive are kept, and 5,000 queries take under 5 MB."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.report import Report, report_inputs
from crosslens.report.forms.pictures import SharedPictures

from .conftest import NASTY, Study, drawn_pictures


def filled(files: dict[str, str], budget: int) -> tuple[list[str], int]:
    """Which pictures are shown, asked for in alphabetical order, and how many bytes they take."""
    desk = SharedPictures({"set": files})
    text = "".join(
        f"{name}: {desk.photo('set', name, name, importance)}\n" for importance, name in enumerate(sorted(files))
    )
    page, store = desk.fill(text, budget)
    lines = [line for line in page.splitlines() if "<use" in line]
    return [line.partition(":")[0] for line in lines], sum(map(len, re.findall(r'href="(data:[^"]*)"', store)))


def test_the_most_important_pictures_are_kept(study: Study) -> None:
    files = {path.stem: str(path) for path in sorted((study.folder / "photos").iterdir())}
    everything, size = filled(files, 10_000_000)
    assert everything == sorted(files)
    some, kept = filled(files, size // 2)
    assert 0 < kept <= size // 2
    assert some == sorted(files)[-len(some) :], "a higher importance is served first"
    assert 0 < len(some) < len(files)
    assert filled(files, 10) == ([], 0)


def test_a_picture_is_in_the_page_once(study: Study) -> None:
    files = {path.stem: str(path) for path in (study.folder / "photos").iterdir()}
    name = next(iter(files))
    desk = SharedPictures({"set": files})
    text = desk.photo("set", name, "a") + desk.photo("set", name, "b") + desk.below("set", name)
    page, store = desk.fill(text, 1_000_000)
    assert store.count("<symbol") == 1
    assert page.count('<use href="#p0"') == 3


def test_an_unreadable_picture_says_so_and_a_missing_one_is_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_text("no picture")
    desk = SharedPictures({"set": {"broken": str(broken)}})
    assert desk.photo("set", "absent", "two") == ""
    page, store = desk.fill(desk.photo("set", "broken", "one"), 1_000_000)
    assert store == ""
    assert page.count("no picture") == 1
    assert "<!--" not in page


def test_captions_cannot_ask_for_pictures(study: Study) -> None:
    dataset = cl.Dataset.of({"a": ["<!--picture 0 alone-->"], "b": ["x"]}, name="marks")
    run = cl.evaluate(dataset, scores=np.array([[0, 1], [1, 0]], np.float32), metrics="Hit@1", resamples=0)
    page = Report(report_inputs([run], dataset=dataset)).page
    assert "<!--picture" not in page
    assert "&lt;!--picture 0 alone--&gt;" in page


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
    assert 0 < small.pictures < small.pictures_wanted == report.pictures_wanted
    assert any("would exceed 0.4 MB" in note for note in small.notes)
