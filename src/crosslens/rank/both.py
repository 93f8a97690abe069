"""Scores and relevance in, exact rankings of both directions out."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from crosslens.core.errors import InputError, UnknownNameError, UsageError
from crosslens.core.machine import available_cores
from crosslens.core.progress import Progress, Silent
from crosslens.core.ranking import Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Relevance
from crosslens.rank.scorers import Scorer
from crosslens.rank.side import Side
from crosslens.rank.waiting import finish_all

BACKENDS = ("numpy", "torch")


def rank_both(
    scorer: Scorer,
    relevance: Relevance | Mapping[str, Relevance],
    *,
    depth: int = 10,
    backend: str = "numpy",
    device: str | None = None,
    tile: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    names: tuple[str, str] = (IMAGE_TO_TEXT, TEXT_TO_IMAGE),
) -> dict[str, Ranking]:
    """Rank rows against columns and columns against rows in one pass over the scores.

    ``relevance`` is seen from the rows, or one per direction where the two differ. The result does not depend on
    ``tile``, ``threads``, ``backend`` or ``device``: they only change how fast it comes. ``checkpoint`` is a folder
    in which a long pass keeps what it has, to go on from there after an interruption.
    """
    if depth < 1:
        raise UsageError(f"depth {depth}", fix="keep at least one place of each list: depth=1 or more")
    if (tile is not None and tile < 1) or (threads is not None and threads < 1):
        raise UsageError(f"tile {tile}, threads {threads}", fix="use 1 or more of each, or leave them out")
    if device is not None and backend == "numpy":
        raise UsageError(f"the numpy backend has no device {device!r}", fix="use backend='torch' (--backend torch)")
    both = relevance if isinstance(relevance, Mapping) else {names[0]: relevance, names[1]: relevance.flip()}
    rows, columns = (both[name].relevant() for name in names)
    _check_shape(scorer, rows, columns)
    row_side = Side.of(rows, scorer.exact(rows.rows, rows.items), scorer.row_slack, depth)
    column_side = Side.of(columns, scorer.exact(columns.items, columns.rows), scorer.column_slack, depth)
    watching = progress or Silent()
    if backend == "torch":
        from crosslens.rank.torch_pass import rank_with_torch

        return rank_with_torch(scorer, row_side, column_side, names, device, tile, watching)
    if backend != "numpy":
        raise UnknownNameError("backend", backend, BACKENDS)

    from crosslens.rank.finish import finish
    from crosslens.rank.tiles import TILE, run_pass

    done = run_pass(scorer, row_side, column_side, tile or TILE, threads or available_cores(), watching, checkpoint)
    with ThreadPoolExecutor(2) as pool:
        jobs = {
            name: pool.submit(finish, direction, name, done.tallies(direction))
            for name, direction in zip(names, (done.rows, done.columns), strict=True)
        }
        finish_all(jobs.values())
        return {name: job.result() for name, job in jobs.items()}


def _check_shape(scorer: Scorer, rows: Relevance, columns: Relevance) -> None:
    if 0 in scorer.shape:
        raise InputError(
            f"nothing to rank: {scorer.shape[0]} × {scorer.shape[1]} scores", expected="a non-empty gallery"
        )
    shape = (len(rows.query_ids), len(rows.item_ids))
    if scorer.shape != shape or shape != (len(columns.item_ids), len(columns.query_ids)):
        raise InputError(
            f"scores of shape {scorer.shape[0]} × {scorer.shape[1]} for relevance of {shape[0]} × {shape[1]}",
            expected="a row per image and a column per caption, in the dataset's order",
            fix="check that scores and dataset are of the same split, and not transposed",
        )
    if np.abs(rows.grades).sum() == 0 and np.abs(columns.grades).sum() == 0:
        raise InputError("no relevant pair at all", fix="check that the ids of the judgements match the dataset's")
