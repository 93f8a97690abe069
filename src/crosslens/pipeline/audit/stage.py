"""A stage of an audit: what it is about, what it needs, about how long it takes, and the function that computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from crosslens.core import Dataset, Entry, Progress, Registry, Run, UnknownNameError, UsageError
from crosslens.data import load_dataset
from crosslens.encode import EACH, EncodeOptions, text_queries
from crosslens.explanations import TEXT_TO_TEXT, dataset_of_run
from crosslens.pipeline.audit.options import AuditOptions
from crosslens.pipeline.audit.sources import AuditSource

RUN, DATASET, ALL = "run", "dataset", "audit"
"""What a stage is about: one run, one dataset with all runs over it, or everything."""
FIRST = "evaluate"
"""The stage whose runs the others look at."""


@dataclass(frozen=True, eq=False)
class AuditedRun:
    """A run of the audit: where it came from, its folder, and its content once it is evaluated."""

    source: AuditSource
    folder: Path
    run: Run | None = None

    @property
    def evaluated(self) -> Run:
        """The run, which the first stage has written."""
        assert self.run is not None
        return self.run


@dataclass(frozen=True, eq=False)
class StageWork:
    """What a stage computes from: the runs that it is about, their dataset, and how."""

    runs: Mapping[str, AuditedRun]
    dataset: Dataset | None
    options: AuditOptions
    encoding: EncodeOptions
    folder: Path
    """The audit's."""
    progress: Progress
    subject: str = ""
    """The name of the run or the dataset that the stage is about."""
    command: Sequence[str] = ()

    @property
    def run(self) -> AuditedRun:
        """The run of a stage that is about one."""
        (run,) = self.runs.values()
        return run

    @property
    def known_dataset(self) -> Dataset:
        """The dataset, of a stage that needs one."""
        assert self.dataset is not None
        return self.dataset

    def queried_dataset(self) -> Dataset:
        """The dataset of the first run as its queries see it: of text-only retrieval, with the texts of its corpus."""
        run = next(iter(self.loaded().values()))
        return dataset_of_run(run) if TEXT_TO_TEXT in run.rankings else self.known_dataset

    def labelled_dataset(self) -> Dataset:
        """The dataset with all its captions; over two text sets, the captions that ask, and the corpus."""
        recipe = next(iter(self.runs.values())).source.recipe
        if recipe.queries is None:
            return self.known_dataset
        queries = load_dataset(recipe.queries, **recipe.queries_options)
        shared = bool(recipe.model.shared_images)
        return text_queries(self.known_dataset, EACH, queries, shared_images=shared).dataset

    def stage_folder(self, kind: str) -> Path:
        """Where a stage writes files: below the audit's folder, by kind and by what they are about."""
        return self.folder / kind / self.subject

    def loaded(self) -> dict[str, Run]:
        """The runs by name."""
        return {name: audited.evaluated for name, audited in self.runs.items()}


@dataclass(frozen=True)
class StageOutput:
    """What a stage computed: the content that its command prints with ``--json``, that command, and its folder."""

    payload: Mapping[str, Any]
    command: str
    folder: Path | None = None


@dataclass(frozen=True)
class Need:
    """Something that a stage cannot do without, in words, and why it is missing: None where it is there."""

    text: str
    missing: Callable[[StageWork], str | None]


class Cost(NamedTuple):
    """Expected seconds on one core: in any case, and per thousand captions."""

    fixed: float
    per_thousand: float

    def seconds(self, captions: int) -> float:
        """For a dataset of so many captions."""
        return self.fixed + self.per_thousand * captions / 1000


@dataclass(frozen=True)
class Stage:
    """A registered stage."""

    name: str
    compute: Callable[[StageWork], StageOutput]
    summary: str
    about: str
    order: int
    needs: tuple[Need, ...]
    cost: Cost
    quick_cost: Cost


STAGES: Registry[Callable[[StageWork], StageOutput]] = Registry(
    "stage", "audit_stages", ("crosslens.pipeline.audit.stages", "crosslens.pipeline.groups")
)


def audit_stage(
    name: str, *, about: str, order: int, needs: tuple[Need, ...] = (), cost: tuple[float, float] = (1, 0),
    quick_cost: tuple[float, float] | None = None,
) -> Callable[[Callable[[StageWork], StageOutput]], Callable[[StageWork], StageOutput]]:  # fmt: skip
    """Decorate the function of a stage; ``order`` says when its turn is, ``cost`` weighs it in the progress display."""
    return STAGES.register(
        name, about=about, order=order, needs=needs, cost=Cost(*cost), quick_cost=Cost(*(quick_cost or cost))
    )


def all_stages() -> tuple[Stage, ...]:
    """Every registered stage, in the order in which an audit computes them."""
    return tuple(sorted(map(_stage, STAGES), key=lambda stage: stage.order))


def _stage(entry: Entry[Callable[[StageWork], StageOutput]]) -> Stage:
    return Stage(entry.name, entry.value, entry.summary, **entry.details)


def chosen_stages(options: AuditOptions) -> tuple[Stage, ...]:
    """The stages that an audit computes: with ``only``, those and the evaluation that they look at."""
    stages = all_stages()
    names = [stage.name for stage in stages]
    for name in (*options.only, *options.skip):
        if name not in names:
            raise UnknownNameError("stage", name, names)
    if FIRST in options.skip:
        raise UsageError(f"every other stage needs {FIRST}", fix="skip other stages", option="skip")
    chosen = {FIRST, *(options.only or names)} - set(options.skip)
    return tuple(stage for stage in stages if stage.name in chosen)


def first_missing(stage: Stage, work: StageWork) -> str | None:
    """Why a stage cannot run, in one line; None if it can."""
    for need in stage.needs:
        reason = need.missing(work)
        if reason is not None:
            return f"needs {need.text}: {reason}"
    return None
