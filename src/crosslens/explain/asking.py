"""``crosslens.explain``: one query, several, or all failures of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from crosslens.core.dataset import Dataset
    from crosslens.core.run import Run
    from crosslens.explain.local.explanation import Explanation
    from crosslens.explain.overview.overview import Overview


@overload
def explain(run: Run | str | Path, query: None = None, **options: Any) -> Overview: ...
@overload
def explain(run: Run | str | Path, query: str, **options: Any) -> Explanation: ...
@overload
def explain(run: Run | str | Path, query: Sequence[str], **options: Any) -> list[Explanation]: ...


def explain(
    run: Run | str | Path,
    query: str | Sequence[str] | None = None,
    *,
    dataset: Dataset | str | Path | None = None,
    dataset_options: dict[str, Any] | None = None,
    direction: str | None = None,
    **options: Any,
) -> Overview | Explanation | list[Explanation]:
    """Why a query found what it found: in full for one query or a list of them; without any, over all failures.

    ``run`` is a run or its folder. ``dataset`` is a dataset, a reader's name or a path with ``dataset_options`` for the
    reader; by default the one that the run's recipe names. ``direction``: ``t2i``, ``t2t`` or ``i2t``; by default where
    the query is found, texts first. ``options`` go to ``explain_queries`` (``explain/local/explaining.py``) for named
    queries, or to ``overview`` (``explain/overview/overview.py``) for all failures.
    """
    from crosslens.core.run import Run
    from crosslens.explain.run_data import changed_since, dataset_of

    opened = Run.load(run) if isinstance(run, str | Path) else run
    data = dataset_of(opened, dataset, **(dataset_options or {}))
    named = dataset is not None or dataset_options  # who names a dataset means that one, with more objects perhaps
    told = () if named or not (changed := changed_since(opened, data)) else (changed,)
    if query is None:
        from crosslens.explain.overview.overview import overview

        summary = overview(opened, data, direction, **options)
        return replace(summary, notes=(*told, *summary.notes))
    from crosslens.explain.local.explaining import explain_queries

    found = explain_queries(opened, data, [query] if isinstance(query, str) else query, direction, **options)
    found = [replace(one, notes=(*told, *one.notes)) for one in found]
    return found[0] if isinstance(query, str) else found
