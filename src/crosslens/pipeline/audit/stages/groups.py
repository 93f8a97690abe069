"""The stage that groups metrics by the columns of the dataset."""

from __future__ import annotations

from typing import Any

from crosslens.core import Run, split_name
from crosslens.pipeline.audit.stage import Need, StageOutput, StageWork, audit_stage
from crosslens.pipeline.groups import CAPTION_LENGTH, group_metrics, group_names, groupable_metrics

_METRICS = ("Hit@1", "Hit@10", "Hit@5", "MRR")
"""What an audit groups; a quick one, the first ``_QUICK`` of them."""
_QUICK = 2
_MOST_GROUPS = 20
_MOST_COLUMNS = 12


def _useful_columns(run: Run) -> list[str]:
    """The columns that split the queries into some groups, but not into single queries."""

    def is_useful(column: str) -> bool:
        for table in run.columns.values():
            if column in table.columns and not table[column].dtype.is_nested():
                values = table[column].drop_nulls()
                if 1 < values.n_unique() <= max(2, len(values) // 5):
                    return True
        return column == CAPTION_LENGTH and any("text" in table.columns for table in run.columns.values())

    return [name for name in group_names(run) if is_useful(name)][:_MOST_COLUMNS]


def _without_columns(work: StageWork) -> str | None:
    return None if _useful_columns(work.run.evaluated) else "the dataset has none"


@audit_stage(
    "groups", about="run", order=30, needs=(Need("columns that make groups", _without_columns),), cost=(1, 0.5)
)
def audited_groups(work: StageWork) -> StageOutput:
    """Metrics by every column of the dataset that makes groups, and by caption length."""
    run, options = work.run.evaluated, work.options
    wanted = _METRICS[:_QUICK] if options.quick else _METRICS
    tables: list[dict[str, Any]] = []
    for column in _useful_columns(run):
        names = [name for name in groupable_metrics(run, column) if split_name(name)[1] in wanted]
        if names:
            grouped = group_metrics(
                run, column, names, largest=_MOST_GROUPS, seed=options.seed, resamples=options.resamples
            )
            tables.append(grouped.figures())
    command = f"crosslens show {work.run.folder} --by {'|'.join(table['by'] for table in tables)}"
    return StageOutput({"name": run.name, "groups": tables}, command)
