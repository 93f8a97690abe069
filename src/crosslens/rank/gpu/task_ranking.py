"""Rankings in tasks of an engine, each on one device of whoever runs it: what tasks give is merged in this process.

A task is a block of rows and a block of columns. Whoever runs it ranks the two as a ranking of its own, in smaller
blocks if its device holds less, against relevant items that may be in none of them; so devices need not be alike.
:func:`rank_products` chooses between these and the devices of this process.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import CrosslensError, MissingExtraError, available_cores
from crosslens.engine import Engine, Progress, SilentProgress, current_engine, stage
from crosslens.rank.gpu.block_ranking import (
    BlockRanking,
    checkpoint_key,
    devices_of,
    merged_blocks,
    rank_on_devices,
    rankings_of,
    require_torch,
)
from crosslens.rank.gpu.blocks import LEAST_WORK, ProductPart, Products, task_blocks
from crosslens.rank.gpu.direction import pair_scores, relevant_scores
from crosslens.rank.merged import Lists
from crosslens.rank.scorers import InnerProduct
from crosslens.storage import Array, VectorBlocks
from crosslens.values import Ranking, Relevance

Tensor = Any
ANY_MACHINE = (None, "cuda", "cpu")
"""Names of devices that any machine may have."""
_PAIR_BYTES = 1 << 29
"""Bytes of vectors whose relevant pairs a task scores."""


@dataclass(frozen=True)
class TaskDevice:
    """What each task ranks on: ``name`` is a device of its own process, ``gpu`` whether the engine gives it a GPU."""

    name: str | None
    gpu: bool

    @property
    def kind(self) -> str:
        """How its speed is estimated."""
        return "cuda" if self.gpu else "cpu"

    def device(self) -> Any:
        """The device, in the process that runs a task."""
        return devices_of(self.name)[0]


def device_of_tasks(engine: Engine, name: str | None, work: int) -> TaskDevice | None:
    """On what tasks rank; None where this process does by itself: the engine has no other devices, or is not worth it.

    Devices with numbers, such as ``cuda:1``, are those of this machine.
    """
    if not engine.distributed or name not in ANY_MACHINE:
        return None
    require_torch()
    import torch

    gpus = 0 if name == "cpu" else torch.cuda.device_count()
    gpu = name == "cuda" or (name is None and (gpus or engine.slots(gpu=True)) > 0)
    devices = gpus if gpu else available_cores()
    least = LEAST_WORK["cuda" if gpus else "cpu"]
    if work < (devices + 1) * least or not engine.exceeds(devices, gpu=gpu):
        return None
    return TaskDevice(name if gpu else "cpu", gpu)


@dataclass(frozen=True)
class _TaskWork:
    """What all tasks read."""

    vectors: tuple[VectorBlocks, VectorBlocks]
    depth: int
    tile: int | None
    axes: tuple[int, ...]
    device: TaskDevice


def rank_in_tasks(
    scorer: InnerProduct,
    products: Products,
    names: tuple[str, str],
    engine: Engine,
    device: TaskDevice,
    progress: Progress,
    checkpoint: str | Path | None = None,
) -> dict[str, Ranking]:
    """Rank inner products in tasks of an engine; with a checkpoint, resume where an interrupted call stopped."""
    work = _TaskWork(products.vectors, products.depth, products.tile, products.axes, device)
    targets = relevant_scores(products.relevant, lambda rows, columns: _scores_in_tasks(work, rows, columns, engine))
    devices = max(1, engine.slots(gpu=device.gpu))
    merged = merged_blocks(products, task_blocks(products.shape, products.dimension, devices, device.kind))
    if checkpoint is not None:
        merged.keep_in(Path(checkpoint), checkpoint_key(scorer, products, targets))
    todo = merged.todo()
    tasks = (ProductPart.of(products, targets, merged.parts(pair)) for pair in todo)
    with stage(progress, "ranking", merged.done.size, done=merged.done.size - len(todo), unit="block"):
        results = engine.run(
            rank_product_part, work, tasks,
            done=lambda _: progress.advance(), size=merged.result_bytes(), gpu=device.gpu,
        )  # fmt: skip
        for pair, lists in zip(todo, results, strict=True):
            merged.add(pair, lists)
    return rankings_of(products, merged, names)


def rank_product_part(work: _TaskWork, part: ProductPart) -> dict[int, Lists]:
    """Per wanted direction, the part's best items for its queries, and its counts for relevant pairs."""
    import torch

    with _naming_the_node():
        device = work.device.device()
        ranking = BlockRanking(part.products(work.vectors, work.depth, work.tile, work.axes), [device], part.scores)
        ranking.run(SilentProgress())
    results = {axis: lists.packed() for axis, lists in ranking.merged.lists.items()}
    if device.type == "cuda":
        del ranking
        torch.cuda.empty_cache()  # the next task may be that of another process
    return results


def _scores_in_tasks(work: _TaskWork, rows: Array, columns: Array, engine: Engine) -> Array:
    """The scores of pairs, made on the devices that compare them with others."""
    size = max(1, _PAIR_BYTES // (4 * work.vectors[0].shape[1]))
    tasks = ((rows[start : start + size], columns[start : start + size]) for start in range(0, len(rows), size))
    scores = list(engine.run(score_pairs, work, tasks, gpu=work.device.gpu))
    return np.concatenate(scores) if scores else np.empty(0, np.float32)


def score_pairs(work: _TaskWork, pairs: tuple[Array, Array]) -> Array:
    """One score per (row, column) pair."""
    with _naming_the_node():
        return pair_scores(work.vectors, *pairs, work.device.device())


@contextmanager
def _naming_the_node() -> Iterator[None]:
    """Errors about a device, or about torch, say whose: nodes differ."""
    try:
        yield
    except CrosslensError as error:
        if error.option == "device" or isinstance(error, MissingExtraError):
            error.add_context(f"on the node {socket.gethostname()}")
        raise


def rank_products(
    scorer: InnerProduct,
    relevant: Sequence[Relevance],
    depth: int,
    names: tuple[str, str],
    device: str | None,
    tile: int | None,
    progress: Progress,
    checkpoint: str | Path | None = None,
    axes: tuple[int, ...] = (0, 1),
) -> dict[str, Ranking]:
    """Rank the ``axes`` directions; with a checkpoint, resume where an interrupted call stopped, wherever it ran."""
    rows, columns = relevant
    products = Products((scorer.rows, scorer.columns), (rows, columns), depth, tile, axes)
    engine = current_engine()
    of_tasks = device_of_tasks(engine, device, products.work)
    if of_tasks is not None:
        return rank_in_tasks(scorer, products, names, engine, of_tasks, progress, checkpoint)
    return rank_on_devices(scorer, products, names, devices_of(device), progress, checkpoint)
