"""A metric of runs by group: the numbers drawn are the run's, and the page needs nothing but a browser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from crosslens.core import Bars, Figure, UnknownNameError, UsageError
from crosslens.pipeline import GroupChart, group_metrics, plot
from crosslens.values import MetricValues, Run

TASKS = ("colour", "count", "object", "ocr")
NASTY = "</script><script>alert('x')</script> & <b>bold</b>"


def run_by_task(name: str, per_task: int = 10, seed: int = 0, tasks: tuple[str, ...] = TASKS) -> Run:
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
    return [run_by_task("v0"), run_by_task("v1", 20, 1), run_by_task("v2", 20, 2)]


# What is shown


def test_the_numbers_are_those_of_the_groups(three: list[Run]) -> None:
    group_chart = plot(three, "task", "t2i/Hit@1")
    assert list(group_chart.runs) == ["v0", "v1", "v2"]
    for run in three:
        groups = group_metrics(run, "task", "t2i/Hit@1").values["t2i/Hit@1"]
        assert {group: (values.mean, values.interval) for group, values in group_chart.runs[run.name].items()} == {
            group: (values.mean, values.interval) for group, values in groups.items()
        }
        assert group_chart.whole[run.name] is run["t2i/Hit@1"]


def bars(group_chart: GroupChart) -> Bars:
    (section,) = group_chart.sections()
    (drawn,) = section.charts
    assert isinstance(drawn, Bars)
    return drawn


def test_bars_carry_means_and_intervals(three: list[Run]) -> None:
    group_chart = plot(three, "task", "t2i/Hit@1")
    drawn = bars(group_chart)
    assert drawn.groups == group_chart.groups
    assert drawn.limits == (0, 1)
    for line, (run, groups) in zip(drawn.series, group_chart.runs.items(), strict=True):
        values = [groups[group] for group in drawn.groups]
        assert [(figure.value, figure.low, figure.high) for figure in line.figures] == [
            (metric.mean, metric.low, metric.high) for metric in values
        ]
        assert f"{Figure.percent(group_chart.whole[run].mean)} over all" in line.name
    alone = bars(plot(three[0], "task", "t2i/Hit@1"))
    assert alone.mark is not None
    assert {figure.value for figure in alone.mark.figures} == {three[0]["t2i/Hit@1"].mean}


def test_words_say_what_is_shown(three: list[Run]) -> None:
    alone = plot(three[0], "task", "t2i/Hit@1")
    assert alone.title == "Hit@1, text → image, by task"
    assert alone.facts == (*("v0 on scenes-v0", "40 caption queries", "95% intervals over images", "higher is better"),)
    several = plot(three, "task", "t2i/Hit@1").facts
    assert "40 (v0), 80 (v1), 80 (v2) caption queries" in several
    assert "lower is better" in plot(three, "task", "t2i/MedR").facts
    assert bars(alone).title == alone.title
    assert "95% intervals over images" in str(alone)
    assert "over all queries" in bars(alone).about
    assert bars(plot(three, "task", "t2i/MedR")).limits is None


def test_order_is_best_first_and_numbers_keep_theirs(three: list[Run]) -> None:
    group_chart = plot(three, "task", "t2i/Hit@1")
    means = [group_chart.runs["v0"][group].mean for group in group_chart.groups]
    assert means == sorted(means, reverse=True)
    ranks = plot(three, "task", "t2i/MedR")
    places = [ranks.runs["v0"][group].mean for group in ranks.groups]
    assert places == sorted(places)
    assert plot(three, "things", "t2i/Hit@1").groups == ("0", "1", "2")


def test_groups_that_some_runs_lack(three: list[Run]) -> None:
    other_tasks = run_by_task("other", tasks=("colour", "code", "ocr"))
    group_chart = plot([three[0], other_tasks], "task", "t2i/Hit@1")
    assert set(group_chart.groups) == {*TASKS, "code"}
    assert "code" not in group_chart.runs["v0"]
    missing = bars(group_chart).series[0].figures[group_chart.groups.index("code")]
    assert not missing.known
    assert sum(row[0] == "code" for row in next(iter(group_chart.sections())).tables[0].rows) == 1


def test_many_groups_are_cut_with_a_word_about_it() -> None:
    many = run_by_task("many", 2, tasks=tuple(f"task {number:02}" for number in range(30)))
    group_chart = plot(many, "task", "t2i/Hit@1")
    assert (len(group_chart.groups), group_chart.left_out) == (20, 10)
    assert "10 smaller groups not shown" in group_chart.facts
    whole = plot(many, "task", "t2i/Hit@1", largest=None)
    assert len(whole.groups) == 30


def test_without_intervals(three: list[Run]) -> None:
    bare = replace(three[0]["t2i/Hit@1"], low=np.nan, high=np.nan)
    group_chart = plot(replace(three[0], values={"t2i/Hit@1": bare}), "task")
    runs = {
        run: {group: replace(values, low=np.nan, high=np.nan) for group, values in values_of.items()}
        for run, values_of in group_chart.runs.items()
    }
    group_chart = replace(group_chart, runs=runs)
    assert "no intervals" in group_chart.facts
    assert not any(figure.bounded for figure in bars(group_chart).series[0].figures)


# What cannot be


def test_a_metric_of_two_directions_is_asked_about(run: Run) -> None:
    with pytest.raises(UsageError, match="choose i2t/Hit@1 or t2i/Hit@1"):
        plot(run, "category", "Hit@1")
    assert plot(run, "tags", "Hit@1").metric == "t2i/Hit@1", "images have no tags: one direction is left"
    assert plot(run, "category").metric == "t2i/Hit@1"
    with pytest.raises(UsageError, match="Rsum has no values by category"):
        plot(run, "category", "Rsum")
    with pytest.raises(UnknownNameError, match="did you mean category"):
        plot(run, "categroy")
    with pytest.raises(UnknownNameError, match="did you mean"):
        plot(run, "category", "Hti@1")


def test_runs_without_the_metric(three: list[Run], run: Run) -> None:
    median_only = replace(three[1], values={"t2i/MedR": three[1]["t2i/MedR"]})
    with pytest.raises(UnknownNameError, match="metric in 'v1' 't2i/Hit@1'"):
        plot([three[0], median_only], "task", "Hit@1")
    assert plot([three[0], median_only], "task").metric == "t2i/MedR"
    with pytest.raises(UsageError, match="no metric by task in common"):
        plot([replace(three[0], values={"t2i/Hit@1": three[0]["t2i/Hit@1"]}), median_only], "task")
