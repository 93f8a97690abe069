"""A comparison as a person reads it: one text, in Python and on the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import nan
from typing import Any

import numpy as np
import polars as pl
import pytest

from crosslens.comparisons import Comparison, MetricComparison, compare, difference_figure, leaderboard
from crosslens.core import Figure, percent
from crosslens.metrics import metric_figure
from crosslens.pipeline import GroupedComparison, compare_groups
from crosslens.values import MetricValues, Run

HIT = MetricComparison(
    "t2i/Hit@1", "old", "new",
    baseline_mean=0.254, other_mean=0.323, difference=0.069, low=0.027, high=0.111,
    p_value=0.0021, adjusted_p=0.0042, n=1000, wins=1233, losses=164, ties=0,
)  # fmt: skip
MEDIAN = replace(
    HIT, metric="t2i/MedR", statistic="median", higher_is_better=False,
    baseline_mean=5.0, other_mean=3.5, difference=-1.5, low=-2.0, high=0.0, adjusted_p=0.05,
)  # fmt: skip
HIT, MEDIAN = replace(HIT, primary=True, images=1000, smallest_p=0.0), replace(MEDIAN, images=1000, smallest_p=0.0)
BOTH = Comparison("old", ("new",), (MEDIAN, HIT), "holm", 10_000, 0, 0.95, ("Something to know.",))

WHOLE = """\
new is better than old: of 100 captions, it finds the image of 7 more (3 to 11
are possible).

t2i/Hit@1, old → new: 25.4 → 32.3, +6.9 points [+2.7, +11.1], p = 0.0042.

All 2 metrics
metric       role         old    new   difference                 p    won : lost
t2i/Hit@1    primary     25.4   32.3   +6.9  [+2.7, +11.1]   0.0042   1,233 : 164
t2i/MedR ↓   secondary      5    3.5   -1.5  [-2, 0]         0.0500   1,233 : 164

p: paired permutation test over images, two-sided; 10,000 permutations, and
4,000 weighted ones where fewer than 10 are as extreme.
t2i/Hit@1 is the primary metric, corrected by Holm for 1 test; the others are
secondary, corrected by Holm for 1 test.
In brackets: 95% interval of the difference, over images.
Won and lost: queries on which the second run is better or worse.
In percent, MedR as a rank.
↓: lower is better.
A median depends on few queries: a test of MedR finds fewer differences than one
of MRR.
Something to know."""


def test_the_whole_text() -> None:
    assert str(BOTH).splitlines() == WHOLE.splitlines()


def comparison_of(*names: str, metrics: Sequence[str] = ("t2i/Hit@1",), all_pairs: bool = False) -> Comparison:
    """Runs of these names; with large figures, intervals and counts."""
    pairs = list(combinations(names, 2))[: None if all_pairs else len(names) - 1]
    results = [
        replace(
            HIT, metric=metric, baseline=first, other=second, primary=metric == metrics[0], wins=12_345, losses=23_456,
            **({"difference": -136.7, "low": -167.4, "high": -115.8} if metric == "Rsum" else {}),
        )
        for first, second in pairs
        for metric in metrics
    ]  # fmt: skip
    figures = {name: dict.fromkeys(metrics, (0.967, 0.886, 0.993)) for name in names}
    return replace(
        BOTH, baseline=names[0], others=names[1:], results=tuple(results), all_pairs=all_pairs, figures=figures
    )


LONG = "openai_clip-vit-large-patch14-336_on_flickr30k_karpathy_test_with_prompts_of_the_authors"


@pytest.mark.parametrize("all_pairs", [False, True])
@pytest.mark.parametrize("names", [("tiny", "noisy"), ("siglip-base", "clip-b32", "blip"), (f"{LONG}-1", f"{LONG}-2")])
def test_it_fits_a_terminal(names: tuple[str, ...], all_pairs: bool) -> None:
    metrics = ("t2i/Hit@1", "t2i/RPrecision", "t2i/NCS[cider,non-gt]@10", "i2t/MedR[all]", "Rsum")
    wide = comparison_of(*names, metrics=metrics, all_pairs=all_pairs)
    lines = wide.text(80).splitlines()
    assert max(map(len, lines)) <= 80
    assert max(map(len, str(wide).splitlines())) > 80 or (len(names) == 2 and all_pairs)
    rows = [line for line in lines if line.startswith("Rsum ")]
    if not all_pairs:
        assert len(rows) == len(names) - 1, "one table of two runs, which is not torn apart"
        assert all("-136.7  [-167.4, -115.8]" in row and row.endswith("0.0042") for row in rows)
    grouped = GroupedComparison("category", {LONG: wide, "short": wide})
    assert max(map(len, grouped.text(80).splitlines())) <= 80


def test_names_that_do_not_fit_are_complete() -> None:
    text = comparison_of(f"{LONG}-1", f"{LONG}-2").text(80)
    assert "".join(text.split()).count(f"1st:{LONG}-1;2nd:{LONG}-2.") == 1
    assert f"{LONG}-2isbetterthan{LONG}-1" in "".join(text.split()), "a name of a sentence is wrapped, not cut"


def test_an_interval_and_a_p_value_that_disagree_are_explained() -> None:
    """ "-1 [-2, -1]" beside "1.0000" on one line: the reason is said, and which of two it is."""
    line = replace(MEDIAN, difference=-1.0, low=-2.0, high=-1.0, p_value=0.03, adjusted_p=1.0)
    text = str(replace(BOTH, results=(HIT, line))).replace("\n", " ")
    assert "Without 0 in the interval, and yet p ≥ 0.05: t2i/MedR; intervals are not corrected for the number" in text
    text = str(replace(BOTH, results=(HIT, replace(line, p_value=0.2)))).replace("\n", " ")
    assert "Without 0 in the interval, and yet p ≥ 0.05: t2i/MedR; interval and test are different" in text
    assert "Without 0" not in str(BOTH)


def test_the_usual_table_has_all_its_columns_in_80() -> None:
    usual = comparison_of("tiny", "noisy", metrics=("t2i/Hit@1", "t2i/RPrecision"))
    small = [replace(result, difference=-0.338, low=-0.441, high=-0.247, wins=0, losses=22) for result in usual.results]
    lines = replace(usual, results=tuple(small)).text(80).splitlines()
    header = next(line for line in lines if line.startswith("metric "))
    assert header.split() == ["metric", "tiny", "noisy", "difference", "p", "won", ":", "lost"]
    assert any(line.startswith("t2i/Hit@1 † ") for line in lines)
    assert "†: the primary metric." in lines


def test_one_difference_is_printed_the_same_everywhere() -> None:
    """16 and 19 of 80 queries: 0.2375 − 0.2 is not 0.0375 in floats, whose half would be rounded down."""
    hits = [np.repeat([1.0, 0.0], [count, 80 - count]) for count in (16, 19)]
    queries = tuple(f"q{row}" for row in range(80))
    first, second = (
        Run(
            name, {"t2i/Hit@1": MetricValues("t2i/Hit@1", queries, values, np.arange(80), values.mean(), nan, nan)},
            columns={"t2i": pl.DataFrame({"query": queries, "kind": ["one"] * 80})},
        )
        for name, values in zip(("old", "new"), hits, strict=True)
    )  # fmt: skip
    comparison, reverse = (compare(*runs, permutations=50) for runs in ((first, second), (second, first)))
    assert comparison.results[0].difference < 0.0375 == np.mean(hits[1] - hits[0]), "two ways to compute one number"
    board = leaderboard({("old", "d"): first, ("new", "d"): second}, permutations=50)
    cell = board.cell("old", "d", "t2i/Hit@1")
    assert cell is not None
    printed = {
        comparison.text(80), str(comparison), str(reverse), comparison.content(".html").decode(),
        comparison.content(".tex").decode(), comparison.content(".md").decode(),
        str(compare_groups([first, second], "kind", permutations=50)), str(difference_figure(comparison.results[0])),
        str(metric_figure("t2i/Hit@1", cell.difference, signed=True)), percent(np.mean(hits[0] - hits[1])),
        str(Figure.percent(np.mean(hits[1] - hits[0]), signed=True)), f"{percent(0.2)} {percent(0.2375)}",
    }  # fmt: skip
    for text in printed:
        assert "3.8" in text
        assert not re.search(r"[^\d]3\.7[^\d]", text), text


def test_of_many_runs_one_sentence_is_about_the_best() -> None:
    many = comparison_of("a", "b", "c", "d", all_pairs=True)
    figures = {run: {"t2i/Hit@1": (mean, nan, nan)} for run, mean in zip("abcd", (0.5, 0.9, 0.8, 0.7), strict=True)}
    results = [
        replace(result, difference=figures[result.other]["t2i/Hit@1"][0] - figures[result.baseline]["t2i/Hit@1"][0])
        for result in many.results
    ]
    many = replace(many, figures=figures, results=tuple(results))
    (sentence,) = many.verdicts
    assert sentence.startswith("b is better than c: of 100 captions, it finds the image of 10 more")


def verdict(**values: Any) -> str:
    """The sentence about one metric of two runs."""
    return replace(BOTH, results=(replace(HIT, **values),)).verdicts[0]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "new is better than old: of 100 captions, it finds the image of 7 more (3 to 11 are possible)."),
        (
            {"difference": -0.069, "low": -0.111, "high": -0.027},
            "old is better than new: of 100 captions, it finds the image of 7 more (3 to 11 are possible).",
        ),
        (
            {"metric": "i2t/Hit@5"},
            "new is better than old: of 100 images, it finds a caption for 7 more among the first 5 (3 to 11",
        ),
        (
            {"difference": 0.0041, "low": 0.0012, "high": 0.0074},
            "new is better than old: of 100 captions, it finds the image of 0.4 more (0.1 to 0.7 are possible).",
        ),
        ({"metric": "t2i/mAP@R"}, "new is better than old by 6.9 points of mAP@R (2.7 to 11.1 are possible)."),
        (
            {"metric": "t2i/MedR", "higher_is_better": False, "difference": -2.0, "low": -3.0, "high": -1.0},
            "new is better than old by 2 of MedR (1 to 3 are possible).",
        ),
        (
            {"difference": 0.004, "low": -0.011, "high": 0.019, "adjusted_p": 0.6},
            "old and new do not differ by more than 2 points of t2i/Hit@1.",
        ),
        (
            {"difference": 0.004, "low": -0.011, "high": 0.021, "adjusted_p": 0.6},
            "Whether old or new is better cannot be decided with 1,000 images: the difference (new − old) is between "
            "-1 and +2 points.",
        ),
        (
            {"adjusted_p": 0.051},
            "Whether old or new is better cannot be decided with 1,000 images: the difference (new − old) is between "
            "+3 and +11 points.",
        ),
        (
            {"low": -0.002, "high": 0.111, "adjusted_p": 0.06},
            "Whether old or new is better cannot be decided with 1,000 images: the difference (new − old) is between "
            "-0.2 and +11.1 points.",
        ),
        (
            {"metric": "t2i/MedR", "higher_is_better": False, "low": -3.0, "high": 1.0, "adjusted_p": 0.4},
            "Whether old or new is better cannot be decided with 1,000 images: the difference (new − old) is between "
            "-3 and +1 of t2i/MedR.",
        ),
        ({"difference": 0.0, "low": 0.0, "high": 0.0, "adjusted_p": 1.0}, "old and new give the same lists."),
    ],
)
def test_a_verdict_says_what_was_shown(values: dict[str, Any], sentence: str) -> None:
    assert verdict(**values).startswith(sentence)


@pytest.mark.parametrize(
    ("p", "permutations", "text"),
    [(0.0421, 10_000, "0.0421"), (0.0421, 200, "0.042"), (1 / 2001, 2000, "<0.001"), (1e-6, 10**6, "0.000001")],
)
def test_p_values_claim_no_more_than_the_test_can(p: float, permutations: int, text: str) -> None:
    comparison = replace(BOTH, results=(replace(HIT, adjusted_p=p),), permutations=permutations)
    row = next(line for line in str(comparison).splitlines() if line.startswith("t2i/Hit@1  "))
    assert f" {text} " in row


def test_small_p_values_in_latex() -> None:
    """Outside of a formula, LaTeX's usual fonts have ¡ at the place of <."""
    comparison = replace(BOTH, results=(replace(HIT, adjusted_p=1 / 2001),), permutations=2000)
    assert "& $<$0.001 &" in comparison.content(".tex").decode()


def test_what_could_not_be_computed_is_a_dash() -> None:
    nan = math.nan
    none = replace(HIT, difference=nan, low=nan, high=nan, p_value=nan, adjusted_p=nan)
    text = str(replace(BOTH, results=(none,), correction="none"))
    assert "old and new could not be tested by t2i/Hit@1." in text
    row = next(line for line in text.splitlines() if line.startswith("t2i/Hit@1  "))
    assert row.split() == ["t2i/Hit@1", "primary", "25.4", "32.3", "–", "–", "1,233", ":", "164"]
    assert "two-sided, not corrected; 10,000\npermutations, and 4,000 weighted ones" in text
