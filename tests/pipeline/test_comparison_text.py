"""A comparison as a person reads it: one text, in Python and on the command line."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from crosslens.pipeline.comparison_results import Comparison, MetricComparison, QueryDifference

HIT = MetricComparison(
    "t2i/Hit@1", "old", "new",
    baseline_mean=0.254, other_mean=0.323, difference=0.069, low=0.027, high=0.111,
    p_value=0.0021, adjusted_p=0.0042, n=1000, wins=1233, losses=164, ties=0,
    largest_gains=(QueryDifference("c1", 0.0, 1.0), QueryDifference("c2", 0.0, 1.0)),
    largest_losses=(QueryDifference("c3", 1.0, 0.0),),
)  # fmt: skip
MEDIAN = replace(
    HIT, metric="t2i/MedR", statistic="median", higher_is_better=False,
    baseline_mean=5.0, other_mean=3.5, difference=-1.5, low=-2.0, high=0.0, adjusted_p=0.05,
    largest_gains=(QueryDifference("c4", 9.0, 1.0),), largest_losses=(),
)  # fmt: skip
BOTH = Comparison("old", ("new",), (HIT, MEDIAN), "holm", 10_000, 0, 0.95, ("Something to know.",))

WHOLE = """\
new against old

metric        old    new   difference                 p   wins : losses
t2i/Hit@1    25.4   32.3   +6.9  [+2.7, +11.1]   0.0042     1,233 : 164
t2i/MedR ↓      5    3.5   -1.5  [-2, 0]         0.0500     1,233 : 164

Where they differ most (value in the first → in the second)
  t2i/Hit@1, new better   c1 0 → 100; c2 0 → 100
  t2i/Hit@1, old better   c3 100 → 0
  t2i/MedR, new better    c4 9 → 1

p: paired permutation test over images, two-sided, corrected by Holm for 2
tests; 10,000 permutations give no p below 0.0002.
In brackets: 95% interval of the difference, over images.
Wins and losses: queries on which the second run is better or worse.
In percent, MedR as a rank.
↓: lower is better.
A test of MedR finds about a third of the differences that one of MRR finds:
prefer MRR to decide.
Something to know."""


def test_the_whole_text() -> None:
    assert str(BOTH).splitlines() == WHOLE.splitlines()


def test_it_fits_a_terminal() -> None:
    long = replace(HIT, baseline="a-model-with-quite-a-long-name", other="another-model-with-a-long-name")
    wide = replace(BOTH, baseline=long.baseline, others=(long.other,), results=(long,))
    assert max(map(len, wide.text(80).splitlines())) <= 80
    assert max(map(len, str(wide).splitlines())) > 80


def test_many_metrics_leave_the_queries_out() -> None:
    many = replace(BOTH, results=tuple(replace(HIT, metric=f"t2i/Hit@{k}") for k in range(1, 8)))
    assert "Where they differ most" not in str(many)
    assert "Choose a few metrics" in str(many)


@pytest.mark.parametrize(
    ("p", "permutations", "text"),
    [(0.0421, 10_000, "0.0421"), (0.0421, 200, "0.042"), (1 / 2001, 2000, "<0.001"), (1e-6, 10**6, "0.000001")],
)
def test_p_values_claim_no_more_than_the_test_can(p: float, permutations: int, text: str) -> None:
    comparison = replace(BOTH, results=(replace(HIT, adjusted_p=p),), permutations=permutations)
    assert f" {text} " in str(comparison).splitlines()[3]


def test_small_p_values_in_latex() -> None:
    """Outside of a formula, LaTeX's usual fonts have ¡ at the place of <."""
    comparison = replace(BOTH, results=(replace(HIT, adjusted_p=1 / 2001),), permutations=2000)
    assert "& $<$0.001 &" in comparison.content(".tex").decode()


def test_what_could_not_be_computed_is_a_dash() -> None:
    nan = math.nan
    none = replace(HIT, difference=nan, low=nan, high=nan, adjusted_p=nan, largest_gains=(), largest_losses=())
    text = str(replace(BOTH, results=(none,), correction="none"))
    assert text.splitlines()[3].split() == ["t2i/Hit@1", "25.4", "32.3", "–", "–", "1,233", ":", "164"]
    assert "two-sided, not corrected; 10,000\npermutations give no p below 0.0001." in text
    assert "Where they differ most" not in text
