"""The grammar check: mistakes that it must find, texts that it must leave alone, and what a build does with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import crosslens as cl
from crosslens.build import GRAMMAR_CHECKS, GrammarCheck, Request, grammar_counts, load_grammar_check
from crosslens.build.grammar import RuleCheck
from crosslens.core import CrosslensError, UnknownNameError
from crosslens.language import find_pipeline
from tests.build.recos_builds import SETTINGS, build
from tests.build.toy_models import Fickle

BY_WORDS = {
    "article": ["A apple on a table.", "An dog in a park.", "A man in an uniform.", "A SUV beside an hour glass."],
    "repeated word": ["A man on on a horse.", "The the dog."],
    "capital": ["a man on a horse.", "(a man on a horse.)"],
    "full stop": ["A man on a horse", "A man on a horse,"],
    "agreement": [
        "There is two cats on a mat.",
        "There are a dog on a mat.",
        "They is here.",
        "A dog, and it are wet.",
    ],
    "number": ["A dogs on a bench.", "Two ox on a road."],
    "fragment": ["A man with a.", "Dog.", "The dog and."],
}
BY_PARSE = {
    "agreement": [
        "Two dogs is running in a park.", "A dog are running.", "People stands near a car.", "He walk to school.",
        "The men was sitting.",
    ],
    "number": ["Three dog on a beach.", "Two woman are talking.", "A small dogs sleeps."],
    "fragment": ["Running fast in.", "On the table beside the window.", "On a sheet of little squares."],
}  # fmt: skip
GOOD = [
    "A man on a horse.", "The group of people are standing.", "A view of two bicycles and the sheep.",
    "A man that is riding horses stands there.", "There are a few dogs.", "Two people are riding bikes.",
    "An hour later, a unicorn leaves.", "A dog and a cat are playing.", "There is a red bench and two dogs.",
    "He had had a dog.", '"stop" is written on a sign.', "The sheep are grazing.", "A two-way street.",
    "A 10 year old boy.", "A row of parked cars sits on the street.", "People standing near a car.",
    "In a park, two dogs.", "There are a cat, a dog and a bird.", "A couple of men and a woman who are sitting.",
    "12 × 3 = 36, written on a blackboard.", "Is this a dog?",
    "Among flower beds one sees a tree.", "A close up of a cat with an umbrella behind her.",
]  # fmt: skip


def _checks() -> list[GrammarCheck]:
    try:
        return [RuleCheck(None), RuleCheck(str(find_pipeline()))]
    except CrosslensError:
        return [RuleCheck(None)]


@pytest.mark.parametrize("check", _checks(), ids=lambda check: check.revision)
def test_mistakes_are_found_by_their_rule_and_good_texts_pass(check: GrammarCheck) -> None:
    mistakes = [(rule, text) for rule, texts in BY_WORDS.items() for text in texts]
    if "words alone" not in check.revision:
        mistakes += [(rule, text) for rule, texts in BY_PARSE.items() for text in texts]
    for (rule, text), problems in zip(mistakes, check.problems([text for _, text in mistakes]), strict=True):
        assert rule in {problem.partition(":")[0] for problem in problems}, text
    assert dict(zip(GOOD, check.problems(GOOD), strict=True)) == dict.fromkeys(GOOD, ())


@pytest.mark.parametrize("check", _checks(), ids=lambda check: check.revision)
def test_drawn_scenes_have_captions_without_mistakes(check: GrammarCheck, tmp_path: Path) -> None:
    from crosslens.synth import write_scenes

    texts = list(write_scenes(tmp_path / "set", 12, "all", seed=8, workers=1).texts)
    assert not [(text, problems) for text, problems in zip(texts, check.problems(texts), strict=True) if problems]


@pytest.mark.parametrize("check", _checks(), ids=lambda check: check.revision)
def test_odd_texts_raise_nothing(check: GrammarCheck) -> None:
    odd = ["", " ", ".", "?!", "…", "a", "A", "\n", "狗", "🐕 🐕", "a" * 500, "An " * 50, '"', "two", "There are a"]
    assert len(check.problems(odd)) == len(odd)
    assert check.problems([]) == []


def test_people_make_few_mistakes_and_most_reports_are_right(shared_data: Path) -> None:
    """On 1,500 COCO captions, with capital and full stop supplied: about one report in sixty."""
    dataset = cl.load_dataset("coco", captions=shared_data / "coco_val2017_1k" / "captions.json")
    texts = [text.strip()[:1].upper() + text.strip()[1:].rstrip(". ") + "." for text in dataset.texts[:1500]]
    for check in _checks():
        assert 5 <= sum(map(bool, check.problems(texts))) <= 40


class Sloppy(Fickle):
    """Writes a text without capital and full stop first, a proper one after."""

    name = "sloppy"

    def _answer(self, request: Request) -> tuple[str, ...]:
        answer = super()._answer(request)
        return answer if request.attempt == 0 else tuple(f"{text.capitalize()}." for text in answer)


class Register:
    """No mistakes but in texts that end without a full stop."""

    name, revision = "register", "1"

    def problems(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        return [() if text.endswith(".") else ("full stop: none",) for text in texts]


def test_ungrammatical_texts_are_written_again_and_counted(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, eta=0.6)
    built = build(scenes, folder, settings, generator=Sloppy(), grammar=Register(), output=tmp_path / "bench")
    written = built.versions["v1"].captions.filter(built.versions["v1"].captions["origin"] == "sloppy")
    assert written.height
    assert all(text.endswith(".") for text in written["text"])
    entries = [entry for step in ("rewritten", "likened") for entry in built.log.of(step)]
    first = [entry for entry in entries if entry["origin"] == "sloppy" and not entry["text"].endswith(".")]
    assert {entry["verdict"] for entry in first} == {"ungrammatical"}
    counts = grammar_counts(built.log)
    assert counts["ungrammatical"] == counts["full stop"] == len(first)
    assert any(f"{len(first):,} of {counts['written']:,} generated" in note for note in built.notes)
    again = build(
        scenes, folder, built.settings, generator=Sloppy(patience=0), grammar=Register(), repeat=built.log,
        output=tmp_path / "again",
    )  # fmt: skip
    assert again.versions["v2"].fingerprint == built.versions["v2"].fingerprint


def test_checks_are_named_and_registered() -> None:
    assert load_grammar_check("rules").name == "rules"
    assert isinstance(load_grammar_check("rules"), GrammarCheck)
    with pytest.raises(UnknownNameError, match="did you mean rules"):
        load_grammar_check("ruels")
    assert [entry.name for entry in GRAMMAR_CHECKS] == ["rules"]
