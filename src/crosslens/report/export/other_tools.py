"""The files of other tools: results for mteb and CLIP_benchmark, ranked lists as TREC runs and ranx's JSON."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslens.core import InputError, Run, UsageError, argument, split_name
from crosslens.metrics import dataset_name, dataset_revision, select_metrics
from crosslens.report.export.files import EXPORTS, Files, Metrics

_MTEB_NAMES = {"Hit": ("cv_recall", "hit_rate"), "Recall": ("recall",), "MRR": ("mrr",)}
_MTEB_MAIN = ("cv_recall_at_1", "recall_at_1")
_METRIC_AT_K = re.compile(r"(\w+)@(\d+)")
_CLIP_BENCHMARK_TASKS = {"t2i": "image_retrieval", "i2t": "text_retrieval"}


@EXPORTS.register("mteb", suffix=".mteb.json")
def mteb(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """mteb's result layout, one file per direction.

    Names are mteb's where the definition is the same: ``recall_at_k`` is ``Recall@k``, ``cv_recall_at_k`` and
    ``hit_rate_at_k`` are ``Hit@k``, ``mrr_at_k`` is ``MRR@k``; other metrics are left out. The main score is the hit
    rate at 1.
    """
    (run,) = runs
    scores: dict[str, dict[str, Any]] = {}
    for name in select_metrics(run, metrics):
        direction, metric = split_name(name)
        parts = _METRIC_AT_K.fullmatch(metric)
        for mteb_name in _MTEB_NAMES.get(parts[1], ()) if parts else ():
            assert parts is not None
            scores.setdefault(direction, {})[f"{mteb_name}_at_{parts[2]}"] = run[name].mean
    if not scores:
        raise UsageError(
            f"the run {run.name!r} has none of the metrics mteb knows (Hit@k, Recall@k, MRR@k)",
            fix=f'evaluate with {argument("metrics")} "Hit@1 Recall@10 MRR@10"',
        )
    return {direction: _mteb_content(run, direction, values) for direction, values in scores.items()}


def _mteb_content(run: Run, direction: str, scores: dict[str, Any]) -> str:
    main = next((name for name in _MTEB_MAIN if name in scores), next(iter(scores)))
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


@EXPORTS.register("clip-benchmark", suffix=".clip-benchmark.json")
def clip_benchmark(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """CLIP_benchmark's zeroshot_retrieval result.

    Its ``recall`` is 1 when any relevant item is in the top k, that is ``Hit@k``; image retrieval is t2i, text
    retrieval i2t.
    """
    (run,) = runs
    values = {}
    for name in select_metrics(run, metrics):
        direction, metric = split_name(name)
        if direction in _CLIP_BENCHMARK_TASKS and metric.startswith("Hit@"):
            values[f"{_CLIP_BENCHMARK_TASKS[direction]}_recall@{metric.removeprefix('Hit@')}"] = run[name].mean
    if not values:
        raise UsageError(
            f"the run {run.name!r} has no Hit@k, which CLIP_benchmark calls recall@k",
            fix=f'evaluate with {argument("metrics")} "Hit@1 Hit@5 Hit@10"',
        )
    content = {
        "dataset": dataset_name(run),
        "model": run.name,
        "pretrained": "",
        "task": "zeroshot_retrieval",
        "metrics": values,
        "language": "en",
    }
    return {"": json.dumps(content, ensure_ascii=False, indent=2) + "\n"}


@EXPORTS.register("trec", suffix=".run")
def trec(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """TREC run files, one per direction.

    ``query Q0 item rank score tag``; ids must be free of blanks, which the format uses as separators.
    """
    return _render(runs, ".run")


@EXPORTS.register("ranx", suffix=".ranx.json")
def ranx(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """ranx runs as JSON, one per direction.

    ``{query: {item: score}}``.
    """
    return _render(runs, ".json")


def _render(runs: Sequence[Run], suffix: str) -> Files:
    """The lists of each direction as :func:`crosslens.data.write_run` writes them for this suffix."""
    from crosslens.data import write_run

    (run,) = runs
    if not run.rankings:
        raise UsageError(
            f"the run {run.name!r} holds no ranked lists",
            fix="export from the folder that `crosslens evaluate -o` wrote, or choose csv, markdown or latex",
        )
    system = "_".join(run.name.split()) or "crosslens"
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for direction, ranking in run.rankings.items():
            path = Path(folder) / f"{direction}{suffix}"
            try:
                write_run(ranking, path, system)
            except InputError as error:
                error.file = None  # a temporary file: the mistake is in the ids
                raise
            files[direction] = path.read_text(encoding="utf-8")
    return files
