"""Judgements in a database, and the results of a project from them."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from scipy.stats import pearsonr

from crosslens.core import CrosslensError
from crosslens.web import load_answers, results_of
from crosslens.web.judging.accounts import model_account
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.judgements import record_judgement
from crosslens.web.judging.database.projects import ProjectSettings, create_project, projects
from crosslens.web.judging.importing import add_new_items
from crosslens.web.judging.results import ProjectResults, adjudicate, withdraw_decision
from crosslens.web.judging.tasks import Answer, ItemContent, NewItem, ShownPicture, ShownText
from tests.web.judging.samples import add_items, items, person, project


def failures(database: Database, count: int = 6) -> int:
    new_project = create_project(database, "Failures", "failures", overlap=2)
    content = [
        ItemContent(texts=(ShownText(f"query {n}"),), about={"image": f"i{n}", "caption": f"c{n}", "query": f"c{n}",
                    "metrics": {"rank": n + 2, "margin": 0.1 * n}})
        for n in range(count)
    ]  # fmt: skip
    add_items(database, new_project.id, [*map(NewItem, content), NewItem(content[0], "check", {"labels": ["colour"]})])
    return new_project.id


def test_results_of_a_project(database: Database) -> None:
    number = failures(database)
    ann, bob = person(database, "ann", project=number), person(database, "bob", project=number)
    vlm = model_account(database, "vlm").id
    stored = items(database, number)
    for at, item in enumerate(stored):
        colour = Answer(("colour", "count") if at % 2 else ("colour",), 9 - at)
        record_judgement(database, item.id, ann, colour, source="person", seconds=2)
        answer = Answer(("details",), 2) if at == 1 else colour
        record_judgement(database, item.id, bob, answer, source="person", seconds=4)
        record_judgement(database, item.id, vlm, Answer(("colour",), 5), source="model")
    adjudicate(database, number, stored[1].id, ann, Answer(("count",), 3))
    answers = load_answers(database, number)
    results = ProjectResults(answers)
    assert answers.pairs[str(stored[0].id)] == ("i0", "c0")
    assert results.judged.height == 12
    assert results.agreement.judges == 2
    assert results.people.select("account", "judged", "check_right", "seconds").rows() == [
        ("ann", 6, 1, 2.0),
        ("bob", 6, 1, 4.0),
    ]
    (case,) = results.disagreements
    assert (case.item, case.adjudicated) == (str(stored[1].id), Answer(("count",), 3))
    causes = results.numbers_of_causes
    assert causes is not None
    assert dict(causes.select("causes", "count").rows()) == {0: 0, 1: 4, 2: 2}
    assert [model.model for model in results.models] == ["vlm"]
    rank = results.correlations().filter(metric="rank", judged="rating").row(0, named=True)
    assert rank["pearson"] == pytest.approx(pearsonr([9, 3, 7, 6, 5, 4], range(2, 8)).statistic)
    content = json.loads(json.dumps(results.as_dict(), allow_nan=False))
    assert content["agreement"]["items"] == 6
    assert content["decided"] == {"all": 5, "adjudicated": 1}


def survey(database: Database) -> int:
    """25 pairs and 4 true negatives, one of them without a known answer, judged by four people.

    All call ten of the pairs bad and the others good; one person calls a true negative good.
    """
    new_project = create_project(database, "Survey", "pairs", overlap=4)
    expected = {"labels": ["bad"]}
    pairs = [NewItem(ItemContent(texts=(ShownText(f"pair {n}"),), about={"metrics": {"score[a]": n / 10}}))
             for n in range(25)]  # fmt: skip
    negatives = [NewItem(ItemContent(texts=(ShownText(f"negative {n}"),)), "distractor", expected if n else None)
                 for n in range(4)]  # fmt: skip
    add_items(database, new_project.id, pairs + negatives)
    people = [person(database, name, project=new_project.id) for name in ("ann", "bob", "cid", "dan")]
    for at, item in enumerate(items(database, new_project.id)):
        for who, account in enumerate(people):
            good = 10 <= at < 25 or (at == 25 and who == 0)
            record_judgement(database, item.id, account, Answer(("good" if good else "bad",)), source="person")
    return new_project.id


def test_agreement_of_a_survey_is_the_share_who_say_that_a_pair_fits(sqlite_database: Database) -> None:
    results = results_of(sqlite_database, survey(sqlite_database))
    content = json.loads(json.dumps(results.as_dict(), allow_nan=False))
    agreement = content["agreement"]
    assert (agreement["items"], agreement["fits"]) == (25, "good")
    assert (agreement["by_item"]["mean"], agreement["by_item"]["minimum"]) == (pytest.approx(0.6), 0)
    assert content["known_answers"]["distractor"] == {"right": 15, "given": 16}
    text = results.text(100)
    assert re.search(r"agreement that a pair fits +60\.0 % \[[\d., ]+\] on average, 0\.0 % at least", text)
    assert re.search(r"true negatives +15 of 16 judgements right \(93\.8 %\)", text)
    assert re.search(r"ann +25 .* 3 of 4$", text, re.M)
    assert re.search(r"bob +25 .* –  +4 of 4$", text, re.M), "no attention check was given"
    assert re.search(r"score\[a\] +0\.\d\d", text), "the score rises with the share of good"


def test_metrics_and_causes_of_items_that_are_there_already(database: Database) -> None:
    number = create_project(database, "Failures", "failures", settings=ProjectSettings(with_truth=True)).id
    facts = {"query": "c", "expected_image": "t", "metrics": {"rank": 2}}
    plain = NewItem(ItemContent((ShownPicture("toys", "r"),), (ShownText("a dog"),), facts))
    assert add_new_items(database, number, [plain], "toys").added == {"real": 1}
    explained = {**facts, "metrics": {"CA": 0.5}, "causes": {"colour": True}}
    again = add_new_items(database, number, [replace(plain, content=replace(plain.content, about=explained))], "toys")
    assert (again.added, again.known, again.updated) == ({}, 1, 1)
    (stored,) = items(database, number)
    assert stored.content.about["metrics"] == {"rank": 2, "CA": 0.5}
    assert stored.content.about["causes"] == {"colour": True}
    assert [(picture.image, picture.title) for picture in stored.content.pictures] == [("r", ""), ("t", "True image")]
    assert add_new_items(database, number, [plain], "toys").updated == 0
    (project,) = projects(database)
    assert project.settings == ProjectSettings(with_truth=True, revision=1)


def test_decisions_are_replaced_and_taken_back(sqlite_database: Database) -> None:
    number = failures(sqlite_database)
    owner = person(sqlite_database, "own", project=number, role="owner")
    item = items(sqlite_database, number)[0].id
    for labels in (("colour",), ("size", "count")):
        adjudicate(sqlite_database, number, item, owner, Answer(labels, 3))
    assert load_answers(sqlite_database, number).adjudicated == {str(item): Answer(("count", "size"), 3)}
    withdraw_decision(sqlite_database, number, item)
    assert load_answers(sqlite_database, number).adjudicated == {}
    with pytest.raises(CrosslensError, match="nothing was decided"):
        withdraw_decision(sqlite_database, number, item)


def test_decisions_that_cannot_be(sqlite_database: Database) -> None:
    number, second_study = failures(sqlite_database), project(sqlite_database).id
    item = items(sqlite_database, number)[0].id
    with pytest.raises(CrosslensError, match="'good' is not a label"):
        adjudicate(sqlite_database, number, item, 1, Answer(("good",), 3))
    with pytest.raises(CrosslensError, match=f"item {item} is not in project {second_study}"):
        adjudicate(sqlite_database, second_study, item, 1, Answer(("good",)))
    with pytest.raises(CrosslensError, match="project 99 does not exist"):
        load_answers(sqlite_database, 99)


def test_a_project_nobody_has_judged(sqlite_database: Database) -> None:
    results = ProjectResults(load_answers(sqlite_database, failures(sqlite_database)))
    content = results.as_dict()
    assert content["agreement"]["items"] == 0
    assert results.disagreements == results.models == ()
    assert results.correlations().height == 0
