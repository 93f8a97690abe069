"""Drawing without replacement: how many of the items before a relevant one are in a random sub-gallery.

Of ``others`` items ``drawn`` are taken; of the ``before`` of them that come before a relevant item, X are taken, which
is hypergeometric. Chances are computed from Loader's saddle point form and from ratios of neighbours, so that they are
as exact among a thousand million items as among ten.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

_STIRLING = (1 / 12, 1 / 360, 1 / 1260, 1 / 1680, 1 / 1188)


def chance_of(taken: IntArray, others: IntArray, before: IntArray, drawn: IntArray) -> FloatArray:
    """P(X = taken)."""
    taken, others, before, drawn = np.broadcast_arrays(taken, others, before, drawn)
    possible = (taken >= np.maximum(0, before + drawn - others)) & (taken <= np.minimum(before, drawn))
    taken = np.where(possible, taken, np.maximum(0, before + drawn - others))
    share = drawn / np.maximum(others, 1)
    logarithm = (
        _log_binomial(taken, before, share)
        + _log_binomial(drawn - taken, others - before, share)
        - _log_binomial(drawn, others, share)
    )
    return np.where(possible, np.exp(logarithm), 0.0)


def chance_up_to(most: IntArray, others: IntArray, before: IntArray, drawn: IntArray) -> FloatArray:
    """P(X ≤ most); the arguments are arrays of one length."""
    least = np.maximum(0, before + drawn - others)
    largest = np.minimum(before, drawn)
    result = (most >= largest).astype(np.float64)
    mean = drawn * (before / np.maximum(others, 1))
    variance = mean * (1 - before / np.maximum(others, 1)) * ((others - drawn) / np.maximum(others - 1, 1))
    # By Bernstein's inequality less than 1e-16 of X is further from its mean.
    reach = 12 * np.sqrt(np.maximum(variance, 0)) + 30
    result[most > mean + reach] = 1.0
    open_rows = np.flatnonzero((most >= least) & (most < largest) & (most <= mean + reach) & (most >= mean - reach))
    if not len(open_rows):
        return result
    most, others, before, drawn = (part[open_rows] for part in (most, others, before, drawn))
    taken = np.maximum(least[open_rows], np.floor(mean[open_rows] - reach[open_rows]).astype(np.int64))
    taken = np.minimum(taken, most)
    term = chance_of(taken, others, before, drawn)
    total = term.copy()
    rest = others - before - drawn
    for _ in range(int((most - taken).max())):
        going = taken < most
        # P(X = x + 1) / P(X = x)
        ratio = (before - taken) / (taken + 1.0) * ((drawn - taken) / np.maximum(rest + taken + 1.0, 1.0))
        term = np.where(going, term * ratio, 0.0)
        total += term
        taken = taken + going
    result[open_rows] = np.minimum(total, 1.0)
    return result


def mean_reciprocal(others: IntArray, before: IntArray, drawn: IntArray, most: int | None = None) -> FloatArray:
    """E[1 / (X + 1)], counting only X < ``most``: closed, as C(b, x) / (x + 1) = C(b + 1, x + 1) / (b + 1)."""
    zero = np.zeros_like(before)
    none = chance_of(zero, others + 1, before + 1, drawn + 1)
    some = 1 - none
    if most is not None:
        some = np.maximum(chance_up_to(zero + most, others + 1, before + 1, drawn + 1) - none, 0)
    return np.asarray((others + 1.0) / ((before + 1.0) * (drawn + 1.0)) * some, np.float64)


def _log_binomial(taken: Any, trials: Any, share: FloatArray) -> FloatArray:
    """The logarithm of a binomial chance, without what cancels between the three of a hypergeometric one (Loader)."""
    taken, trials = np.asarray(taken, np.float64), np.asarray(trials, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = (
            _stirling_error(trials) - _stirling_error(taken) - _stirling_error(trials - taken)
            - _deviance(taken, trials * share) - _deviance(trials - taken, trials * (1 - share))
            + 0.5 * np.log(trials / (2 * np.pi * taken * (trials - taken)))
        )  # fmt: skip
        lowest, highest = trials * np.log1p(-share), trials * np.log(share)
    ends = np.where(taken == 0, np.where(trials == 0, 0.0, lowest), highest)
    return np.where((taken == 0) | (taken == trials), ends, inner)


def _stirling_error(count: FloatArray) -> FloatArray:
    """log(n!) less Stirling's formula for it."""
    from scipy.special import gammaln

    small = np.minimum(np.maximum(count, 1), 16)
    direct = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * np.log(2 * np.pi)
    large = np.maximum(count, 16)
    series = sum((-1) ** order * factor / large ** (2 * order + 1) for order, factor in enumerate(_STIRLING))
    return np.asarray(np.where(count <= 16, direct, series), np.float64)


def _deviance(observed: FloatArray, expected: FloatArray) -> FloatArray:
    """x·log(x / m) + m − x, also where x and m are close."""
    observed, expected = np.asarray(observed), np.maximum(np.asarray(expected), 1e-300)
    distance = (observed - expected) / (observed + expected)
    near = np.abs(distance) < 0.1
    narrow = np.where(near, distance, 0.0)
    # 2·x·(v³/3 + v⁵/5 + …) + (x − m)·v, v = (x − m) / (x + m)
    power, series = narrow, np.zeros_like(narrow)
    for order in range(1, 10):
        power = power * narrow * narrow
        series = series + power / (2 * order + 1)
    close = (observed - expected) * narrow + 2 * observed * series
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(observed > 0, observed * np.log(np.maximum(observed, 1e-300) / expected), 0.0)
    return np.where(near, close, far + expected - observed)
