"""Vectors on a device, ranked by the fastest pass that can decide the scores at hand."""

from __future__ import annotations

from collections.abc import Callable

from crosslens.core import Progress
from crosslens.rank.gpu.exact import fused
from crosslens.rank.gpu.fused.fused_pass import LONGEST_LIST, MOST_RELEVANT, SMALLEST, fused_pass
from crosslens.rank.gpu.side import Side
from crosslens.rank.gpu.tiles.tile_pass import tile_pass


def rank_sides(
    sides: Callable[[], tuple[Side, Side]],
    tile: int | None,
    progress: Progress,
    *,
    kernels: bool = True,
    half: bool = True,
) -> tuple[Side, Side]:
    """Count and collect for a pair of sides; ``sides`` makes it, again if a pass cannot decide the scores."""
    both = sides()
    rows, columns = (side.queries for side in both)
    widest = max(len(side.targets) for side in both)
    longest = max(side.keep for side in both)
    suited = min(len(rows), len(columns)) >= SMALLEST and widest <= MOST_RELEVANT and longest <= LONGEST_LIST
    if kernels and suited and tile is None and fused(rows.device.type):
        blocks = fused_pass(*both, progress)
        if blocks is not None:
            if blocks:
                tile_pass(*both, progress, half=False, blocks=blocks)
            return both
        both = sides()
        half = False  # too many near-ties: tiles in half precision would leave as many undecided
    tile_pass(*both, progress, half=half and rows.device.type == "cuda", tile=tile)
    return both
