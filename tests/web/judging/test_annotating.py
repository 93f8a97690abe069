"""The annotating pages, asked as a browser would, without JavaScript."""

from __future__ import annotations

import html
import re

import pytest

from crosslens.web.judging.database.projects import ProjectSettings, create_project
from crosslens.web.judging.routes import duration
from crosslens.web.judging.tasks import ItemContent, NewItem, ShownPicture, ShownText
from tests.web.conftest import NASTY
from tests.web.judging.samples import add_items, judgements, person, project, taken_back
from tests.web.judging.site import Site, assignment_on


def answer(site: Site, visitor, number: int, **fields: object):  # type: ignore[no-untyped-def]
    page = visitor.get(f"/projects/{number}/annotate")
    return visitor.post(f"/projects/{number}/judge", {"assignment": assignment_on(page), **fields})


def test_items_are_answered_one_after_another(site: Site) -> None:
    new_project = project(site.database, 3)
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    assert "Start" in ann.get(f"/projects/{new_project.id}").text
    for done in range(3):
        page = ann.get(f"/projects/{new_project.id}/annotate")
        assert f"{done} judged, up to {3 - done} left" in page.text
        sent = ann.post(f"/projects/{new_project.id}/judge", {"assignment": assignment_on(page), "label": "good"})
        assert (sent.status_code, sent.headers["location"]) == (303, f"/projects/{new_project.id}/annotate")
    assert "Nothing is left for you" in ann.get(f"/projects/{new_project.id}/annotate").text
    assert [entry.labels for entry in judgements(site.database, new_project.id)] == [("good",)] * 3
    assert all(entry.seconds >= 0 for entry in judgements(site.database, new_project.id))


def test_a_form_sent_twice_counts_once(site: Site) -> None:
    new_project = project(site.database, 3)
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    number = assignment_on(ann.get(f"/projects/{new_project.id}/annotate"))
    for label, target in (("good", "annotate"), ("bad", "annotate?note=again"), ("", "annotate?note=again")):
        sent = ann.post(f"/projects/{new_project.id}/judge", {"assignment": number, "label": label})
        assert sent.headers["location"] == f"/projects/{new_project.id}/{target}"
    assert [entry.labels for entry in judgements(site.database, new_project.id)] == [("good",)]
    assert "the first answer counts" in ann.get(f"/projects/{new_project.id}/annotate?note=again").text


def test_an_answer_to_somebody_elses_item_is_not_taken(site: Site) -> None:
    new_project, other_project = project(site.database, 1), project(site.database, 1)
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    eve = site.visitor(person(site.database, "eve", project=other_project.id))
    number = assignment_on(ann.get(f"/projects/{new_project.id}/annotate"))
    assert eve.post(f"/projects/{new_project.id}/judge", {"assignment": number, "label": "good"}).status_code == 404
    sent = eve.post(f"/projects/{other_project.id}/judge", {"assignment": number, "label": "good"})
    assert sent.headers["location"].endswith("note=expired")
    assert judgements(site.database, new_project.id) == []


def test_several_causes_and_a_rating(site: Site) -> None:
    new_project = project(site.database, 2, task="failures")
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    incomplete = answer(site, ann, new_project.id, label=["count", "colour"])
    assert incomplete.status_code == 422
    assert "is missing or out of range: choose a number from 1 to 10." in incomplete.text
    assert re.findall(r'value="(\w+)"[^>]* checked', incomplete.text) == ["colour", "count"], "what was chosen is kept"
    assert answer(site, ann, new_project.id, label=["count", "colour"], rating="11").status_code == 422
    assert answer(site, ann, new_project.id, rating="4").status_code == 422
    both = answer(site, ann, new_project.id, label=["count", "successful_alternative"], rating="4")
    assert "cannot be combined" in both.text
    assert answer(site, ann, new_project.id, label=["count", "colour"], rating="4").status_code == 303
    assert answer(site, ann, new_project.id, label="successful_alternative", rating="10").status_code == 303
    stored = [(entry.labels, entry.rating) for entry in judgements(site.database, new_project.id)]
    assert stored == [(("colour", "count"), 4), (("successful_alternative",), 10)]


def test_a_corrected_caption(site: Site) -> None:
    new_project = project(site.database, 1, task="validity")
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    assert answer(site, ann, new_project.id, label="bad", text="x" * 4_001).status_code == 422
    answer(site, ann, new_project.id, label="bad", text=f" {NASTY}\r\ntwo lines ")
    assert [entry.text for entry in judgements(site.database, new_project.id)] == [f"{NASTY}\ntwo lines"]


def test_undo_brings_the_item_back_with_its_answer(site: Site) -> None:
    new_project = project(site.database, 3, task="failures")
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    first = assignment_on(ann.get(f"/projects/{new_project.id}/annotate"))
    answer(site, ann, new_project.id, label=["size"], rating="2")
    page = ann.get(f"/projects/{new_project.id}/annotate")
    last = re.search(r'name="judgement" value="(\d+)"', page.text)
    assert last is not None
    undone = ann.post(f"/projects/{new_project.id}/undo", {"judgement": last[1]})
    assert undone.headers["location"].endswith("note=undone")
    again = ann.get(undone.headers["location"])
    assert assignment_on(again) == first
    assert re.findall(r'value="(\w+)"[^>]* checked', again.text) == ["size", "2"]
    twice = ann.post(f"/projects/{new_project.id}/undo", {"judgement": last[1]})
    assert twice.headers["location"].endswith("note=nothing")
    assert judgements(site.database, new_project.id) == []
    assert [rating for _, rating in taken_back(site.database, new_project.id)] == [2]


def test_nobody_takes_back_somebody_elses_answer(site: Site) -> None:
    new_project = project(site.database, 2, overlap=2)
    ann, eve = (site.visitor(person(site.database, name, project=new_project.id)) for name in ("ann", "eve"))
    answer(site, ann, new_project.id, label="good")
    answer(site, eve, new_project.id, label="good")
    for number in (1, 2):
        eve.post(f"/projects/{new_project.id}/undo", {"judgement": number})
    assert [entry.account for entry in judgements(site.database, new_project.id)] == ["ann"]


def test_practice_shows_the_expected_answer(site: Site) -> None:
    new_project = project(site.database, 1, practice=2)
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    eve = site.visitor(person(site.database, "eve", project=new_project.id))
    assert "You start with 2 practice items" in ann.get(f"/projects/{new_project.id}").text
    for number, (label, words) in enumerate([("good", "Right"), ("bad", "The expected answer is another one")]):
        assert f"Practice {number + 1} of 2" in ann.get(f"/projects/{new_project.id}/annotate").text
        feedback = answer(site, ann, new_project.id, label=label).headers["location"]
        page = ann.get(feedback)
        assert words in page.text
        assert f"because of practice {number}" in page.text
        assert eve.get(feedback).status_code == 404, "an answer of somebody else"
    assert "Practice" not in ann.get(f"/projects/{new_project.id}/annotate").text


def test_an_attention_check_looks_like_any_item(site: Site) -> None:
    new_project = project(site.database, 1, checks=1, settings=ProjectSettings(check_every=1))
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    pages = []
    for _ in range(2):
        page = ann.get(f"/projects/{new_project.id}/annotate").text.partition('<div class="work">')[2]
        pages.append(re.sub(r'real 0|check 0|name="assignment" value="\d+"| data-following=""', "", page))
        assert answer(site, ann, new_project.id, label="bad").headers["location"].endswith("/annotate"), "no feedback"
    assert [entry.kind for entry in judgements(site.database, new_project.id)] == ["real", "check"]
    assert "because" not in pages[1]
    assert pages[0].split() == pages[1].split()


def test_an_annotator_sees_no_answer_of_others(site: Site) -> None:
    new_project = project(site.database, 1, task="validity", overlap=2)
    ann, ben = (site.visitor(person(site.database, name, project=new_project.id)) for name in ("ann", "ben"))
    answer(site, ann, new_project.id, label="bad", text="the secret correction")
    paths = [
        "/judging",
        *(f"/projects/{new_project.id}{end}" for end in ("", "/annotate", "/guidelines", "/feedback/1")),
    ]
    for _ in range(2):
        for path in paths:
            page = ben.get(path)
            assert "secret" not in page.text
            assert ">ann<" not in page.text
        answer(site, ben, new_project.id, label="good") if judgements(site.database, new_project.id)[
            -1
        ].account == "ann" else None


def test_markup_stays_text(site: Site) -> None:
    content = ItemContent(
        (ShownPicture("set/one", "a b/../c.jpg", NASTY),), (ShownText(NASTY, NASTY),), {"query": "the id of a query"}
    )
    new_project = create_project(site.database, NASTY, "pairs", guidelines=NASTY)
    expected = {"labels": ["good"], "why": NASTY}
    add_items(site.database, new_project.id, [NewItem(content, "practice", expected), NewItem(content)])
    ann = site.visitor(person(site.database, NASTY, project=new_project.id))
    pages = [
        ann.get(path).text
        for path in ("/judging", f"/projects/{new_project.id}", f"/projects/{new_project.id}/annotate")
    ]
    pages.append(ann.get(answer(site, ann, new_project.id, label="good").headers["location"]).text)
    for page in pages:
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert html.escape(NASTY, quote=False) in page.replace("&#34;", '"').replace("&#39;", "'")
        assert "the id of a query" not in page
    assert 'src="/pictures/set%2Fone/a%20b%2F..%2Fc.jpg?size=640"' in pages[2]


def test_owners_may_annotate(site: Site) -> None:
    new_project = project(site.database, 1)
    owner = site.visitor(site.owner("second"))
    assert answer(site, owner, new_project.id, label="good").status_code == 303


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (20, "less than a minute"),
        (61, "about 1 minute"),
        (600, "about 10 minutes"),
        (7_300, "about 2 hours"),
    ],
)
def test_times_in_words(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


def test_bad_forms(site: Site) -> None:
    new_project = project(site.database, 1)
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    ann.get(f"/projects/{new_project.id}/annotate")
    for fields in ({}, {"assignment": "x"}, {"assignment": "0"}, {"assignment": str(2**40)}):
        assert ann.post(f"/projects/{new_project.id}/judge", {**fields, "label": "good"}).status_code == 422
    for fields in ({"label": "nonsense"}, {"label": ["good", "bad"]}, {}, {"label": "good", "rating": "3"}):
        assert answer(site, ann, new_project.id, **fields).status_code == 422, fields
    assert ann.post(f"/projects/{new_project.id}/judge", {"assignment": 1, "label": ["good"] * 101}).status_code == 422
    assert judgements(site.database, new_project.id) == []
