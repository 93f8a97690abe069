"""Leaderboards as LaTeX and as a page."""

from __future__ import annotations

import json

import numpy as np

from crosslens.comparisons import Leaderboard, leaderboard
from crosslens.core import Bars
from crosslens.values import MetricValues, Run


def run(name: str, share: float, metric: str = "t2i/Hit@1") -> Run:
    numbers = (np.arange(40) < 40 * share).astype(float)
    ids = tuple(f"q{row}" for row in range(40))
    return Run(name, {metric: MetricValues(metric, ids, numbers, np.arange(40), float(numbers.mean()), 0.1, 0.9)})


BOARD = leaderboard(
    {
        ("<b>50% & more", "coco_5k"): run("x", 0.9), ("bad", "coco_5k"): run("y", 0.1),
        ("bad", "flickr"): run("y", 0.3),
    },
    permutations=500,
)  # fmt: skip


def test_latex() -> None:
    lines = BOARD.content(".tex").decode().splitlines()
    assert r"model & coco\_5k & flickr \\" in lines
    assert r"$<$b$>$50\% \& more & \textbf{90.0}$^{*}$ {\small [10.0, 90.0]} & -- \\" in lines
    assert r"bad & 10.0 {\small [10.0, 90.0]} & 30.0 {\small [10.0, 90.0]} \\" in lines, (
        "without a mark: significantly worse; alone: nothing to beat"
    )
    assert "% *: the best on a dataset. =: the difference to it may be chance" in "\n".join(lines)


def test_a_chart_has_a_bar_per_model_and_dataset() -> None:
    (section,) = BOARD.sections()
    (chart,) = section.charts
    assert isinstance(chart, Bars)
    assert (chart.groups, chart.limits) == (BOARD.models, (0.0, 1.0))
    assert {bars.name: [figure.value for figure in bars.figures] for bars in chart.series} == {
        "coco_5k": [0.9, 0.1], "flickr": [None, 0.3],
    }  # fmt: skip
    assert BOARD.content(".svg").count(b'class="bar"') == 3


def test_a_board_is_read_from_its_json_form() -> None:
    read = Leaderboard.from_dict(json.loads(BOARD.content(".json")))
    assert str(read) == str(BOARD)
    assert read.as_dict() == BOARD.as_dict()


def test_page_escapes_names_and_says_what_marks_mean() -> None:
    page = BOARD.content(".html").decode()
    assert "<b>50%" not in page
    assert "&lt;b&gt;50% &amp; more" in page
    assert 'best figure">90.0 <span class="facts">[10.0, 90.0] *</span>' in page
    assert "without a mark: significantly worse" in page
    assert ">–</td>" in page
