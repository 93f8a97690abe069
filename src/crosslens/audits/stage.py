"""A stage of an audit: what it is about, what it needs, about how long it takes, and the function that computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosslens.analyze import ANALYSES, Analysis, Subject
from crosslens.audits.sources import AuditSource, subject_of
from crosslens.core import Entry, Observation, Presented, Registry, Section, UnknownNameError, UsageError
from crosslens.data import load_dataset
from crosslens.encode import EACH, EncodeOptions, text_queries
from crosslens.engine import Progress
from crosslens.explanations import TEXT_TO_TEXT, dataset_of_run
from crosslens.pipeline import AuditOptions
from crosslens.values import TEXT_TO_IMAGE, Dataset, Run

RUN, DATASET, ALL = "run", "dataset", "audit"
"""What a stage is about: one run, one dataset with all runs over it, or everything."""
FIRST = "evaluate"
"""The stage whose runs the others look at."""


@dataclass(frozen=True, eq=False)
class StageWork:
    """What a stage computes from: the runs that it is about, their dataset, and how."""

    runs: Mapping[str, AuditSource]
    dataset: Dataset | None
    options: AuditOptions
    encoding: EncodeOptions
    folder: Path
    """The audit's."""
    progress: Progress
    name: str = ""
    """The name of the run or the dataset that the stage is about."""
    command: Sequence[str] = ()
    subjects: dict[str, Subject] = field(default_factory=dict)
    """What findings are looked for in, by run: loaded once for all stages."""

    @property
    def run(self) -> AuditSource:
        """The only run, or the first."""
        return next(iter(self.runs.values()))

    @property
    def folders(self) -> str:
        """The folders of the runs, as words of a command."""
        return " ".join(str(source.folder) for source in self.runs.values())

    @property
    def intervals(self) -> dict[str, Any]:
        return {"seed": self.options.seed, "resamples": self.options.resamples, "level": self.options.level}

    @property
    def known_dataset(self) -> Dataset:
        assert self.dataset is not None
        return self.dataset

    def queried_dataset(self) -> Dataset:
        """The dataset of the first run as its queries see it: of text-only retrieval, with the texts of its corpus."""
        run = self.run.evaluated
        return dataset_of_run(run) if TEXT_TO_TEXT in run.rankings else self.known_dataset

    def labelled_dataset(self) -> Dataset:
        """The dataset with all its captions; over two text sets, the captions that ask, and the corpus."""
        recipe = self.run.recipe
        if recipe.queries is None:
            return self.known_dataset
        queries = load_dataset(recipe.queries, **recipe.queries_options)
        shared = bool(recipe.model.shared_images)
        return text_queries(self.known_dataset, EACH, queries, shared_images=shared).dataset

    def stage_folder(self, kind: str) -> Path:
        """Where a stage writes files: below the audit's folder, by kind and by what they are about."""
        return self.folder / kind / self.name

    @property
    def subject(self) -> Subject:
        """The only run or the first, with its vectors and its model, as far as they are there."""
        source = self.run
        if source.name not in self.subjects:
            self.subjects[source.name] = subject_of(source, self.encoding, self.options.seed)
        return replace(self.subjects[source.name], progress=self.progress)

    def loaded(self) -> dict[str, Run]:
        return {name: source.evaluated for name, source in self.runs.items()}


@dataclass(frozen=True)
class StageOutput:
    """What a stage computed: the content that its command prints with ``--json``, that command, and its folder."""

    payload: Mapping[str, Any]
    command: str
    folder: Path | None = None
    sections: tuple[Section, ...] = ()
    observations: tuple[Observation, ...] = ()

    @classmethod
    def of(cls, result: Presented, command: str, folder: Path | None = None, **more: Any) -> StageOutput:
        """What a result keeps of itself; ``more`` stands beside it in the payload."""
        return cls({**result.as_dict(), **more}, command, folder, tuple(result.sections()), tuple(result.findings()))


class Condition(NamedTuple):
    """Something that a stage cannot do without, and why it is missing: None where it is there."""

    text: str
    missing: Callable[[StageWork], str | None]

    @classmethod
    def of(cls, text: str, holds: Callable[[StageWork], Any], reason: str) -> Condition:
        """A condition that is missing for one reason."""
        return cls(text, lambda work: None if holds(work) else reason)


@dataclass(frozen=True)
class Stage:
    """A registered stage."""

    name: str
    compute: Callable[[StageWork], StageOutput]
    summary: str
    about: str
    order: int
    needs: tuple[Condition, ...]
    cost: tuple[float, float]
    """Expected seconds on one core: in any case, and per thousand captions."""
    quick_cost: tuple[float, float]
    answers: str
    """The question of a report that its findings answer: ``failures``, ``reading``, ``labels``, or none of these."""


STAGES: Registry[Callable[[StageWork], StageOutput]] = Registry("stage", "audit_stages", ("crosslens.audits.stages",))


def audit_stage(
    name: str, *, about: str, order: int, needs: tuple[Condition, ...] = (), cost: tuple[float, float] = (1, 0),
    quick_cost: tuple[float, float] | None = None, answers: str = "",
) -> Callable[[Callable[[StageWork], StageOutput]], Callable[[StageWork], StageOutput]]:  # fmt: skip
    """Decorate the function of a stage; ``order`` says when its turn is, ``cost`` weighs it in the progress display."""
    return STAGES.register(
        name, about=about, order=order, needs=needs, cost=cost, quick_cost=quick_cost or cost, answers=answers
    )


def all_stages() -> tuple[Stage, ...]:
    """Every registered stage and every analysis without one, in the order in which an audit computes them."""
    stages = [Stage(entry.name, entry.value, entry.summary, **entry.details) for entry in STAGES]
    stages += [_stage_of(entry) for entry in ANALYSES if entry.name not in STAGES]
    return tuple(sorted(stages, key=lambda stage: (stage.order, stage.name)))


def _stage_of(entry: Entry[Analysis]) -> Stage:
    """The stage that an analysis is: of each run whose subject it can look at."""
    needs = (A_DATASET, RANKINGS, *(CONDITIONS[text] for text in entry.details["needs"]))
    cost, quick = entry.details["cost"], entry.details["quick"]

    def compute(work: StageWork) -> StageOutput:
        result = entry.value(work.subject, **quick if work.options.quick else {})
        return StageOutput.of(result, f"crosslens analyze run {entry.name} {work.run.folder}")

    order, answers = entry.details["order"], entry.details["answers"]
    return Stage(entry.name, compute, entry.summary, RUN, order, needs, cost, cost, answers)


def stages_that_answer(question: str) -> tuple[str, ...]:
    """The names of the stages whose findings answer a question of the report, in the order of an audit."""
    return tuple(stage.name for stage in all_stages() if stage.answers == question)


def chosen_stages(options: AuditOptions) -> tuple[Stage, ...]:
    """The stages that an audit computes: with ``only``, those and the evaluation that they look at."""
    stages = all_stages()
    names = [stage.name for stage in stages]
    for name in (*options.only, *options.skip):
        if name not in names:
            raise UnknownNameError("stage", name, names)
    if FIRST in options.skip:
        raise UsageError(f"every other stage needs {FIRST}", fix="skip other stages", option="skip")
    selected = {FIRST, *(options.only or names)} - set(options.skip)
    return tuple(stage for stage in stages if stage.name in selected)


def _several_captions(work: StageWork) -> str | None:
    if work.dataset is None:
        return "no dataset is given"
    dataset = work.labelled_dataset()
    several = np.bincount(dataset.caption_image, minlength=1).max() > 1
    return None if several or dataset.corpus is not None else "no image has two captions"


def _vectors(work: StageWork) -> str | None:
    recipe = work.run.recipe
    if recipe.model.image_text is not None:
        return "the model encodes texts only"
    return None if recipe.model.name or recipe.inputs.image_embeddings else "only scores or lists are given"


def _queries(directions: Set[str]) -> Callable[[StageWork], str | None]:
    """Whether all runs have queries of one of the directions."""

    def missing(work: StageWork) -> str | None:
        without = [name for name, run in work.loaded().items() if not directions & set(run.rankings)]
        return f"{without[0]} has none" if without else None

    return missing


A_DATASET = Condition.of("a dataset", lambda work: work.dataset is not None, "none is given")
SEVERAL_CAPTIONS = Condition("several captions per image", _several_captions)
A_MODEL = Condition.of(
    "a model that encodes new captions",
    lambda work: all(source.recipe.model.name for source in work.runs.values()),
    "only vectors, scores or lists are given",
)
VECTORS = Condition("vectors of images and captions", _vectors)
SCORES = Condition(
    "scores of all pairs",
    lambda work: next(
        (f"{name} is given as lists" for name, source in work.runs.items() if source.recipe.inputs.runs), None
    ),
)
CAPTION_QUERIES = Condition("caption queries for images", _queries({TEXT_TO_IMAGE}))
TEXT_QUERIES = Condition("caption queries", _queries({TEXT_TO_IMAGE, TEXT_TO_TEXT}))
RANKINGS = Condition.of(
    "rankings", lambda work: all(run.rankings for run in work.loaded().values()), "the run keeps none"
)
SEVERAL_IMAGES = Condition(
    "at least three images",
    lambda work: None if (images := len(work.dataset.image_ids) if work.dataset else 0) > 2 else f"there are {images}",
)
A_TEXT_MODEL = Condition.of(
    "a model that makes vectors of captions",
    lambda work: work.subject.encode,
    "only vectors, scores or lists are given",
)
LANGUAGE = Condition.of("a parser", lambda _: find_spec("spacy"), "pip install 'crosslens[language]'")
CASES = Condition.of("hard negatives", lambda work: work.options.hard_negatives is not None, "none are given")
SEVERAL_RUNS = Condition.of("several runs of a dataset", lambda work: len(work.runs) > 1, "there is one")
CONDITIONS: Mapping[str, Condition] = {
    condition.text: condition
    for condition in (SEVERAL_CAPTIONS, A_MODEL, VECTORS, SCORES, CAPTION_QUERIES, TEXT_QUERIES, SEVERAL_IMAGES,
                      A_TEXT_MODEL, LANGUAGE)
}  # fmt: skip
"""What analyses may need of a run."""
