"""The page of the hardest pairs: in order, every model's verdict, and nothing of a caption taken for markup."""

from __future__ import annotations

import re

import numpy as np
import pytest

import crosslens as cl
from crosslens.report import hardest_pairs_page

DATASET = cl.Dataset.of({"a": ["plain"], "b": ["<script>alert(1)</script>"], "c": ["odd & even"]})
SCORES = {
    "first": np.diag([0.9, 0.1, 0.8]),
    "<b>second</b>": np.diag([0.9, 0.2, 0.4]),
}
THRESHOLDS = {"first": 0.5, "<b>second</b>": 0.5}


@pytest.fixture
def page() -> str:
    return hardest_pairs_page(cl.difficulty(DATASET, SCORES, THRESHOLDS), DATASET)


def test_pairs_come_hardest_first_with_every_verdict(page: str) -> None:
    facts = re.findall(r'<p class="facts">(\d) of 2 votes, (\w+) · (\w)', page)
    assert facts == [("0", "hard", "b"), ("1", "medium", "c"), ("2", "easy", "a")]
    articles = page.split("<article>")[1:]
    assert [article.count("✗ no match") for article in articles] == [2, 1, 0]


def test_without_pictures_the_other_captions_stand_for_them() -> None:
    dataset = cl.Dataset.of({"a": ["one <b>", "two", "two"], "b": ["alone"]})
    scores = {"only": np.array([[0.1, 0.2, 0.3, 0.0], [0.0, 0.0, 0.0, 0.9]])}
    page = hardest_pairs_page(cl.difficulty(dataset, scores, {"only": 0.5}), dataset)
    articles = page.split("<article>")[1:]
    words = [re.findall(r'<div class="in-words">.*?</div>', article) for article in articles]
    assert [re.findall(r'<q dir="auto">(.*?)</q>', "".join(own)) for own in words] == [
        ["two"], ["one &lt;b&gt;"], ["one &lt;b&gt;"], [],
    ]  # fmt: skip
    assert "no picture" not in page
    assert "missing" not in page, "no grey box"


def test_captions_and_names_are_not_markup(page: str) -> None:
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<b>second" not in page
    assert "odd &amp; even" in page


def test_of_equal_votes_the_furthest_below_come_first() -> None:
    scores = {"only": np.diag([0.1, 0.3, 0.2])}
    result = cl.difficulty(DATASET, scores, {"only": 0.5})
    assert result.hardest()["image"].to_list() == ["a", "c", "b"]
    assert result.hardest(1)["image"].to_list() == ["a"]
