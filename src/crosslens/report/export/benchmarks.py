"""Results of mteb and CLIP_benchmark: a run written as one of theirs, and theirs read as figures without queries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import InputError, UsageError, argument
from crosslens.data import read_json
from crosslens.metrics import dataset_name, dataset_revision, facts_of, select_metrics
from crosslens.report.export import EXPORTS, Files, Metrics
from crosslens.storage import is_finite_number
from crosslens.values import RUN_FILE, MetricValues, Run, split_name

_MTEB_NAMES = {
    "Hit": ("cv_recall", "hit_rate"),
    "Recall": ("recall",),
    "Precision": ("precision",),
    "MRR": ("mrr",),
    "AP": ("map",),
    "nDCG": ("ndcg",),
}
"""What mteb calls a metric of the same definition; the first name is that of image tasks, the second mteb 2's."""
_MTEB_MAIN = ("ndcg_at_10", "cv_recall_at_1", "recall_at_1")
_MTEB_DATASETS = {"flickr30k": "Flickr30k"}
"""mteb's spelling of a dataset where its task has the same queries."""
_MTEB_TASK = re.compile(r"(.+?)(?<!I)(T2I|I2T|T2T)Retrieval")
"""IT2I, IT2T and the like ask with a picture and a text together, which is no direction here."""
_MTEB_MODEL = "model_meta.json"
_CUTOFF = re.compile("[1-9][0-9]{0,8}")
_METRIC_AT_K = re.compile(r"(\w+)@(\d+)")
_CLIP_BENCHMARK_TASKS = {"t2i": "image_retrieval", "i2t": "text_retrieval"}


@EXPORTS.register("mteb", suffix=".mteb.json")
def mteb(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """mteb's result layout, one file per direction.

    Names are mteb's where the definition is the same: ``recall_at_k`` is ``Recall@k``, ``cv_recall_at_k`` and
    ``hit_rate_at_k`` are ``Hit@k``, ``mrr_at_k`` is ``MRR@k``, ``map_at_k`` is ``AP@k``, ``ndcg_at_k`` is ``nDCG@k``,
    ``precision_at_k`` is ``Precision@k``; other metrics are left out. The main score is that of mteb's retrieval tasks,
    ``nDCG@10``, or else the hit rate at 1.
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
            f"the run {run.name!r} has none of the metrics mteb knows ({'@k, '.join(_MTEB_NAMES)}@k)",
            fix=f'evaluate with {argument("metrics")} "Hit@1 Recall@10 nDCG@10"',
        )
    dataset, files = dataset_name(run), {}
    for direction, values in scores.items():
        main = next((name for name in _MTEB_MAIN if name in values), next(iter(values)))
        entry = {**values, "main_score": values[main], "hf_subset": "default", "languages": ["eng-Latn"]}
        content = {
            "task_name": f"{_MTEB_DATASETS.get(dataset, dataset)}{direction.upper()}Retrieval",
            "dataset_revision": dataset_revision(run),
            "mteb_version": None,  # null is read as "current"; a version would claim that mteb computed this
            "scores": {"test": [entry]},
            "evaluation_time": None,
            "kg_co2_emissions": None,
        }
        files[direction] = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    return files


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


def holds_results(path: Path) -> bool:
    """Whether a path may be read by :func:`read_results`: a JSON file, or a folder of results that mteb wrote."""
    return path.suffix == ".json" and path.name != RUN_FILE if path.is_file() else (path / _MTEB_MODEL).is_file()


def read_results(*paths: str | Path) -> list[Run]:
    """Results that mteb or CLIP_benchmark wrote, one run per model and dataset.

    Such a run has figures alone: no values of queries, no intervals and no rankings, so it stands beside other runs in
    tables and is not tested against them. Of mteb ``recall``, ``precision``, ``mrr``, ``map``, ``ndcg`` and
    ``cv_recall`` or ``hit_rate`` are read as ``Recall``, ``Precision``, ``MRR``, ``AP``, ``nDCG`` and ``Hit``; of
    CLIP_benchmark ``recall``, which is ``Hit``.

    Args:
        paths: JSON files, or the folders of models' results that mteb wrote.
    """
    runs: dict[tuple[str, str], Run] = {}
    for path in map(Path, paths):
        files = sorted(path.glob("*Retrieval.json")) if path.is_dir() else [path]
        read = [result for file in files for result in _results(file, whole_folder=path.is_dir())]
        if not read:
            raise InputError(
                "no results of image-text retrieval",
                file=path,
                expected="files such as Flickr30kT2IRetrieval.json",
                fix="name the folder of one model and revision, in which mteb wrote its tasks",
            )
        for model, dataset, figures in read:
            run = runs.get((model, dataset), Run(model, {}, provenance={"dataset": {"name": dataset}}))
            for name, figure in figures.items():
                if name in run.values and run[name].mean != figure:
                    raise InputError(
                        f"{name} of {model} on {dataset} is {figure:g} here, and {run[name].mean:g} in another file",
                        file=path,
                        expected="one result per model, dataset and metric",
                        fix="leave one of the files out",
                    )
            values = {
                name: MetricValues(name, (), np.empty(0), np.empty(0, np.int64), mean, nan, nan, facts=facts_of(name))
                for name, mean in figures.items()
            }
            sources = [*dict.fromkeys([*run.published, str(path)])]
            runs[model, dataset] = replace(
                run, values={**run.values, **values}, provenance={**run.provenance, "published": sources}
            )
    return list(runs.values())


Result = tuple[str, str, dict[str, float]]
"""Model, dataset, and figures by metric."""


def _results(file: Path, *, whole_folder: bool) -> Iterator[Result]:
    content = read_json(file)
    if isinstance(content, dict) and isinstance(content.get("scores"), dict) and "task_name" in content:
        yield from _of_mteb(file, content, whole_folder)
    elif isinstance(content, dict) and isinstance(content.get("metrics"), dict) and "task" in content:
        yield _of_clip_benchmark(file, content)
    else:
        raise InputError(
            "neither a result of mteb nor one of CLIP_benchmark",
            file=file,
            expected="an object with task_name and scores (mteb 1.11 or later), or with task and metrics",
            fix="check the file; ranked lists (TREC, ranx) are evaluated: crosslens evaluate --run",
        )


def _of_mteb(file: Path, content: Mapping[str, Any], whole_folder: bool) -> Iterator[Result]:
    task = _MTEB_TASK.fullmatch(str(content["task_name"]))
    if task is None:
        if whole_folder:  # of the many tasks in it, those of one side against the other
            return
        raise InputError(
            f"the task is {content['task_name']!r}",
            file=file,
            expected="a name that ends in T2IRetrieval or I2TRetrieval",
            fix="choose the result of such a task",
        )
    # The model's name from the file beside it, else from mteb's folders, model/revision/task.json.
    meta = file.with_name(_MTEB_MODEL)
    model_meta = read_json(meta) if meta.is_file() else None
    folders = [file.absolute().parent.parent.name, file.absolute().parent.name]
    model = next((name.replace("__", "/", 1) for name in folders if "__" in name), folders[-1])
    if isinstance(model_meta, dict) and isinstance(model_meta.get("name"), str):
        model = model_meta["name"]
    elif file.stem != task[0]:  # named by a person, or by an export
        model = re.sub(r"([.-](i2t|t2i|t2t))?(\.mteb)?\.json$", "", file.name)
    families = {name: family for family, names in _MTEB_NAMES.items() for name in names}
    splits: Mapping[str, Any] = content["scores"]
    for split, entries in splits.items():
        for entry in entries if isinstance(entries, list) else [None]:
            if not isinstance(entry, dict):
                raise InputError(
                    f"the scores of {split!r} are {entries!r:.40}",
                    file=file,
                    expected="a list of objects",
                    fix="write the file again with mteb",
                )
            measured = {}
            for key, value in entry.items():
                name, _, cutoff = key.rpartition("_at_")
                if name in families and _CUTOFF.fullmatch(cutoff):
                    measured[families[name], int(cutoff)] = _share(file, key, value)
            order = list(_MTEB_NAMES)
            figures = {
                f"{task[2].lower()}/{family}@{k}": measured[family, k]
                for family, k in sorted(measured, key=lambda key: (order.index(key[0]), key[1]))
            }
            subset = str(entry.get("hf_subset", "default"))
            parts = [*([split] if split != "test" else []), *([subset] if subset != "default" else [])]
            yield model, " ".join([task[1], *parts]), figures


def _of_clip_benchmark(file: Path, content: Mapping[str, Any]) -> Result:
    if content["task"] != "zeroshot_retrieval":
        raise InputError(
            f"the task is {content['task']!r}",
            file=file,
            expected="zeroshot_retrieval",
            fix="choose the result of a retrieval dataset",
        )
    figures = {}
    for direction, task in _CLIP_BENCHMARK_TASKS.items():
        for key, value in content["metrics"].items():
            name, _, k = key.partition("_recall@")
            if name == task and _CUTOFF.fullmatch(k):
                figures[f"{direction}/Hit@{int(k)}"] = _share(file, key, value)
    model = " ".join(str(content.get(part) or "") for part in ("model", "pretrained")).strip() or file.stem
    language = str(content.get("language") or "en")
    dataset = str(content.get("dataset") or "dataset").removeprefix("wds/")
    return model, dataset if language == "en" else f"{dataset} {language}", figures


def _share(file: Path, key: str, value: Any) -> float:
    if not is_finite_number(value) or not 0 <= value <= 1:
        raise InputError(f"{key} is {value!r:.40}", file=file, expected="a number from 0 to 1", fix="correct the file")
    return float(value)
