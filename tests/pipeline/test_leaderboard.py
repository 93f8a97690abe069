"""Leaderboards: the best of each column, tests against it, and corrections, each against a slow reference."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.comparisons import Leaderboard, group_runs, leaderboard
from crosslens.core import UnknownNameError, UsageError
from crosslens.statistics import holm
from crosslens.values import MetricValues, Run

QUERIES = 60


def values(name: str, numbers: np.ndarray, queries: str = "q") -> MetricValues:
    ids = tuple(f"{queries}{row}" for row in range(len(numbers)))
    median = "MedR" in name
    figure = float(np.median(numbers) if median else numbers.mean())
    return MetricValues(
        name, ids, numbers, np.arange(len(numbers)), figure, figure - 0.1, figure + 0.1, "median" if median else "mean"
    )


def run(name: str, share: float, seed: int = 0, metrics: tuple[str, ...] = ("t2i/Hit@1", "t2i/MedR")) -> Run:
    """A model that is right on the first queries; another seed is right on others."""
    order = np.random.default_rng(seed).permutation(QUERIES)
    right = np.zeros(QUERIES)
    right[order[: round(share * QUERIES)]] = 1.0
    figures = {"t2i/Hit@1": right, "i2t/Hit@1": right[::-1].copy(), "t2i/MedR": 10 - 9 * right}
    return Run(name, {metric: values(metric, figures[metric]) for metric in metrics})


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    runs = {
        ("good", "coco"): run("good", 0.9), ("near", "coco"): run("near", 0.88, seed=1),
        ("bad", "coco"): run("bad", 0.2), ("bad", "flickr"): run("bad", 0.5),
        ("good", "flickr"): run("good", 0.4, metrics=("t2i/Hit@1",)),
    }  # fmt: skip
    return leaderboard(runs, permutations=500)


def test_rows_and_columns_are_in_the_order_given(board: Leaderboard) -> None:
    assert (board.models, board.datasets) == (("good", "near", "bad"), ("coco", "flickr"))
    assert board.metrics == ("t2i/Hit@1", "t2i/MedR")


def test_the_best_is_the_largest_or_where_lower_is_better_the_smallest(board: Leaderboard) -> None:
    assert board.best("coco", "t2i/Hit@1") == ("good",)
    assert board.best("flickr", "t2i/Hit@1") == ("bad",)
    assert board.best("coco", "t2i/MedR") == ("good", "near"), "equal medians share the place"
    cell = board.cell("bad", "coco", "t2i/MedR")
    assert cell is not None
    assert cell.mean == 10
    assert not cell.best


def test_missing_cells_are_missing(board: Leaderboard) -> None:
    assert board.cell("near", "flickr", "t2i/Hit@1") is None
    assert board.cell("good", "flickr", "t2i/MedR") is None
    assert len(board.cells) == 3 * 2 + 3
    with pytest.raises(UnknownNameError, match="unknown model in this leaderboard 'goud'"):
        board.cell("goud", "coco", "t2i/MedR")


def test_differences_are_those_of_a_comparison_with_the_best(board: Leaderboard) -> None:
    cell = board.cell("bad", "coco", "t2i/Hit@1")
    result = cl.compare(run("good", 0.9), run("bad", 0.2), metrics="t2i/Hit@1", permutations=500).results[0]
    assert cell is not None
    assert (cell.difference, cell.difference_low, cell.difference_high) == (result.difference, result.low, result.high)
    assert cell.p_value == result.p_value
    best = board.cell("good", "coco", "t2i/Hit@1")
    assert best is not None
    assert math.isnan(best.p_value)
    assert best.significant is None


def test_p_values_are_corrected_for_all_pairs(board: Leaderboard) -> None:
    # Slowly: every pair of models in every column is a test.
    columns = list(itertools.product(board.datasets, board.metrics))
    pairs = sum(
        1
        for dataset, metric in columns
        for first, second in itertools.combinations(board.models, 2)
        if (first, dataset, metric) in board.cells and (second, dataset, metric) in board.cells
    )
    assert board.tests == pairs == 3 + 3 + 1
    tested = [cell for cell in board.cells.values() if not math.isnan(cell.p_value)]
    others = [
        cl.compare(run("near", 0.88, seed=1), run("bad", 0.2), metrics=metric, permutations=500).results[0].p_value
        for metric in board.metrics
    ]
    for metric, p_value in zip(board.metrics, others, strict=True):  # the primary one, and the secondary one
        cells = [cell for cell in tested if cell.metric == metric]
        expected = holm([*(cell.p_value for cell in cells), p_value])
        np.testing.assert_array_equal([cell.adjusted_p for cell in cells], expected[:-1])
        assert [cell.significant for cell in cells] == [bool(p < 0.05) for p in expected[:-1]]
    marks = {cell.model: cell.significant for cell in tested if (cell.dataset, cell.metric) == ("coco", "t2i/Hit@1")}
    assert marks == {"near": False, "bad": True}


@pytest.mark.parametrize("correction", ["holm", "bh", "none"])
def test_the_same_two_runs_have_the_same_p_as_in_a_comparison_of_all_pairs(correction: str) -> None:
    runs = [run("a", 0.9), run("b", 0.75, seed=1), run("c", 0.2, seed=2)]
    options = {"permutations": 500, "correction": correction}
    board = leaderboard({(listed_run.name, "d"): listed_run for listed_run in runs}, **options)
    every = cl.compare(*runs, all_pairs=True, **options)
    assert board.tests == len(every.results) == 6
    tested = 0
    for result in every.results:
        pair = {result.baseline, result.other}
        (best, *_) = board.best("d", result.metric)
        if best in pair:
            cell = board.cell(*(pair - {best}), "d", result.metric)
            assert cell is not None
            assert (cell.p_value, cell.adjusted_p) == (result.p_value, result.adjusted_p)
            tested += 1
    assert tested == 4


@pytest.mark.slow
def test_a_family_of_equal_models_is_rarely_told_apart() -> None:
    """Six equal models, 30 times: about 5 % of the boards may name a difference."""
    random = np.random.default_rng(3)
    wrong = 0
    for _ in range(30):
        runs = {
            (f"m{n}", "d"): Run(f"m{n}", {"t2i/Hit@1": values("t2i/Hit@1", (random.random(30) < 0.5).astype(float))})
            for n in range(6)
        }
        wrong += any(cell.significant for cell in leaderboard(runs, permutations=500).cells.values())
    assert wrong <= 4


def test_json_has_every_number_and_no_nan(board: Leaderboard) -> None:
    content = json.loads(json.dumps(board.as_dict(), allow_nan=False))
    assert content["metrics"]["t2i/MedR"]["higher_is_better"] is False
    assert len(content["cells"]) == len(board.cells)
    by_key = {(cell["model"], cell["dataset"], cell["metric"]): cell for cell in content["cells"]}
    assert by_key["good", "coco", "t2i/Hit@1"]["p_value"] is None
    assert by_key["bad", "coco", "t2i/Hit@1"]["significant"] is True


def test_metrics_by_name() -> None:
    runs = {("a", "d"): run("a", 0.5, metrics=("t2i/Hit@1", "i2t/Hit@1")), ("b", "d"): run("b", 0.5)}
    assert leaderboard(runs, "MedR Hit@1", permutations=10).metrics == ("t2i/MedR", "t2i/Hit@1", "i2t/Hit@1")
    assert leaderboard(runs, ["i2t/R@1"], permutations=10).metrics == ("i2t/Hit@1",)
    with pytest.raises(UnknownNameError, match="unknown metric in these runs 't2i/MRR'"):
        leaderboard(runs, "t2i/MRR")
    with pytest.raises(UsageError, match="requires a run"):
        leaderboard({})
    with pytest.raises(UnknownNameError, match="correction"):
        leaderboard(runs, correction="bonferoni")


def test_runs_on_other_queries_are_shown_and_not_tested() -> None:
    run_of_others = Run("b", {"t2i/Hit@1": values("t2i/Hit@1", np.ones(5), queries="other")})
    result = leaderboard({("a", "d"): run("a", 0.5), ("b", "d"): run_of_others}, "t2i/Hit@1", permutations=10)
    cell = result.cell("a", "d", "t2i/Hit@1")
    assert cell is not None
    assert cell.significant is None
    assert "queries of 'a' are not in 'b'" in result.notes[0]
    assert "?: not tested" in " ".join(result.text().split())


def on(run: Run, fingerprint: str, name: str = "coco", model: str = "", **facts: Any) -> Run:
    inputs = {"images": {"model": model}, "captions": {"model": model}}
    return replace(run, provenance={"dataset": {"name": name, "fingerprint": fingerprint}, "inputs": inputs, **facts})


def test_runs_are_grouped_by_dataset_and_model() -> None:
    a, b = run("a", 0.5), run("b", 0.6)
    judged = on(a, "1", relevance={"t2i": {"source": "files/eccv.json", "fingerprint": "9"}})
    grouped = group_runs([on(a, "1"), on(b, "1"), on(a, "2"), judged, on(a, "1"), on(b, "1", options={"folds": 5})])
    assert list(grouped) == [
        ("a", "coco"), ("b", "coco"), ("a", "coco (2)"), ("a", "coco (eccv.json)"), ("a (2)", "coco"),
        ("b", "coco (5 folds)"),
    ]  # fmt: skip


def test_a_model_is_called_as_its_encoder_where_that_is_clear() -> None:
    first = on(run("tiny-coco", 0.5), "1", model="tiny@cb475ee360e7")
    second = on(run("tiny-flickr", 0.5), "2", "flickr", model="tiny@cb475ee360e7")
    assert list(group_runs([first, second])) == [("tiny", "coco"), ("tiny", "flickr")]
    again = replace(first, name="again")
    assert [model for model, _ in group_runs([first, second, again])] == ["tiny-coco", "tiny-flickr", "again"]


def test_six_hundred_tests_can_be_significant() -> None:
    """Eleven models by eleven metrics: one is right on 96 % of queries, the others on about 11 %, which are equal."""
    random = np.random.default_rng(3)
    names = [f"t2i/Hit@{k}" for k in range(1, 12)]

    def model(name: str, rate: float) -> Run:
        return Run(name, {metric: values(metric, (random.random(120) < rate) * 1.0) for metric in names})

    runs = {("good", "d"): model("good", 0.96)} | {(f"bad{n}", "d"): model(f"bad{n}", 0.11) for n in range(10)}
    board = leaderboard(runs, permutations=300)
    assert board.tests == 55 * 11
    cells = [cell for cell in board.cells.values() if not cell.best]
    assert all(cell.significant and cell.adjusted_p < 1e-6 for cell in cells)
    equal = leaderboard({key: run for key, run in runs.items() if key[0] != "good"}, permutations=300)
    assert not any(cell.significant for cell in equal.cells.values())


def test_too_few_images_to_decide() -> None:
    names = ("t2i/Hit@1", "t2i/Hit@5")
    few = {
        (model, "d"): Run(model, {name: values(name, np.full(6, value)) for name in names})
        for model, value in (("good", 1.0), ("bad", 0.0), ("worse", 0.0))
    }
    board = leaderboard(few, permutations=1000)
    row = next(line for line in board.text(None).splitlines() if line.startswith("bad "))
    assert row.split()[4] == row.split()[8] == "?"


def test_text(board: Leaderboard) -> None:
    lines = board.text(None).splitlines()
    assert lines[0] == "Hit@1 (primary), text → image"
    assert lines[1].split() == ["model", "coco", "flickr"]
    assert [lines[2].split()[place] for place in (0, 1, 4)] == ["good", "90.0", "*"]
    assert [lines[3].split()[place] for place in (0, 1, 4, 5)] == ["near", "88.3", "=", "–"]
    assert lines[4].split()[:2] == ["bad", "20.0"]
    text = " ".join(lines)
    assert "t2i/Hit@1 is the primary metric, corrected by Holm for 4 tests" in text
    assert "the others are secondary, corrected by Holm for 3 tests" in text
    assert "↓: lower is better." in text
    assert "All pairs of models are tests" in text
    assert all(len(line) <= 80 for line in board.text(80).splitlines())


def test_one_dataset_is_one_table() -> None:
    result = leaderboard({("a", "coco"): run("a", 0.5)}, permutations=10)
    lines = result.text(None).splitlines()
    assert lines[:2] == ["coco", lines[1]]
    assert lines[1].split() == ["model", "t2i/Hit@1", "(primary)", "t2i/MedR", "↓"]
    assert "*" not in result.text(None), "one model is not the best of anything"


def test_a_narrow_terminal_gets_the_figures_without_intervals(board: Leaderboard) -> None:
    text = board.text(30)
    assert text.splitlines()[2].split()[:3] == ["good", "90.0", "*"]
    assert "Intervals do not fit: see" in text
    assert "In brackets" not in text
