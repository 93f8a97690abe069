"""An audit at work: stages in order, what they computed before taken from the folder, and findings in the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from crosslens import __version__
from crosslens.analyze import Subject
from crosslens.audits.conclusions import conclude
from crosslens.audits.results import Audit, AuditFolder, Skipped, StageResult
from crosslens.audits.sources import AuditRequest, AuditSource, audit_sources
from crosslens.audits.stage import DATASET, FIRST, RUN, Stage, StageWork, chosen_stages
from crosslens.core import CrosslensError, without_secrets
from crosslens.encode import EncodeOptions
from crosslens.engine import Progress, shown_progress
from crosslens.pipeline import AuditOptions, require_trusted_models
from crosslens.storage import TrustCode, fingerprint, giving, hold_output, named_by, offline, trusting
from crosslens.values import Dataset, Run

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
        self._remaining = total_steps(seconds)
        self._total = self._count = self._displayed = self._span = 0
        display.show_beside(name)

    def start(self, label: str, total: int) -> None:
        self.finish()
        self._total, self._count, self._displayed, self._span = total, 0, 0, self._remaining // 2
        self._display.show_beside(f"{self._name}: {label}")

    def advance(self, steps: int = 1) -> None:
        if self._total:
            self._count = min(self._count + steps, self._total)
            reached = self._span * self._count // self._total
            if reached > self._displayed:
                self._display.advance(reached - self._displayed)
                self._displayed = reached

    def note(self, text: str) -> None:
        getattr(self._display, "note", lambda _: None)(f"{self._name}: {text}")

    def finish(self) -> None:
        if self._total:
            self._remaining -= self._displayed
        self._total = self._displayed = 0

    def complete(self) -> None:
        self.finish()
        self._display.advance(self._remaining)
        self._remaining = 0


def total_steps(seconds: float) -> int:
    """The length of the display for work that is expected to take so long."""
    return max(1, round(seconds * _STEPS_PER_SECOND))


Notify = Callable[[str], None]


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
    allow_hosts: Iterable[str] = (),
) -> Audit:
    """Compute every stage that what was given allows, each once: the same call again resumes an interrupted audit.

    A stage that cannot run is left out, with a reason in ``skipped``. ``notify`` is called with a line about every
    stage; ``display`` shows how far the whole is.
    """
    options, display, encoding = options or AuditOptions(), shown_progress(display), encoding or EncodeOptions()
    stages = chosen_stages(options)
    # Stages read what is given here from the recipes of the audit's own runs.
    vectors = giving(request.inputs.image_embeddings, request.inputs.caption_embeddings)
    with offline(encoding.offline), hold_output(output), trusting(trust_code, allow_hosts), vectors:
        sources = audit_sources(request, options, notify)
        for source in sources:
            with named_by(source.recipe.origin):
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
        header = {
            "runs": {source.name: {"model": source.model, "dataset": source.dataset} for source in sources},
            "options": options.facts(), "command": list(map(without_secrets, command)), "crosslens": __version__,
        }  # fmt: skip
        folder = AuditFolder.open(output, key, header, overwrite=overwrite)
        for entry in request.datasets:  # those given as values; an audit that failed at once may have left another
            path = Path(entry.source)
            if entry.value is not None and not (
                path.exists() and Dataset.load(path).fingerprint == entry.value.fingerprint
            ):
                entry.value.save(path, overwrite=True)
        jobs = list(_jobs(stages, sources, options.quick))
        display.start("audit", total_steps(sum(seconds for *_, seconds in jobs)))
        runs: dict[str, Run] = {}
        skipped: list[Skipped] = []
        subjects: dict[str, Subject] = {}
        try:
            for stage, subject, members, file, seconds in jobs:
                progress = StageProgress(display, stage.name, seconds)
                audited = {
                    source.name: replace(source, folder=folder.run_folder(source.name), run=runs.get(source.name))
                    for source in members
                }
                work = StageWork(
                    audited, members[0].loaded if stage.about in (RUN, DATASET) else None, options,
                    encoding, folder.path, progress, _file_name(subject), tuple(command), subjects,
                )  # fmt: skip
                reason = _compute(folder, file, stage, subject, work, notify)
                if stage.name == FIRST:
                    runs[subject] = Run.load(work.run.folder)
                if reason is not None:
                    # The same reason for the next run or dataset is not said again.
                    if all((entry.stage, entry.reason) != (stage.name, reason) for entry in skipped):
                        notify(f"{stage.name}: left out, {reason}")
                    skipped.append(Skipped(stage.name, subject, reason))
                progress.complete()
        finally:
            display.finish()
        results = folder.results()
        findings = conclude(
            (entry for result in results for entry in result.observed()),
            models={source.name: source.model for source in sources},
        )
        folder.conclude(findings, skipped)
    return Audit(folder.path, runs, results, findings, tuple(skipped))


def _jobs(
    stages: Sequence[Stage], sources: Sequence[AuditSource], quick: bool
) -> Iterator[tuple[Stage, str, list[AuditSource], str, float]]:
    """Every stage with the run or dataset that it is about, its sources, the file of its result, and its seconds."""
    datasets = list(dict.fromkeys(source.dataset for source in sources))
    for stage in stages:
        groups = {"": list(sources)}
        if stage.about == RUN:
            groups = {source.name: [source] for source in sources}
        elif stage.about == DATASET:
            groups = {name: [source for source in sources if source.dataset == name] for name in datasets}
        fixed, per_thousand = stage.quick_cost if quick else stage.cost
        for subject, members in groups.items():
            seconds = fixed + per_thousand * max((source.captions for source in members), default=0) / 1000
            with_subject = subject and not (stage.about == DATASET and len(datasets) == 1)
            file = f"{_file_name(f'{stage.name}-{subject}' if with_subject else stage.name)}.json"
            yield stage, subject, members, file, seconds


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_. ()" else "-" for letter in name)


def _compute(folder: AuditFolder, file: str, stage: Stage, subject: str, work: StageWork, notify: Notify) -> str | None:
    """Compute and store a stage, unless its result is stored; or say why it cannot run, in one line."""
    for condition in stage.needs:
        if (missing := condition.missing(work)) is not None:
            return " ".join(f"needs {condition.text}: {missing}".split())
    first, name = stage.name == FIRST, f"{stage.name} ({subject})" if subject else stage.name
    key = ""
    if not first:  # what the result depends on
        runs = {name: [run.fingerprint, run.provenance.get("key")] for name, run in work.loaded().items()}
        dataset = None if work.dataset is None else work.dataset.fingerprint
        facts = {"stage": stage.name, "runs": runs, "dataset": dataset, "crosslens": __version__}
        key = fingerprint("audit-stage", {**facts, **work.options.facts()})
        if folder.has(file, key):
            notify(f"{name}: done before")
            return None
    begin = time.monotonic()
    try:
        output = stage.compute(work)
    except CrosslensError as error:
        if first:  # without a run there is nothing to audit
            raise
        return " ".join((f"{error.problem}; {error.fix}" if error.fix else error.problem).split())
    seconds = round(time.monotonic() - begin, 3)
    key = key or fingerprint("audit-run", output.payload)
    if first and folder.has(file, key):
        notify(f"{name}: done before")
        return None
    names = (work.run.name, work.run.dataset) if stage.about == RUN else ("", subject)
    result = StageResult(
        stage.name, output.payload, output.command, *names, output.folder, seconds, output.sections, output.observations
    )
    folder.store(file, key, result)
    notify(f"{name}: {seconds:.1f} s")
    return None
