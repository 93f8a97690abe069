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
from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.data import read_judgements, read_relevance
from crosslens.explanations import concept_metrics, explain_run, save_overview
from crosslens.storage import json_form, parquet_bytes
from crosslens.web import ExportOptions, ImportOptions, export_content
from crosslens.web.judging.agreement import judgement_table
from crosslens.web.judging.database.projects import StoredItem
from crosslens.web.judging.exporting import judged_pairs
from crosslens.web.judging.importing import pair_items, run_items, survey_items
from crosslens.web.judging.results import ProjectAnswers
from crosslens.web.judging.tasks import TASKS, Answer, ItemContent, NewItem, ShownPicture, ShownText, label_grades
from tests.web.judging.judged import results_of, stored_answers

FAILURES, VALIDITY, PAIRS, RELEVANCE = TASKS.values()

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
    (first, second), note = run_items(run, DATASET, "t2i", shown_as="toys-1")
    assert first.content.texts == (ShownText("the dog", "Query"),)
    assert first.content.pictures == (ShownPicture("toys-1", "b", "Retrieved"),)
    facts = first.content.about
    assert (facts["image"], facts["caption"], facts["query"], facts["run"]) == ("b", "a#1", "a#1", "model a")
    assert (facts["expected_image"], facts["metrics"]["rank"]) == ("a", 2)
    assert facts["metrics"]["margin"] == pytest.approx(0.7)
    assert note == "no concept metrics and causes: the dataset toys has no objects"
    assert not {"causes", "CA"} & {*facts, *facts["metrics"]}
    assert second.content.texts
    json.dumps(json_form(first.content), allow_nan=False)


def test_failures_of_image_queries(run: cl.Run) -> None:
    (item,), _ = run_items(run, DATASET, "i2t", shown_as="toys-1")
    facts = item.content.about
    assert (facts["image"], facts["caption"]) == ("c", facts["item"])
    assert item.content.pictures == (ShownPicture("toys-1", "c", "Query"),)
    assert item.content.texts[0].title == "Retrieved"


def test_some_of_the_failures_by_seed(run: cl.Run) -> None:
    drawn = [run_items(run, DATASET, "t2i", shown_as="t", limit=1, seed=seed)[0] for seed in (0, 0, 1, 2, 3, 4)]
    assert drawn[0] == drawn[1]
    assert len({items[0].content.about["query"] for items in drawn}) == 2


def test_failures_come_with_concept_metrics_and_causes(run: cl.Run, tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    objects = {"image": ["a", "b", "b", "c"], "name": ["dog", "cat", "dog", "bird"]}
    boxes: dict[str, list[float]] = {"x": [0] * 4, "y": [0] * 4, "w": [1, 2, 3, 4], "h": [1, 2, 3, 4]}
    ids = {"object": list("1234"), "synset": ["dog.n.01", "cat.n.01", "dog.n.01", "bird.n.01"]}
    dataset = replace(DATASET, objects=pl.DataFrame({**objects, **ids, **boxes}))
    new_items, note = run_items(run, dataset, "t2i", shown_as="t")
    assert note == ""
    # a#1 asks for the dog of a and gets b, which has one beside a cat; c#0 asks for the birds of c and gets a.
    dog, birds = (item.content.about for item in new_items)
    by_hand = [
        concept_metrics([{"synset": "dog.n.01"}], [{"synset": "cat.n.01"}, {"synset": "dog.n.01"}]),
        concept_metrics([{"synset": "bird.n.01"}], [{"synset": "dog.n.01"}]),
    ]
    for facts, expected in zip((dog, birds), by_hand, strict=True):
        for name in ("CA", "NonCommonSimilarity", "CE"):
            assert facts["metrics"].get(name) == (
                expected[name] if expected[name] is None else pytest.approx(expected[name])
            )
    assert (dog["metrics"]["CA"], birds["metrics"]["CA"]) == (1, 0)
    assert (dog["causes"]["object"], birds["causes"]["object"]) == (False, True)
    part, _ = run_items(run, dataset, "t2i", shown_as="t", limit=1)
    assert part[0] in new_items
    overview = explain_run(run, dataset, "t2i", resamples=0)
    file = save_overview(overview, tmp_path / "why") / "failures.parquet"
    assert pair_items(file, dataset, shown_as="t") == new_items
    alone = tmp_path / "failures.parquet"
    alone.write_bytes(file.read_bytes())
    assert pair_items(alone, dataset, shown_as="t")[0].content.about["run"] == ""
    with pytest.raises(InputError, match="image 'a' is not in the dataset 'other'"):
        pair_items(file, cl.Dataset.of({"b": ["a dog"]}, name="other"), shown_as="t")


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
    captions = {"a": ["a horse in rain", "the horse"], "b": ["one horse in rain", "a horse"], "c": ["a boat"]}
    dataset = cl.Dataset.of(captions, name="toys")
    missing = find_missing_positives(dataset, "cider", threshold=0.1)
    missing.write_table(tmp_path / "missing.csv")
    items = pair_items(tmp_path / "missing.csv", dataset, shown_as="t")
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


def levels(tmp_path: Path, images: int = 12) -> tuple[Path, cl.Dataset, pl.DataFrame]:
    """A table of levels by two models, and its dataset."""
    dataset = cl.Dataset.of({f"i{n}": [f"text {n}", f"other {n}"] for n in range(images)}, name="web")
    random = np.random.default_rng(3)
    scores = {name: random.normal(size=(images, 2 * images)) for name in ("clip", "siglip")}
    result = cl.difficulty(dataset, scores=scores, thresholds={"clip": 0.3, "siglip": 0.3})
    return result.write(tmp_path / "difficulty.parquet"), dataset, result.table


@pytest.mark.parametrize("model", ["clip", "siglip"])
def test_the_survey_has_the_hard_pairs_with_the_lowest_scores(tmp_path: Path, model: str) -> None:
    path, dataset, table = levels(tmp_path)
    hard = [(row[f"score[{model}]"], row["caption"]) for row in table.to_dicts() if row["difficulty"] == "hard"]
    assert 4 < len(hard) < table.height
    easier = min(row[f"score[{model}]"] for row in table.to_dicts() if row["difficulty"] != "hard")
    assert easier < sorted(hard)[4][0], "a pair that is not hard would be among the lowest"
    options = ImportOptions(part="survey", model=model, hardest=4, distractors=5)
    survey = survey_items(path, dataset, options, shown_as="t")
    assert [item.content.about["caption"] for item in survey[:4]] == [caption for _, caption in sorted(hard)[:4]]
    assert survey[0].content.about["metrics"][f"score[{model}]"] == min(hard)[0]
    for item in survey[4:]:
        facts = item.content.about
        assert (item.kind, item.expected) == ("distractor", {"labels": ["bad"]})
        assert not facts["caption"].startswith(facts["image"] + "#")
    assert len({item.content.about["image"] for item in survey[4:]}) == 5
    assert survey_items(path, dataset, options, shown_as="t") == survey
    everything = survey_items(path, dataset, replace(options, hardest=100, distractors=0), shown_as="t")
    assert len(everything) == len(hard)


def test_true_negatives_that_people_called_bad(tmp_path: Path) -> None:
    path, dataset, _ = levels(tmp_path)
    rejected = {"image": ["i1", "i2", "i3"], "text": ["v", "w", "x"], "verdict": ["bad", "unsure", "generic"]}
    file = tmp_path / "rejected.parquet"
    file.write_bytes(parquet_bytes(pl.DataFrame(rejected)))
    survey = survey_items(path, dataset, ImportOptions(part="survey", model="clip", rejected=file), shown_as="t")
    (negative,) = [item for item in survey if item.kind == "distractor"]
    assert (negative.content.about["image"], negative.content.texts[0].text) == ("i1", "v")


def test_surveys_that_cannot_be(tmp_path: Path) -> None:
    path, dataset, table = levels(tmp_path)
    with pytest.raises(UsageError, match="the table has scores of 2 models") as caught:
        survey_items(path, dataset, ImportOptions(part="survey"), shown_as="t")
    assert "clip, siglip" in str(caught.value)
    with pytest.raises(UsageError, match="no scores of 'blip'"):
        survey_items(path, dataset, ImportOptions(part="survey", model="blip"), shown_as="t")
    easy = tmp_path / "easy.csv"
    table.filter(difficulty="easy").write_csv(easy)
    with pytest.raises(InputError, match="no pair is hard"):
        survey_items(easy, dataset, ImportOptions(part="survey", model="clip"), shown_as="t")
    table.drop("difficulty").write_csv(easy)
    with pytest.raises(InputError, match="no column 'difficulty'"):
        survey_items(easy, dataset, ImportOptions(part="survey", model="clip"), shown_as="t")
    with pytest.raises(InputError, match="is not in the dataset"):
        survey_items(path, DATASET, ImportOptions(part="survey", model="clip"), shown_as="t")


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


JUDGED = stored_answers(
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
    table = stored_answers([("1", "ann", ["colour", "count"], 4), ("2", "ann", ["successful_alternative"], 9)])
    pairs = {"1": ("a", "b#0"), "2": ("b", "a#0")}
    assert grades_of(judged_pairs(table, pairs, FAILURES.form)) == {("a", "b#0"): 0, ("b", "a#0"): 1}
    assert grades_of(judged_pairs(table, pairs, FAILURES.form, "rating")) == {("a", "b#0"): 4, ("b", "a#0"): 9}


def test_unsure_is_no_judgement_and_labels_need_grades() -> None:
    table = stored_answers([("1", "ann", ["unsure"]), ("1", "bob", ["good"]), ("2", "ann", ["unsure"])])
    judged = judged_pairs(table, {"1": ("a", "b#0"), "2": ("b", "a#0")}, VALIDITY.form, "mean")
    assert grades_of(judged) == {("a", "b#0"): 1, ("b", "a#0"): None}
    renamed_labels = replace(
        PAIRS.form, labels=(replace(PAIRS.form.labels[0], name="yes"), replace(PAIRS.form.labels[1], name="no"))
    )
    with pytest.raises(UsageError, match="have no grades"):
        judged_pairs(table, {}, renamed_labels)


def test_a_pair_in_two_items_is_one_pair() -> None:
    table = stored_answers([("1", "ann", ["3"]), ("2", "ann", ["1"]), ("2", "bob", ["1"])])
    judged = judged_pairs(table, {"1": ("a", "b#0"), "2": ("a", "b#0")}, RELEVANCE.form)
    assert judged.select("judge", "score", "grade").rows() == [("ann", 2, 2), ("bob", 1, 2)]


def relevance_of(table: pl.DataFrame, pairs: dict[str, tuple[str, str]], **final: Answer) -> ProjectAnswers:
    items = {
        name: StoredItem(ItemContent(about={"image": image, "caption": caption}), id=int(name), project=1)
        for name, (image, caption) in pairs.items()
    }
    project = replace(results_of(table).answers.project, form=RELEVANCE.form)
    return ProjectAnswers(project, items, table, final)


def test_exported_pairs_are_qrels_and_judgements(tmp_path: Path) -> None:
    answers = relevance_of(JUDGED, ITEM_PAIRS, **{"3": Answer(("1",))})
    for name in ("judgements.parquet", "judgements.csv"):
        path = tmp_path / name
        path.write_bytes(export_content(answers, path, ExportOptions(form="qrels", truth_grade=3.0), DATASET))
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
        export_content(
            relevance_of(stored_answers([("1", "a", ["1"])]), {"1": ("z", "b#0")}), "x.parquet", None, DATASET
        )


# Out: files


CONTENT = ItemContent(
    (ShownPicture("toys-1", "b"),), (ShownText("=1+1 <b>a dog</b>", "Query"),),
    {"image": "b", "caption": "a#1", "query": "a#1", "run": "model a", "metrics": {"rank": 2}},
)  # fmt: skip
ITEMS = {"7": StoredItem(CONTENT, "real", {"labels": ["colour"]}, id=7, project=1)}
ANSWERS = judgement_table(
    [
        {"item": "7", "account": "ann", "labels": ["colour", "count"], "rating": 3, "text": "a, \"b\"", "seconds": 4.5},
        {"item": "7", "account": "gpt", "labels": ["count"], "rating": 2, "source": "model"},
    ]
)  # fmt: skip
FINAL = {"7": Answer(("count",), 2)}


def test_csv_and_jsonl_hold_every_answer_and_no_formula() -> None:
    answers = replace(results_of(ANSWERS).answers, items=ITEMS, adjudicated=FINAL)
    rows = list(csv.DictReader(io.StringIO(export_content(answers, "answers.csv").decode())))
    assert [row["source"] for row in rows] == ["person", "model", "adjudicated"]
    assert (rows[0]["labels"], rows[0]["text"], rows[0]["expected"]) == ("colour; count", 'a, "b"', "colour")
    assert rows[0]["shown_text"].startswith("'=1+1")
    lines = [json.loads(line) for line in export_content(answers, "answers.jsonl").splitlines()]
    assert lines[0]["labels"] == ["colour", "count"]
    assert lines[0]["shown_text"].startswith("=1+1")
    assert lines[0]["metrics"] == {"rank": 2}
    assert lines[2] | {"judge": ""} == lines[2]
