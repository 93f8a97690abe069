"""Some queries of a ranking: the same as ranking only those."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given, strategies as st

import crosslens as cl
from tests.pipeline.small_world import world


@cache
def _ranking() -> cl.Ranking:
    dataset, images, captions = world(images=10)
    return cl.evaluate(dataset, images=images, captions=captions, resamples=0).rankings["i2t"]


@given(rows=st.lists(st.integers(0, 9), max_size=12, unique=True))
def test_of_queries(rows: list[int]) -> None:
    whole = _ranking()
    part = whole.of_queries(rows)
    assert part.query_ids == tuple(whole.query_ids[row] for row in rows)
    for place, row in enumerate(rows):
        assert part.top(part.query_ids[place]) == whole.top(whole.query_ids[row])
        ours, theirs = (slice(r.offsets[at], r.offsets[at + 1]) for r, at in ((part, place), (whole, row)))
        for name in ("relevant", "grades", "above", "tied", "tied_before"):
            np.testing.assert_array_equal(getattr(part, name)[ours], getattr(whole, name)[theirs])
    assert part.item_ids == whole.item_ids
