"""Several runs side by side: one row per run, as papers print them."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.core.errors import UsageError
from crosslens.core.run import BOTH, Run
from crosslens.report.figures import figure, select, split_name
from crosslens.report.table import Grid


def models_grid(runs: Sequence[Run], metrics: str | Sequence[str] | None = None) -> Grid:
    """The metrics that every run has, as columns ``i2t Hit@1`` …; figures without intervals."""
    shared = [name for name in select(runs[0], metrics) if all(name in run.values for run in runs)]
    if not shared:
        raise UsageError(
            "the runs have no metric in common", fix="evaluate them with the same --metrics, or export them one by one"
        )
    titles = [metric if direction == BOTH else f"{direction} {metric}" for direction, metric in map(split_name, shared)]
    rows = tuple((run.name, *(figure(name, run[name].mean) for name in shared)) for run in runs)
    return Grid(("model", *titles), rows, "l" + "r" * len(shared))
