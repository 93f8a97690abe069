"""What a tracker gets of a run: its figures and intervals, its recipe, its origin, its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import chain, count
from math import isfinite
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError, argument, needs_extra, safe_cause, without_secrets
from crosslens.metrics import dataset_name, dataset_revision, select_metrics
from crosslens.storage import fingerprint, parse_toml
from crosslens.values import QUERIES_FILE, RECIPE_FILE, RUN_FILE, Run


@dataclass(frozen=True)
class TrackedRun:
    """A run as names and values: ``figures`` and ``intervals`` by metric, ``settings`` of the recipe, ``facts``."""

    name: str
    key: str
    """Of the name and the values of all queries: exporting a run again finds it by this."""
    figures: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    settings: Mapping[str, str]
    facts: Mapping[str, str]
    files: tuple[Path, ...] = ()
    folder: Path | None = None

    def numbers(self, separator: str) -> dict[str, float]:
        """Every figure, and the ends of its interval beside it."""
        ends = {
            f"{name}{separator}{end}": bound
            for name, both in self.intervals.items()
            for end, bound in zip(("low", "high"), both, strict=True)
        }
        return {**self.figures, **ends}


@dataclass(frozen=True)
class TrackedAt:
    """Where a run is now: the tracker's id of it, a text that says where, and whether it was there before."""

    tracker: str
    id: str
    location: str
    existed: bool = False


def tracked(run: Run, metrics: str | Sequence[str] | None = None, *, files: bool = True) -> TrackedRun:
    """What trackers get of a run: the chosen metrics that have a value, and the files of its folder."""
    metric_values = {name: run[name] for name in select_metrics(run, metrics)}
    options = run.provenance.get("options", {})
    facts = {
        "values": run.fingerprint,
        "dataset": dataset_name(run),
        "dataset_fingerprint": dataset_revision(run),
        "protocol": str(run.protocol.get("name", "")),
        "ties": str(options.get("ties", "")),
        "level": ", ".join(sorted({f"{values.level:g}" for values in metric_values.values()})),
        "crosslens": str(run.provenance.get("versions", {}).get("crosslens", "")),
    }
    recipe = parse_toml(run.recipe)
    recipe.pop("fingerprints", None)  # they say nothing to a reader
    stored: list[Path] = []
    if files and run.home is not None:  # of the folder only what belongs to the run
        plain = [run.home / name for name in (RUN_FILE, QUERIES_FILE, RECIPE_FILE)]
        stored = [path for path in (*plain, *sorted(run.home.glob("ranking-*/*"))) if path.is_file()]
    return TrackedRun(
        run.name,
        fingerprint("tracked run", {"name": run.name, "values": run.fingerprint, "dataset": dataset_revision(run)}),
        {name: values.mean for name, values in metric_values.items() if isfinite(values.mean)},
        {name: values.interval for name, values in metric_values.items() if all(map(isfinite, values.interval))},
        dict(_flat("", recipe)),
        {name: text for name, text in facts.items() if text},
        tuple(stored),
        run.home,
    )


def _flat(prefix: str, content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The entries of a recipe under dotted names."""
    rows: list[tuple[str, str]] = []
    for key, value in content.items():
        if isinstance(value, Mapping):
            rows += _flat(f"{prefix}{key}.", value)
        else:
            rows.append((f"{prefix}{key}", " ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return rows


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

    ``tracking_uri`` is MLflow's, by default what the environment says (``MLFLOW_TRACKING_URI``), else MLflow's own
    default. Files of a new experiment in a local database are beside it. A run that is there already is not logged
    twice; one whose export was interrupted, or that lacks a metric, is completed.
    """
    with needs_extra("logging to MLflow", "mlflow", "mlflow"):
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    content = tracked(run, metrics, files=files)
    uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    try:
        client = MlflowClient(tracking_uri=tracking_uri)
        uri = client.tracking_uri
        with redirect_stdout(StringIO()):  # it prints addresses there, where our result goes
            return _log(client, content, project, uri)
    except MlflowException as error:
        is_folder = "://" not in uri or uri.startswith("file:")
        fix = f"check {argument('tracking_uri')} or MLFLOW_TRACKING_URI"
        raise CrosslensError(
            f"MLflow refused the run: {str(error).splitlines()[0]}",
            fix=f"{fix}: a server, or a database such as sqlite:///mlflow.db" if is_folder else fix,
        ) from safe_cause(error)
    except OSError as error:  # of the client that sends files; those of the run have been read
        raise CrosslensError(
            f"the run did not reach MLflow: {str(error).splitlines()[0]}",
            fix="check the network, and run the same command again: what has arrived is kept",
        ) from safe_cause(error)


def _log(client: Any, content: TrackedRun, project: str, uri: str) -> TrackedAt:
    from mlflow.entities import Metric, Param, RunTag

    experiment = client.get_experiment_by_name(project)
    if experiment is None:
        # MLflow itself would put files below the current folder, wherever the database is.
        database = Path(uri.removeprefix("sqlite:///")).absolute() if uri.startswith("sqlite:///") else None
        files = None if database is None else (database.parent / "mlruns" / artifact_name(project)).as_uri()
        number = client.create_experiment(project, artifact_location=files)
    else:
        number = experiment.experiment_id
    numbers = content.numbers("_")
    numbers = dict(zip(allowed_names(numbers), numbers.values(), strict=True))
    same = client.search_runs([number], f"tags.`{_KEY}` = '{content.key}'")
    is_whole = bool(same) and same[0].info.status == _FINISHED and numbers.keys() <= same[0].data.metrics.keys()
    if same:
        run_id = same[0].info.run_id
    else:
        run_id = client.create_run(number, run_name=content.name, tags={_KEY: content.key}).info.run_id
    if not is_whole:
        metrics = [Metric(name, value, 0, 0) for name, value in numbers.items()]
        params = [
            Param(key, text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…")
            for key, text in zip(allowed_names(content.settings), content.settings.values(), strict=True)
        ]
        tags = [RunTag(f"crosslens.{name}", text) for name, text in content.facts.items()]
        for start in range(0, max(len(metrics), len(params), len(tags)), _BATCH):
            part = slice(start, start + _BATCH)
            client.log_batch(run_id, metrics[part], params[part], tags[part])
        for file in content.files:
            assert content.folder is not None
            below = file.parent.relative_to(content.folder).as_posix()
            client.log_artifact(run_id, str(file), None if below == "." else below)
        client.set_terminated(run_id, _FINISHED)
    address = without_secrets(uri).replace("***@", "")  # an address that can be opened
    if address.startswith(("http://", "https://")):
        address = f"{address.rstrip('/')}/#/experiments/{number}/runs/{run_id}"
    return TrackedAt("mlflow", run_id, f"run {run_id} of the experiment {project}, at {address}", existed=is_whole)


def allowed_names(names: Iterable[str]) -> list[str]:
    """Names with the characters that MLflow takes: ``t2i/Hit@1`` is ``t2i/Hit_at_1``; equal ones get a number."""
    allowed: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w./:-]+", "_", name.replace("@", "_at_"), flags=re.ASCII)
        plain = re.sub("_{2,}", "_", plain).strip("_/.") or "value"
        candidates = chain([plain], (f"{plain}_{number}" for number in count(2)))
        allowed.append(next(candidate for candidate in candidates if candidate not in allowed))
    return allowed


_KEY_LENGTH = 32


def log_to_wandb(
    run: Run,
    metrics: str | Sequence[str] | None = None,
    *,
    project: str = "crosslens",
    offline: bool = False,
    files: bool = True,
) -> TrackedAt:
    """Log a run to a project: figures with the ends of their intervals, the recipe as configuration, an artifact.

    ``offline`` writes it below ``./wandb`` without a network; ``wandb sync`` sends it later. The id of a run is made
    from its values, so that the same run is the same there.
    """
    with needs_extra("logging to Weights & Biases", "wandb", "wandb"):
        import wandb
    content = tracked(run, metrics, files=files)
    run_id = content.key[:_KEY_LENGTH]
    try:
        # Nothing but what is handed over: no console, no code, no packages, no machine facts.
        settings = wandb.Settings(silent=True, console="off", save_code=False, disable_git=True)
        logged = wandb.init(
            project=project, name=content.name, id=run_id, resume="allow", job_type="evaluation",
            mode="offline" if offline else None, settings=settings,
            config={"recipe": dict(content.settings), "crosslens": dict(content.facts)},
        )  # fmt: skip
        logged.log(content.numbers("/"))
        if content.files:
            artifact = wandb.Artifact(f"run-{artifact_name(content.name)}", type="evaluation")
            for file in content.files:
                assert content.folder is not None
                artifact.add_file(str(file), name=file.relative_to(content.folder).as_posix())
            logged.log_artifact(artifact)
        location = f"offline in {logged.settings.sync_dir}" if offline else str(logged.url)
        logged.finish()
    except wandb.Error as error:
        raise CrosslensError(
            f"Weights & Biases refused the run: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            fix=f"run `wandb login`, or pass {argument('offline', True)}",
        ) from error
    return TrackedAt("wandb", run_id, location)


def artifact_name(name: str) -> str:
    """A name with the characters that artifacts may have."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.") or "run"
