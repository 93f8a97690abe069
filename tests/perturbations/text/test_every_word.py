"""``every=True``: all words that one of the adversarial perturbations could replace, against one at a time."""

from __future__ import annotations

import pytest

from crosslens.perturbations import candidate_edits, perturb
from crosslens.perturbations.selection import ADVERSARIAL
from tests.language.pipelines import needs_a_pipeline

pytestmark = needs_a_pipeline

CAPTIONS = [
    "A young man in a red jacket walks a small dog.",
    "A big dog and a small cat sit on a large green couch.",
    "A woman in a black and white dress holds a red umbrella.",
    "Two people are sitting on a bench.",
    "A tall man with long hair is next to an old car.",
    "An orange bus and a huge blue truck are on an empty street.",
]
OPTIONS = {"colors": ["red", "green", "blue", "black", "white", "yellow", "purple"]}


def words_that_may_change(name: str, caption: str) -> set[tuple[int, int]]:
    """The words that any outcome of the perturbation replaces: those of every edit but of articles."""
    options = OPTIONS if name == "color_in" else {}
    outcomes = candidate_edits([name], [caption], **options)[0].candidates
    return {
        (edit.start, edit.end) for outcome in outcomes for edit in outcome.edits
        if edit.before.lower() not in ("a", "an")
    }  # fmt: skip


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_every_word_that_could_change_does(name: str) -> None:
    options = OPTIONS if name == "color_in" else {}
    several = 0
    for caption, changed in zip(CAPTIONS, perturb(name, CAPTIONS, every=True, **options), strict=True):
        edited = {(edit.start, edit.end) for edit in changed.edits if edit.before.lower() not in ("a", "an")}
        assert edited == words_that_may_change(name, caption)
        assert changed.applied == bool(edited)
        several += len(edited) > 1
    assert several, "some caption has two such words"


def test_a_and_an_follow_each_word() -> None:
    text = perturb("antonym", ["A young man and an old woman."], every=True)[0].text
    assert text == "An old man and a young woman."


def test_two_colours_of_an_object_stay_two() -> None:
    for seed in range(30):
        options = {"every": True, "seed": seed, "colors": ["green", "blue", "purple"]}
        changed = perturb("color_in", ["A woman in a black and white dress."], **options)[0]
        new = [edit.after for edit in changed.edits]
        assert len(set(new)) == len(new)


def test_one_word_is_replaced_without_it() -> None:
    for name in ADVERSARIAL:
        options = OPTIONS if name == "color_in" else {}
        for plain, again in zip(
            perturb(name, CAPTIONS, **options), perturb(name, CAPTIONS, every=False, **options), strict=True
        ):
            assert plain == again
            assert sum(edit.before.lower() not in ("a", "an") for edit in plain.edits) <= 1
