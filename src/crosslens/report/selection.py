"""Which metrics of a run a person asks for."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.core.errors import CrosslensError, UnknownNameError
from crosslens.core.run import Run, split_name
from crosslens.metrics.request import parse_metric, words


def select(run: Run, metrics: str | Sequence[str] | None = None) -> list[str]:
    """The full names of the asked metrics in a run; a name without a direction means every direction that has it."""
    if metrics is None:
        return list(run)
    chosen: dict[str, None] = {}
    for wanted in asked(metrics):
        same = {wanted, _canonical(wanted)}
        matching = [name for name in run if same & {name, split_name(name)[1]}]
        if not matching:
            known = {*run, *(split_name(name)[1] for name in run)}
            raise UnknownNameError("metric in this run", wanted, _same_letters(wanted, known) or known)
        chosen.update(dict.fromkeys(matching))
    return list(chosen)


def asked(metrics: str | Sequence[str]) -> list[str]:
    """The metrics a person wrote, one by one."""
    return words(metrics) if isinstance(metrics, str) else list(metrics)


def _same_letters(wanted: str, known: set[str]) -> set[str]:
    """Names that differ in case only: ``hit@5`` can only be meant for ``Hit@5``."""
    return {name for name in known if name.casefold() == wanted.casefold()}


def _canonical(metric: str) -> str:
    """The name a metric has in results: ``R@5`` is ``Hit@5`` there."""
    try:
        return str(parse_metric(metric))
    except CrosslensError:
        return metric
