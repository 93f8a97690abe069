"""Figures as people read them."""

from __future__ import annotations

import math

import pytest

from crosslens.core import percent
from crosslens.metrics import MetricSpec, format_count, format_figure, spec_of, split_metrics, unit_of, unit_sentence


def test_units() -> None:
    assert [unit_of(name) for name in ("t2i/Hit@5", "MedR", "i2t/MeanR[all]", "Rsum")] == [
        "share",
        "rank",
        "rank",
        "points",
    ]
    assert unit_of("i2t/FromSomePlugin@3") == "share"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("Hit@1", 0.58349, "58.3"),
        ("Hit@1", 1.0, "100.0"),
        ("MedR", 2.0, "2"),
        ("MedR", 2.5, "2.5"),
        ("MeanR", 13.04, "13"),
        ("Rsum", 412.0, "412.0"),
        ("Hit@1", math.nan, "–"),
    ],
)
def test_figures(name: str, value: float, text: str) -> None:
    assert format_figure(name, value) == text


def test_counts_agree_with_their_nouns() -> None:
    assert [format_count(1, "query"), format_count(5000, "image"), format_count(2, "query")] == [
        "1 query",
        "5,000 images",
        "2 queries",
    ]


def test_differences_carry_their_sign() -> None:
    assert [format_figure("Hit@1", value, signed=True) for value in (0.05, -0.05, -0.0001, 0.0)] == [
        "+5.0",
        "-5.0",
        "0.0",
        "0.0",
    ], "what rounds to zero has no sign"
    assert [format_figure("MedR", value, signed=True) for value in (2.0, -0.5, -0.01)] == ["+2", "-0.5", "0"]
    assert [percent(value, signed=True) for value in (0.0002, -0.0002, 0.02)] == ["0.0", "0.0", "+2.0"]
    assert format_figure("Hit@1", 0.666, decimals=0) == "67"


def test_the_unit_is_said() -> None:
    assert unit_sentence(["i2t/Hit@1", "t2i/MedR", "i2t/MedR", "Rsum"]) == (
        "In percent, MedR as a rank, Rsum as a sum of percentages."
    )
    assert unit_sentence(["t2i/MedR"]) == "MedR as a rank."


def test_the_metric_behind_a_name() -> None:
    assert spec_of("t2i/MedR[floor]") == MetricSpec("MedR", ("floor",))
    assert spec_of("t2i/FromSomePlugin@3") is None
    assert spec_of("t2i/not a name") is None


def test_words_keep_brackets_together() -> None:
    assert split_metrics("Hit@1, t2i/SR[spice, m=20]@5  MedR") == ["Hit@1", "t2i/SR[spice, m=20]@5", "MedR"]
