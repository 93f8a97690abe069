"""Corrections: worked by hand, against scipy, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics import correct, floor_of_p, holm

p_values = st.lists(st.floats(0, 1), max_size=12)


def test_holm_by_hand() -> None:
    # 0.005·4, 0.01·3, 0.03·2, 0.04·1 → 0.02, 0.03, 0.06, and never below the one before: 0.06
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.5, 0.9]), [1, 1])


def test_benjamini_hochberg_by_hand() -> None:
    # 0.005·4/1, 0.01·4/2, 0.03·4/3, 0.04·4/4 → 0.02, 0.02, 0.04, 0.04
    np.testing.assert_allclose(correct([0.01, 0.04, 0.03, 0.005], "bh"), [0.02, 0.04, 0.04, 0.02])


@given(p_values)
def test_benjamini_hochberg_agrees_with_scipy(given_values: list[float]) -> None:
    from scipy.stats import false_discovery_control

    if given_values:
        np.testing.assert_allclose(correct(given_values, "bh"), false_discovery_control(given_values), rtol=1e-12)


@given(p_values)
def test_laws(given_values: list[float]) -> None:
    given_array, strict, mild = np.array(given_values), holm(given_values), correct(given_values, "bh")
    assert (given_array <= mild + 1e-15).all()
    assert (mild <= strict + 1e-15).all()
    assert (strict <= 1).all()
    order = np.argsort(given_array, kind="stable")
    assert (np.diff(strict[order]) >= 0).all()
    np.testing.assert_array_equal(correct(given_values, "none"), given_array)


def test_by_name() -> None:
    np.testing.assert_array_equal(correct([0.01, 0.02], "holm"), holm([0.01, 0.02]))
    with pytest.raises(UnknownNameError, match="unknown correction 'holmes'\n  fix: did you mean holm"):
        correct([0.1], "holmes")


def test_untested_comparisons_do_not_count() -> None:
    np.testing.assert_array_equal(holm([0.01, np.nan, 0.02]), [0.02, np.nan, 0.02])
    assert holm([]).shape == (0,)


def test_the_smallest_p_that_images_can_give() -> None:
    """Of all ways to swap five images, two are the most extreme."""
    assert floor_of_p(5, "none", 3) == 2 / 32
    assert floor_of_p(5, "holm", 3) == holm([2 / 32] * 3)[0]
    assert floor_of_p(5, "bh", 3) == correct([2 / 32] * 3, "bh")[0]
    assert floor_of_p(5, "holm", 500) == 1
    assert 0 < floor_of_p(100_000, "holm", 500) < 1e-100


def test_the_same_tests_count_once() -> None:
    np.testing.assert_allclose(
        correct([0.01, 0.04, 0.01, 0.01, np.nan], same=[0, 1, 0, 0, 4]), [0.02, 0.04, 0.02, 0.02, np.nan]
    )
    np.testing.assert_allclose(correct([0.0053] * 4 + [0.3] * 4, same=[0] * 4 + [4] * 4), [0.0106] * 4 + [0.3] * 4)


def test_what_is_no_p_value() -> None:
    with pytest.raises(InputError, match=r"row 1: p-value 1\.5\n  expected: a number from 0 to 1"):
        holm([0.1, 1.5])
