"""Runs for MLflow, by its own client."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any

from crosslens.core import CrosslensError, MissingExtraError, Run, argument
from crosslens.report.tracking.content import ENDS, TrackedAt, TrackedRun, tracked

_KEY = "crosslens.run"
_FINISHED = "FINISHED"
_LONGEST_VALUE = 500
"""Characters of a parameter that every version of MLflow accepts; the whole recipe is among the files."""
_BATCH = 100
"""Parameters and tags that MLflow takes at once."""


def log_to_mlflow(
    run: Run,
    metrics: str | Sequence[str] | None = None,
    *,
    project: str = "crosslens",
    tracking_uri: str | None = None,
    files: bool = True,
) -> TrackedAt:
    """Log a run to the experiment ``project``: metrics with the ends of their intervals, parameters, tags, files.

    ``tracking_uri`` is MLflow's, by default what the environment says (``MLFLOW_TRACKING_URI``). A run that is there
    already is not logged twice; one whose export was interrupted, or that lacks a metric, is completed.
    """
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise MissingExtraError("logging to MLflow", "mlflow", "mlflow") from error
    content = tracked(run, metrics, files=files)
    try:
        client = MlflowClient(tracking_uri=tracking_uri)
        return _log(client, content, project)
    except MlflowException as error:
        raise CrosslensError(
            f"MLflow refused the run: {str(error).splitlines()[0]}",
            fix=f"check {argument('tracking_uri')} or MLFLOW_TRACKING_URI",
        ) from error


def _log(client: Any, content: TrackedRun, project: str) -> TrackedAt:
    experiment = client.get_experiment_by_name(project)
    number = client.create_experiment(project) if experiment is None else experiment.experiment_id
    numbers = _numbers(content)
    same = client.search_runs([number], f"tags.`{_KEY}` = '{content.key}'")
    is_whole = bool(same) and same[0].info.status == _FINISHED and numbers.keys() <= same[0].data.metrics.keys()
    if same:
        run_id = same[0].info.run_id
    else:
        run_id = client.create_run(number, run_name=content.name, tags={_KEY: content.key}).info.run_id
    if not is_whole:
        _log_values(client, run_id, content, numbers)
        for file in content.files:
            assert content.folder is not None
            below = file.parent.relative_to(content.folder).as_posix()
            client.log_artifact(run_id, str(file), None if below == "." else below)
        client.set_terminated(run_id, _FINISHED)
    return TrackedAt("mlflow", run_id, f"run {run_id} of the experiment {project}", existed=is_whole)


def _numbers(content: TrackedRun) -> dict[str, float]:
    """Every figure, and the ends of its interval beside it, under names that MLflow takes."""
    numbers = dict(content.figures)
    for name, both in content.intervals.items():
        numbers |= {f"{name}_{end}": bound for end, bound in zip(ENDS, both, strict=True)}
    return dict(zip(allowed_names(numbers), numbers.values(), strict=True))


def _log_values(client: Any, run_id: str, content: TrackedRun, numbers: Mapping[str, float]) -> None:
    from mlflow.entities import Metric, Param, RunTag

    metrics = [Metric(name, value, 0, 0) for name, value in numbers.items()]
    settings = zip(allowed_names(content.settings), map(_shortened, content.settings.values()), strict=True)
    params = [Param(key, text) for key, text in settings]
    tags = [RunTag(f"crosslens.{name}", text) for name, text in content.facts.items()]
    for start in range(0, max(len(metrics), len(params), len(tags)), _BATCH):
        part = slice(start, start + _BATCH)
        client.log_batch(run_id, metrics[part], params[part], tags[part])


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def allowed_names(names: Iterable[str]) -> list[str]:
    """Names with the characters that MLflow takes: ``t2i/Hit@1`` is ``t2i/Hit_at_1``; equal ones get a number."""
    allowed: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w./:-]+", "_", name.replace("@", "_at_"), flags=re.ASCII)
        plain = re.sub("_{2,}", "_", plain).strip("_/.") or "value"
        candidates = chain([plain], (f"{plain}_{number}" for number in count(2)))
        allowed.append(next(candidate for candidate in candidates if candidate not in allowed))
    return allowed
