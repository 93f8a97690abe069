"""An audit at work: stages in order, what they computed before taken from the folder, and findings in the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from crosslens import __version__
from crosslens.core import (
    CrosslensError,
    Progress,
    Run,
    TrustCode,
    code_named_by,
    fingerprint,
    hold_output,
    shown_progress,
    trusting,
)
from crosslens.encode import EncodeOptions
from crosslens.pipeline.audit.findings import findings_of
from crosslens.pipeline.audit.results import Audit, AuditFolder, Skipped, StageResult
from crosslens.pipeline.audit.sources import AuditRequest, AuditSource, audit_sources
from crosslens.pipeline.audit.stage import (
    DATASET,
    FIRST,
    RUN,
    AuditedRun,
    Stage,
    StageWork,
    chosen_stages,
    first_missing,
)
from crosslens.pipeline.options import AuditOptions
from crosslens.pipeline.recipe.inputs import require_trusted_models

_STEPS_PER_SECOND = 10


class Display(Progress, Protocol):
    """A progress display with room for a short text, such as the stage."""

    def show_beside(self, text: str) -> None:
        """Show a short text at the end of the bar."""


class StageProgress:
    """The progress of one stage as a part of the whole.

    A stage may count several things after each other, and does not say how many: each count covers half of what is
    left of the stage. So the display never goes back, and never says that a stage is done before it is.
    """

    def __init__(self, display: Display, name: str, seconds: float) -> None:
        self._display, self._name = display, name
        self._left = total_steps(seconds)
        self._total = self._counted = self._shown = self._span = 0
        display.show_beside(name)

    def start(self, label: str, total: int) -> None:
        self.finish()
        self._total, self._counted, self._shown, self._span = total, 0, 0, self._left // 2
        self._display.show_beside(f"{self._name}: {label}")

    def advance(self, steps: int = 1) -> None:
        if self._total:
            self._counted = min(self._counted + steps, self._total)
            reached = self._span * self._counted // self._total
            if reached > self._shown:
                self._display.advance(reached - self._shown)
                self._shown = reached

    def finish(self) -> None:
        if self._total:
            self._left -= self._shown
        self._total = self._shown = 0

    def complete(self) -> None:
        self.finish()
        self._display.advance(self._left)
        self._left = 0


def total_steps(seconds: float) -> int:
    """The length of the display for work that is expected to take so long."""
    return max(1, round(seconds * _STEPS_PER_SECOND))


Notify = Callable[[str], None]


@dataclass(frozen=True)
class _Job:
    """A stage and what it is about: the runs by name, and the name of the run or dataset."""

    stage: Stage
    sources: tuple[AuditSource, ...]
    subject: str
    file: str
    seconds: float


def run_audit(
    request: AuditRequest,
    output: str | Path,
    options: AuditOptions | None = None,
    *,
    encoding: EncodeOptions | None = None,
    overwrite: bool = False,
    display: Display | None = None,
    notify: Notify = lambda text: None,
    command: Sequence[str] = (),
    trust_code: TrustCode | None = None,
) -> Audit:
    """Compute every stage that what was given allows, each once: the same call again resumes an interrupted audit.

    A stage that cannot run is left out, with a reason in ``skipped``. ``notify`` is called with a line about every
    stage; ``display`` shows how far the whole is.
    """
    options, display = options or AuditOptions(), shown_progress(display)
    stages = chosen_stages(options)
    with hold_output(output), trusting(trust_code):
        sources = audit_sources(request, options, notify)
        for source in sources:
            with code_named_by(source.recipe.origin):
                require_trusted_models(source.recipe.absolute())
        facts = [
            {
                "name": source.name,
                # Wherever its files lie now: their content is checked by the run.
                "recipe": replace(source.recipe.absolute(), plugins=()).to_toml(),
                "dataset": None if source.loaded is None else source.loaded.fingerprint,
            }
            for source in sources
        ]
        key = fingerprint("audit", {"sources": facts, **options.facts()})
        runs = {source.name: {"model": source.model, "dataset": source.dataset} for source in sources}
        header = {"runs": runs, "options": options.facts(), "command": list(command), "crosslens": __version__}
        folder = AuditFolder.open(output, key, header, overwrite=overwrite)
        for entry in request.datasets:
            entry.write_value()
        jobs = list(_jobs(stages, sources, options.quick))
        display.start("audit", total_steps(sum(job.seconds for job in jobs)))
        try:
            work = _Work(folder, options, encoding or EncodeOptions(), notify, tuple(command))
            for job in jobs:
                work.do(job, display)
        finally:
            display.finish()
        results = folder.results()
        findings = findings_of(results)
        folder.conclude(findings, work.skipped)
    return Audit(folder.path, work.runs, results, findings, tuple(work.skipped))


def _jobs(stages: Sequence[Stage], sources: Sequence[AuditSource], quick: bool) -> Iterator[_Job]:
    datasets = list(dict.fromkeys(source.dataset for source in sources))
    for stage in stages:
        groups = [(list(sources), "", stage.name)]
        if stage.about == RUN:
            groups = [([source], source.name, f"{stage.name}-{source.name}") for source in sources]
        elif stage.about == DATASET:
            files = [stage.name] if len(datasets) == 1 else [f"{stage.name}-{name}" for name in datasets]
            over = [[source for source in sources if source.dataset == name] for name in datasets]
            groups = list(zip(over, datasets, files, strict=True))
        fixed, per_thousand = stage.quick_cost if quick else stage.cost
        for members, subject, file in groups:
            seconds = fixed + per_thousand * max((source.captions for source in members), default=0) / 1000
            yield _Job(stage, tuple(members), subject, f"{_file_name(file)}.json", seconds)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_. ()" else "-" for letter in name)


@dataclass
class _Work:
    folder: AuditFolder
    options: AuditOptions
    encoding: EncodeOptions
    notify: Notify
    command: tuple[str, ...]
    runs: dict[str, Run] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    def do(self, job: _Job, display: Display) -> None:
        """Compute a stage, or take what is stored, or note why it cannot run."""
        progress = StageProgress(display, job.stage.name, job.seconds)
        runs = {
            source.name: AuditedRun(source, self.folder.run_folder(source.name), self.runs.get(source.name))
            for source in job.sources
        }
        dataset = job.sources[0].loaded if job.stage.about in (RUN, DATASET) else None
        about = (self.folder.path, progress, _file_name(job.subject), self.command)
        work = StageWork(runs, dataset, self.options, self.encoding, *about)
        name = job.stage.name + (f" ({job.subject})" if job.subject else "")
        reason = first_missing(job.stage, work)
        if reason is None:
            try:
                self._compute(job, work, name)
            except CrosslensError as error:
                if job.stage.name == FIRST:  # without a run there is nothing to audit
                    raise
                reason = f"{error.problem}; {error.fix}" if error.fix else error.problem
        if reason is not None:
            reason = " ".join(reason.split())
            # The same reason for the next run or dataset is not said again.
            said = any((entry.stage, entry.reason) == (job.stage.name, reason) for entry in self.skipped)
            self.skipped.append(Skipped(job.stage.name, job.subject, reason))
            if not said:
                self.notify(f"{job.stage.name}: left out, {reason}")
        progress.complete()

    def _compute(self, job: _Job, work: StageWork, name: str) -> None:
        key = ""
        if job.stage.name != FIRST:  # what the result depends on
            runs = {name: [run.fingerprint, run.provenance.get("key")] for name, run in work.loaded().items()}
            dataset = None if work.dataset is None else work.dataset.fingerprint
            facts = {"stage": job.stage.name, "runs": runs, "dataset": dataset, "crosslens": __version__}
            key = fingerprint("audit-stage", {**facts, **self.options.facts()})
            if self.folder.has(job.file, key):
                self.notify(f"{name}: done before")
                return
        begin = time.monotonic()
        output = job.stage.compute(work)
        seconds = round(time.monotonic() - begin, 3)
        if job.stage.name == FIRST:
            self.runs[job.subject] = Run.load(work.run.folder)
            key = fingerprint("audit-run", output.payload)
            if self.folder.has(job.file, key):
                self.notify(f"{name}: done before")
                return
        about = (job.sources[0].name, job.sources[0].dataset) if job.stage.about == RUN else ("", job.subject)
        result = StageResult(job.stage.name, output.payload, output.command, *about, output.folder, seconds)
        self.folder.store(job.file, key, result)
        self.notify(f"{name}: {seconds:.1f} s")
