"""Figures from runs: the numbers drawn are the run's, and the page needs nothing but a browser."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crosslens.analyze import measure_difficulty
from crosslens.core import Dataset, MetricValues, Run
from crosslens.core.errors import ConflictError, CrosslensError, MissingExtraError, UnknownNameError, UsageError
from crosslens.report.groups import group_metrics
from crosslens.report.plots.difficulty import shares_figure
from crosslens.report.plots.group_chart import chart
from crosslens.report.plots.group_figures import bar_figure, draw_chart, radar_figure, write_plot
from crosslens.report.plots.style import COLOURS, LEVEL_COLOURS, category_colours
from tests.report.browser import Watched, chromium

pytest.importorskip("plotly", reason="pip install 'crosslens[plot]'")

TASKS = ("colour", "count", "object", "ocr")
NASTY = "</script><script>alert('x')</script> & <b>bold</b>"


def made(name: str, per_task: int = 10, seed: int = 0, tasks: tuple[str, ...] = TASKS) -> Run:
    """A run with a share and a rank per caption, by task."""
    random = np.random.default_rng(seed)
    labels = [task for task in tasks for _ in range(per_task)]
    n = len(labels)
    hits = (random.random(n) < np.repeat(np.linspace(0.9, 0.1, len(tasks)), per_task)).astype(float)
    places = np.where(hits > 0, 1.0, random.integers(2, 50, n))
    ids = tuple(f"c{number}" for number in range(n))
    values = {
        "t2i/Hit@1": MetricValues("t2i/Hit@1", ids, hits, np.arange(n), float(hits.mean()), 0.3, 0.7),
        "t2i/MedR": MetricValues("t2i/MedR", ids, places, np.arange(n), float(np.median(places)), 1, 9, "median"),
    }
    columns = pl.DataFrame({"task": labels, "things": [number % 3 for number in range(n)]})
    return Run(name, values, {}, {"t2i": columns}, {"dataset": {"name": "scenes-v0"}})


@pytest.fixture(scope="module")
def three() -> list[Run]:
    return [made("v0"), made("v1", 20, 1), made("v2", 20, 2)]


# What is shown


def test_the_numbers_are_those_of_the_groups(three: list[Run]) -> None:
    group_chart = chart(three, "task", "t2i/Hit@1")
    for run, series in zip(three, group_chart.series, strict=True):
        groups = group_metrics(run, "task", "t2i/Hit@1").values["t2i/Hit@1"]
        assert {group: (values.mean, values.interval) for group, values in series.groups.items()} == {
            group: (values.mean, values.interval) for group, values in groups.items()
        }
        assert series.whole is run["t2i/Hit@1"]


def test_bars_carry_means_and_intervals(three: list[Run]) -> None:
    group_chart = chart(three, "task", "t2i/Hit@1")
    bars = [trace for trace in bar_figure(group_chart).data if trace.type == "bar"]
    assert len(bars) == 3
    for bar, series in zip(bars, group_chart.series, strict=True):
        assert list(bar.y) == list(group_chart.groups)
        for group, x, below, above in zip(bar.y, bar.x, bar.error_x.arrayminus, bar.error_x.array, strict=True):
            values = series.groups[group]
            assert (x, x - below, x + above) == pytest.approx((values.mean, values.low, values.high))


def test_radar_closes_and_carries_intervals(three: list[Run]) -> None:
    group_chart = chart(three, "task", "t2i/Hit@1")
    outlines = [trace for trace in radar_figure(group_chart).data if "markers" in trace.mode]
    strokes = [trace for trace in radar_figure(group_chart).data if trace.mode == "lines"]
    for outline, stroke, series in zip(outlines, strokes, group_chart.series, strict=True):
        values = [series.groups[group] for group in group_chart.groups]
        assert list(outline.r) == [*(values.mean for values in values), values[0].mean]
        assert list(stroke.r) == [end for values in values for end in (values.low, values.high, None)]


def test_words_say_what_is_shown(three: list[Run]) -> None:
    alone = chart(three[0], "task", "t2i/Hit@1")
    assert alone.title == "Hit@1, text → image, by task"
    assert alone.facts == (*("v0 on scenes-v0", "40 caption queries", "95% intervals over images", "higher is better"),)
    several = chart(three, "task", "t2i/Hit@1").facts
    assert "40 (v0), 80 (v1), 80 (v2) caption queries" in several
    assert "lower is better" in chart(three, "task", "t2i/MedR").facts
    drawn = bar_figure(alone).layout
    assert alone.title in drawn.title.text
    assert "over images" in drawn.title.subtitle.text
    hovers = bar_figure(alone).data[0].hovertext
    group = alone.groups[0]
    values = alone.series[0].groups[group]
    assert f"{100 * values.mean:.1f}  [{100 * values.low:.1f}, {100 * values.high:.1f}]<br>10 queries" in hovers[0]


def test_axes(three: list[Run]) -> None:
    share, places = (bar_figure(chart(three, "task", name)).layout.xaxis.range for name in ("t2i/Hit@1", "t2i/MedR"))
    assert list(share) == [0, 1]
    assert places[0] == 0
    highest = max(
        values.high for series in chart(three, "task", "t2i/MedR").series for values in series.groups.values()
    )
    assert places[1] > highest


def test_order_is_best_first_and_numbers_keep_theirs(three: list[Run]) -> None:
    group_chart = chart(three, "task", "t2i/Hit@1")
    means = [group_chart.series[0].groups[group].mean for group in group_chart.groups]
    assert means == sorted(means, reverse=True)
    ranks = chart(three, "task", "t2i/MedR")
    places = [ranks.series[0].groups[group].mean for group in ranks.groups]
    assert places == sorted(places)
    assert chart(three, "things", "t2i/Hit@1").groups == ("0", "1", "2")


def test_groups_that_some_runs_lack(three: list[Run]) -> None:
    other = made("other", tasks=("colour", "code", "ocr"))
    group_chart = chart([three[0], other], "task", "t2i/Hit@1")
    assert set(group_chart.groups) == {*TASKS, "code"}
    assert "code" not in group_chart.series[0].groups
    for figure in draw_chart(group_chart):
        assert figure.to_json()


def test_many_groups_are_cut_with_a_word_about_it() -> None:
    many = made("many", 2, tasks=tuple(f"task {number:02}" for number in range(30)))
    group_chart = chart(many, "task", "t2i/Hit@1")
    assert (len(group_chart.groups), group_chart.left_out) == (20, 10)
    assert "10 smaller groups not shown" in group_chart.facts
    whole = chart(many, "task", "t2i/Hit@1", largest=None)
    assert len(whole.groups) == 30
    assert len(draw_chart(whole)) == 1, "no radar of thirty spokes"


def test_without_intervals(three: list[Run]) -> None:
    bare = replace(three[0]["t2i/Hit@1"], low=np.nan, high=np.nan)
    group_chart = chart(replace(three[0], values={"t2i/Hit@1": bare}), "task")
    group_chart = replace(group_chart, series=tuple(
        replace(series, groups={g: replace(v, low=np.nan, high=np.nan) for g, v in series.groups.items()})
        for series in group_chart.series
    ))  # fmt: skip
    assert "no intervals" in group_chart.facts
    assert not any(bar_figure(group_chart).data[0].error_x.array)


# What cannot be


def test_a_metric_of_two_directions_is_asked_about(run: Run) -> None:
    with pytest.raises(UsageError, match="choose i2t/Hit@1 or t2i/Hit@1"):
        chart(run, "category", "Hit@1")
    assert chart(run, "tags", "Hit@1").metric == "t2i/Hit@1", "images have no tags: one direction is left"
    assert chart(run, "category").metric == "t2i/Hit@1"
    with pytest.raises(UsageError, match="Rsum has no values by category"):
        chart(run, "category", "Rsum")
    with pytest.raises(UnknownNameError, match="did you mean category"):
        chart(run, "categroy")
    with pytest.raises(UnknownNameError, match="did you mean"):
        chart(run, "category", "Hti@1")


def test_runs_without_the_metric(three: list[Run], run: Run) -> None:
    other = replace(three[1], values={"t2i/MedR": three[1]["t2i/MedR"]})
    with pytest.raises(UnknownNameError, match="metric in 'v1' 't2i/Hit@1'"):
        chart([three[0], other], "task", "Hit@1")
    assert chart([three[0], other], "task").metric == "t2i/MedR"
    with pytest.raises(UsageError, match="no metric by task in common"):
        chart([replace(three[0], values={"t2i/Hit@1": three[0]["t2i/Hit@1"]}), other], "task")


def test_figures_that_nobody_could_read(three: list[Run]) -> None:
    crowd = chart([made(f"run {number}") for number in range(len(COLOURS) + 1)], "task", "t2i/Hit@1")
    for figure in (bar_figure, radar_figure):
        with pytest.raises(UsageError, match="colours of a figure"):
            figure(crowd)
    pair = chart(made("pair", tasks=("colour", "ocr")), "task")
    with pytest.raises(UsageError, match="a radar chart cannot show 2 groups"):
        radar_figure(pair)
    assert len(draw_chart(pair)) == 1, "both means bars where a radar says nothing"
    with pytest.raises(UnknownNameError, match="did you mean radar"):
        draw_chart(pair, "rader")


# Files


def test_a_page_holds_all_it_needs(three: list[Run], tmp_path: Path) -> None:
    page = write_plot(chart(three, "task", "t2i/Hit@1"), tmp_path / "sub" / "tasks.html")
    text = page.read_text(encoding="utf-8")
    assert text.count("Plotly.newPlot(") >= 2
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?(?:https?:)?//", text)
    again = write_plot(chart(three, "task", "t2i/Hit@1"), page)
    assert again.read_text(encoding="utf-8") == text
    assert [file.name for file in page.parent.iterdir()] == ["tasks.html"]


def test_another_file_is_not_replaced(three: list[Run], tmp_path: Path) -> None:
    path = tmp_path / "tasks.html"
    path.write_text("mine")
    group_chart = chart(three, "task", "t2i/Hit@1")
    with pytest.raises(ConflictError, match="other content"):
        write_plot(group_chart, path)
    assert path.read_text() == "mine"
    write_plot(group_chart, path, overwrite=True)
    assert "Plotly" in path.read_text(encoding="utf-8")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ConflictError, match="is a folder"):
        write_plot(group_chart, tmp_path / "folder.html")


@pytest.mark.parametrize("name", ["tasks.gif", "tasks"])
def test_a_suffix_that_means_nothing(three: list[Run], tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.html, \.svg, \.png, \.pdf"):
        write_plot(chart(three, "task"), tmp_path / name)


def test_missing_packages_are_named(three: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group_chart = chart(three, "task")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "kaleido", None)
        with pytest.raises(MissingExtraError, match=r"crosslens\[plot-static\]"):
            write_plot(group_chart, tmp_path / "tasks.svg")
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(MissingExtraError, match=r"crosslens\[plot\]"):
        write_plot(group_chart, tmp_path / "tasks.html")


def test_a_picture_holds_one_figure(three: list[Run], tmp_path: Path) -> None:
    pytest.importorskip("kaleido", reason="pip install 'crosslens[plot-static]'")
    with pytest.raises(UsageError, match="2 figures do not fit"):
        write_plot(chart(three, "task"), tmp_path / "tasks.svg", "both")


def test_a_browser_that_fails_is_explained(three: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kaleido", reason="pip install 'crosslens[plot-static]'")
    import plotly.graph_objects

    def fail(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("no browser here\nand much more")

    monkeypatch.setattr(plotly.graph_objects.Figure, "to_image", fail)
    with pytest.raises(CrosslensError, match=r"no browser here\n  fix: install Chromium"):
        write_plot(chart(three, "task"), tmp_path / "tasks.svg")
    assert not list(tmp_path.iterdir())


# In a browser


@pytest.mark.slow
def test_pictures(three: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kaleido", reason="pip install 'crosslens[plot-static]'")
    monkeypatch.setenv("BROWSER_PATH", chromium())
    svg = write_plot(chart(three, "task", "t2i/Hit@1"), tmp_path / "tasks.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    for text in ("Hit@1, text → image, by task", "over images", *TASKS):
        assert text in svg
    png = write_plot(chart(three, "task", "t2i/Hit@1"), tmp_path / "radar.PNG", "radar").read_bytes()
    assert png.startswith(b"\x89PNG")


def test_the_page_draws_everything_and_asks_for_nothing(
    three: list[Run], tmp_path: Path, browser_page: Watched
) -> None:
    named = [*three[:2], replace(three[2], name=NASTY)]
    tasks = pl.col("task").replace("ocr", NASTY)
    runs = [replace(run, columns={"t2i": run.columns["t2i"].with_columns(tasks)}) for run in named]
    path = write_plot(chart(runs, "task", "t2i/Hit@1"), tmp_path / "tasks.html")
    page = browser_page.page
    page.goto(path.as_uri())
    page.wait_for_selector("#figure-2 .polar")
    assert page.locator("#figure-1 .bars .point path").count() == len(runs) * len(TASKS)
    assert page.locator("#figure-1 .errorbar").count() == len(runs) * len(TASKS)
    assert page.locator("#figure-2 .scatterlayer .trace").count() == 2 * len(runs), "an outline and its intervals"
    assert page.locator("#figure-1 .legend .traces").count() == len(runs)
    labels = page.locator("#figure-1 .ytick").all_text_contents()
    assert NASTY in labels, "names are shown as they are"
    assert page.locator("details tbody tr").count() == len(runs) * len(TASKS)
    page.locator("#figure-1 .bars .point path").first.hover(force=True)
    page.wait_for_selector("#figure-1 .hoverlayer .hovertext")
    assert "10 queries" in page.locator("#figure-1 .hoverlayer").text_content()
    assert browser_page.complaints == []
    assert browser_page.requests == [path.as_uri()], "nothing but the page itself"


def test_a_level_of_difficulty_has_one_colour_in_all_figures() -> None:
    dataset = Dataset.of({"a": ["x", "y"], "b": ["z"]})
    scores = {"first": np.array([[1, 0, 0], [0, 0, 0]]), "second": np.array([[1, 1, 0], [0, 0, 0]])}
    result = measure_difficulty(dataset, scores, dict.fromkeys(scores, 1.0))
    assert result.counts() == {"easy": 1, "medium": 1, "hard": 1}
    for level, colour in LEVEL_COLOURS.items():
        traces = [trace for trace in shares_figure([result]).data if trace.name == level]
        assert traces
        assert {trace.marker.color for trace in traces} == {colour}
    assert category_colours(("hard", "odd", "(none)"), "categories") == {
        "hard": LEVEL_COLOURS["hard"], "odd": COLOURS[0], "(none)": COLOURS[1]
    }  # fmt: skip
