"""What a report takes from a run: the chosen metrics, the name of its dataset."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.core import Run, UnknownNameError, split_name
from crosslens.metrics.request import matching_names, split_metrics


def select_metrics(run: Run, metrics: str | Sequence[str] | None = None) -> list[str]:
    """The full names of the chosen metrics in a run; a name without a direction means every direction that has it."""
    if metrics is None:
        return list(run)
    chosen: dict[str, None] = {}
    for metric in metric_names(metrics):
        matching = matching_names(metric, run)
        if not matching:
            known = {*run, *(split_name(name)[1] for name in run)}
            raise UnknownNameError("metric in this run", metric, _same_letters(metric, known) or known)
        chosen.update(dict.fromkeys(matching))
    return list(chosen)


def metric_names(metrics: str | Sequence[str]) -> list[str]:
    """The chosen metrics as a list."""
    return split_metrics(metrics) if isinstance(metrics, str) else list(metrics)


def _same_letters(metric: str, known: set[str]) -> set[str]:
    """Names that differ in case only: ``hit@5`` can only be meant for ``Hit@5``."""
    return {name for name in known if name.casefold() == metric.casefold()}


def dataset_name(run: Run) -> str:
    """The name of the dataset behind a run; nothing where it had none."""
    return str(run.provenance.get("dataset", {}).get("name", ""))


def dataset_revision(run: Run) -> str:
    """The fingerprint of the dataset behind a run; nothing where it had none."""
    return str(run.provenance.get("dataset", {}).get("fingerprint", ""))
