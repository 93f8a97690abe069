"""The stage of an audit that looks at groups of queries: by every column of the dataset that makes useful groups."""

from __future__ import annotations

from typing import Any

from crosslens.core import Run, split_name
from crosslens.pipeline import Need, StageOutput, StageWork, audit_stage
from crosslens.report.groups import group_metrics, group_names, groupable_metrics

_METRICS = ("Hit@1", "Hit@10", "Hit@5", "MRR")
_QUICK = 2
"""How many of the metrics a quick audit takes."""
_MOST_GROUPS = 20
_MOST_COLUMNS = 12


def _columns(run: Run) -> list[str]:
    """The columns that split the queries into some groups, but not into single queries."""
    return [name for name in group_names(run) if _is_useful(run, name)][:_MOST_COLUMNS]


def _is_useful(run: Run, column: str) -> bool:
    for table in run.columns.values():
        if column in table.columns and not table[column].dtype.is_nested():
            values = table[column].drop_nulls()
            if 1 < values.n_unique() <= max(2, len(values) // 5):
                return True
    return column == "caption_length" and any("text" in table.columns for table in run.columns.values())


def _missing(work: StageWork) -> str | None:
    return None if _columns(work.run.evaluated) else "the dataset has none"


@audit_stage("groups", about="run", order=30, needs=(Need("columns that make groups", _missing),), cost=(1, 0.5))
def groups(work: StageWork) -> StageOutput:
    """Metrics by every column of the dataset that makes groups, and by caption length."""
    run, options = work.run.evaluated, work.options
    wanted = _METRICS[:_QUICK] if options.quick else _METRICS
    tables: list[dict[str, Any]] = []
    for column in _columns(run):
        names = [name for name in groupable_metrics(run, column) if split_name(name)[1] in wanted]
        if names:
            grouped = group_metrics(
                run, column, names, largest=_MOST_GROUPS, seed=options.seed, resamples=options.resamples
            )
            tables.append(grouped.figures())
    command = f"crosslens show {work.run.folder} --by {'|'.join(table['by'] for table in tables)}"
    return StageOutput({"name": run.name, "groups": tables}, command)
