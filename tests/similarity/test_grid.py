"""Pairs as a grid: which they are, and that every pair keeps its cell."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from crosslens.similarity.protocol import as_grid


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=30))
def test_every_pair_keeps_its_cell(pairs: list[tuple[int, int]]) -> None:
    images, captions = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    grid = as_grid(images, captions, (7, 5))
    cells = len({image for image, _ in pairs}) * len({caption for _, caption in pairs})
    assert (grid is None) == (not pairs or cells > 4 * len(pairs))
    if grid is not None:
        assert sorted(set(images)) == grid.images.tolist()
        assert sorted(set(captions)) == grid.captions.tolist()
        assert (grid.images[grid.row] == images).all()
        assert (grid.captions[grid.column] == captions).all()
