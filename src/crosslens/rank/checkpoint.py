"""Checkpoints of a ranking pass: what its workers have counted so far, in a folder, so that the same call resumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from crosslens.core import fingerprint
from crosslens.rank.direction_state import Direction, PassTally
from crosslens.rank.scorers import Scorer
from crosslens.rank.state_folder import store_state, stored_state

_WORK_BETWEEN = 4 * 10**12
"""Multiplications between two checkpoints: about a minute's worth."""


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
        for part in fields(PassTally)
    }
    store_state(folder, key, {"done": done, "tallies": len(tallies)}, arrays)


def load_checkpoint(folder: str | Path, key: str) -> tuple[int, list[PassTally]] | None:
    """Blocks done and the tallies so far; None without a readable checkpoint of this very pass."""
    stored = stored_state(folder, key)
    if stored is None:
        return None
    header, arrays = stored
    return header["done"], [
        PassTally(**{part.name: arrays[f"{number}-{part.name}"] for part in fields(PassTally)})
        for number in range(header["tallies"])
    ]
