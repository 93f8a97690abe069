"""The runs themselves: every metric with its interval, what ties decide, and the models side by side."""

from __future__ import annotations

from typing import Any

from crosslens.core import InputError
from crosslens.metrics import Ties, measure
from crosslens.pipeline.audit.needs import RANKINGS, SEVERAL_RUNS
from crosslens.pipeline.audit.stage import ALL, FIRST, RUN, StageOutput, StageWork, audit_stage
from crosslens.pipeline.leaderboards.ranking import leaderboard
from crosslens.pipeline.recipe.execute import run_recipe

TIE_MODES: tuple[Ties, ...] = ("stable", "optimistic", "pessimistic", "expected")
_COMPARED = ("Hit@1", "Hit@5", "Hit@10", "MRR", "mAP@R", "Rsum")
_TIED_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MRR")


@audit_stage(FIRST, about=RUN, order=10, cost=(4, 2))
def evaluate(work: StageWork) -> StageOutput:
    """Classic and graded metrics with intervals, both directions."""
    audited = work.run
    run = run_recipe(
        audited.source.recipe, audited.folder, progress=work.progress, command=work.command, encoding=work.encoding
    )
    notes = [str(note) for note in run.provenance.get("notes", ())]
    return StageOutput(
        {**run.as_dict(), "notes": notes}, f"crosslens run {audited.folder / 'recipe.toml'}", audited.folder
    )


@audit_stage("ties", about=RUN, order=20, needs=(RANKINGS,), cost=(0.5, 0.1))
def ties(work: StageWork) -> StageOutput:
    """What changes with the rule for tied scores."""
    run, options = work.run.evaluated, work.options
    rankings = run.rankings
    clusters = {direction: _clusters(run, direction) for direction in rankings}
    modes: dict[str, Any] = {}
    notes = []
    for mode in TIE_MODES:
        try:
            values = measure(
                rankings, clusters, _TIED_METRICS, ties=mode, resamples=options.resamples, level=options.level,
                seed=options.seed,
            )  # fmt: skip
        except InputError as error:  # lists that may have been cut off
            notes.append(f"{mode}: {error.problem}")
        else:
            modes[mode] = {name: metric.as_dict() for name, metric in values.items()}
    command = f"crosslens evaluate … --ties {'|'.join(TIE_MODES)}"
    return StageOutput({"name": run.name, "modes": modes, "notes": notes}, command)


def _clusters(run: Any, direction: str) -> Any:
    return next(run[name].clusters for name in run if name.startswith(f"{direction}/"))


@audit_stage("leaderboard", about=ALL, order=130, needs=(SEVERAL_RUNS,), cost=(1, 0.1))
def compare_runs(work: StageWork) -> StageOutput:
    """Models × datasets, the best marked, with paired tests within a dataset."""
    runs = {(audited.source.model, audited.source.dataset): audited.evaluated for audited in work.runs.values()}
    folders = " ".join(str(audited.folder) for audited in work.runs.values())
    present = {name for run in runs.values() for name in run}
    metrics = [name for metric in _COMPARED for name in (f"t2i/{metric}", f"i2t/{metric}", metric) if name in present]
    table = leaderboard(runs, metrics or None, seed=work.options.seed)
    return StageOutput(table.as_dict(), f"crosslens leaderboard {folders}")
