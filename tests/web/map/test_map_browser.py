"""The map in a real browser: it is drawn, coloured, hovered over, clicked, selected and searched."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.web.conftest import NASTY, fill
from tests.web.serving import Visitor, served, visit, write_vector_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = fill(tmp_path_factory.mktemp("browsed") / "runs")
    write_vector_run(folder, "vectors-run", folder / "toys")
    write_vector_run(folder, "same-places", folder / "toys", spread=0)
    with served(folder, tmp_path_factory.mktemp("cache")) as address:
        yield address


@pytest.fixture
def visitor(browser: Any, address: str) -> Iterator[Visitor]:
    with visit(browser, address, viewport={"width": 1200, "height": 900}) as visitor:
        yield visitor


def open_map(visitor: Visitor, run: str = "vectors-run") -> Any:
    page = visitor.open(f"/map/{run}?method=pca")
    page.wait_for_selector("#compute-form button:visible, #map[data-state=drawn]")
    if page.is_visible("#compute-form button"):
        assert "has not been computed yet" in page.inner_text("#compute-text")
        page.click("#compute-form button")
    page.wait_for_selector("#map[data-state=drawn]")
    return page


def pixels(page: Any) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(page.locator(".map-area").screenshot())).convert("RGB")).astype(int)


def coloured(picture: np.ndarray, colour: str) -> int:
    """How many pixels are nearly of a colour, mixed a little with the paper."""
    target = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    return int((np.abs(picture - (0.8 * target + 0.2 * 255)).max(axis=2) < 24).sum())


def screen_position(page: Any, row: int) -> tuple[float, float]:
    """Where the point of a row is: the map spans the height of its frame at a distance of 1.08."""
    x, y = page.evaluate(
        """async (row) => {
            const response = await fetch("/api/map/vectors-run/points?method=pca");
            const buffer = await response.arrayBuffer();
            const start = 4 + new DataView(buffer).getUint32(0, true);
            const numbers = new Float32Array(buffer, start);
            return [numbers[row], numbers[numbers.length / 2 + row]];
        }""",
        row,
    )
    box = page.locator("#frame").bounding_box()
    half = min(box["width"], box["height"]) / 2 / 1.08
    return box["x"] + box["width"] / 2 + x * half, box["y"] + box["height"] / 2 - y * half


def test_points_are_drawn_and_colours_change(visitor: Visitor) -> None:
    page = open_map(visitor)
    before = pixels(page)
    assert coloured(before, "#0072b2") > 100  # images
    assert coloured(before, "#e69f00") > 200  # captions
    assert page.inner_text("#legend").split("\n") == ["image (12)", "caption (24)"]
    page.select_option("#colour", "metric:Hit@1")
    page.wait_for_selector("#legend >> text=hit")
    page.wait_for_selector("#map[data-state=drawn]")
    after = pixels(page)
    assert coloured(after, "#e69f00") == 0
    assert coloured(after, "#0072b2") + coloured(after, "#d55e00") > 300
    page.select_option("#colour", "metric:MRR")
    page.wait_for_selector("#legend canvas")
    assert (visitor.complaints, visitor.elsewhere) == ([], [])


def test_images_are_drawn_over_captions_and_listed_as_themselves(visitor: Visitor) -> None:
    page = open_map(visitor, "same-places")
    red, _, blue = np.moveaxis(pixels(page), 2, 0)
    assert (blue > red + 50).sum() > 100  # images
    assert (red > blue + 50).sum() == 0  # captions, each in the place of its image
    page.fill("#find", "img3")
    page.press("#find", "Enter")
    page.locator("#selection li").first.wait_for()
    assert "img3" in page.inner_text("#selection")
    assert visitor.complaints == []


@pytest.mark.parametrize("window", [{"width": 1280, "height": 800}, {"width": 400, "height": 800}])
def test_the_legend_is_seen_with_the_map(browser: Any, address: str, window: dict[str, int]) -> None:
    with visit(browser, address, viewport=window) as visitor:
        page = open_map(visitor)
        for colours in page.locator("#colour option").evaluate_all("options => options.map(option => option.value)"):
            page.select_option("#colour", colours)
            page.wait_for_selector("#map[data-state=drawn]")
            legend, points = page.locator("#legend").bounding_box(), page.locator(".map-area").bounding_box()
            assert legend["height"] > 10
            assert legend["y"] + legend["height"] <= points["y"]
            assert points["y"] + 0.9 * points["height"] <= window["height"]
        assert not visitor.is_too_wide()


def test_hovering_shows_the_item_and_a_click_opens_its_query(visitor: Visitor) -> None:
    page = open_map(visitor)
    x, y = screen_position(page, 0)
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    page.wait_for_selector("#tip img")
    assert "img0" in page.inner_text("#tip")
    page.mouse.click(x, y)
    page.wait_for_url("**/runs/vectors-run/query?**")
    assert "img0" in page.inner_text("main")
    assert visitor.complaints == []


def test_a_box_lists_what_it_holds(visitor: Visitor) -> None:
    page = open_map(visitor)
    page.click("text=Select a box")
    box = page.locator("#frame").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    page.mouse.move(box["x"] + box["width"] - 60, box["y"] + box["height"] - 12, steps=4)
    page.mouse.up()
    page.wait_for_selector("#selection li")
    assert int(page.inner_text("#selection-text").split()[0]) > 18
    listed = page.locator("#selection li").count()
    page.click("#more")
    page.locator("#selection li").nth(listed).wait_for()
    assert visitor.complaints == []


def test_search_and_regions_list_items_as_text(visitor: Visitor) -> None:
    page = open_map(visitor)
    page.fill("#find", "<script> dog")
    page.press("#find", "Enter")
    page.wait_for_selector("#selection-text >> text=1 items")
    page.wait_for_selector("#selection li")
    assert NASTY in page.inner_text("#selection")
    button = page.locator("#regions button").first
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#selection-text >> text=Region:")
    page.locator("#selection li").nth(1).wait_for()
    page.click("#closer")
    page.click("#whole")
    assert visitor.complaints == []


def test_the_policy_of_the_page_holds(visitor: Visitor) -> None:
    page = open_map(visitor)
    # In a task of the page: what Playwright evaluates itself is exempt from the policy.
    evaluated = page.evaluate(
        """() => new Promise((resolve) => setTimeout(() => {
            try { resolve(new Function("return 'evaluated'")()); } catch (error) { resolve(String(error)); }
        }, 0))"""
    )
    assert "unsafe-eval" in evaluated
    origin = page.frames[1].evaluate("() => window.origin")
    assert origin == "null"
    assert page.frames[1].evaluate("() => fetch('/').then(() => 'reached', () => 'refused')") == "refused"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_and_screen_readers(browser: Any, address: str, scheme: str, tmp_path: Path) -> None:
    window = {"width": 390, "height": 844}
    with visit(browser, address, viewport=window, color_scheme=scheme, has_touch=True) as visitor:
        page = open_map(visitor)
        assert not visitor.is_too_wide()
        assert visitor.serious() == []
        page.wait_for_timeout(300)
        x, y = screen_position(page, 0)
        page.touchscreen.tap(x, y)
        page.wait_for_selector("#selection li a")  # a finger cannot hover: the link comes first
        visitor.open("/map")
        assert not visitor.is_too_wide()
        assert visitor.serious() == []
        assert visitor.complaints == []


def test_a_run_without_vectors(visitor: Visitor) -> None:
    page = visitor.open("/map/model-a")
    assert "There is no map of this run" in page.inner_text("main")
    assert visitor.serious() == []
    assert visitor.complaints == []
