"""A small run made by hand, so that every figure in a test can be checked on paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

from crosslens.values import MetricValues, Ranking, Run
from tests.report.browser import Watched, opened_browser

IMAGES = ("img1", "img2", "img3", "img4")
CAPTIONS = tuple(f"img{n}#{m}" for n in range(1, 5) for m in range(2))


def metric(
    name: str,
    values: list[float],
    *,
    low: float = float("nan"),
    high: float = float("nan"),
    clusters: list[int] | None = None,
) -> MetricValues:
    array = np.array(values)
    t2i = name.startswith("t2i/")
    return MetricValues(
        name,
        CAPTIONS if t2i else IMAGES,
        array,
        np.array(clusters if clusters is not None else [n // 2 for n in range(8)] if t2i else range(4)),
        float(np.nanmedian(array)) if "MedR" in name else float(np.nanmean(array)),
        low,
        high,
        "median" if "MedR" in name else "mean",
    )


def ranking(direction: str, depth: int = 3) -> Ranking:
    queries, items = (IMAGES, CAPTIONS) if direction == "i2t" else (CAPTIONS, IMAGES)
    top = np.array([[(row + rank) % len(items) for rank in range(depth)] for row in range(len(queries))])
    scores = np.array([[0.9 - 0.1 * rank - 0.001 * row for rank in range(depth)] for row in range(len(queries))])
    empty = np.zeros(0, np.int64)
    return Ranking(
        direction,
        queries,
        items,
        top,
        scores.astype(np.float32),
        np.full(len(queries), len(items)),
        np.zeros(len(queries) + 1, np.int64),
        empty,
        np.zeros(0, np.float32),
        empty,
        empty,
        empty,
    )


@pytest.fixture
def run() -> Run:
    nan = float("nan")
    values = [
        metric("i2t/Hit@1", [1, 0, 1, nan], low=0.25, high=1.0),
        metric("t2i/Hit@1", [1, 1, 0, 0, 1, 0, 0, 0], low=0.125, high=0.625),
        metric("i2t/Recall@5", [0.5, 0.5, 1, nan], low=0.5, high=0.75),
        metric("t2i/Recall@5", [1, 1, 1, 0, 1, 0, 0, 0], low=0.2, high=0.8),
        metric("i2t/MedR", [1, 3, 1, nan], low=1, high=2.5),
        metric("t2i/MedR", [1, 1, 2, 4, 1, 2, 8, 9], low=1, high=5),
        metric("Rsum", [400, 300, 412.5, 200], low=300.0, high=400.0),
    ]
    images = pl.DataFrame({"category": ["cat", "dog", "cat", "dog"], "width": [10, 20, 30, 40]})
    captions = pl.DataFrame(
        {
            "category": [name for name in images["category"] for _ in range(2)],
            "length": list(range(8)),
            "tags": [["a"], ["a", "b"], [], ["b"], ["a"], ["c"], ["c", "c"], None],
        }
    )
    return Run(
        "toy model",
        {metric_values.name: metric_values for metric_values in values},
        {direction: ranking(direction) for direction in ("i2t", "t2i")},
        {"i2t": images, "t2i": captions},
        {"dataset": {"name": "toys", "fingerprint": "abc"}},
    )


@pytest.fixture(scope="package")
def browser(chromium_address: str) -> Iterator[Any]:
    """The browser that all tests share, opened once for all pages here: nothing in this folder runs an event loop."""
    with opened_browser(chromium_address) as opened:
        yield opened


@pytest.fixture
def browser_page(browser: Any) -> Iterator[Watched]:
    page = browser.new_page()
    yield Watched(page)
    page.close()
