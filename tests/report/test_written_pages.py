"""Pages of results in a real browser: they show everything, fit a phone and ask for nothing.

One file, as a browser is opened for those of a file.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.comparisons import leaderboard
from crosslens.explanations import Explanation
from tests.report.browser import Watched
from tests.report.test_explanations import NASTY as EXPLAINED, explanations as explanations, page_of
from tests.report.test_gallery import pictures, retrieval_gallery, runs_of, scores, toys
from tests.report.test_gallery_curves import curves
from tests.report.test_group_chart import NASTY, TASKS, plot, run_by_task
from tests.report.test_leaderboard import run
from tests.tables import each_row


def test_leaderboard(browser_page: Watched, tmp_path: Path) -> None:
    runs = {(f"a model with a long name {m}", f"dataset {d}"): run("x", m / 5) for m in range(3) for d in range(8)}
    leaderboard(runs, permutations=20).save(tmp_path / "page.html")
    page = browser_page.page
    for scheme, width in product(("light", "dark"), (1300, 390)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"file://{tmp_path / 'page.html'}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "the table scrolls, not the page"
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (colour == "rgb(255, 255, 255)") == (scheme == "light")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Hit@1, text → image"
    assert not browser_page.complaints
    assert all(request.startswith(("file://", "data:")) for request in browser_page.requests)


@each_row("scheme", ["light", "dark"])
def test_curves_over_the_gallery(tmp_path: Path, browser_page: Watched, scheme: str) -> None:
    file = curves().save(tmp_path / f"{scheme}.html")
    page = browser_page.page
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme=scheme)
    browser_page.requests.clear()
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("svg[role=img]").count() == 1
    assert page.locator(".beyond").count() == 4, "a line and a point per run"
    assert "<b>run</b>" in page.locator("p").last.inner_text()
    page.locator("summary").click()
    assert "70.0 [60.0, 75.0] extrapolated" in page.locator("details table").inner_text()
    assert not browser_page.complaints
    assert browser_page.requests == [file.as_uri()]


def test_gallery_on_a_phone_and_a_desk(tmp_path: Path, browser_page: Watched) -> None:
    dataset = toys()
    gallery = retrieval_gallery(runs_of(dataset, scores(6, 12, 1), scores(6, 12, 2)), dataset, random=3)
    path = replace(gallery, pictures=pictures(tmp_path, dataset, without=1)).save(tmp_path / "top.html")
    page: Any = browser_page.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "nothing to scroll sideways"
    hits = page.locator(".hits:has(figure:nth-child(5))").first
    boxes = [hits.locator("figure").nth(row).bounding_box() for row in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"], "two beside each other"
    page.set_viewport_size({"width": 1300, "height": 900})
    assert len({hits.locator("figure").nth(row).bounding_box()["y"] for row in range(5)}) == 1
    assert page.evaluate("() => document.querySelector('.hits img').getBoundingClientRect().width") > 100
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    assert browser_page.complaints == []
    assert browser_page.requests == [
        path.as_uri(),
        *(address for address in browser_page.requests if "data:" in address),
    ]


def test_chart_of_groups(tmp_path: Path, browser_page: Watched) -> None:
    versions = [run_by_task("v0"), run_by_task("v1", 20, 1), replace(run_by_task("v2", 20, 2), name=NASTY)]
    tasks = pl.col("task").replace("ocr", NASTY)
    runs = [replace(run, columns={"t2i": run.columns["t2i"].with_columns(tasks)}) for run in versions]
    path = plot(runs, "task", "t2i/Hit@1").save(tmp_path / "tasks.html")
    page = browser_page.page
    page.goto(path.as_uri())
    assert page.locator("svg .bar").count() == len(runs) * len(TASKS)
    assert page.locator("svg .key").count() == len(runs)
    assert any(NASTY in text for text in page.locator("svg text").all_text_contents()), "names are shown as they are"
    assert page.locator(".block tbody tr").count() == len(runs) * len(TASKS)
    assert browser_page.complaints == []
    assert browser_page.requests == [path.as_uri()], "nothing but the page itself"


def test_explanations(explanations: list[Explanation], tmp_path: Path, browser_page: Watched) -> None:
    path = tmp_path / "why.html"
    path.write_text(page_of(explanations), encoding="utf-8")
    page: Any = browser_page.page
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(path.as_uri())
    assert page.title() == f"Why: {EXPLAINED} on drawn"
    assert page.locator("svg rect.box").count() == 4 * len(explanations)
    assert page.locator("figure").first.bounding_box()["width"] > 250
    assert page.evaluate("document.documentElement.scrollWidth") <= 360, "nothing to scroll sideways"
    page.locator("details:not([open]) summary").first.click()
    assert browser_page.complaints == []
    assert browser_page.requests == [path.as_uri()]
