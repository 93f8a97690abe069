"""Several studies in one table: every cell, means over the models of a dataset, intervals, names, mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.pipeline import drop_table
from crosslens.report import render_drop_table
from crosslens.statistics import Bootstrap, difference_bounds, holm, paired_permutation
from tests.pipeline.robustness_study.letters import QUICK
from tests.pipeline.robustness_study.test_list_study import random_lists, relevant, slow_study

NAMES = ("none", "char_swap", "shuffle")


def study(model: str, dataset: str, seed: int, images: int = 30, names: tuple[str, ...] = NAMES) -> cl.Robustness:
    runs = {name: random_lists(images=images, seed=10 * seed + n) for n, name in enumerate(names)}
    options = {"name": model, "dataset_name": dataset, **QUICK}
    return cl.robustness_from_runs(runs, relevant(runs["none"]), **options)


def slow_drops(seed: int, images: int = 30) -> dict[str, float]:
    runs = {name: random_lists(images=images, seed=10 * seed + n) for n, name in enumerate(NAMES)}
    return slow_study(runs, relevant(runs["none"]))["drops"]


@pytest.fixture(scope="module")
def studies() -> dict[str, cl.Robustness]:
    return {
        "a-small": study("a", "small", 1),
        "b-small": study("b", "small", 2),
        "a-large": study("a", "large", 3, images=40),
    }


def test_every_model_and_dataset(studies: dict[str, cl.Robustness]) -> None:
    table = drop_table(studies)
    assert table.metric == "t2i/Rsum"
    assert table.columns == ("a, small", "b, small", "a, large")
    for column, seed, images in (("a, small", 1, 30), ("b, small", 2, 30), ("a, large", 3, 40)):
        drops = {name: table.cells[column, name].drop for name in table.perturbations}
        assert drops == pytest.approx(slow_drops(seed, images))
        assert table.means[column].drop == pytest.approx(np.mean(list(drops.values())))
    assert drop_table({"x": studies["a-small"], "y": studies["b-small"]}).columns == ("a", "b")
    assert drop_table({"x": studies["a-small"], "y": studies["a-large"]}).columns == ("small", "large")
    assert drop_table({"x": studies["a-small"], "y": studies["a-small"]}).columns == ("a", "a (y)")


def test_means_over_models(studies: dict[str, cl.Robustness]) -> None:
    table = drop_table(studies, by="dataset")
    assert table.columns == ("small", "large")
    for name in table.perturbations:
        cell = table.cells["small", name]
        assert cell.models == 2
        assert cell.drop == pytest.approx((slow_drops(1)[name] + slow_drops(2)[name]) / 2)
        changes = []
        for label in ("a-small", "b-small"):
            rows = studies[label].queries.filter(pl.col("perturbation") == name).to_dicts()
            changes.append({row["query"]: row["hits_before"] - row["hits_after"] for row in rows})
        both = np.array([50 * (changes[0][query] + changes[1][query]) for query in changes[0]])
        clusters = np.array([int(query[1:].partition("#")[0]) for query in changes[0]])
        expected = Bootstrap(clusters, 50, 0).estimate(both, bounds=difference_bounds((0.0, 300.0)))
        assert (cell.low, cell.high) == pytest.approx((expected.low, expected.high))
        models = [drop_table({"": studies[label]}).cells[label[0], name].percent for label in ("a-small", "b-small")]
        assert cell.percent == pytest.approx(np.mean(models)), "the mean of percents, not the percent of means"
        assert cell.percent_low < cell.percent < cell.percent_high
        assert table.cells["large", name].low == drop_table({"": studies["a-large"]}).cells["a", name].low
    hits = drop_table(studies, "t2i/Hit@1", by="dataset").cells["small", "char_swap"]
    assert np.isnan(hits.low), "no values per query are stored to resample"
    assert np.isfinite(hits.drop)


def changes(study: cl.Robustness, names: tuple[str, ...] = NAMES[1:]) -> dict[str, dict[str, float]]:
    """By query: Rsum before, and the mean after the perturbations; slowly."""
    rows = study.queries.to_dicts()
    queries = dict.fromkeys(row["query"] for row in rows)
    after = {
        query: np.mean(
            [100 * row["hits_after"] for row in rows if row["query"] == query and row["perturbation"] in names]
        )
        for query in queries
    }
    before = {row["query"]: 100 * row["hits_before"] for row in rows}
    return {query: {"before": before[query], "after": float(after[query])} for query in sorted(queries)}


def test_the_mean_has_an_interval(studies: dict[str, cl.Robustness]) -> None:
    table = drop_table(studies)
    scores_by_query = changes(studies["a-small"])
    drops = np.array([query["before"] - query["after"] for query in scores_by_query.values()])
    clusters = np.array([int(query[1:].partition("#")[0]) for query in scores_by_query])
    expected = Bootstrap(clusters, 50, 0).estimate(drops, bounds=difference_bounds((0.0, 300.0)))
    mean = table.means["a, small"]
    assert (mean.drop, mean.low, mean.high) == pytest.approx((expected.mean, expected.low, expected.high))
    assert mean.percent == pytest.approx(100 * mean.drop / mean.before)
    assert mean.percent_low < mean.percent < mean.percent_high
    averaged = drop_table(studies, by="dataset").means["small"]
    assert averaged.drop == pytest.approx((mean.drop + table.means["b, small"].drop) / 2)
    assert averaged.low < averaged.drop < averaged.high


def test_models_on_the_same_queries_are_tested_against_each_other(studies: dict[str, cl.Robustness]) -> None:
    table = drop_table(studies)
    (test,) = table.tests
    assert (test.first, test.second, test.perturbations) == ("a, small", "b, small", 2), "the large set has others"
    ours, theirs = changes(studies["a-small"]), changes(studies["b-small"])
    assert list(ours) == list(theirs)
    clusters = np.array([int(query[1:].partition("#")[0]) for query in ours])
    drops = [
        np.array([row["before"] - row["after"] for row in scores_by_query.values()])
        for scores_by_query in (ours, theirs)
    ]
    testing = {"permutations": QUICK["permutations"], "resamples": QUICK["resamples"]}
    expected = paired_permutation(drops[0], drops[1], clusters, bounds=(-300.0, 300.0), **testing)
    assert (test.points, test.low, test.high, test.p) == pytest.approx(
        (expected.difference, *expected.interval, expected.p_value)
    )
    first, second = (table.means[column].percent for column in ("a, small", "b, small"))
    assert test.percent == pytest.approx(first - second)
    assert test.percent_low <= test.percent <= test.percent_high
    assert [test.adjusted_p, test.percent_adjusted_p] == list(holm([test.p, test.percent_p]))
    assert drop_table(studies, by="dataset").tests == (), "other datasets have other queries"
    assert drop_table(studies, "t2i/Hit@1").tests == (), "no values per query are stored"


def test_a_model_that_starts_low_loses_few_points_and_much_percent() -> None:
    """Of 100 captions the strong model finds 90 and loses 30, the weak one finds 20 and loses 15."""
    images = [f"i{n}" for n in range(100)]

    def lists(hits: int) -> dict[str, list[str]]:
        far = [f"x{n}" for n in range(10)]
        return {f"c{n}": [images[n], *far] if n < hits else [*far, images[n]] for n in range(100)}

    judged = {f"c{n}": [images[n]] for n in range(100)}
    studies = {
        model: cl.robustness_from_runs(
            {"none": lists(before), "typo": lists(after)},
            judged,
            name=model,
            dataset_name="set",
            permutations=2000,
            resamples=50,
        )
        for model, before, after in (("strong", 90, 60), ("weak", 20, 5))
    }
    table = drop_table(studies)
    (test,) = table.tests
    assert (test.points, test.percent) == pytest.approx((90 - 45, 100 * 30 / 90 - 100 * 15 / 20))
    assert test.percent_low < test.percent < test.percent_high < 0 < test.low < test.points
    assert max(test.adjusted_p, test.percent_adjusted_p) < 0.05
    text = " ".join(str(table).split())
    assert "before 270.0 60.0" in text
    assert "strong − weak +45.0" in text
    assert "corrected by Holm for 2 tests" in text
    for form, minus in (("latex", "$-$"), ("markdown", "−")):
        written = render_drop_table(table, form)[""]
        assert written.count(f"strong {minus} weak") == 1
        assert "270.0" in written
    content = table.as_dict()
    assert content["means"]["weak"]["before"] == 60
    assert content["tests"][0]["percent_adjusted_p"] == test.percent_adjusted_p


def test_the_same_lists_have_no_width_in_any_mean() -> None:
    none = random_lists(seed=1)
    studies = {
        name: cl.robustness_from_runs({"none": none, "same": none}, relevant(none), name=name, **QUICK) for name in "ab"
    }
    for table in (drop_table(studies), drop_table(studies, by="dataset")):
        for cell in (*table.cells.values(), *table.means.values()):
            limits = (cell.drop, cell.low, cell.high, cell.percent, cell.percent_low, cell.percent_high)
            assert limits == (0,) * 6
        assert "0.0 [0.0, 0.0]" in " ".join(str(table).split())


def test_both_directions_are_tested_too(tmp_path: Path) -> None:
    """The headline of a study of both directions is not in the table of queries."""
    dataset = cl.Dataset.of({f"i{n}": [f"a dog {n}", f"a cat {n}"] for n in range(12)})
    random = np.random.default_rng(0)
    images, captions = random.normal(size=(12, 4)), random.normal(size=(24, 4))
    studies = {
        name: cl.robustness(
            dataset,
            images=images,
            captions=captions + noise,
            variants={"shift": captions[::-1], "turn": random.normal(size=(24, 4))},
            name=name,
            **QUICK,
        )
        for name, noise in (("a", 0.0), ("b", 2.0))
    }
    studies["a"].save(tmp_path / "a")
    studies["a"] = cl.Robustness.load(tmp_path / "a")
    table = drop_table(studies)
    assert table.metric == "Rsum"
    assert len(table.tests) == 1
    mean = table.means["a"]
    assert mean.low < mean.drop < mean.high


def test_a_perturbation_that_a_study_lacks(studies: dict[str, cl.Robustness]) -> None:
    third_study = study("c", "small", 4, names=("none", "char_swap", "extra"))
    table = drop_table({**studies, "c": third_study})
    assert table.perturbations == ("char_swap", "shuffle", "extra")
    assert ("c, small", "shuffle") not in table.cells
    assert "–" in str(table)
    assert ("small", "extra") not in drop_table({**studies, "c": third_study}, by="dataset").cells


def test_formats(studies: dict[str, cl.Robustness]) -> None:
    table = drop_table(studies)
    csv = pl.read_csv(render_drop_table(table, "csv")[""].encode())
    assert csv.height == 6
    assert csv.filter((pl.col("column") == "a, large") & (pl.col("perturbation") == "shuffle"))["drop"].item() == (
        pytest.approx(slow_drops(3, 40)["shuffle"])
    )
    latex = render_drop_table(table, "latex")[""]
    assert "\\toprule" in latex
    assert "char\\_swap & " in latex
    assert "\n| perturbation | a, small | a, small, % | b, small |" in render_drop_table(table, "markdown")[""]
    row = csv.row(0, named=True)
    assert row["percent"] == pytest.approx(100 * row["drop"] / row["before"])
    assert f"{row['percent']:+.1f}" in str(table)
    assert "[" in table.text(200)
    narrow = table.text(60)
    assert "Intervals do not fit" in " ".join(narrow.split())
    assert max(map(len, narrow.splitlines())) <= 80
    content = table.as_dict()
    assert content["columns"] == list(table.columns)
    assert len(content["drops"]) == 6


def test_heat_maps_show_percent_and_points(studies: dict[str, cl.Robustness]) -> None:
    table = drop_table(studies)
    ((percent, points),) = (section.charts for section in table.sections())
    assert percent.rows == points.rows == (*table.perturbations, "mean")
    assert percent.columns[0] == f"a, small ({table.means['a, small'].before:.1f} before)"
    for row, name in enumerate(table.perturbations):
        for place, column in enumerate(table.columns):
            cell = table.cells[column, name]
            assert percent.cells[row][place].value == cell.percent
            point = points.cells[row][place]
            assert (point.value, point.low, point.high) == (cell.drop, cell.low, cell.high)
    assert points.cells[-1][1].value == table.means["b, small"].drop


def test_mistakes(studies: dict[str, cl.Robustness]) -> None:
    with pytest.raises(cl.CrosslensError, match="metric in all of these studies"):
        drop_table(studies, "t2i/Hit@3")
    with pytest.raises(cl.CrosslensError, match="column of robustness studies"):
        drop_table(studies, by="model")
    with pytest.raises(cl.CrosslensError, match="export format of robustness studies"):
        render_drop_table(drop_table(studies), "trec")
    with pytest.raises(cl.CrosslensError, match="no studies"):
        drop_table({})


def test_a_stored_study_without_a_column_is_refused(studies: dict[str, cl.Robustness], tmp_path: Path) -> None:
    study = studies["a-small"]
    replace(study, drops=study.drops.drop("percent")).save(tmp_path / "old")
    with pytest.raises(cl.CrosslensError, match=r"drops\.parquet.*no column 'percent'"):
        cl.Robustness.load(tmp_path / "old")
