"""Any column of the dataset groups the results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.core import UnknownNameError, UsageError
from crosslens.pipeline import group_metrics, groupable_metrics
from crosslens.pipeline.grouping.groups import NO_VALUE
from crosslens.values import Run


def test_by_a_column_of_the_images(run: Run) -> None:
    groups = group_metrics(run, "category", "Hit@1")
    assert list(groups.values) == ["i2t/Hit@1", "t2i/Hit@1"]
    captions = groups.values["t2i/Hit@1"]
    assert {name: values.mean for name, values in captions.items()} == {"cat": 0.75, "dog": 0.0}
    assert captions["cat"].query_ids == ("img1#0", "img1#1", "img3#0", "img3#1")
    images = groups.values["i2t/Hit@1"]
    assert (images["dog"].n, images["dog"].excluded) == (1, 1)


def test_the_groups_of_a_metric_make_up_the_whole(run: Run) -> None:
    groups = group_metrics(run, "category").values["t2i/Recall@5"]
    total = sum(values.n * values.mean for values in groups.values()) / sum(values.n for values in groups.values())
    assert total == pytest.approx(run["t2i/Recall@5"].mean)


def test_medians_stay_medians(run: Run) -> None:
    groups = group_metrics(run, "category", "t2i/MedR").values["t2i/MedR"]
    assert groups["cat"].mean == np.median([1, 1, 1, 2])
    assert groups["dog"].mean == np.median([2, 4, 8, 9])


def test_numbers_are_split_at_quartiles_only_when_there_are_many(run: Run) -> None:
    assert list(group_metrics(run, "length", "t2i/Hit@1").values["t2i/Hit@1"]) == [str(n) for n in range(8)]
    numbers = pl.DataFrame({"size": [0.5, 1, None, *range(3, 16), 20.0]})
    long = run["t2i/Hit@1"]
    values = replace(long, query_ids=tuple(map(str, range(17))), values=np.ones(17), clusters=np.arange(17))
    many = replace(run, values={"t2i/Hit@1": values}, columns={"t2i": numbers})
    groups = group_metrics(many, "size").values["t2i/Hit@1"]
    assert list(groups) == ["[0.5, 4.75)", "[4.75, 8.5)", "[8.5, 12.25)", "[12.25, 20]", NO_VALUE]
    assert sum(values.n for values in groups.values()) == 17
    assert groups[NO_VALUE].query_ids == ("2",)


def test_a_list_puts_a_query_into_each_of_its_groups(run: Run) -> None:
    groups = group_metrics(run, "tags", "t2i/Hit@1")
    assert groups.overlapping
    sizes = {name: values.n for name, values in groups.values["t2i/Hit@1"].items()}
    assert list(sizes.items()) == [("a", 3), (NO_VALUE, 2), ("b", 2), ("c", 2)], "the largest first, then by name"
    assert groups.values["t2i/Hit@1"]["c"].query_ids == ("img3#1", "img4#0"), "a value twice in a list counts once"
    assert "A query with several values of tags counts in each of their groups." in groups.text()


def test_a_stored_run_groups_alike(run: Run, tmp_path: Path) -> None:
    loaded = Run.load(run.save(tmp_path / "run"))
    for column in ("category", "tags", "length"):
        assert group_metrics(loaded, column).text() == group_metrics(run, column).text()


def test_a_column_of_captions_groups_caption_queries_only(run: Run, tmp_path: Path) -> None:
    loaded = Run.load(run.save(tmp_path / "run"))
    assert "tags" in loaded.columns["i2t"].columns, "one table holds both directions"
    for stored in (run, loaded):
        assert list(group_metrics(stored, "tags", "Hit@1").values) == ["t2i/Hit@1"]
        assert {name.partition("/")[0] for name in groupable_metrics(stored, "tags")} == {"t2i"}
        with pytest.raises(UsageError, match="i2t/Hit@1 has no values by tags\n  fix: choose from t2i/Hit@1, "):
            group_metrics(stored, "tags", "i2t/Hit@1")


def test_nothing_to_group_by(run: Run) -> None:
    with pytest.raises(UsageError, match="no columns to group by"):
        group_metrics(replace(run, columns={}), "category")
    with pytest.raises(UsageError, match="no metric of the run 'toy model' has values by empty"):
        group_metrics(replace(run, columns={"i2t": pl.DataFrame({"empty": [None] * 4})}), "empty")


def test_an_unknown_column_suggests_near_ones(run: Run) -> None:
    with pytest.raises(UnknownNameError, match="did you mean category"):
        group_metrics(run, "categroy")


def test_a_column_whose_name_a_run_needs_itself(run: Run, tmp_path: Path) -> None:
    columns = {direction: table.rename({"category": "query"}) for direction, table in run.columns.items()}
    stored = Run.load(replace(run, columns=columns).save(tmp_path / "run"))
    assert group_metrics(stored, "query", "t2i/Hit@1").values["t2i/Hit@1"]["cat"].mean == 0.75
    assert group_metrics(stored, "query").column == "query_"


def test_metrics_without_a_value_per_query_are_refused_when_asked_for(run: Run) -> None:
    with pytest.raises(UsageError, match="Rsum has no values by category"):
        group_metrics(run, "category", "Rsum")
    assert "Rsum" not in group_metrics(run, "category").values


def test_intervals_belong_to_the_group_and_repeat(run: Run) -> None:
    first, second = (group_metrics(run, "category", "t2i/Hit@1").values["t2i/Hit@1"]["cat"] for _ in range(2))
    assert first.low <= first.mean <= first.high
    assert first.interval == second.interval


def test_the_text(run: Run) -> None:
    lines = group_metrics(run, "category", "Hit@1").text().splitlines()
    assert lines[0] == "image → text"
    assert lines[1].split() == ["category", "queries", "Hit@1"]
    assert lines[2].startswith("cat              2   100.0")
    assert any(line == "text → image" for line in lines)
    assert lines[-1].startswith("Hit@k: any relevant")


def test_many_groups_are_cut_with_a_word_about_it(run: Run) -> None:
    groups = group_metrics(run, "tags", "t2i/Hit@1", largest=2)
    assert list(groups.values["t2i/Hit@1"]) == ["a", NO_VALUE]
    assert groups.left_out == {"t2i": 2}
    assert groups.as_dict()["left_out"] == {"t2i": 2}
    assert "\n… and 2 smaller groups\n" in groups.text()
    assert "smaller" not in group_metrics(run, "tags", "t2i/Hit@1", largest=4).text()


def test_json(run: Run) -> None:
    content = group_metrics(run, "category", "t2i/Hit@1").as_dict()
    assert content["by"] == "category"
    assert content["metrics"]["t2i/Hit@1"]["cat"]["n"] == 4


def test_groups_of_one_size_are_in_the_order_of_their_names() -> None:
    """An order that a hash decides would print another table each time."""
    from crosslens.pipeline.grouping.groups import _largest_first

    names = [f"g{n:02}" for n in range(40)]
    assert _largest_first(pl.Series([*reversed(names), "last", "last", None])) == ["last", *names]
