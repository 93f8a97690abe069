"""Depths and distances in the hierarchy of hypernyms, for whole arrays of synset ids.

nltk's rules hold: a path climbs from both synsets to a common hypernym; nouns share one top, for the other parts of
speech one may be simulated, which lies one step above the *farthest* hypernym of each synset.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crosslens.language.wordnet.tables import Array, Links

if TYPE_CHECKING:
    from crosslens.language.wordnet.kernels import Ways

NO_PATH = 255


@dataclass(frozen=True)
class Hierarchy:
    """Hypernyms (those of instances included) without circles, and which synsets are nouns."""

    hypernyms: Links
    nouns: Array

    @cached_property
    def min_depths(self) -> Array:
        """Per synset, the fewest steps to a top; 0 for a top."""
        return self._depths(np.minimum)

    @cached_property
    def max_depths(self) -> Array:
        """Per synset, the most steps to a top."""
        return self._depths(np.maximum)

    def distances(self, rows: Array, columns: Array, *, simulate_root: bool = True) -> Array:
        """Steps between every row and every column as bytes; ``NO_PATH`` where none connects them."""
        from crosslens.language.wordnet.kernels import distance_matrix

        return np.asarray(distance_matrix(self._ways(simulate_root), rows, columns))

    def paired_distances(self, left: Array, right: Array, *, simulate_root: bool = True) -> Array:
        """Steps between ``left[p]`` and ``right[p]`` as bytes; ``NO_PATH`` where none connects them."""
        from crosslens.language.wordnet.kernels import distance_pairs

        return np.asarray(distance_pairs(self._ways(simulate_root), left, right))

    def closure(self, synset: int) -> tuple[Array, Array]:
        """All synsets above ``synset``, nearest first, and the fewest steps to each."""
        ways = self._rooted
        inside = slice(ways.starts[synset] + 1, ways.starts[synset + 1])
        return ways.above[inside], ways.steps[inside]

    def _depths(self, choose: np.ufunc) -> Array:
        """Settle every synset from its hypernyms; what is unsettled after one round is settled in a later one."""
        counts = np.diff(self.hypernyms.starts)
        below = np.flatnonzero(counts)
        firsts = self.hypernyms.starts[below]
        depths = np.zeros(counts.size, dtype=np.int16)
        if choose is np.minimum:
            depths[below] = np.iinfo(np.int16).max - 1
        while True:
            new = choose.reduceat(depths[self.hypernyms.targets], firsts) + 1 if below.size else depths[below]
            if np.array_equal(new, depths[below]):
                depths.setflags(write=False)
                return depths
            depths[below] = new

    @cached_property
    def _rooted(self) -> Ways:
        from crosslens.language.wordnet.kernels import Ways, climb_all

        starts, above, steps = climb_all(self.hypernyms.starts, self.hypernyms.targets)
        # Nearest first: the last of each is the farthest.
        to_root = steps[starts[1:] - 1] + np.uint8(1)
        return Ways(starts, above, steps, ~self.nouns, to_root)

    @cached_property
    def _unrooted(self) -> Ways:
        return self._rooted._replace(rootless=np.zeros_like(self.nouns))

    def _ways(self, simulate_root: bool) -> Ways:
        return self._rooted if simulate_root else self._unrooted
