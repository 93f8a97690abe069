"""Rankings on a device: the fastest pass that can decide the scores at hand, with torch and numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosslens.core import (
    MissingExtraError,
    Progress,
    Ranking,
    Relevance,
    UsageError,
    VectorBlocks,
    argument,
    each_block,
)
from crosslens.rank.gpu.exact import fused
from crosslens.rank.gpu.fused_pass import MOST_RELEVANT, SMALLEST, fused_pass
from crosslens.rank.gpu.side import Side
from crosslens.rank.gpu.tile_pass import tile_pass
from crosslens.rank.scorers import InnerProduct

Tensor = Any


def device_of(name: str | None) -> Any:
    """The device of this name; without one a GPU, if there is one."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("the torch backend", "torch", "torch") from error
    try:
        where = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=where)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"cannot use the device {name!r}: {error}",
            fix=f"use {argument('device', 'cpu')}, or leave {argument('device')} out",
            option="device",
        ) from error
    return where


def rank_products(
    scorer: InnerProduct,
    relevant: Sequence[Relevance],
    depth: int,
    names: tuple[str, str],
    where: Any,
    tile: int | None,
    progress: Progress,
) -> dict[str, Ranking]:
    """Rank inner products in both directions on a device."""
    import torch

    with torch.inference_mode():
        rows, columns = (_on_device(side, where) for side in (scorer.rows, scorer.columns))
        sides = rank_vectors(rows, columns, relevant, depth, tile, progress)
        return {name: side.ranking(name) for name, side in zip(names, sides, strict=True)}


def _on_device(vectors: VectorBlocks, where: Any) -> Tensor:
    """All vectors, copied a block at a time."""
    import torch

    copied = torch.empty(vectors.shape, dtype=torch.float32, device=where)
    for start, block in each_block(vectors):
        copied[start : start + len(block)] = torch.tensor(block)
    return copied


def rank_vectors(
    rows: Tensor,
    columns: Tensor,
    relevant: Sequence[Relevance],
    depth: int,
    tile: int | None,
    progress: Progress,
    *,
    kernels: bool = True,
    tf32: bool = True,
) -> tuple[Side, Side]:
    """Count and collect for both directions. Without ``kernels`` and ``tf32`` slower ways are taken."""

    def sides() -> tuple[Side, Side]:
        return Side.of(relevant[0], rows, columns, depth), Side.of(relevant[1], columns, rows, depth)

    both = sides()
    widest = max(len(side.targets) for side in both)
    large = min(len(rows), len(columns)) >= SMALLEST and widest <= MOST_RELEVANT and tile is None
    if kernels and large and fused(rows.device.type):
        if fused_pass(*both, progress):
            return both
        both = sides()  # too many near-ties: TF32 would leave as many undecided
        tf32 = False
    tile_pass(*both, progress, tf32=tf32 and rows.device.type == "cuda", tile=tile)
    return both
