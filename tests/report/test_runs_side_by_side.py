"""Runs beside each other: the figures are those of each run alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from crosslens.core import UnknownNameError, UsageError
from crosslens.pipeline import group_metrics, over_same_queries, side_by_side
from crosslens.pipeline.grouping.side_by_side import WHOLE
from crosslens.values import Run


@pytest.fixture
def second_run(run: Run) -> Run:
    """Captions ask only, and one group has another name."""
    columns = run.columns["t2i"].with_columns(pl.col("category").replace("dog", "wolf"))
    values = {name: values for name, values in run.values.items() if name.startswith("t2i/")}
    return replace(run, name="other", values=values, columns={"t2i": columns})


def test_every_figure_is_that_of_the_run_alone(run: Run, second_run: Run) -> None:
    table = side_by_side([run, second_run], "t2i/Hit@1", column="category")
    for either in (run, second_run):
        alone = group_metrics(either, "category", "t2i/Hit@1").values["t2i/Hit@1"]
        here = table.values["t2i/Hit@1"][either.name]
        assert {group: values.interval for group, values in here.items() if group != WHOLE} == {
            group: values.interval for group, values in alone.items()
        }
        assert here[WHOLE] is either["t2i/Hit@1"]


def test_the_text_by_group(run: Run, second_run: Run) -> None:
    lines = side_by_side([run, second_run], "t2i/Hit@1", column="category").text().splitlines()
    assert lines[0] == "Hit@1, text → image"
    assert lines[1].split() == ["category", "toy", "model", "other"]
    rows = {line.split()[0]: line for line in lines[2:6]}
    assert list(rows) == ["cat", "dog", "wolf", WHOLE]
    assert rows["dog"].endswith("–"), "a group that the other run does not have"
    assert rows["wolf"].split()[1] == "–"
    assert rows["cat"].split()[1] == "75.0"
    assert "Queries, text → image: 8 each." in lines


def test_metrics_that_only_some_runs_have(run: Run, second_run: Run) -> None:
    table = side_by_side([second_run, run])
    assert list(table.values) == [*second_run, *(name for name in run if name not in second_run.values)]
    lines = {line.split()[0]: line for line in table.text().splitlines() if line}
    assert lines["i2t/MedR"].split()[1] == "–"
    assert "Queries, image → text: 3 each." in table.text()
    with pytest.raises(UnknownNameError, match="did you mean"):
        side_by_side([run, second_run], "Hti@1")


def test_intervals_give_way_where_they_do_not_fit(run: Run) -> None:
    runs = [replace(run, name=f"a long name {number}") for number in range(4)]
    text = side_by_side(runs, "t2i/Hit@1").text(80)
    assert "[" not in text
    assert "Intervals do not fit" in text
    assert max(map(len, text.splitlines())) <= 80
    wide = side_by_side(runs, "t2i/Hit@1").text(200)
    assert wide.count("[12.5, 62.5]") == 4
    assert "In brackets: 95% intervals" in wide


def test_two_runs_of_one_name_stay_two(run: Run) -> None:
    assert side_by_side([run, run], "t2i/Hit@1").runs == ("toy model", "toy model (2)")


def test_the_largest_groups_of_all_runs_together(run: Run) -> None:
    few = replace(run, name="few", values={"t2i/Hit@1": replace(
        run["t2i/Hit@1"], values=np.array([np.nan] * 6 + [1.0, 1.0])
    )})  # fmt: skip
    table = side_by_side([run, few], "t2i/Hit@1", column="category", largest=1)
    assert [list(groups) for groups in table.values["t2i/Hit@1"].values()] == [["dog", WHOLE], ["dog", WHOLE]]
    assert table.left_out == {"t2i/Hit@1": 1}
    assert "… and 1 smaller group" in table.text()


def test_columns_that_cannot_be(run: Run, second_run: Run) -> None:
    with pytest.raises(UnknownNameError, match="category"):
        side_by_side([run, second_run], column="categroy")
    with pytest.raises(UsageError, match="Rsum has no values by category"):
        side_by_side([run, run], "Rsum", column="category")


def test_groups_in_an_order_of_ones_own(run: Run) -> None:
    table = side_by_side([run], "t2i/Hit@1", column="category")
    assert [line.split()[0] for line in table.text().splitlines()[2:5]] == ["cat", "dog", WHOLE]
    turned = table.in_order(["dog", "zebra"])
    assert [line.split()[0] for line in turned.text().splitlines()[2:5]] == ["dog", "cat", WHOLE]


def test_galleries_are_shown_over_the_queries_that_all_have(run: Run) -> None:
    """The larger gallery has the captions in another order, one of them with another text, and lacks another."""
    metric, order = "t2i/Hit@1", [7, 2, 5, 0, 3, 6, 1]
    first = replace(run, name="small", columns={
        "t2i": run.columns["t2i"].with_columns(pl.Series("text", [f"caption {row}" for row in range(8)]))
    })  # fmt: skip
    texts = first.columns["t2i"][order].with_columns(
        pl.when(pl.col("text") == "caption 5").then(pl.lit("a word added")).otherwise(pl.col("text")).alias("text")
    )
    of = run[metric]
    hits = np.array([0.0, 0, 1, 1, 0, 0, 1])
    values = replace(
        of, query_ids=tuple(of.query_ids[row] for row in order), values=hits, clusters=of.clusters[order]
    )  # fmt: skip
    second = replace(run, name="large", values={metric: values}, columns={"t2i": texts})
    restricted = over_same_queries({"small": first, "large": second}, metric)
    both = [row for row in range(8) if row in order and row != 5]
    assert [values[metric].query_ids for values in restricted.values()] == [
        tuple(of.query_ids[row] for row in both)
    ] * 2
    assert restricted["small"][metric].values.tolist() == [of.values[row] for row in both]
    assert restricted["large"][metric].values.tolist() == [hits[order.index(row)] for row in both]
    grouped = side_by_side(list(restricted.values()), metric, column="category").values[metric]["large"]
    categories = [first.columns["t2i"]["category"][row] for row in both]
    for group in ("cat", "dog"):
        of_group = [hits[order.index(row)] for row, name in zip(both, categories, strict=True) if name == group]
        assert grouped[group].mean == pytest.approx(np.mean(of_group))
    assert over_same_queries({"small": first, "other": run}, metric) == {}, "a run without texts"


def test_json(run: Run, second_run: Run) -> None:
    whole = side_by_side([run, second_run], "Hit@1").as_dict()
    assert whole["metrics"]["t2i/Hit@1"]["other"]["mean"] == 0.375
    assert list(whole["metrics"]["i2t/Hit@1"]) == ["toy model"]
    grouped = side_by_side([run, second_run], "t2i/Hit@1", column="category").as_dict()
    assert grouped["by"] == "category"
    assert grouped["metrics"]["t2i/Hit@1"]["toy model"]["cat"]["n"] == 4
