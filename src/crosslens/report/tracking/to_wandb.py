"""Runs for Weights & Biases, by its own client."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from crosslens.core import CrosslensError, MissingExtraError, Run, argument
from crosslens.report.tracking.content import ENDS, TrackedAt, tracked

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
    try:
        import wandb
    except ImportError as error:
        raise MissingExtraError("logging to Weights & Biases", "wandb", "wandb") from error
    content = tracked(run, metrics, files=files)
    run_id = content.key[:_KEY_LENGTH]
    numbers: dict[str, Any] = dict(content.figures)
    for name, both in content.intervals.items():
        numbers |= {f"{name}/{end}": bound for end, bound in zip(ENDS, both, strict=True)}
    try:
        # Nothing but what is handed over: no console, no code, no packages, no machine facts.
        settings = wandb.Settings(silent=True, console="off", save_code=False, disable_git=True)
        logged = wandb.init(
            project=project, name=content.name, id=run_id, resume="allow", job_type="evaluation",
            mode="offline" if offline else None, settings=settings,
            config={"recipe": dict(content.settings), "crosslens": dict(content.facts)},
        )  # fmt: skip
        logged.log(numbers)
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
