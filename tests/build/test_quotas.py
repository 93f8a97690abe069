"""How many originals each task has: notation, the paper's own, and what happens where there are too few images."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import crosslens as cl
from crosslens.build import RecosSettings, build_recos
from crosslens.build.candidates import derived_tasks
from crosslens.build.settings import Quotas, even_quotas
from crosslens.core import UnknownNameError, UsageError
from tests.build.recos_builds import angle, toy

SETTINGS = RecosSettings(k=3, eta=1, temperature=0.1, descriptions=2, similar=0, duplicate_cosine=2)


@pytest.mark.parametrize(
    ("text", "written", "among"),
    [
        ("50", "50", {"a": 50, "b": 50}),
        (7, "7", {"a": 7, "b": 7}),
        ("b=2, a=1", "a=1,b=2", {"a": 1, "b": 2}),
        ({"b": 2}, "b=2", {"a": 0, "b": 2}),
        ("5,b=0", "5,b=0", {"a": 5, "b": 0}),
    ],
)
def test_notation(text: str, written: str, among: dict[str, int]) -> None:
    quotas = Quotas.of(text)
    assert str(quotas) == written
    assert Quotas.of(written) == quotas
    assert quotas.among(["b", "a", "b"]) == among
    assert RecosSettings(quota=text).quota == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a whole number"),
        ("-1", "'-1' is not a whole number"),
        ("a=", "'a=' is not a whole number"),
        ("a=1.5", "is not a whole number"),
        ("a=²", "is not a whole number"),
        ("=5", "names no task"),
        ("a=1,a=2", "'a' is given twice"),
        ("5,6", "given twice: 5 and 6"),
        ("papre", "is not a whole number"),
    ],
)
def test_what_is_no_quota_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        RecosSettings(quota=text)
    assert caught.value.option == "quota"


def test_an_unknown_task_is_named_and_originals_do_not_go_with_quotas() -> None:
    with pytest.raises(UnknownNameError, match="did you mean ocr"):
        Quotas.of("ocrr=3").among(["ocr", "code"])
    with pytest.raises(UsageError, match="does not go with"):
        RecosSettings(quota="5", originals=3)


def test_the_papers_quotas_sum_to_500_under_either_name_of_a_task() -> None:
    coarse = ["count", "location", "figure", "object", "action", "scene"]
    fine = ["OCR", "calculation", "code", "translation"]
    for colour, person in (("color", "celebrity"), ("colour", "landmark")):
        among = Quotas.of("paper").among([*coarse, colour, *fine, person, "other"])
        assert among == {**dict.fromkeys([*coarse, colour], 50), **dict.fromkeys([*fine, person], 30), "other": 0}
        assert sum(among.values()) == 500
    assert Quotas.of("paper").among(["code"])["color"] == 50, "what is missing is named, not forgotten"
    assert Quotas.of("paper,code=3").among(["code"])["code"] == 3


def test_even_quotas_by_dealing_them_out_one_by_one() -> None:
    tasks = [*"aab", *"c" * 9]
    for total in range(14):
        dealt, left = dict.fromkeys("abc", 0), total
        while left and any(dealt[task] < tasks.count(task) for task in "abc"):
            for task in "abc":
                if left and dealt[task] < tasks.count(task):
                    dealt[task], left = dealt[task] + 1, left - 1
        assert even_quotas(tasks, total) == dealt


def _candidates(tmp_path: Path) -> tuple[cl.Dataset, str]:
    """Twelve images of task x, four of y, of which two are copies, three of z."""
    points = {f"image {n}": angle(15 * n) for n in range(18)} | {"copy": angle(15 * 13)}
    return toy(points, tmp_path, task=[*"x" * 12, *"y" * 3, *"z" * 3, "y"])


def test_each_task_has_its_quota_and_a_short_one_is_explained(tmp_path: Path) -> None:
    dataset, encoder = _candidates(tmp_path)
    settings = replace(SETTINGS, quota="x=5,y=4", duplicate_cosine=0.9999)
    built = build_recos(dataset, encoder, settings, generator=None)
    assert Counter(built.versions["v0"].images["task"]) == {"x": 5, "y": 3}
    assert "task y: 3 of 4 originals: there are 4 candidates; 1 image was the same picture as another" in "".join(
        built.notes
    )
    assert "no quota, and therefore no originals: z" in built.notes
    assert not any(note.startswith("task x") for note in built.notes)
    assert built.log.head["settings"]["quota"] == "x=5,y=4"
    again = build_recos(dataset, encoder, settings, generator=None)
    assert again.versions["v0"].image_ids == built.versions["v0"].image_ids
    other_seed = build_recos(dataset, encoder, replace(settings, seed=5), generator=None)
    assert other_seed.versions["v0"].image_ids != built.versions["v0"].image_ids


def test_the_choice_of_a_task_does_not_depend_on_the_others_quotas(tmp_path: Path) -> None:
    dataset, encoder = _candidates(tmp_path)
    alone = build_recos(dataset, encoder, replace(SETTINGS, quota="x=4"), generator=None).versions["v0"]
    both = build_recos(dataset, encoder, replace(SETTINGS, quota="x=4,z=2"), generator=None).versions["v0"]
    assert set(alone.image_ids) == {
        image for image, task in both.images.select("image", "task").iter_rows() if task == "x"
    }


def test_builds_without_new_settings_keep_their_key(tmp_path: Path) -> None:
    """Logs and folders of earlier versions say nothing of quotas, galleries, grammar and verdicts."""
    dataset, encoder = _candidates(tmp_path)
    head = build_recos(dataset, encoder, replace(SETTINGS, originals=4), generator=None).log.head
    assert not {"quota", "check_gallery"} & set(head["settings"])
    assert not {"grammar", "verified"} & set(head)


def test_missing_tasks_of_the_paper_are_reported(tmp_path: Path) -> None:
    dataset, encoder = toy({f"image {n}": angle(20 * n) for n in range(8)}, tmp_path, task=["colour"] * 8)
    built = build_recos(dataset, encoder, replace(SETTINGS, quota="paper"), generator=None)
    assert "task colour: 4 of 50 originals: there are 8 candidates; 4 images are confusables of others" in built.notes
    assert "task ocr: 0 of 30 originals: there is no such task" in built.notes


STATED = {
    "count": ["Three dogs on a lawn.", "Three dogs run.", "Some dogs."],
    "colour": ["A red car.", "A red old car.", "A car in a street."],
    "location": ["A cat under a table.", "A cat under a chair.", "A cat."],
    "action": ["A man is running.", "A man runs.", "A man at a table."],
    "ocr": ['A sign that says "stop".', 'A sign that reads "stop".', "A sign."],
    "object": ["A bench.", "A bench in a park.", "A park with a red bench."],
    "scene": ["A beach in the evening.", "A beach.", "A wide beach."],
}


def test_tasks_are_derived_from_what_half_of_the_captions_state() -> None:
    dataset = cl.Dataset.of(STATED)
    assert derived_tasks(dataset) == (*list(STATED)[:-1], "object"), "without objects nothing says that there are none"
    objects = pl.DataFrame({"image": [image for image in STATED if image != "scene"], "name": "thing"})
    annotated = replace(dataset, objects=objects.with_columns(object=pl.col("image")))
    assert derived_tasks(annotated) == tuple(STATED)


def test_quotas_of_tasks_need_no_column(tmp_path: Path) -> None:
    dataset, encoder = _candidates(tmp_path)
    without = replace(dataset, images=dataset.images.drop("task"))
    built = build_recos(without, encoder, replace(SETTINGS, quota="object=2"), generator=None)
    assert Counter(built.versions["v0"].images["task"]) == {"object": 2}
    notes = [
        note for note in built.notes if "tasks are derived from captions (no objects are annotated): object" in note
    ]
    assert len(notes) == 1
    plain = build_recos(without, encoder, replace(SETTINGS, originals=2), generator=None)
    assert not [note for note in plain.notes if "derived" in note]
    with pytest.raises(UnknownNameError, match="scene"):
        build_recos(without, encoder, replace(SETTINGS, quota="scene=2"), generator=None)
