"""The models that requirements are checked on: a run, the models of a robustness study, or the runs of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslens.core import HEADER_FILE, RUN_FILE, InputError, Run, UsageError, argument, read_header
from crosslens.pipeline.audit.results import RUNS
from crosslens.pipeline.robustness_study.study import Robustness
from crosslens.pipeline.robustness_study.study_directory import ROBUSTNESS_FILE, folder_name
from crosslens.pipeline.robustness_study.variants import ORIGINAL

ROBUSTNESS = "robustness"
"""The folder below an audit with a study per run."""


@dataclass(frozen=True)
class CheckedModel:
    """A model's results: its run, and where it was perturbed, the study and its name there."""

    name: str
    run: Run
    study: Robustness | None = None
    study_model: str = ""


def read_checked(folder: str | Path, robustness: str | Path | None = None) -> list[CheckedModel]:
    """The models in a run folder, in the folder of a robustness study, or in that of an audit.

    ``robustness`` is the study of a run folder, which cannot know it.
    """
    folder = Path(folder)
    if robustness is not None:
        if not (folder / RUN_FILE).exists():
            raise UsageError(
                f"{argument('robustness')} is for a run folder, and {folder} is none",
                fix=f"leave {argument('robustness')} out, or name a run folder",
            )
        return [_with_study(Run.load(folder), Robustness.load(robustness), Path(robustness))]
    if (folder / RUN_FILE).exists():
        run = Run.load(folder)
        return [CheckedModel(run.name, run)]
    if (folder / ROBUSTNESS_FILE).exists():
        return _models_of_study(folder)
    if (folder / HEADER_FILE).exists():
        read_header(folder / HEADER_FILE, "audit")  # raises for any other kind of folder
        return _models_of_audit(folder)
    raise InputError(
        "no results here" if folder.is_dir() else "no such folder", file=folder,
        expected="a run folder, as evaluate -o writes it, or the folder of a robustness study or an audit",
        fix="check the path",
    )  # fmt: skip


def _models_of_study(folder: Path) -> list[CheckedModel]:
    study = Robustness.load(folder)
    models = []
    for model in study.models:
        home = folder / folder_name(model) / ORIGINAL
        if not (home / RUN_FILE).exists():
            raise InputError(
                "the run on the unchanged captions is missing", file=home, fix="run the same robustness command again"
            )
        models.append(CheckedModel(model, Run.load(home), study, model))
    return models


def _models_of_audit(folder: Path) -> list[CheckedModel]:
    models = []
    for file in sorted((folder / RUNS).glob(f"*/{RUN_FILE}")):
        name, run = file.parent.name, Run.load(file.parent)
        home = folder / ROBUSTNESS / name
        has_study = (home / ROBUSTNESS_FILE).exists()
        models.append(_with_study(run, Robustness.load(home), home, name) if has_study else CheckedModel(name, run))
    if not models:
        raise InputError("the audit has no runs", file=folder / RUNS, fix="run the audit again")
    return models


def _with_study(run: Run, study: Robustness, folder: Path, name: str | None = None) -> CheckedModel:
    """Which model of the study the run is: the only one, or the one of its name."""
    candidates = [model for model in study.models if model in (run.name, name)]
    chosen: Sequence[str] = study.models if len(study.models) == 1 else candidates
    if len(chosen) != 1:
        raise InputError(
            f"none of its models is called {run.name!r}: {', '.join(study.models)}", file=folder,
            expected="a study of the run's model",
            fix=f"check {argument('robustness')}, or name the run as in the study",
        )  # fmt: skip
    return CheckedModel(name or run.name, run, study, chosen[0])


def read_baseline(folder: str | Path, model: str) -> Run:
    """The run that a model is compared with: the only one there, or the one of the same name."""
    models = read_checked(folder)
    same = [other for other in models if other.name == model] or models
    if len(same) != 1:
        names = ", ".join(other.name for other in models)
        raise InputError(
            f"several runs, and none is called {model!r}: {names}", file=folder, expected="one run to compare with",
            fix="name a run folder",
        )  # fmt: skip
    return same[0].run
