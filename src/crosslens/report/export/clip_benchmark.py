"""The result file of CLIP_benchmark's ``zeroshot_retrieval`` task.

Its ``recall`` is 1 when any relevant item is in the top k, that is ``Hit@k``; image retrieval is t2i, text retrieval
i2t.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from crosslens.core.errors import UsageError
from crosslens.core.run import Run, split_name
from crosslens.report.export.format import Files, Format, Metrics
from crosslens.report.origin import dataset_name
from crosslens.report.selection import select

_TASKS = {"t2i": "image_retrieval", "i2t": "text_retrieval"}


def render(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """The ``Hit@k`` figures of one run under the names CLIP_benchmark gives them."""
    (run,) = runs
    figures = {}
    for name in select(run, metrics):
        direction, metric = split_name(name)
        if direction in _TASKS and metric.startswith("Hit@"):
            figures[f"{_TASKS[direction]}_recall@{metric.removeprefix('Hit@')}"] = run[name].mean
    if not figures:
        raise UsageError(
            f"the run {run.name!r} has no Hit@k, which CLIP_benchmark calls recall@k",
            fix='evaluate with --metrics "Hit@1 Hit@5 Hit@10"',
        )
    content = {
        "dataset": dataset_name(run),
        "model": run.name,
        "pretrained": "",
        "task": "zeroshot_retrieval",
        "metrics": figures,
        "language": "en",
    }
    return {"": json.dumps(content, ensure_ascii=False, indent=2) + "\n"}


FORMAT = Format(render, "CLIP_benchmark's zeroshot_retrieval result", ".clip-benchmark.json")
