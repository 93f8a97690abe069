"""Rules against a count by hand, over tables with gaps."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from crosslens.core.errors import CrosslensError, InputError, UsageError
from crosslens.explanations.statistics import RULE_COLUMNS, association_rules
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
    shown = {key: rule for key, rule in expected.items() if rule["count"]}
    assert {(tuple(rule["if"]), rule["then"]) for rule in rules.to_dicts()} == set(shown)
    adjusted = dict(zip(expected, holm([rule["p_value"] for rule in expected.values()]), strict=True))
    for rule in rules.to_dicts():
        key = tuple(rule["if"]), rule["then"]
        assert {name: rule[name] for name in shown[key]} == pytest.approx(shown[key])
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
