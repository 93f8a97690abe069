"""A sweep from start to end: its folder, the trainings that are left, the table, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from crosslens.core import (
    FORMAT_VERSION,
    Layout,
    Progress,
    SilentProgress,
    UsageError,
    atomic_folder,
    hold_output,
    json_form,
    tidy_output,
    write_header,
    write_text,
)
from crosslens.statistics import correct
from crosslens.train.sweep.plan import DataOfRecipes, SweepPlan, SweepState, check_plan
from crosslens.train.sweep.results import Sweep, graded_metrics, sweep_csv, sweep_table, trainings_csv
from crosslens.train.sweep.running import SweepWatch, TrainingOptions, TrainingOutcome, run_trainings

KIND = "sweep"
SWEEP_FILE = "sweep.json"
SWEEP_LAYOUT = Layout("a sweep", SWEEP_FILE, ())


def sweep_state(
    plan: SweepPlan, output: str | Path, *, metrics: str | Iterable[str] = "Rsum", overwrite: bool = False
) -> SweepState:
    """Check the plan, and say which trainings are done and which are left; nothing is written."""
    output, plan = Path(output), plan.measuring(graded_metrics(metrics))
    SWEEP_LAYOUT.holds(output)
    return check_plan(plan, DataOfRecipes(plan.data), output, overwrite=overwrite)


def run_sweep(
    plan: SweepPlan,
    output: str | Path,
    *,
    metrics: str | Iterable[str] = "Rsum",
    jobs: int = 1,
    level: float = 0.95,
    correction: str = "holm",
    overwrite: bool = False,
    plugins: Sequence[str] = (),
    progress: Progress | None = None,
    watch: SweepWatch | None = None,
) -> Sweep:
    """Train whatever of the plan is not done yet, ``jobs`` trainings side by side, and return the table.

    Each training is a folder below ``output``, which a training of the same settings resumes or returns; one that lacks
    a metric of graded relevance is measured again, not trained. A training that fails is reported in the table, and
    tried again by the next call. ``plugins`` are files that the processes load, ``watch`` is called with every outcome.
    """
    output = Path(output)
    if jobs < 1:
        raise UsageError(f"jobs is {jobs}", fix="jobs must be at least 1", option="jobs")
    plan = plan.measuring(graded_metrics(metrics))
    correct([], correction)
    with hold_output(output):
        SWEEP_LAYOUT.holds(output)
        data = DataOfRecipes(plan.data)
        state = check_plan(plan, data, output, overwrite=overwrite)
        _begin(output)
        for folder, card in state.finished.items():
            tidy_output(output / folder, card["key"])
        left = [training for training in plan.trainings if training.folder in state.steps]
        options = TrainingOptions(output, overwrite)
        trained = run_trainings(
            left, state.steps, data, options,
            jobs=jobs, plugins=plugins, progress=progress or SilentProgress(), watch=watch,
        ) if left else []  # fmt: skip
        new = {outcome.training.folder: outcome for outcome in trained}
        outcomes = [
            new.get(training.folder) or TrainingOutcome(training, state.finished[training.folder])
            for training in plan.trainings
        ]
        return sweep_table(plan, outcomes, output, metrics, level=level, correction=correction)


def _begin(output: Path) -> None:
    """Mark the folder as a sweep's before anything is put into it, in one step."""
    if not (output / SWEEP_FILE).exists():
        with atomic_folder(output, SWEEP_LAYOUT) as folder:
            write_header(folder / SWEEP_FILE, {"format": f"crosslens/{KIND}", "version": FORMAT_VERSION})


def write_sweep_files(sweep: Sweep, output: str | Path) -> list[Path]:
    """Write the tables and the page, and then everything as JSON, into the sweep's folder."""
    output = Path(output)
    files = {
        "table.csv": sweep_csv(sweep),
        "trainings.csv": trainings_csv(sweep),
        "table.tex": sweep.content(".tex").decode(),
        "sweep.html": sweep.content(".html").decode(),
    }
    with hold_output(output):
        for name, content in files.items():
            write_text(output / name, content)
        header = {"format": f"crosslens/{KIND}", "version": FORMAT_VERSION, **json_form(sweep.as_dict())}
        write_header(output / SWEEP_FILE, header, files)
    return [output / name for name in (*files, SWEEP_FILE)]
