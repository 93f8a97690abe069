"""How nodes share a ranking, as ``--engine ray`` does it: what they read, what they hold, and what they send.

On GPUs a task is a block of images and a block of captions. On CPUs it is a block of the longer side, ranked against
all of the other; what a node has read stays in its memory. One node ranks without tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crosslens.rank import device_blocks, device_item_bytes, part_height, task_blocks

_COUNTS = 3 * 4
"""Bytes of the counts of a relevant pair that travel, at most."""
_KEY = 8
"""Bytes of an entry of a list that travels: score and item."""


@dataclass(frozen=True)
class Share:
    """Of one ranking: its tasks, the vectors that a node reads, the lists that travel and their bytes.

    ``passes`` is how often a task reads one of its sides because the other does not fit the device at once;
    ``memory_bytes`` is what a node holds, ``used`` how many nodes have something to do.
    """

    tasks: int
    used: int
    items: float
    lists: float
    result_bytes: float
    passes: int
    memory_bytes: float


def shared_out(
    shape: tuple[int, int],
    pairs: Mapping[int, float],
    dim: int,
    depth: int,
    nodes: int,
    device_memory: int | None,
    item_bytes: int,
) -> Share:
    """The share of a node in ranking rows × columns.

    ``pairs`` is how many relevant items a query has, for each direction that is asked for; ``device_memory`` is None
    for CPUs; ``item_bytes`` is what a vector takes where it is stored.
    """
    outer = 0 if shape[0] > shape[1] else 1
    if device_memory is None:
        share = -(-shape[outer] // nodes)
        height = shape[outer] if nodes == 1 else part_height(shape[outer], shape[1 - outer] * dim, nodes)
        counts = [1, 1]
        counts[outer] = -(-shape[outer] // height)
        items, passes = float(share + shape[1 - outer]), 1
        memory = float(item_bytes * share + (_KEY * depth + _COUNTS) * items)
    else:
        blocks = task_blocks(shape, dim, nodes, "cuda") if nodes > 1 else None
        size = shape if blocks is None else blocks.size
        counts = [-(-length // part) for length, part in zip(shape, size, strict=True)]
        held = device_blocks(device_memory, size, dim, depth)
        passes = held.counts[0]
        each = -(-counts[0] * counts[1] // nodes)
        items = float(each * (size[held.outer] + passes * size[1 - held.outer]))
        memory = float(min(device_memory, device_item_bytes(dim, depth) * sum(size)))
    tasks = counts[0] * counts[1]
    lists, results = 0.0, 0.0
    for axis, each_has in pairs.items() if nodes > 1 else ():
        lists += float(shape[axis]) * counts[1 - axis]
        results += float(shape[axis]) * counts[1 - axis] * (_KEY * depth + _COUNTS * each_has)
    return Share(tasks, min(nodes, tasks), items, lists, results, passes, memory)
