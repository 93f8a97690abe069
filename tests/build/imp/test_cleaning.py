"""Cleaning: the golden captions, and what must hold for any text."""

from __future__ import annotations

import builtins
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, strategies as st

import crosslens.build as build
from crosslens.build import CleaningSettings, clean_captions, cleaning_rules
from crosslens.build.imp.cleaning.captions import (
    CHECKS,
    NEAR_DUPLICATE,
    REASONS,
    REPAIRS,
    missing_part,
    reason_to_drop,
    repair,
)
from crosslens.build.imp.cleaning.words import count_words
from crosslens.core import InputError, MissingExtraError, UnknownNameError, UsageError

pytest.importorskip("ftfy")
pytest.importorskip("py3langid")

LINES = (Path(__file__).with_name("cleaning_cases.jsonl")).read_text(encoding="utf-8").splitlines()
CASES: list[dict[str, Any]] = [json.loads(line) for line in LINES]
TAGGED = ("no_noun", "no_verb_or_adjective")
FIELDS = {"text", "cleaned", "reason"}
UNTAGGED = CleaningSettings(languages=("any",), tagging=False)


def settings_of(case: dict[str, Any]) -> CleaningSettings:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in case.items()}
    return CleaningSettings(**{name: value for name, value in values.items() if name not in FIELDS})


def by_settings() -> list[tuple[CleaningSettings, list[dict[str, Any]]]]:
    groups: dict[CleaningSettings, list[dict[str, Any]]] = {}
    for case in CASES:
        groups.setdefault(settings_of(case), []).append(case)
    return list(groups.items())


def check(settings: CleaningSettings, cases: list[dict[str, Any]]) -> None:
    table = clean_captions([case["text"] for case in cases], settings).table
    wrong = [
        (case["text"], case.get("cleaned") or case.get("reason"), row["cleaned"] or row["reason"], row["changes"])
        for case, row in zip(cases, table.to_dicts(), strict=True)
        if (row["cleaned"], row["reason"]) != (case.get("cleaned"), case.get("reason"))
    ]
    assert not wrong
    kept = table["cleaned"].drop_nulls().to_list()
    again = clean_captions(kept, settings).table
    assert again["cleaned"].to_list() == kept
    assert again["changes"].list.len().sum() == 0


GROUPS = pytest.mark.parametrize(
    ("settings", "cases"), by_settings(), ids=lambda value: str(len(value)) if isinstance(value, list) else ""
)


@GROUPS
def test_golden_captions(settings: CleaningSettings, cases: list[dict[str, Any]]) -> None:
    check(replace(settings, tagging=False), [case for case in cases if case.get("reason") not in TAGGED])


@pytest.mark.slow
@GROUPS
def test_golden_captions_with_tags(settings: CleaningSettings, cases: list[dict[str, Any]]) -> None:
    pytest.importorskip("spacy")
    check(settings, cases)


@pytest.mark.slow
def test_captions_without_a_noun_or_a_verb() -> None:
    pytest.importorskip("spacy")
    cases = [case for case in CASES if case.get("reason") in TAGGED and "languages" not in case]
    check(CleaningSettings(), [*cases, *(case for case in CASES[:20] if settings_of(case) == CleaningSettings())])


def test_the_golden_file_covers_every_rule_and_says_each_text_once() -> None:
    assert len(CASES) >= 360
    assert len({json.dumps(case, sort_keys=True) for case in CASES}) == len(CASES)
    assert all(("cleaned" in case) != ("reason" in case) for case in CASES)
    assert {case["reason"] for case in CASES if "reason" in case} == set(REASONS)
    used = {name for case in CASES for name in repair(case["text"], settings_of(case))[1]}
    assert used == {rule.name for rule in REPAIRS}
    foreign = [case for case in CASES if "languages" in case and "cleaned" in case]
    assert len(foreign) >= 40


ALPHABET = st.one_of(
    st.sampled_from(list("abcdefgh AB.,|-–#@&;<>/\"'()[]{}!?:*_%$=0123456789…’©\\\u200b\u200d\ufffd😀❤犬ก")),
    st.characters(exclude_categories=["Cs"]),
)
FRAGMENTS = st.sampled_from(
    [
        " | Flickr", " - Getty Images", "Stock Photo", "Royalty Free", "&amp;", "&lt;b&gt;", "<br>",
        "<person>", "#tag", "#12345", "http://a.com/x", "a@b.org", "IMG_1234.jpg", "Photo by Ann Lee",
        "(Photo: X)", "click here", "$5", "20% off", "1920x1080", "2014-05-03", "the the",
        "A DOG IN A PARK", "...", "…", "\\u00e9", "%20", "Ã©", "3 of 12",
        " :: ", "© 2014", "Read more", "r/aww", "-", " ", "a red dog runs",
    ]
)  # fmt: skip


@given(st.lists(st.one_of(FRAGMENTS, st.text(ALPHABET, max_size=12)), max_size=8).map(" ".join))
def test_a_repaired_text_stays_as_it_is(text: str) -> None:
    cleaned, _ = repair(text, UNTAGGED)
    assert repair(cleaned, UNTAGGED) == (cleaned, [])


@given(st.lists(st.text(ALPHABET, max_size=30), max_size=4))
def test_each_row_depends_on_its_text_alone(texts: list[str]) -> None:
    together = clean_captions(texts, UNTAGGED).table
    assert together["text"].to_list() == texts
    assert (
        together["kept"].to_list()
        == together["reason"].is_null().to_list()
        == together["cleaned"].is_not_null().to_list()
    )
    for text, row in zip(texts, together.to_dicts(), strict=True):
        assert clean_captions([text], UNTAGGED).table.to_dicts() == [row]


@pytest.mark.parametrize(
    "text",
    [
        "stock photo " * 3_000, "and and photo " * 3_000, "<" * 20_000, "a@" * 10_000,
        "#a" * 10_000, "[[" * 10_000, "(photo " * 5_000, "image 12345 " * 3_000,
        "- " * 20_000, "1.1." * 8_000, "A " * 20_000, "'' x" * 8_000,
        "$1 only " * 4_000, "By A B " * 5_000, "x" * 50_000,
    ],
    ids=range(15),
)  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    start = time.perf_counter()
    cleaned, _ = repair(text[:1_000], UNTAGGED)
    reason_to_drop(cleaned, UNTAGGED)
    assert time.perf_counter() - start < 2


def test_words_are_counted_in_scripts_without_spaces() -> None:
    assert count_words("A dog's 4,000 wet-nosed friends") == 5
    assert count_words("一只棕色的狗在沙滩上奔跑") == 6
    assert count_words("สุนัขสีน้ำตาลวิ่งเล่นอยู่บนชายหาด") >= 5
    assert count_words("갈색 개가 모래사장에서 뛰어 놀고 있다") == 6
    assert count_words("| - !") == 0


def test_every_rule_is_explained_once() -> None:
    rules = cleaning_rules()
    assert rules.filter(pl.col("kind") == "repair")["rule"].to_list() == [rule.name for rule in REPAIRS]
    assert rules.filter(pl.col("kind") == "reason")["rule"].to_list() == list(REASONS)
    assert rules["rule"].n_unique() == rules.height
    assert rules["about"].str.ends_with(".").all()
    assert list(CHECKS) == list(REASONS)[: len(CHECKS)]


def test_parts_of_speech() -> None:
    assert missing_part(["NOUN", "ADP", "NOUN"], ["NN", "IN", "NN"]) == "no_verb_or_adjective"
    assert missing_part(["PRON", "AUX", "VERB"], ["PRP", "VBZ", "VBG"]) == "no_noun"
    assert missing_part(["PROPN", "AUX", "ADV"], ["NNP", "VBZ", "RB"]) is None
    assert missing_part(["ADJ", "NOUN"], ["JJ", "NN"]) is None


def test_counts_of_reasons_and_repairs() -> None:
    result = clean_captions(
        ["IMG_1.jpg", "DSC0001", "too short | Flickr", "a dog runs through the wet grass"], UNTAGGED
    )
    assert result.reasons.rows() == [("empty", 2, "IMG_1.jpg"), ("too_few_words", 1, "too short | Flickr")]
    assert result.repairs.filter(repair="file_names").row(0) == ("file_names", 2, "IMG_1.jpg")
    assert clean_captions([], UNTAGGED).reasons.height == 0


def test_near_duplicates_are_dropped_after_cleaning() -> None:
    texts = [
        "a dog runs through the wet grass",
        "cat",
        "A dog runs through the wet grass! | Flickr",
        "a cat sleeps on a warm red sofa",
    ]
    result = clean_captions(texts, UNTAGGED).without_near_duplicates(0.8)
    assert result.table["reason"].to_list() == [None, "too_few_words", "near_duplicate", None]
    assert result.table["cleaned"][2] is None


def test_bad_input() -> None:
    with pytest.raises(InputError, match="one text where a list of texts belongs"):
        clean_captions("a dog", UNTAGGED)
    with pytest.raises(InputError, match="row 1"):
        clean_captions(["a dog", None], UNTAGGED)  # type: ignore[list-item]
    with pytest.raises(InputError, match="is not a text"):
        clean_captions(["\ud800"], UNTAGGED)
    with pytest.raises(UnknownNameError, match="english"):
        clean_captions(["a dog"], CleaningSettings(languages=("english",)))
    with pytest.raises(UsageError, match="minimum_words"):
        CleaningSettings(minimum_words=-1)
    with pytest.raises(UsageError, match="no language"):
        clean_captions(["a dog"], CleaningSettings(languages=()))


@pytest.mark.parametrize("package", ["ftfy", "py3langid"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from crosslens.build.imp.cleaning import captions, characters
    from crosslens.language import identification as languages

    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest, **more)

    # As in a process that has not loaded it yet; what is loaded stays for the tests that follow.
    for module, name in ((characters, "_fix_text"),) if package == "ftfy" else (
        (languages, "_model"), (captions, "language_identifier"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=package) as raised:
        build.clean_captions(["café"], UNTAGGED)
    assert "crosslens[imp]" in str(raised.value)


def test_the_page_lists_the_rules() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "cleaning.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE)
    assert [row for row in listed if row[0] != NEAR_DUPLICATE] == cleaning_rules().select("rule", "about").rows()
    assert NEAR_DUPLICATE in dict(listed)
