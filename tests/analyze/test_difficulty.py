"""Votes of known panels give the known split; the table is written and read; what does not fit is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.analyze import read_difficulty
from crosslens.core import CrosslensError, UsageError
from tests.tables import each_row

DATASET = cl.Dataset.of({"a": ["a dog", "a cat"], "b": ["a house"], "c": ["the sea", "a boat"]})
THRESHOLDS = {"one": 0.5, "two": 0.25, "three": -1.0}


def panel_of(matches: dict[str, list[bool]]) -> dict[str, np.ndarray]:
    """Score matrices in which exactly these captions reach the model's threshold with their own image."""
    panel = {}
    for model, votes in matches.items():
        matrix = np.full((3, 5), 99.0)  # all other pairs match: they must not count
        for caption, (image, vote) in enumerate(zip(DATASET.caption_image, votes, strict=True)):
            matrix[image, caption] = THRESHOLDS[model] if vote else np.nextafter(THRESHOLDS[model], -np.inf)
        panel[model] = matrix
    return panel


KNOWN = panel_of(
    {
        "one": [True, True, False, False, False],
        "two": [True, False, True, False, False],
        "three": [True, True, True, True, False],
    }
)


def test_a_known_panel_gives_the_known_split() -> None:
    result = cl.difficulty(DATASET, scores=KNOWN, thresholds=THRESHOLDS)
    assert result.table["caption"].to_list() == list(DATASET.caption_ids)
    assert result.table["image"].to_list() == ["a", "a", "b", "c", "c"]
    assert result.table["votes"].to_list() == [3, 2, 2, 1, 0]
    assert result.table["models"].to_list() == [3] * 5
    assert result.table["difficulty"].to_list() == ["easy", "medium", "medium", "medium", "hard"]
    assert result.counts() == {"easy": 1, "medium": 3, "hard": 1}
    assert result.shares()["medium"].mean == pytest.approx(0.6)
    assert result.scores("one").tolist()[0] == 0.5


def test_one_model_has_no_medium_pairs() -> None:
    """It votes for all or none: a level that is always 0 is not shown."""
    result = cl.difficulty(DATASET, scores={"one": KNOWN["one"]}, thresholds=THRESHOLDS)
    assert result.counts() == {"easy": 2, "hard": 3}
    assert "medium" not in result.text()
    with_mapping = cl.difficulty(
        DATASET, scores={"one": KNOWN["one"]}, thresholds=THRESHOLDS, mapping="yes=all so=rest no=none"
    )
    assert with_mapping.counts() == {"yes": 2, "so": 0, "no": 3}


@given(st.data())
def test_votes_equal_the_definition(data: st.DataObject) -> None:
    models = data.draw(st.integers(1, 5))
    values = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0])
    scores = {
        f"m{number}": np.array(data.draw(st.lists(values, min_size=15, max_size=15))).reshape(3, 5)
        for number in range(models)
    }
    thresholds = {model: data.draw(values) for model in scores}
    table = cl.difficulty(DATASET, scores=scores, thresholds=thresholds).table
    for row, (caption, image) in enumerate(zip(DATASET.caption_ids, DATASET.caption_image, strict=True)):
        votes = 0
        for model in scores:
            vote = int(scores[model][image][row] >= thresholds[model])
            assert table[f"vote[{model}]"][row] == vote
            votes += vote
        name = "easy" if votes == models else "hard" if votes == 0 else "medium"
        assert table.row(row)[:5] == (caption, DATASET.image_ids[image], votes, models, name)


def test_mappings_by_votes_and_by_shares() -> None:
    def levels(mapping: str) -> list[str]:
        return cl.difficulty(DATASET, KNOWN, THRESHOLDS, mapping=mapping).table["difficulty"].to_list()

    assert levels("easy=2-3 medium=1 hard=0") == ["easy", "easy", "easy", "medium", "hard"]
    assert levels("hard=0-1,easy=2-3") == ["easy", "easy", "easy", "hard", "hard"]
    assert levels("easy=60-100% hard=0-40%") == ["easy", "easy", "easy", "hard", "hard"]
    assert levels("some=rest none=none") == ["some", "some", "some", "some", "none"]


@each_row(
    ("mapping", "problem"),
    [
        ("", "the mapping is empty"),
        ("easy", "'easy' in the mapping is not NAME=VOTES"),
        ("easy=x", "'easy=x' in the mapping is not NAME=VOTES"),
        ("easy=3 easy=0-2", "names 'easy' twice"),
        ("easy=3-2 hard=0-1", "begins above its end"),
        ("easy=2-3 hard=0", "1 of 3 votes belong to no level"),
        ("easy=1-3 hard=0-1", "1 of 3 votes belong to both easy and hard"),
        (
            "easy=3-6 medium=1-2 hard=0",
            "easy in the mapping 'easy=3-6 medium=1-2 hard=0' goes past 3, the most votes of the panel",
        ),
        ("easy=50-200% hard=0-49%", "goes past 100%"),
        ("easy=rest hard=rest", "both easy and hard are the rest"),
    ],
)
def test_a_mapping_that_does_not_cover_the_votes_is_refused(mapping: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        cl.difficulty(DATASET, KNOWN, THRESHOLDS, mapping=mapping)


def test_the_tie_breaker_votes_where_an_even_panel_disagrees() -> None:
    result = cl.difficulty(DATASET, KNOWN, THRESHOLDS, tie_breaker="three")
    # "one" and "two": both match, disagree, disagree, neither, neither.
    assert result.table["votes"].to_list() == [2, 2, 2, 0, 0]
    assert result.table["models"].to_list() == [2, 3, 3, 2, 2]
    assert result.table["difficulty"].to_list() == ["easy", "medium", "medium", "hard", "hard"]
    assert result.panel == ("one", "two")
    assert result.models == ("one", "two", "three")
    majority = cl.difficulty(DATASET, KNOWN, THRESHOLDS, tie_breaker="three", mapping="easy=2 hard=0-1")
    assert majority.table["difficulty"].to_list() == ["easy", "easy", "easy", "hard", "hard"]


def test_a_tie_breaker_needs_an_even_panel() -> None:
    with pytest.raises(UsageError, match="an odd number of models: 1"):
        cl.difficulty(DATASET, {name: KNOWN[name] for name in ("one", "two")}, THRESHOLDS, tie_breaker="two")
    with pytest.raises(UsageError, match="'four' is no model of the panel"):
        cl.difficulty(DATASET, KNOWN, THRESHOLDS, tie_breaker="four")
    with pytest.raises(UsageError, match="no model in the panel besides"):
        cl.difficulty(DATASET, {"one": KNOWN["one"]}, THRESHOLDS, tie_breaker="one")


def pairs(rows: pl.DataFrame) -> list[tuple[str, str]]:
    return rows.select("caption", "difficulty").rows()


def test_pairs_that_one_model_matches_and_another_does_not() -> None:
    result = cl.difficulty(DATASET, KNOWN, THRESHOLDS)
    differ = result.disagreements("one", "two")
    assert {model: pairs(rows) for model, rows in differ.items()} == {
        "one": [("a#1", "medium")],
        "two": [("b#0", "medium")],
    }
    assert pairs(result.disagreements("two", "three")["three"]) == [("c#0", "medium"), ("a#1", "medium")]
    # Levels of another panel: its hard pairs come first, with its votes and the two models' scores.
    two = cl.difficulty(DATASET, {name: KNOWN[name] for name in ("one", "three")}, THRESHOLDS)
    judges = cl.difficulty(DATASET, {"two": KNOWN["two"]}, THRESHOLDS)
    rows = two.disagreements("three", "one", judges)["three"]
    assert pairs(rows) == [("c#0", "hard"), ("b#0", "easy")]
    assert rows["votes"].to_list() == [0, 1]
    assert rows["models"].to_list() == [1, 1]
    assert [name for name in rows.columns if "[" in name] == ["score[one]", "score[three]", "vote[one]", "vote[three]"]


def test_what_cannot_be_compared_is_refused() -> None:
    result = cl.difficulty(DATASET, KNOWN, THRESHOLDS)
    with pytest.raises(UsageError, match="no model 'four'"):
        result.disagreements("one", "four")
    with pytest.raises(UsageError, match="compared with itself"):
        result.disagreements("one", "one")
    fewer = replace(result, table=result.table.head(3))
    with pytest.raises(CrosslensError, match="2 of 5 pairs have no level"):
        result.disagreements("one", "two", fewer)
    without_votes = replace(result, table=result.table.select("caption", "image", "difficulty"))
    with pytest.raises(CrosslensError, match="the table has no votes"):
        result.disagreements("one", "two", without_votes)


def test_a_caption_of_several_images_has_a_row_per_pair() -> None:
    relevance = cl.Relevance.of({"a": ["a#0"], "b": ["a#0", "b#0"]})
    table = cl.difficulty(DATASET, KNOWN, THRESHOLDS, relevance=relevance).table
    assert table.select("caption", "image", "votes").rows() == [("a#0", "a", 3), ("a#0", "b", 3), ("b#0", "b", 2)]


def test_wrong_input_is_one_clear_error() -> None:
    with pytest.raises(UsageError, match="no models"):
        cl.difficulty(DATASET, {}, {})
    with pytest.raises(UsageError, match="no threshold for one"):
        cl.difficulty(DATASET, KNOWN, {"two": 1.0})
    with pytest.raises(UsageError, match="the threshold of one is nan"):
        cl.difficulty(DATASET, KNOWN, {**THRESHOLDS, "one": float("nan")})
    with pytest.raises(CrosslensError, match="scores of one of shape 5×3") as error:
        cl.difficulty(DATASET, {"one": KNOWN["one"].T}, THRESHOLDS)
    assert error.value.fix == "transpose them"
    broken = KNOWN["one"].copy()
    broken[1, 2] = np.nan
    with pytest.raises(CrosslensError, match="one scores image 'b' and caption 'b#0' as nan"):
        cl.difficulty(DATASET, {"one": broken}, THRESHOLDS)


@pytest.mark.parametrize("name", ["levels.parquet", "levels.csv"])
def test_the_table_is_written_and_read(tmp_path: Path, name: str) -> None:
    result = cl.difficulty(DATASET, KNOWN, THRESHOLDS, tie_breaker="three", mapping="easy=2 hard=0-1")
    read = read_difficulty(result.write(tmp_path / name))
    assert read.table.equals(result.table)
    assert read.models == result.models
    assert {level: count for level, count in read.counts().items() if count} == result.counts()
    if name.endswith("parquet"):
        assert read.as_dict() == result.as_dict()


def test_a_table_of_a_persons_own_is_read(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    pl.DataFrame({"caption": ["x", "y"], "image": [1, 2], "difficulty": ["very odd", "even"]}).write_csv(file)
    read = read_difficulty(file)
    assert read.levels == ("very odd", "even")
    assert read.counts() == {"very odd": 1, "even": 1}
    assert "very odd" in str(read)
    pl.DataFrame({"caption": ["x"], "level": ["odd"]}).write_csv(file)
    with pytest.raises(CrosslensError, match="no column 'image'"):
        read_difficulty(file)
    with pytest.raises(UsageError, match=r"neither \.parquet nor \.csv"):
        read.write(tmp_path / "levels.json")
