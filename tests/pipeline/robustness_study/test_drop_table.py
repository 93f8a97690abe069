"""Several studies in one table: every cell, means over the models of a dataset, intervals, names, mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.pipeline import drop_table
from crosslens.report import drop_table_text, render_drop_table
from crosslens.statistics import Bootstrap, difference_bounds
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
        assert table.mean(column) == pytest.approx(np.mean(list(drops.values())))
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


def test_a_perturbation_that_a_study_lacks(studies: dict[str, cl.Robustness]) -> None:
    other = study("c", "small", 4, names=("none", "char_swap", "extra"))
    table = drop_table({**studies, "c": other})
    assert table.perturbations == ("char_swap", "shuffle", "extra")
    assert ("c, small", "shuffle") not in table.cells
    assert "–" in drop_table_text(table, None)
    assert ("small", "extra") not in drop_table({**studies, "c": other}, by="dataset").cells


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
    assert render_drop_table(table, "markdown")[""].startswith("| perturbation | a, small | a, small, % | b, small |")
    row = csv.row(0, named=True)
    assert row["percent"] == pytest.approx(100 * row["drop"] / row["before"])
    assert f"{row['percent']:+.1f}" in drop_table_text(table, None)
    assert "[" in drop_table_text(table, 200)
    narrow = drop_table_text(table, 60)
    assert "Intervals do not fit" in " ".join(narrow.split())
    assert max(map(len, narrow.splitlines())) <= 80
    content = table.as_dict()
    assert content["columns"] == list(table.columns)
    assert len(content["drops"]) == 6


def test_mistakes(studies: dict[str, cl.Robustness]) -> None:
    with pytest.raises(cl.CrosslensError, match="metric in all of these studies"):
        drop_table(studies, "t2i/Hit@3")
    with pytest.raises(cl.CrosslensError, match="column of robustness studies"):
        drop_table(studies, by="model")
    with pytest.raises(cl.CrosslensError, match="export format of robustness studies"):
        render_drop_table(drop_table(studies), "trec")
    with pytest.raises(cl.CrosslensError, match="no studies"):
        drop_table({})


def test_a_stored_study_without_percent_is_read(studies: dict[str, cl.Robustness], tmp_path: Path) -> None:
    study = studies["a-small"]
    drops = study.drops.drop("percent", "percent_low", "percent_high")
    replace(study, tables={**study.tables, "drops": drops}).save(tmp_path / "old")
    loaded = cl.Robustness.load(tmp_path / "old").drops
    assert loaded["percent"].to_list() == pytest.approx(study.drops["percent"].to_list())
    assert loaded["percent_low"].is_nan().all()
