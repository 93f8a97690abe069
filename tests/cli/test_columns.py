"""``--columns FILE``: columns of a table of one's own as groups of show, plot and compare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.statistics import holm
from tests.cli.conftest import Call, flags


@pytest.fixture(scope="module")
def runs(study: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    from crosslens.cli import main

    folder = tmp_path_factory.mktemp("columns")
    for model in ("model-a", "model-b"):
        words = ("evaluate", *flags(study, model), "--metrics", "Hit@1", "-o", folder / model)
        assert main([str(word) for word in words]) == 0
    return [folder / "model-a", folder / "model-b"]


def hits(run: Path, direction: str = "t2i") -> dict[str, float]:
    values = cl.Run.load(run)[f"{direction}/Hit@1"]
    return dict(zip(values.query_ids, values.values.tolist(), strict=True))


def levels_of(run: Path) -> dict[str, str]:
    return {query: ("easy", "medium", "hard")[row % 3] for row, query in enumerate(hits(run))}


@pytest.fixture
def table(runs: list[Path], tmp_path: Path) -> Path:
    levels = levels_of(runs[0])
    frame = pl.DataFrame({"caption": list(levels), "image": "x", "difficulty": list(levels.values())})
    frame.sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "difficulty.parquet")  # any order
    return tmp_path / "difficulty.parquet"


def test_show_groups_by_a_column_of_the_table(call: Call, runs: list[Path], table: Path) -> None:
    outcome = call("show", runs[0], "--columns", table, "--by", "difficulty", "--json")
    assert outcome.code == 0, outcome.err
    groups = outcome.json["metrics"]["t2i/Hit@1"]
    levels, values = levels_of(runs[0]), hits(runs[0])
    for level in ("easy", "medium", "hard"):
        of_level = [values[query] for query in levels if levels[query] == level]
        assert groups[level]["mean"] == pytest.approx(np.mean(of_level))
        assert groups[level]["n"] == len(of_level)
    assert "i2t/Hit@1" not in outcome.json["metrics"]  # the table is of captions
    both = call("show", *runs, "--columns", table, "--by", "difficulty", "--metrics", "t2i/Hit@1")
    assert both.code == 0
    assert "medium" in both.out


def test_a_table_of_images_groups_both_directions(call: Call, runs: list[Path], tmp_path: Path) -> None:
    images = list(hits(runs[0], "i2t"))
    file = tmp_path / "places.csv"
    places = ["sea" if row % 2 else "land" for row in range(len(images))]
    pl.DataFrame({"image": images, "place": places}).write_csv(file)
    outcome = call("show", runs[0], "--columns", file, "--by", "place", "--json").json
    assert outcome["metrics"]["i2t/Hit@1"]["sea"]["n"] == len(images) // 2
    assert outcome["metrics"]["t2i/Hit@1"]["sea"]["n"] == 3 * (len(images) // 2)


def test_plot_groups_by_a_column_of_the_table(call: Call, runs: list[Path], table: Path, tmp_path: Path) -> None:
    words = ("--columns", table, "--by", "difficulty", "--json")
    assert set(call("plot", *runs, *words).json["runs"]["model-a"]) == {"easy", "medium", "hard"}


def test_compare_within_groups(call: Call, runs: list[Path], table: Path) -> None:
    words = ("compare", *runs, "--columns", table, "--by", "difficulty", "--permutations", "200")
    compared = call(*words, "--json")
    assert compared.code == 0, compared.err
    levels, first, second = levels_of(runs[0]), hits(runs[0]), hits(runs[1])
    results = {}
    for level, comparison in compared.json["groups"].items():
        of_level = [query for query in levels if levels[query] == level]
        (results[level],) = [row for row in comparison["comparisons"] if row["metric"] == "t2i/Hit@1"]
        change = np.mean([second[query] - first[query] for query in of_level])
        assert results[level]["difference"] == pytest.approx(change)
        assert results[level]["n"] == len(of_level)
    assert set(results) == {"easy", "medium", "hard"}
    adjusted = holm([row["p_value"] for row in results.values()])  # over all groups, not within each
    assert [row["adjusted_p"] for row in results.values()] == pytest.approx(list(adjusted))
    printed = call(*words)
    assert [line.split()[0] for line in printed.out.splitlines()[:4]] == ["difficulty", "easy", "hard", "medium"]
    assert "corrected by Holm for 3 tests" in " ".join(printed.out.split())


def test_queries_that_the_table_lacks_are_noted(call: Call, runs: list[Path], table: Path, tmp_path: Path) -> None:
    pl.read_parquet(table).head(100).write_csv(tmp_path / "part.csv")
    outcome = call("show", runs[0], "--columns", tmp_path / "part.csv", "--by", "difficulty", "--json")
    assert "20 of the 120 t2i queries are not in" in outcome.err
    assert outcome.json["metrics"]["t2i/Hit@1"]["(none)"]["n"] == 20


def test_a_caption_with_two_values_is_in_both_groups(call: Call, runs: list[Path], table: Path, tmp_path: Path) -> None:
    frame = pl.read_parquet(table)
    caption = frame.filter(difficulty="easy")["caption"][0]
    again = pl.DataFrame({"caption": [caption], "image": ["y"], "difficulty": ["hard"]})
    pl.concat([frame, again]).write_parquet(tmp_path / "pairs.parquet")
    outcome = call("show", runs[0], "--columns", tmp_path / "pairs.parquet", "--by", "difficulty", "--json").json
    assert {name: group["n"] for name, group in outcome["metrics"]["t2i/Hit@1"].items()} == {
        "easy": 40, "medium": 40, "hard": 41
    }  # fmt: skip
    assert outcome["overlapping"]


def test_the_tables_column_wins_over_the_runs_own(call: Call, runs: list[Path], tmp_path: Path) -> None:
    images = list(hits(runs[0], "i2t"))
    pl.DataFrame({"image": images, "category": "thing"}).write_csv(tmp_path / "own.csv")
    outcome = call("show", runs[0], "--columns", tmp_path / "own.csv", "--by", "category", "--json")
    assert set(outcome.json["metrics"]["t2i/Hit@1"]) == {"thing"}
    assert "the run has a category of its own" in outcome.err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"caption": ["z"], "difficulty": ["easy"]}, "none of the 120 captions of the run 'model-a' is in the column"),
        ({"difficulty": ["easy"]}, "the columns are difficulty"),
        ({"caption": ["z"]}, "the columns are caption"),
        ({"caption": [], "difficulty": []}, "the table has no rows"),
    ],
)
def test_a_table_that_does_not_fit_is_one_clear_error(
    call: Call, runs: list[Path], tmp_path: Path, content: dict[str, list[str]], problem: str
) -> None:
    file = tmp_path / "table.parquet"
    pl.DataFrame(content, schema=dict.fromkeys(content, pl.String)).write_parquet(file)
    outcome = call("show", runs[0], "--columns", file, "--by", "difficulty")
    assert outcome.code in (2, 3)
    assert problem in outcome.err
