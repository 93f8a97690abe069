"""Rules against a count by hand, over tables with gaps."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.explanations import association_rules
from crosslens.explanations.statistics import RULE_COLUMNS
from crosslens.statistics import holm

NAMES = ("a", "b", "c", "d")
tables = st.lists(st.tuples(*[st.sampled_from([True, False, None])] * 4), min_size=0, max_size=24).map(
    lambda rows: pl.DataFrame(rows, schema=dict.fromkeys(NAMES, pl.Boolean), orient="row")
)


def chance(rows: int, first: int, second: int, both: int) -> float:
    """Fisher's one-sided p, by counting the ways of choosing."""
    ways = sum(math.comb(first, k) * math.comb(rows - first, second - k) for k in range(both, min(first, second) + 1))
    return ways / math.comb(rows, second)


def by_hand(table: pl.DataFrame, longest: int, minimum: int) -> dict[tuple[tuple[str, ...], str], dict[str, float]]:
    """Every tested rule, row by row."""
    rules = {}
    for size in range(1, longest + 1):
        for condition in combinations(table.columns, size):
            for then in table.columns:
                if then in condition:
                    continue
                rows = [row for row in table.to_dicts() if all(row[name] is not None for name in (*condition, then))]
                first = [row for row in rows if all(row[name] for name in condition)]
                second = [row for row in rows if row[then]]
                both = [row for row in first if row[then]]
                if all(minimum <= len(some) < len(rows) for some in (first, second)):
                    rules[condition, then] = {
                        "rows": len(rows), "count_if": len(first), "count_then": len(second), "count": len(both),
                        "support": len(both) / len(rows), "confidence": len(both) / len(first),
                        "lift": len(both) / len(first) / (len(second) / len(rows)),
                        "p_value": chance(len(rows), len(first), len(second), len(both)),
                    }  # fmt: skip
    return rules


@given(tables, st.integers(1, 3), st.integers(1, 4))
def test_as_counted_by_hand(table: pl.DataFrame, longest: int, minimum: int) -> None:
    expected = by_hand(table, longest, minimum)
    rules = association_rules(table, longest=longest, minimum=minimum)
    occurring_rules = {key: rule for key, rule in expected.items() if rule["count"]}
    assert {(tuple(rule["if"]), rule["then"]) for rule in rules.to_dicts()} == set(occurring_rules)
    adjusted = dict(zip(expected, holm([rule["p_value"] for rule in expected.values()]), strict=True))
    for rule in rules.to_dicts():
        key = tuple(rule["if"]), rule["then"]
        assert {name: rule[name] for name in occurring_rules[key]} == pytest.approx(occurring_rules[key])
        assert rule["p_adjusted"] == pytest.approx(adjusted[key])


@given(tables, st.floats(0, 1), st.floats(0, 1))
def test_thresholds_only_choose_what_is_listed(table: pl.DataFrame, confidence: float, support: float) -> None:
    whole = association_rules(table, minimum=1)
    some = association_rules(table, minimum=1, confidence=confidence, support=support)
    kept = whole.filter((pl.col("confidence") >= confidence) & (pl.col("support") >= support))
    assert some.equals(kept)


def test_a_planted_rule_is_found_and_chance_is_not() -> None:
    draws = np.random.default_rng(5)
    action = draws.random(600) < 0.3
    table = pl.DataFrame({
        "action": action,
        "detail": np.where(action, draws.random(600) < 0.9, draws.random(600) < 0.3),
        "colour": draws.random(600) < 0.4,
    })  # fmt: skip
    rules = association_rules(table)
    first = rules.row(0, named=True)
    assert (first["if"], first["then"]) in ((["action"], "detail"), (["detail"], "action"))
    assert first["lift"] > 1.5
    assert first["p_adjusted"] < 1e-6
    with_colour = rules.filter((pl.col("then") == "colour") | pl.col("if").list.contains("colour"))
    assert (with_colour["p_adjusted"] > 0.05).all()


def test_nothing_to_test_is_an_empty_table() -> None:
    for table in (pl.DataFrame({"a": [True] * 9, "b": [False] * 9}), pl.DataFrame(schema={"a": pl.Boolean})):
        rules = association_rules(table)
        assert rules.height == 0
        assert dict(rules.schema) == RULE_COLUMNS


@pytest.mark.parametrize(
    ("table", "options", "error"),
    [
        (pl.DataFrame({"a": [1, 0]}), {}, InputError),
        (pl.DataFrame({"a": [True]}), {"longest": 0}, UsageError),
        (pl.DataFrame({"a": [True]}), {"minimum": 0}, UsageError),
        (pl.DataFrame({"a": [True, False] * 9, "b": [True, False] * 9}), {"correction": "hope"}, CrosslensError),
    ],
)
def test_bad_input(table: pl.DataFrame, options: dict[str, int], error: type[CrosslensError]) -> None:
    with pytest.raises(error):
        association_rules(table, **options)


def correlated_causes(
    random: np.random.Generator, images: int, *, planted: bool = False, most: int = 5, missing: float = 0.0
) -> tuple[pl.DataFrame, np.ndarray]:
    """Up to five failures of each image with six causes, which most failures of an image have in common."""
    sizes = np.full(images, 5) if most == 5 else random.integers(1, most + 1, images)
    clusters = np.repeat(np.arange(images), sizes)
    rows = len(clusters)
    columns = {}
    for name in "abcdef":
        of_image = random.random(images) < 0.3
        columns[name] = np.where(random.random(rows) < 0.9, of_image[clusters], random.random(rows) < 0.3)
    if planted:
        columns["b"] = np.where(columns["a"], random.random(rows) < 0.65, random.random(rows) < 0.25)
    judged = {name: [None if random.random() < missing else bool(value) for value in values]
              for name, values in columns.items()}  # fmt: skip
    return pl.DataFrame(judged, schema=dict.fromkeys(columns, pl.Boolean)), clusters


@pytest.mark.parametrize(("options", "naively"), [({}, 15), ({"most": 4, "missing": 0.2}, 5)])
def test_failures_of_one_image_are_not_independent(options: dict[str, float], naively: int) -> None:
    """Where no cause has to do with another, a rule came out of most samples; 5 % of 60 are at most 7 with 98 %."""
    false, naive = 0, 0
    for seed in range(60):
        table, clusters = correlated_causes(np.random.default_rng(seed), 30, **options)
        false += (association_rules(table, clusters)["p_adjusted"] < 0.05).any()
        naive += (association_rules(table)["p_adjusted"] < 0.05).any()
    assert false <= 7
    assert naive >= naively, "as if every failure were of an image of its own"


def test_a_planted_rule_is_found_among_failures_of_the_same_images() -> None:
    for seed in range(5):
        table, clusters = correlated_causes(np.random.default_rng(seed), 60, planted=True)
        rules = association_rules(table, clusters).filter(pl.col("p_adjusted") < 0.05)
        assert {"a", "b"} in [{*rule["if"], rule["then"]} for rule in rules.to_dicts()]


def test_permuted_p_against_all_permutations() -> None:
    """Five images of two rows and three of one: all 5! × 3! ways to hand the values of B on."""
    clusters = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7])
    first = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0], bool)
    second = np.array([1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0], bool)
    counts = []
    for pairs in permutations(range(5)):
        for single in permutations(range(3)):
            moved = np.concatenate([second[:10].reshape(5, 2)[list(pairs)].ravel(), second[10:][list(single)]])
            counts.append(int((first & moved).sum()))
    expected = np.mean(np.array(counts) >= int((first & second).sum()))
    table = pl.DataFrame({"a": first, "b": second})
    rules = association_rules(table, clusters, minimum=1)
    rule = rules.filter(pl.col("then") == "b").row(0, named=True)
    assert 0.02 < expected < 0.08
    assert rule["p_value"] == pytest.approx(expected, abs=0.02)
    again = association_rules(table, 10 - clusters, minimum=1)
    assert again["p_value"].to_list() == pytest.approx(rules["p_value"].to_list(), abs=0.02)
    assert association_rules(table, clusters, minimum=1).equals(rules), "the same seed"


def test_images_of_one_failure_each_have_fishers_p() -> None:
    table, _ = correlated_causes(np.random.default_rng(1), 40)
    assert association_rules(table, np.arange(table.height)).equals(association_rules(table))


def test_many_rules_can_be_significant() -> None:
    """The smallest p is small enough for the number of rules that are tested."""
    random = np.random.default_rng(2)
    clusters = np.repeat(np.arange(60), 3)
    columns = {f"c{number}": random.random(180) < 0.3 for number in range(10)}
    columns["copy"] = columns["c0"].copy()
    rules = association_rules(pl.DataFrame(columns), clusters, longest=2)
    assert rules.height > 400
    assert rules.row(0, named=True)["p_adjusted"] < 0.05
