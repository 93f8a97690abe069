"""Results for a Hugging Face model card: the ``model-index`` of its YAML header."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import isfinite
from typing import Any

from crosslens.core import MetricValues, Run, UsageError, split_name
from crosslens.metrics import dataset_name, dataset_revision, select_metrics
from crosslens.report.export.files import EXPORTS, Files, Metrics

_TASKS = {"t2i": "Text-to-image retrieval", "i2t": "Image-to-text retrieval", "t2t": "Text-to-text retrieval"}
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


@EXPORTS.register("model-index", suffix=".model-index.yaml", several=True)
def model_index(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """The model-index of a Hugging Face model card.

    To be put between the ``---`` lines at the head of the card's README.md. One result per run and direction; values
    are fractions, with the interval, its level and the number of queries as arguments. Several runs are several results
    of one model where they have one name.
    """
    models: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        results = _results(run, select_metrics(run, metrics))
        if not results:
            raise UsageError(f"the run {run.name!r} has no values", fix="evaluate it again")
        models.setdefault(run.name, []).extend(results)
    if not models:
        raise UsageError("no runs to export", fix="pass at least one")
    content = [{"name": name, "results": results} for name, results in models.items()]
    return {"": "\n".join(_yaml({"model-index": content})) + "\n"}


def _results(run: Run, names: Sequence[str]) -> list[dict[str, Any]]:
    by_direction: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        if isfinite(run[name].mean):
            by_direction.setdefault(split_name(name)[0], []).append(_metric(name, run[name]))
    label = dataset_name(run) or "dataset"
    dataset: dict[str, Any] = {"type": label, "name": label}
    if dataset_revision(run):
        dataset["revision"] = dataset_revision(run)
    if run.protocol:
        dataset["args"] = {"protocol": str(run.protocol["name"])}
    return [
        {
            "task": {"type": "image-text-retrieval", "name": _TASKS.get(direction, "Image-text retrieval")},
            "dataset": dataset,
            "metrics": entries,
        }
        for direction, entries in by_direction.items()
    ]


def _metric(name: str, values: MetricValues) -> dict[str, Any]:
    facts: dict[str, Any] = {"queries": values.n}
    if all(map(isfinite, values.interval)):
        facts |= {"low": values.low, "high": values.high, "level": values.level}
    return {"type": name, "name": name, "value": values.mean, "args": facts}


def _yaml(value: Any, indent: str = "") -> list[str]:
    """Lines of block YAML for what JSON can hold; texts are quoted, so that none is read as anything else."""
    lines: list[str] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list):
                lines += [f"{indent}{key}:", *_yaml(inner, indent + "  ")]
            else:
                lines.append(f"{indent}{key}: {_scalar(inner)}")
        return lines
    for inner in value:
        first, *rest = _yaml(inner, indent + "  ")
        lines += [f"{indent}- {first.removeprefix(indent + '  ')}", *rest]
    return lines


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "e" in text and "." not in text:
        text = text.replace("e", ".0e")  # YAML 1.1 takes 1e-05 for a text
    # Characters that JSON leaves as they are, and YAML does not allow.
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
