"""Draws: fair, repeatable, and apart by purpose."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from itertools import permutations

from hypothesis import given, strategies as st

from crosslens.perturbations.caption import Draws


def test_the_first_draw_is_the_documented_hash() -> None:
    digest = blake2b(b"7\x1fchar_swap\x1fa#0", salt=bytes(8)).digest()
    assert Draws(7, "char_swap", "a#0").below(1 << 64) == int.from_bytes(digest[56:], "little")


@given(seed=st.integers(), key=st.text(), counts=st.lists(st.integers(1, 1000), max_size=40))
def test_the_same_key_gives_the_same_draws_within_bounds(seed: int, key: str, counts: list[int]) -> None:
    first, second = Draws(seed, "x", key), Draws(seed, "x", key)
    drawn = [first.below(count) for count in counts]
    assert drawn == [second.below(count) for count in counts]
    assert all(0 <= value < count for value, count in zip(drawn, counts, strict=True))


def test_another_seed_purpose_or_caption_gives_other_draws() -> None:
    streams = [(0, "a", "b"), (1, "a", "b"), (0, "b", "b"), (0, "a", "c"), (0, "ab", ""), (0, "", "ab")]
    drawn = {tuple(Draws(*keys).below(1000) for _ in range(20)) for keys in streams}
    assert len(drawn) == len(streams)


def test_every_order_is_as_likely() -> None:
    counts = Counter(tuple(Draws(0, "orders", str(turn)).shuffled("abcd")) for turn in range(24_000))
    assert set(counts) == set(permutations("abcd"))
    # 24 orders, 1,000 expected of each; χ² with 23 degrees of freedom is above 49.7 once in a thousand times.
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 49.7


def test_fractions_fill_the_unit_interval() -> None:
    draws = Draws(0, "fractions")
    values = sorted(draws.fraction() for _ in range(10_000))
    assert values[0] >= 0
    assert values[-1] < 1
    # Kolmogorov–Smirnov: 1.95 / √n is exceeded once in a thousand times.
    assert max(abs(value - rank / 10_000) for rank, value in enumerate(values)) < 1.95 / 100
