"""A result file in the layout of mteb's image–text retrieval tasks, one file per direction.

Names are mteb's where the definition is the same: ``recall_at_k`` is ``Recall@k``, ``cv_recall_at_k`` and
``hit_rate_at_k`` are ``Hit@k``, ``mrr_at_k`` is ``MRR@k``. Other metrics have no place in that layout and stay out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from crosslens.core.errors import UsageError
from crosslens.core.run import Run, split_name
from crosslens.report.export.format import Files, Format, Metrics
from crosslens.report.origin import dataset_name, dataset_revision
from crosslens.report.selection import select

_NAMES = {"Hit": ("cv_recall", "hit_rate"), "Recall": ("recall",), "MRR": ("mrr",)}
_MAIN = ("cv_recall_at_1", "recall_at_1")
_PLAIN = re.compile(r"(\w+)@(\d+)")


def render(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """The figures of one run that mteb knows; the main score is the hit rate at 1."""
    (run,) = runs
    scores: dict[str, dict[str, Any]] = {}
    for name in select(run, metrics):
        direction, metric = split_name(name)
        parts = _PLAIN.fullmatch(metric)
        for theirs in _NAMES.get(parts[1], ()) if parts else ():
            assert parts is not None
            scores.setdefault(direction, {})[f"{theirs}_at_{parts[2]}"] = run[name].mean
    if not scores:
        raise UsageError(
            f"the run {run.name!r} has none of the metrics mteb knows (Hit@k, Recall@k, MRR@k)",
            fix='evaluate with --metrics "Hit@1 Recall@10 MRR@10"',
        )
    return {direction: _content(run, direction, found) for direction, found in scores.items()}


def _content(run: Run, direction: str, scores: dict[str, Any]) -> str:
    main = next((name for name in _MAIN if name in scores), next(iter(scores)))
    entry = {**scores, "main_score": scores[main], "hf_subset": "default", "languages": ["eng-Latn"]}
    content = {
        "task_name": f"{dataset_name(run)}{direction.upper()}Retrieval",
        "dataset_revision": dataset_revision(run),
        "mteb_version": None,  # null is read as "current"; a version would claim that mteb computed this
        "scores": {"test": [entry]},
        "evaluation_time": None,
        "kg_co2_emissions": None,
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


FORMAT = Format(render, "mteb's result layout, one file per direction", ".mteb.json")
