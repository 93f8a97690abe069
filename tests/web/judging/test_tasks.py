"""Forms and answers: what an owner may ask, and what an annotator may answer."""

from __future__ import annotations

import json
import tomllib
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UsageError
from crosslens.storage import SettingsFile, json_form
from crosslens.web.judging.database.projects import as_item
from crosslens.web.judging.database.tables import ItemRow
from crosslens.web.judging.tasks import (
    RESERVED_KEYS,
    TASKS,
    Answer,
    AnswerForm,
    AnswerLabel,
    InvalidChoice,
    ItemContent,
    ShownPicture,
    ShownText,
    check_answer,
    is_expected,
    read_form,
)

FAILURES, VALIDITY, PAIRS, RELEVANCE = (TASKS[name].form for name in ("failures", "validity", "pairs", "relevance"))


def test_the_tasks_ask_what_the_papers_ask() -> None:
    assert [label.name for label in FAILURES.labels] == [
        "object_class", "colour", "count", "action", "size", "details", "successful_alternative",
    ]  # fmt: skip
    assert FAILURES.several
    assert FAILURES.rating is not None
    assert (FAILURES.rating.low, FAILURES.rating.high) == (1, 10)
    assert [label.name for label in VALIDITY.labels] == ["good", "bad", "unsure"]
    assert VALIDITY.text is not None
    assert [label.name for label in PAIRS.labels] == ["good", "bad"]
    assert [(label.name, label.grade) for label in RELEVANCE.labels] == [(str(n), float(n)) for n in range(4)]


@pytest.mark.parametrize("name", TASKS)
def test_every_label_has_a_key_of_its_own(name: str) -> None:
    keys = [label.key for label in TASKS[name].form.labels]
    assert len(set(keys)) == len(keys)
    assert not set(keys) & set(RESERVED_KEYS)
    assert all(label.help for label in TASKS[name].form.labels)
    assert len(TASKS[name].guidelines) > 100


@pytest.mark.parametrize("name", TASKS)
def test_forms_are_stored_and_read(name: str) -> None:
    form = TASKS[name].form
    assert read_form(json.loads(json.dumps(json_form(form)))) == form


def test_a_form_of_ones_own() -> None:
    form = read_form(
        tomllib.loads("""
        question = "Which is it?"
        several = true
        [[labels]]
        name = "cat"
        [[labels]]
        name = "dog"
        title = "A dog"
        key = "D"
        help = "Barks."
        [[labels]]
        name = "none"
        alone = true
        [rating]
        low = 0
        high = 5
        [text]
        title = "Breed"
        needed_for = ["dog"]
        """)
    )
    assert [(label.title, label.key) for label in form.labels] == [("cat", "1"), ("A dog", "d"), ("none", "3")]
    assert check_answer(form, Answer(("dog", "cat"), 0, " Poodle ")) == Answer(("cat", "dog"), 0, "Poodle")
    for bad, code in (
        (Answer(("dog",), 0), "missing-text"),
        (Answer(("cat", "none"), 0), "not-alone"),
        (Answer(("cat",), 6), "rating"),
        (Answer(("cat",), None), "rating"),
        (Answer((), 3), "no-label"),
        (Answer(("cow",), 3), "unknown-label"),
        (Answer(("cat",), 3, "a\0b"), "null-character"),
        (Answer(("cat",), 3, "x" * 4_001), "long-text"),
    ):
        with pytest.raises(InvalidChoice) as caught:
            check_answer(form, bad)
        assert caught.value.code == code


LABELS = [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"labels": LABELS}, "question has 0 characters"),
        ({"question": "?", "labels": LABELS, "colour": 1}, "unknown key 'colour'"),
        ({"question": "?", "labels": [{"name": "a"}]}, "labels has 1 entries"),
        ({"question": "?", "labels": [{"name": f"n{n}"} for n in range(10_000)]}, "labels has 10,000 entries"),
        ({"question": "?", "labels": "ab"}, "labels is not a list of labels"),
        ({"question": "?", "labels": ["a", "b"]}, "labels is not a list of labels"),
        ({"question": "?", "labels": [{"name": "a"}, {"name": "a", "key": "x"}]}, "two labels have the name 'a'"),
        ({"question": "?", "labels": [{"name": "a", "key": "2"}, {"name": "b"}]}, "two labels have the key '2'"),
        ({"question": "?", "labels": [{"name": "a", "key": "u"}, {"name": "b"}]}, "already used for undo"),
        ({"question": "?", "labels": [{"name": "a", "key": "xy"}, {"name": "b"}]}, "'xy' is not a letter or digit"),
        ({"question": "?", "labels": [{"name": "a", "grade": True}, {"name": "b"}]}, "grade = True"),
        ({"question": "?", "labels": [{"name": "a", "shape": 1}, {"name": "b"}]}, "labels 1: unknown key 'shape'"),
        ({"question": "?", "labels": LABELS, "several": "yes"}, "several = 'yes'"),
        ({"question": "?", "labels": LABELS, "rating": {"low": 5, "high": 5}}, "rating from 5 to 5"),
        ({"question": "?", "labels": LABELS, "rating": {"low": 5}}, "[rating] has no high"),
        ({"question": "?", "labels": [{"name": "a"}, {"title": "b"}]}, "labels 2: [labels] has no name"),
        ({"question": "?", "labels": [{"name": "a"}, {"name": " "}]}, "labels 2: name has 0 characters"),
        ({"question": "?", "labels": [{"name": "a"}, {"name": "b", "grade": -1}]}, "labels 2: grade -1"),
        ({"question": "?", "labels": LABELS, "rating": [1, 5]}, "rating = [1, 5]"),
        ({"question": "?", "labels": LABELS, "text": {"title": "T", "needed_for": ["c"]}}, "the label 'c'"),
        ({"question": "?", "labels": LABELS, "text": "T"}, "text = 'T'"),
        ({"question": "?", "labels": [{"name": f"n{n}"} for n in range(11)]}, "labels 10: key '' is not"),
    ],
)
def test_bad_forms(entry: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        read_form(SettingsFile(entry, file="form.toml"))
    assert problem in str(caught.value)
    assert "form.toml" in str(caught.value)


def test_a_mistake_is_named_by_its_line() -> None:
    labels = 'question = "?"\n[[labels]]\nname = "a"\n[[labels]]\nname = "b"\nkey = "u"\n[rating]\nlow = 5\nhigh = 5\n'
    with pytest.raises(InputError, match=r"form.toml, line 6: key 'u' is already used for undo"):
        read_form(SettingsFile.parse(labels, "form.toml"))
    with pytest.raises(InputError, match=r"form.toml, line 9: rating from 5 to 5"):
        read_form(SettingsFile.parse(labels.replace('"u"', '"x"'), "form.toml"))


def test_a_form_of_many_labels_is_refused_however_it_is_made() -> None:
    labels = tuple(AnswerLabel(f"n{n}", f"n{n}", chr(0x4E00 + n)) for n in range(31))
    assert AnswerForm("?", labels[:30]).labels == labels[:30]
    with pytest.raises(UsageError, match="labels has 31 entries"):
        AnswerForm("?", labels)


@given(st.sampled_from(sorted(TASKS)), st.lists(st.integers(0, 6)), st.none() | st.integers(-2, 12))
def test_an_answer_is_accepted_or_refused_by_the_rules(task: str, label_numbers: list[int], rating: int | None) -> None:
    """Against the list of all allowed answers, spelled out."""
    form = TASKS[task].form
    names = [label.name for label in form.labels]
    labels = tuple(names[n % len(names)] for n in label_numbers)
    allowed = rating in ratings(form) and frozenset(labels) in label_sets(form)
    try:
        checked = check_answer(form, Answer(labels, rating))
    except InvalidChoice:
        assert not allowed
    else:
        assert allowed
        assert list(checked.labels) == [name for name in names if name in labels]


def label_sets(form: AnswerForm) -> set[frozenset[str]]:
    sets = {frozenset([label.name]) for label in form.labels}
    if form.several:
        free = [label.name for label in form.labels if not label.alone]
        sets |= {frozenset(some) for size in range(1, len(free) + 1) for some in combinations(free, size)}
    return sets


def ratings(form: AnswerForm) -> set[int | None]:
    return {None} if form.rating is None else set(range(form.rating.low, form.rating.high + 1))


def test_expected_answers() -> None:
    assert is_expected(None, Answer(("a",))) is None
    assert is_expected({"why": "x"}, Answer(("a",))) is None
    assert is_expected({"labels": ["b", "a"]}, Answer(("a", "b"))) is True
    assert is_expected({"labels": ["a"]}, Answer(("a", "b"))) is False


def test_content_is_stored_and_read() -> None:
    content = ItemContent((ShownPicture("d", "i", "t"),), (ShownText("x", "y"),), {"query": "q"})
    row = ItemRow(id=1, project=1, kind="real", content=json.loads(json.dumps(json_form(content))), expected=None)
    assert as_item(row).content == content
