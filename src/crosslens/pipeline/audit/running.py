"""An audit at work: stages in order, what they computed before taken from the folder, and findings in the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crosslens import __version__
from crosslens.core import CrosslensError, Run, TrustCode, fingerprint, hold_output, trusting
from crosslens.encode import EncodeOptions
from crosslens.pipeline.audit.audit import Audit
from crosslens.pipeline.audit.findings.ranking import findings_of
from crosslens.pipeline.audit.folder import AuditFolder, Skipped
from crosslens.pipeline.audit.options import AuditOptions
from crosslens.pipeline.audit.progress import Display, SilentDisplay, StageProgress, total_steps
from crosslens.pipeline.audit.results import StageResult
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

    A stage that cannot run is left out, with a reason in ``skipped``. ``notify`` is told about every stage, in one
    line; ``display`` shows how far the whole is.
    """
    options, display = options or AuditOptions(), display or SilentDisplay()
    stages = chosen_stages(options)
    with hold_output(output), trusting(trust_code):
        sources = audit_sources(request, options, notify)
        key = fingerprint("audit", {"sources": [_facts(source) for source in sources], **options.facts()})
        folder = AuditFolder.open(output, key, _header(sources, options, command), overwrite=overwrite)
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


def _facts(source: AuditSource) -> dict[str, Any]:
    """What a source is, wherever its files lie now: their content is checked by the run."""
    recipe = replace(source.recipe.absolute(), plugins=())
    dataset = None if source.loaded is None else source.loaded.fingerprint
    return {"name": source.name, "recipe": recipe.to_toml(), "dataset": dataset}


def _header(sources: Sequence[AuditSource], options: AuditOptions, command: Sequence[str]) -> dict[str, Any]:
    runs = {source.name: {"model": source.model, "dataset": source.dataset} for source in sources}
    return {"runs": runs, "options": options.facts(), "command": list(command), "crosslens": __version__}


def _jobs(stages: Sequence[Stage], sources: Sequence[AuditSource], quick: bool) -> Iterator[_Job]:
    datasets = dict.fromkeys(source.dataset for source in sources)
    for stage in stages:
        groups: list[tuple[tuple[AuditSource, ...], str, str]]
        if stage.about == RUN:
            groups = [((source,), source.name, f"{stage.name}-{source.name}") for source in sources]
        elif stage.about == DATASET:
            groups = [
                (
                    tuple(source for source in sources if source.dataset == name),
                    name,
                    stage.name if len(datasets) == 1 else f"{stage.name}-{name}",
                )
                for name in datasets
            ]
        else:
            groups = [(tuple(sources), "", stage.name)]
        for members, subject, file in groups:
            cost = stage.quick_cost if quick else stage.cost
            captions = max((source.captions for source in members), default=0)
            yield _Job(stage, members, subject, f"{_file_name(file)}.json", cost.seconds(captions))


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_. ()" else "-" for letter in name)


@dataclass
class _Work:
    """What the jobs share, and what they leave."""

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
        work = self._stage_work(job, progress)
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
            self._skip(job, " ".join(reason.split()))
        progress.complete()

    def _skip(self, job: _Job, reason: str) -> None:
        """Note why a stage is left out; the same reason for the next run or dataset is not said again."""
        said = any((entry.stage, entry.reason) == (job.stage.name, reason) for entry in self.skipped)
        self.skipped.append(Skipped(job.stage.name, job.subject, reason))
        if not said:
            self.notify(f"{job.stage.name}: left out, {reason}")

    def _compute(self, job: _Job, work: StageWork, name: str) -> None:
        key = "" if job.stage.name == FIRST else self._key(job, work)
        stored = self.folder.stored(job.file, key) if key else None
        if stored is not None:
            self.notify(f"{name}: done before")
            return
        begin = time.monotonic()
        output = job.stage.compute(work)
        seconds = round(time.monotonic() - begin, 3)
        if job.stage.name == FIRST:
            self.runs[job.subject] = Run.load(work.run.folder)
            key = fingerprint("audit-run", output.payload)
            if self.folder.stored(job.file, key) is not None:
                self.notify(f"{name}: done before")
                return
        (model, dataset) = (
            (job.sources[0].name, job.sources[0].dataset) if job.stage.about == RUN else ("", job.subject)
        )
        self.folder.store(
            job.file, key,
            StageResult(job.stage.name, output.payload, output.command, model, dataset, output.folder, seconds),
        )  # fmt: skip
        self.notify(f"{name}: {seconds:.1f} s")

    def _stage_work(self, job: _Job, progress: StageProgress) -> StageWork:
        runs = {
            source.name: AuditedRun(source, self.folder.run_folder(source.name), self.runs.get(source.name))
            for source in job.sources
        }
        dataset = job.sources[0].loaded if job.stage.about in (RUN, DATASET) else None
        return StageWork(
            runs,
            dataset,
            self.options,
            self.encoding,
            self.folder.path,
            progress,
            _file_name(job.subject),
            self.command,
        )

    def _key(self, job: _Job, work: StageWork) -> str:
        """What a stage's result depends on: the runs, the dataset, the options, and this version of crosslens."""
        runs = {name: [run.fingerprint, run.provenance.get("key")] for name, run in work.loaded().items()}
        dataset = None if work.dataset is None else work.dataset.fingerprint
        facts = {"stage": job.stage.name, "runs": runs, "dataset": dataset, "crosslens": __version__}
        return fingerprint("audit-stage", {**facts, **self.options.facts()})
