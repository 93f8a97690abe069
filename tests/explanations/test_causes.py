"""Causes: what a table of judgements makes of them, and that every judgement follows from its facts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from crosslens.explanations import CAUSES, cause_column, image_objects
from crosslens.explanations.causes import (
    MAIN,
    OUTCOMES,
    UNEXPLAINED,
    Evidence,
    MentionJudgement,
    cause_shares,
    cause_table,
    judge_mentions,
)
from crosslens.explanations.mentions import mentioned_concepts
from crosslens.explanations.objects import caption_objects
from crosslens.statistics import Bootstrap
from crosslens.values import Dataset

judgements = st.lists(
    st.builds(MentionJudgement, st.sampled_from(CAUSES), st.sampled_from([True, False, None])), max_size=6
)


@given(st.lists(judgements, min_size=1, max_size=8))
def test_the_table_follows_from_the_judgements(some: list[list[MentionJudgement]]) -> None:
    for row, judgements in zip(cause_table(some).to_dicts(), some, strict=True):
        for cause in CAUSES:
            holds = [item.holds for item in judgements if item.cause == cause]
            expected = True if False in holds else None if None in holds else False
            assert row[cause_column(cause)] is expected
            assert row[f"asks_{cause}"] == len(holds)
        wrong = [cause for cause in CAUSES if any(item.cause == cause and item.holds is False for item in judgements)]
        assert row[cause_column(UNEXPLAINED)] == (not wrong)
        assert row[MAIN] == (wrong[0] if wrong else UNEXPLAINED)
        assert row["unjudged"] == sum(item.holds is None for item in judgements)


@given(st.lists(judgements, min_size=1, max_size=12))
def test_shares_count_failures(some: list[list[MentionJudgement]]) -> None:
    table = cause_table(some)
    shares = cause_shares(table, Bootstrap(np.arange(len(some)), 20))
    assert shares["cause"].to_list() == list(OUTCOMES)
    assert shares["main"].sum() == len(some)
    for row in shares.to_dicts():
        true = table[cause_column(row["cause"])]
        assert row["count"] == true.sum()
        assert row["share"] == pytest.approx(row["count"] / len(some))
        assert row["open"] == true.null_count()
        if row["of_asked"] is not None:
            assert 0 <= row["of_asked"] <= 1


def dataset() -> Dataset:
    """Three pictures, annotated, each with captions."""
    captions = {
        "right": ["two brown dogs run on the grass", "dogs are running in a meadow", "two dogs run"],
        "same": ["two brown dogs running", "dogs run over a meadow"],
        "cat": ["a black cat sleeps on a sofa", "a sleeping cat"],
        "one": ["a white dog runs in the snow", "a white dog is running"],
        "sleepy": ["two dogs sleep in the grass", "brown dogs lie on the lawn"],
    }
    rows = [
        ("right", "dog", 0, ["brown"]), ("right", "dog", 50, ["brown"]),
        ("same", "dog", 0, ["brown"]), ("same", "dog", 50, ["brown"]),
        ("cat", "cat", 0, ["black"]), ("cat", "sofa", 50, []),
        ("one", "dog", 0, ["white"]),
        ("sleepy", "dog", 0, []), ("sleepy", "dog", 50, []),
    ]  # fmt: skip
    without_sizes = Dataset.of(captions)
    objects = pl.DataFrame({
        "image": [row[0] for row in rows], "object": [f"o{n}" for n in range(len(rows))],
        "name": [row[1] for row in rows], "x": [float(row[2]) for row in rows], "y": [0.0] * len(rows),
        "w": [40.0] * len(rows), "h": [40.0] * len(rows), "attributes": [row[3] for row in rows],
    })  # fmt: skip
    images = without_sizes.images.with_columns(width=pl.lit(100), height=pl.lit(100))
    return Dataset("pets", images, without_sizes.captions, objects)


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    data = dataset()
    return Evidence.of(data, image_objects(data), data.image_ids)


def wrong(evidence: Evidence, text: str, image: str) -> set[str]:
    judged = judge_mentions(mentioned_concepts([text])[0], "right", image, evidence)
    return {judgement.cause for _, judgement in judged if judgement.holds is False}


@pytest.mark.parametrize(
    ("image", "expected"),
    [("same", set()), ("cat", {"object"}), ("one", {"count", "colour"}), ("sleepy", {"action"})],
)
def test_each_picture_is_wrong_in_its_own_way(evidence: Evidence, image: str, expected: set[str]) -> None:
    assert wrong(evidence, "Two brown dogs run.", image) == expected


def test_what_the_right_image_does_not_bear_out_says_nothing(evidence: Evidence) -> None:
    # There is no horse anywhere, and no caption of the right image but the query speaks of grass.
    assert wrong(evidence, "A horse stands there.", "cat") == set()
    assert "detail" not in wrong(evidence, "two brown dogs run on the grass", "one")
    assert "detail" in wrong(evidence, "dogs are seen running in a meadow", "one")


def test_words_for_nothing_are_not_judged(evidence: Evidence) -> None:
    judged = judge_mentions(mentioned_concepts(["A picture of a group of dogs."])[0], "right", "cat", evidence)
    assert {judgement.cause for _, judgement in judged} == {"object"}


SIGNS = {
    "right": ['a sign that says "Stop"', 'a sign reading "STOP!" on road 47', "a sign on road forty-seven"],
    "other": ['a sign that says "Wait"', "a sign on road 12"],
    "same": ['a sign reads "stop" on road 47'],
    "silent": ["a sign on a road", "a road sign"],
    "many": ["three signs on road 47", 'signs that say "stop"'],
}


@pytest.mark.parametrize(
    ("text", "image", "expected"),
    [
        ('A board with the word "stop".', "other", {"detail"}),
        ('A board with the word "stop".', "same", set()),
        ('A board with the word "stop".', "silent", set()),  # nothing that is written there is known
        ('A board with the word "go".', "other", set()),  # no other caption of the right image says so
        ("Route 47.", "other", {"detail"}),
        ("Route forty-seven.", "same", set()),
        ("Two signs.", "many", set()),  # what is counted is a matter of the annotation
    ],
)
def test_written_words_and_numbers_are_details(text: str, image: str, expected: set[str]) -> None:
    data = Dataset.of(SIGNS)
    assert wrong(Evidence.of(data, caption_objects(data), data.image_ids), text, image) == expected
