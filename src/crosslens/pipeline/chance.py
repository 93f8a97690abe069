"""Results that are no better than chance, which a mistake in the inputs explains more often than the model."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np

from crosslens.core import Ranking

Array = np.ndarray[Any, Any]

_FEWEST_IMAGES = 20
"""Of fewer images, chance alone may rank most items well."""
_ERRORS = 2.0
"""How many standard errors below the middle the mean position must be."""
_ORDER = "are the rows in the dataset's order?"
_MODEL = "are the model's weights loaded, and the images the right ones?"


def chance_note(rankings: Mapping[str, Ranking], clusters: Mapping[str, Array], *, encoded: bool) -> list[str]:
    """A note on the directions whose relevant items are ranked no better than by chance; ``encoded`` by a model."""
    directions = [name for name, ranking in rankings.items() if _is_chance(ranking, clusters[name])]
    if not directions:
        return []
    return [f"{' and '.join(directions)}: no better than chance: {_MODEL if encoded else _ORDER}"]


def _is_chance(ranking: Ranking, clusters: Array) -> bool:
    """Whether relevant items lie in the middle of their lists, or beyond, on average over images.

    Under chance an item's position, as a share of its list, is uniform: its mean is 1/2, and the standard error of the
    mean over n independent images at most 1/sqrt(12 n).
    """
    relevant = np.flatnonzero(ranking.grades > 0)
    rows = ranking.rows[relevant]
    if not ranking.complete or not len(relevant):
        return False
    before = ranking.above[relevant] + (ranking.tied[relevant] + 1) / 2
    share = before / ranking.known[rows]
    _, image = np.unique(clusters[rows], return_inverse=True)
    images = int(image.max()) + 1
    position = float((np.bincount(image, share) / np.bincount(image)).mean())
    return images >= _FEWEST_IMAGES and position > 0.5 - _ERRORS / sqrt(12 * images)
