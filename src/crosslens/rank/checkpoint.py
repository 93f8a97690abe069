"""Checkpoints of a ranking pass: what its workers have counted so far, in a folder, so that the same call resumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.core import HEADER_FILE, CrosslensError, Layout, atomic_folder, fingerprint, read_folder, write_parts
from crosslens.rank.scorers import Scorer

if TYPE_CHECKING:
    from crosslens.rank.direction_state import Direction, PassTally

Array = np.ndarray[Any, Any]

_WORK_BETWEEN = 4 * 10**12
"""Multiplications between two checkpoints: about a minute's worth."""
_LAYOUT = Layout("a checkpoint", HEADER_FILE, ("*.npy",))


def store_state(folder: str | Path, key: str, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Replace what the folder holds; ``key`` changes when anything that the state depends on does."""
    with atomic_folder(folder, _LAYOUT) as new:
        write_parts(new, "checkpoint", header={**header, "key": key}, arrays=dict(arrays))


def stored_state(folder: str | Path, key: str) -> tuple[dict[str, Any], dict[str, Array]] | None:
    """Header and arrays; None without a readable state of this key."""
    if not Path(folder).exists():
        return None
    try:
        header, arrays, _ = read_folder(folder, "checkpoint")
    except CrosslensError:
        return None
    return (header, arrays) if header.get("key") == key else None


def blocks_between(scorer: Scorer, blocks: int, threads: int) -> int:
    """After how many of the blocks of a pass a checkpoint is due."""
    per_block = max(1, scorer.shape[0] * scorer.shape[1] * scorer.work // blocks)
    return max(threads, _WORK_BETWEEN // per_block)


def checkpoint_key(directions: Sequence[Direction], tile: int, blocks: int) -> str:
    """Changes when anything that the tallies of these directions, after some of the blocks, depend on does."""
    parts: dict[str, Any] = {"tile": tile, "blocks": blocks}
    for number, direction in enumerate(directions):
        facts = {
            "as rows": direction.as_rows, "keep": direction.keep, "queries": direction.queries,
            "gallery": direction.gallery, "offsets": direction.offsets, "targets": direction.targets,
            "slack": direction.slack, "relevant": direction.relevant_items, "weights": direction.weights,
        }  # fmt: skip
        parts |= {f"{name} {number}": value for name, value in facts.items()}
    return fingerprint("checkpoint", parts)


def save_checkpoint(folder: str | Path, key: str, done: int, tallies: Sequence[PassTally]) -> None:
    """Store the tallies after ``done`` blocks."""
    arrays = {
        f"{number}-{part.name}": getattr(tally, part.name)
        for number, tally in enumerate(tallies)
        for part in fields(tally)
    }
    store_state(folder, key, {"done": done, "tallies": len(tallies)}, arrays)


def load_checkpoint(folder: str | Path, key: str) -> tuple[int, list[PassTally]] | None:
    """Blocks done and the tallies so far; None without a readable checkpoint of this very pass."""
    from crosslens.rank.direction_state import PassTally  # compiled code, which devices do not need

    stored = stored_state(folder, key)
    if stored is None:
        return None
    header, arrays = stored
    return header["done"], [
        PassTally(**{part.name: arrays[f"{number}-{part.name}"] for part in fields(PassTally)})
        for number in range(header["tallies"])
    ]
