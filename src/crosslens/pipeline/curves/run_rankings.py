"""What a curve needs of a run: a ranking over one gallery, and which image each query belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.core import Ranking, Run, UsageError, split_name
from crosslens.metrics import Ties

IntArray = np.ndarray[Any, np.dtype[np.int64]]


def ranking_of(run: Run, direction: str) -> Ranking:
    """The ranking of a direction; raises where the run has none, or has one for each fold."""
    if direction not in run.rankings:
        kept = ", ".join(run.rankings) or "none"
        raise UsageError(f"{run.name} has no ranking of {direction}", fix=f"choose one that it has: {kept}")
    if run.provenance.get("options", {}).get("folds", 1) != 1:
        raise UsageError(f"{run.name} was ranked within folds", fix="evaluate it without folds for a curve")
    return run.rankings[direction]


def clusters_of(run: Run, direction: str) -> IntArray:
    """The image of every query of a direction."""
    clusters = [values.clusters for name, values in run.values.items() if split_name(name)[0] == direction]
    return clusters[0] if clusters else np.arange(len(run.rankings[direction].query_ids))


def ties_of(run: Run) -> Ties:
    """The tie mode that the run was evaluated with."""
    ties: Ties = run.provenance.get("options", {}).get("ties", "stable")
    return ties
