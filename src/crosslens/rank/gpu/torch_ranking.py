"""The ranking of inner products by torch: on devices of this machine, or on those that tasks of an engine have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslens.core import Progress, Ranking, Relevance, current_engine
from crosslens.rank.gpu.block_ranking import devices_of, rank_on_devices
from crosslens.rank.gpu.products import Products
from crosslens.rank.gpu.task_ranking import device_of_tasks, rank_in_tasks
from crosslens.rank.scorers import InnerProduct


def rank_products(
    scorer: InnerProduct,
    relevant: Sequence[Relevance],
    depth: int,
    names: tuple[str, str],
    device: str | None,
    tile: int | None,
    progress: Progress,
    checkpoint: str | Path | None = None,
    wanted: tuple[int, ...] = (0, 1),
) -> dict[str, Ranking]:
    """Rank the ``wanted`` directions; with a checkpoint, resume where an interrupted call stopped, wherever it ran."""
    rows, columns = relevant
    products = Products((scorer.rows, scorer.columns), (rows, columns), depth, tile, wanted)
    engine = current_engine()
    of_tasks = device_of_tasks(engine, device, products.work)
    if of_tasks is not None:
        return rank_in_tasks(scorer, products, names, engine, of_tasks, progress, checkpoint)
    return rank_on_devices(scorer, products, names, devices_of(device), progress, checkpoint)
