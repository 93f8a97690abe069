"""Tasks for Label Studio, checked against the rules of its import, as its documentation and task validator state them.

No Label Studio runs here. What is checked: the file is a list of tasks; every variable of the labelling interface is
in the data of every task, with a type that its tag takes; names in the interface are unique, and every control is about
an object of it; annotations and predictions hold a list of results; a result names a control of the interface, what
that control is about, the type of its tag, and a value of that type: choices that the interface offers (one of them
where only one may be chosen), a rating within its scale, a list of texts.
"""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from crosslens.storage import json_form
from crosslens.web import interface_of
from crosslens.web.judging.agreement import judgement_table
from crosslens.web.judging.exporting import label_studio_tasks
from crosslens.web.judging.tasks import (
    TASKS,
    Answer,
    AnswerForm,
    AnswerLabel,
    ItemContent,
    NewItem,
    ShownPicture,
    ShownText,
    read_form,
)

OBJECTS = {"Image": (str, list), "Text": (str, int, float)}
VALUES = {"choices": "choices", "rating": "rating", "textarea": "text"}


def problems(tasks: Any, interface: str) -> list[str]:
    """Why Label Studio would not import the tasks, or not show them; empty where it would."""
    tags = list(ElementTree.fromstring(interface).iter())
    objects = {tag.get("name"): tag for tag in tags if tag.tag in OBJECTS}
    controls = {tag.get("name"): tag for tag in tags if tag.get("toName")}
    names = [tag.get("name") for tag in tags if tag.get("name")]
    wrong = [f"two tags named {name}" for name in set(names) if names.count(name) > 1]
    wrong += [f"{name} is about nothing" for name, tag in controls.items() if tag.get("toName") not in objects]
    if not isinstance(tasks, list) or not tasks:
        return [*wrong, "no list of tasks"]
    for task in tasks:
        for tag in objects.values():
            variable = str(tag.get("value")).removeprefix("$")
            if not isinstance(task["data"].get(variable), OBJECTS[tag.tag]):
                wrong.append(f"no {variable} in the data")
        every = [*task["annotations"], *task["predictions"]]
        wrong += [
            "a prediction without model_version"
            for prediction in task["predictions"]
            if not prediction.get("model_version")
        ]
        results = [entry for prediction in every for entry in prediction["result"]]
        wrong += ["an id twice"] * (len({entry["id"] for entry in results}) < len(results))
        wrong += [problem for entry in results for problem in of_result(entry, controls)]
    return wrong


def of_result(entry: dict[str, Any], controls: dict[Any, Any]) -> list[str]:
    tag = controls.get(entry["from_name"])
    if tag is None:
        return [f"no control {entry['from_name']}"]
    if entry["to_name"] != tag.get("toName") or entry["type"] != tag.tag.lower():
        return [f"{entry['from_name']} is about {tag.get('toName')} and a {tag.tag}"]
    value = entry["value"].get(VALUES[entry["type"]])
    if entry["type"] == "choices":
        offered = {choice.get("value") for choice in tag.iter("Choice")}
        fits = (
            isinstance(value, list) and set(value) <= offered and (len(value) == 1 or tag.get("choice") == "multiple")
        )
    elif entry["type"] == "rating":
        fits = type(value) is int and 1 <= value <= int(tag.get("maxRating"))
    else:
        fits = isinstance(value, list) and all(isinstance(text, str) for text in value)
    return [] if fits else [f"{value!r} is no value of {entry['from_name']}"]


def items(pictures: int, texts: int) -> dict[str, NewItem]:
    """Two items; the second shows less than the first where that is possible."""
    new_items = {}
    for number in range(2):
        pictures_of_item = tuple(
            ShownPicture("toys-1", f"a b{n}.jpg") for n in range(max(pictures - number, pictures > 0))
        )
        texts_of_item = tuple(ShownText(f"<text> & {n}") for n in range(max(texts - number, texts > 0)))
        new_items[str(number)] = NewItem(ItemContent(pictures_of_item, texts_of_item, {"caption": "c1"}))
    return new_items


def answered(form: AnswerForm) -> tuple[Any, dict[str, Answer]]:
    labels = [label.name for label in form.labels][: 2 if form.several else 1]
    rating = None if form.rating is None else form.rating.high
    text = "a corrected caption" if form.text else ""
    names = ("item", "account", "labels", "rating", "text", "kind", "seconds", "source")
    rows = [
        ("0", "ann", labels, rating, text, "real", 4.5, "person"),
        ("0", "ben", labels, rating, "", "real", 2.0, "person"),
        ("0", "gpt", labels, rating, text, "real", 1.0, "model"),
    ]
    table = judgement_table([dict(zip(names, row, strict=True)) for row in rows])
    return table, {"0": Answer(tuple(labels), rating, text)}


@pytest.mark.parametrize(("pictures", "texts"), [(1, 1), (2, 1), (1, 2), (0, 1), (1, 0)])
@pytest.mark.parametrize("task", TASKS)
def test_tasks_fit_their_interface(task: str, pictures: int, texts: int) -> None:
    form, item_of = TASKS[task].form, items(pictures, texts)
    table, final = answered(form)
    tasks = json.loads(json.dumps(label_studio_tasks(table, item_of, final, "http://127.0.0.1:8000/pictures/")))
    assert problems(tasks, interface_of(form, item_of)) == []
    annotations = tasks[0]["annotations"]
    assert tasks[0]["data"]["judges"] == ["ann", "ben", "adjudicated"]
    assert [entry["ground_truth"] for entry in annotations] == [False, False, True]
    assert all("completed_by" not in entry for entry in annotations), "Label Studio refuses people it does not know"
    assert annotations[0]["lead_time"] == 4.5
    assert [entry["model_version"] for entry in tasks[0]["predictions"]] == ["gpt"]
    assert (tasks[1]["annotations"], tasks[1]["predictions"]) == ([], [])
    if pictures:
        assert tasks[0]["data"]["image"] == "http://127.0.0.1:8000/pictures/toys-1/a%20b0.jpg"


def test_labels_with_markup_stay_labels() -> None:
    form = AnswerForm('Is <this> "good" & right?', (AnswerLabel('a "b" <c>', "A", "1"), AnswerLabel("d&e", "D", "2")))
    table, _ = answered(form)
    interface = interface_of(read_form(json_form(form)), items(1, 1))
    assert problems(label_studio_tasks(table, items(1, 1), {}), interface) == []


def test_the_check_can_fail() -> None:
    form, item_of = TASKS["failures"].form, items(1, 1)
    table, final = answered(form)
    interface = interface_of(form, item_of)

    def broken(path: tuple[Any, ...], value: Any) -> list[str]:
        tasks = json.loads(json.dumps(label_studio_tasks(table, item_of, final)))
        entry = tasks
        for step in path[:-1]:
            entry = entry[step]
        entry[path[-1]] = value
        return problems(tasks, interface)

    first = (0, "annotations", 0, "result", 0)
    assert broken((0, "data", "image"), None) == ["no image in the data"]
    assert broken((*first, "to_name"), "text")
    assert broken((*first, "from_name"), "other")
    assert broken((*first, "value"), {"choices": ["nothing"]})
    assert broken((0, "annotations", 0, "result", 1, "value"), {"rating": 11})
    assert broken((0, "predictions", 0, "model_version"), "")
    assert problems([], interface) == ["no list of tasks"]
