"""Items into projects and judgements out of them: each form, its way back, and what is wrong with a file."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze import find_missing_positives
from crosslens.core import InputError, UnknownNameError, UsageError, parquet_bytes
from crosslens.data import read_judgements, read_relevance
from crosslens.web.judging.exchange.answer_files import (
    ExportedItem,
    answers_csv,
    answers_jsonl,
)
from crosslens.web.judging.exchange.judged_pairs import judged_pairs, label_grades, with_ground_truth
from crosslens.web.judging.exchange.pair_lists import imp_items, pair_items
from crosslens.web.judging.exchange.run_failures import failure_items
from crosslens.web.judging.results.table import judgement_table
from crosslens.web.judging.tasks.answers import Answer
from crosslens.web.judging.tasks.content import ItemContent, NewItem, ShownPicture, ShownText, check_items
from crosslens.web.judging.tasks.kinds import FAILURES, PAIRS, RELEVANCE, VALIDITY
from tests.web.judging.judged import said

DATASET = cl.Dataset.of({"a": ["a dog", "the dog"], "b": ["a cat", "the cat"], "c": ["two birds"]}, name="toys")


def scores() -> np.ndarray:
    """Images × captions: captions a#1 and c#0 retrieve a wrong image, image c a wrong caption."""
    matrix = np.eye(3)[:, DATASET.caption_image] + 0.0
    matrix[:, 1] = [0.2, 0.9, 0.1]
    matrix[:, 4] = [0.8, 0.3, 0.4]
    matrix[2, 0] = 0.6
    return matrix


@pytest.fixture(scope="module")
def run() -> cl.Run:
    return cl.evaluate(DATASET, scores=scores(), metrics=["Hit@1"], resamples=0, name="model a")


# In


def test_failures_of_text_queries(run: cl.Run) -> None:
    items = failure_items(run, DATASET, "t2i", shown_as="toys-1", with_truth=True, metrics={"phi": {"a#1": 0.25}})
    first, second = items
    assert first.content.texts == (ShownText("the dog", "Query"),)
    assert first.content.pictures == (ShownPicture("toys-1", "b", "Retrieved"), ShownPicture("toys-1", "a", "Expected"))
    about = first.content.about
    assert (about["image"], about["caption"], about["query"], about["run"]) == ("b", "a#1", "a#1", "model a")
    assert (about["metrics"]["rank"], about["metrics"]["phi"]) == (2, 0.25)
    assert about["metrics"]["margin"] == pytest.approx(0.7)
    assert "phi" not in second.content.about["metrics"]
    check_items(items, [label.name for label in FAILURES.form.labels])
    json.dumps(first.content.as_dict(), allow_nan=False)


def test_failures_of_image_queries(run: cl.Run) -> None:
    (item,) = failure_items(run, DATASET, "i2t", shown_as="toys-1")
    about = item.content.about
    assert (about["image"], about["caption"]) == ("c", about["item"])
    assert item.content.pictures == (ShownPicture("toys-1", "c", "Query"),)
    assert item.content.texts[0].title == "Retrieved"


def test_some_of_the_failures_by_seed(run: cl.Run) -> None:
    drawn = [failure_items(run, DATASET, "t2i", shown_as="t", limit=1, seed=seed) for seed in (0, 0, 1, 2, 3, 4)]
    assert drawn[0] == drawn[1]
    assert len({items[0].content.about["query"] for items in drawn}) == 2


def test_pairs_with_practice_items_checks_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(
        "image,caption,text,kind,expected,why,phi\n"
        "a,b#0,,real,,,0.5\nb,,a red cat,practice,bad,it is black,\nc,c#0,,check,good,,1\n"
    )
    real, practice, check = pair_items(path, DATASET, shown_as="toys-1")
    assert real.content.texts[0].text == "a cat"
    assert real.content.about["metrics"] == {"phi": 0.5}
    assert (real.content.about["image"], real.content.about["caption"]) == ("a", "b#0")
    assert practice == NewItem(
        ItemContent(
            (ShownPicture("toys-1", "b"),),
            (ShownText("a red cat", "Caption"),),
            {"from": "pairs", "image": "b", "caption": None, "metrics": {}},
        ),
        "practice",
        {"labels": ["bad"], "why": "it is black"},
    )
    assert (check.kind, check.expected) == ("check", {"labels": ["good"]})
    lines = tmp_path / "pairs.jsonl"
    lines.write_text('{"image": "a", "caption": "b#0", "phi": 0.5}\n')
    assert pair_items(lines, DATASET, shown_as="toys-1") == [real]


def test_missing_positives_and_label_lists_are_such_tables(tmp_path: Path) -> None:
    missing = find_missing_positives(DATASET, "cider", threshold=0.0)
    missing.write_table(tmp_path / "missing.csv")
    items = pair_items(tmp_path / "missing.csv", DATASET, shown_as="t")
    pairs = [(item.content.about["image"], item.content.about["caption"]) for item in items]
    assert pairs == list(missing.table.select("image", "caption").iter_rows())
    assert items[0].content.about["metrics"]["phi"] == pytest.approx(float(missing.values[0]))
    labels = tmp_path / "labels.csv"
    labels.write_text("place,image,caption,text,reason,suggested_image\n1,a,a#1,the dog,rank,b\n2,a,,,same picture,c\n")
    (item,) = pair_items(labels, DATASET, shown_as="t")
    assert (item.content.about["image"], item.content.about["caption"]) == ("b", "a#1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("photo,caption\na,a#0\n", "the columns are photo, caption"),
        ("image,caption\nz,a#0\n", "image 'z' is not in the dataset"),
        ("image,caption\na,z#0\n", "caption 'z#0' is not in the dataset, and the row has no text"),
        ("image,caption,kind\na,a#0,odd\n", "unknown kind 'odd'"),
    ],
)
def test_bad_tables_of_pairs(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        pair_items(path, DATASET, shown_as="t")
    assert str(path) in str(caught.value)


def test_the_survey_of_an_imp_benchmark(tmp_path: Path) -> None:
    rows = {"image": ["a", "a", "b"], "caption": ["1", "2", "3"], "text": ["x", "y", "z"], "cosine": [0.3, 0.1, 0.2]}
    dataset = replace(DATASET, captions=pl.DataFrame(rows).select("caption", "image", "text", "cosine"))
    dataset.save(tmp_path / "dataset")
    rejected = {"image": ["a", "b"], "caption": ["4", "5"], "text": ["v", "w"], "verdict": ["bad", "unsure"]}
    (tmp_path / "rejected.parquet").write_bytes(parquet_bytes(pl.DataFrame(rejected)))
    survey = imp_items(tmp_path, shown_as="t", stage="survey", hardest=2)
    assert [item.content.about["caption"] for item in survey] == ["2", "3", "4"]  # the lowest cosines, then distractors
    assert (survey[2].kind, survey[2].expected) == ("distractor", {"labels": ["bad"]})
    check_items(survey, [label.name for label in PAIRS.form.labels])
    with pytest.raises(UnknownNameError, match="hard"):
        imp_items(tmp_path, shown_as="t", stage="hard")


# Out: relevance


def test_what_labels_are_worth() -> None:
    assert label_grades(RELEVANCE.form) == {"0": 0, "1": 1, "2": 2, "3": 3}
    assert label_grades(VALIDITY.form) == {"good": 1, "bad": 0}
    failures = label_grades(FAILURES.form)
    assert failures.pop("successful_alternative") == 1
    assert set(failures.values()) == {0}
    assert label_grades(PAIRS.form, {"good": 3}) == {"good": 3}
    with pytest.raises(UnknownNameError, match="god"):
        label_grades(PAIRS.form, {"god": 3})


JUDGED = said(
    [
        ("1", "ann", ["2"]), ("1", "bob", ["2"]), ("1", "cid", ["0"]),
        ("2", "ann", ["3"]), ("2", "bob", ["1"]),
        ("3", "ann", ["0"]), ("3", "bob", ["3"]),
    ]
)  # fmt: skip
ITEM_PAIRS = {"1": ("a", "b#0"), "2": ("b", "a#1"), "3": ("c", "a#0")}


def grades_of(frame: pl.DataFrame) -> dict[tuple[str, str], float | None]:
    return {(image, caption): grade for image, caption, grade in frame.select("image", "caption", "grade").iter_rows()}


def test_majority_mean_and_adjudicated_grades() -> None:
    majority = judged_pairs(JUDGED, ITEM_PAIRS, RELEVANCE.form, adjudicated={"3": Answer(("1",))})
    assert grades_of(majority) == {("a", "b#0"): 2, ("b", "a#1"): None, ("c", "a#0"): 1}
    mean = judged_pairs(JUDGED, ITEM_PAIRS, RELEVANCE.form, "mean", adjudicated={"3": Answer(("1",))})
    assert grades_of(mean) == {("a", "b#0"): pytest.approx(4 / 3), ("b", "a#1"): 2, ("c", "a#0"): 1}
    assert mean.filter(image="a")["score"].to_list() == [2, 2, 0]


def test_several_labels_of_one_person_count_by_the_lowest() -> None:
    table = said([("1", "ann", ["colour", "count"], 4), ("2", "ann", ["successful_alternative"], 9)])
    pairs = {"1": ("a", "b#0"), "2": ("b", "a#0")}
    assert grades_of(judged_pairs(table, pairs, FAILURES.form)) == {("a", "b#0"): 0, ("b", "a#0"): 1}
    assert grades_of(judged_pairs(table, pairs, FAILURES.form, "rating")) == {("a", "b#0"): 4, ("b", "a#0"): 9}


def test_unsure_is_no_judgement_and_labels_need_grades() -> None:
    table = said([("1", "ann", ["unsure"]), ("1", "bob", ["good"]), ("2", "ann", ["unsure"])])
    judged = judged_pairs(table, {"1": ("a", "b#0"), "2": ("b", "a#0")}, VALIDITY.form, "mean")
    assert grades_of(judged) == {("a", "b#0"): 1, ("b", "a#0"): None}
    own = replace(
        PAIRS.form, labels=(replace(PAIRS.form.labels[0], name="yes"), replace(PAIRS.form.labels[1], name="no"))
    )
    with pytest.raises(UsageError, match="have no grades"):
        judged_pairs(table, {}, own)


def test_a_pair_in_two_items_is_one_pair() -> None:
    table = said([("1", "ann", ["3"]), ("2", "ann", ["1"]), ("2", "bob", ["1"])])
    judged = judged_pairs(table, {"1": ("a", "b#0"), "2": ("a", "b#0")}, RELEVANCE.form)
    assert judged.select("judge", "score", "grade").rows() == [("ann", 2, 2), ("bob", 1, 2)]


def test_exported_pairs_are_qrels_and_judgements(tmp_path: Path) -> None:
    judged = judged_pairs(JUDGED, ITEM_PAIRS, RELEVANCE.form, adjudicated={"3": Answer(("1",))})
    whole = with_ground_truth(judged, DATASET, 3.0)
    for name in ("judgements.parquet", "judgements.csv"):
        path = tmp_path / name
        path.write_bytes(parquet_bytes(whole) if name.endswith("parquet") else whole.write_csv().encode())
        relevance = read_relevance(path)
        assert isinstance(relevance, cl.Relevance)
        triples = zip(relevance.rows, relevance.items, relevance.grades, strict=True)
        grades = {(relevance.query_ids[row], relevance.item_ids[item]): grade for row, item, grade in triples}
        assert grades == {
            ("a", "b#0"): 2, ("c", "a#0"): 1,
            ("a", "a#0"): 3, ("a", "a#1"): 3, ("b", "b#0"): 3, ("b", "b#1"): 3, ("c", "c#0"): 3,
        }  # fmt: skip
        people = read_judgements(path, DATASET)
        assert len(people) == 3  # the ground truth was judged by nobody
        assert people.judges.shape == (3, 3)
        assert people.same_persons


def test_a_table_of_scores_is_qrels_too_and_grades_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("image,caption,score,judge\na,b#0,2,x\na,b#0,3,y\n")
    relevance = read_relevance(path)
    assert isinstance(relevance, cl.Relevance)
    assert relevance.grades.tolist() == [2.5]
    path.write_text("image,caption,grade\na,b#0,2\na,b#0,3\n")
    with pytest.raises(InputError, match="the pair has the grades 2 and 3"):
        read_relevance(path)
    path.write_text("image,caption,grade\na,b#0,\n")
    with pytest.raises(InputError, match="no pair has a grade"):
        read_relevance(path)
    with pytest.raises(InputError, match="is not in toys"):
        with_ground_truth(judged_pairs(said([("1", "a", ["1"])]), {"1": ("z", "b#0")}, RELEVANCE.form), DATASET, 3)


# Out: files


CONTENT = ItemContent(
    (ShownPicture("toys-1", "b"),), (ShownText("=1+1 <b>a dog</b>", "Query"),),
    {"image": "b", "caption": "a#1", "query": "a#1", "run": "model a", "metrics": {"rank": 2}},
)  # fmt: skip
ITEM = ExportedItem("7", "real", CONTENT, {"labels": ["colour"]})
ANSWERS = judgement_table(
    [
        {"item": "7", "account": "ann", "labels": ["colour", "count"], "rating": 3, "text": "a, \"b\"", "seconds": 4.5},
        {"item": "7", "account": "gpt", "labels": ["count"], "rating": 2, "source": "model"},
    ]
)  # fmt: skip
FINAL = {"7": Answer(("count",), 2)}


def test_csv_and_jsonl_hold_every_answer_and_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(answers_csv(ANSWERS, [ITEM], FINAL))))
    assert [row["source"] for row in rows] == ["person", "model", "adjudicated"]
    assert (rows[0]["labels"], rows[0]["text"], rows[0]["expected"]) == ("colour; count", 'a, "b"', "colour")
    assert rows[0]["shown_text"].startswith("'=1+1")
    lines = [json.loads(line) for line in answers_jsonl(ANSWERS, [ITEM], FINAL).splitlines()]
    assert lines[0]["labels"] == ["colour", "count"]
    assert lines[0]["shown_text"].startswith("=1+1")
    assert lines[0]["metrics"] == {"rank": 2}
    assert lines[2] | {"judge": ""} == lines[2]
