"""What an audit evaluates: every model on every dataset, or what is given in files, each as a recipe."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crosslens.analyze import Subject
from crosslens.core import InputError, UsageError, argument
from crosslens.data import image_files, is_known, load_dataset, outer_file
from crosslens.encode import EncodeOptions, encode_texts, load_encoder, require_one_source
from crosslens.metrics import DEFAULT_METRICS
from crosslens.pipeline import (
    TEXT_TO_TEXT,
    AuditOptions,
    EvaluateOptions,
    InputOptions,
    ModelOptions,
    Recipe,
    RerankOptions,
    align_both,
    evaluated_as_known,
    load_inputs,
    recipe_of_run,
)
from crosslens.rank import default_score
from crosslens.storage import Array
from crosslens.values import RECIPE_FILE, RUN_FILE, TEXT_TO_IMAGE, Dataset, Run, distinct_names

RECALLS = tuple(f"{name}@{k}" for name in ("Recall", "CappedRecall") for k in (1, 5, 10))
"""The recalls that papers also call R@k, beside the hits of the default metrics."""


@dataclass(frozen=True)
class DatasetSource:
    """A dataset as a recipe names it: a path or a reader, and the options of the reader.

    One that was given as a value is written to ``source`` before it is evaluated.
    """

    source: str
    options: Mapping[str, Any] = field(default_factory=dict)
    value: Dataset | None = None

    def load(self) -> Dataset:
        return load_dataset(self.source, **self.options) if self.value is None else self.value

    def words(self) -> str:
        """How commands name it."""
        pairs = [f"{key}={value}" for key, value in self.options.items()]
        return shlex.quote(" ".join(map(shlex.quote, [self.source, *pairs])) if pairs else self.source)


@dataclass(frozen=True)
class AuditRequest:
    """What is audited: every model on every dataset; or vectors, scores or lists (``inputs``), or stored runs.

    ``model`` holds the options of all models, ``evaluate`` how everything is evaluated.
    """

    datasets: tuple[DatasetSource, ...] = ()
    models: tuple[str, ...] = ()
    inputs: InputOptions = field(default_factory=InputOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    evaluate: EvaluateOptions = field(default_factory=EvaluateOptions)
    name: str | None = None
    plugins: tuple[Path, ...] = ()


@dataclass(frozen=True, eq=False)
class AuditSource:
    """One evaluation: the name of its run, what is evaluated, on which dataset, and the recipe.

    ``folder`` is where its run is, ``run`` what the first stage has written there.
    """

    name: str
    model: str
    dataset: str
    recipe: Recipe
    loaded: Dataset | None = None
    folder: Path = Path()
    run: Run | None = None

    @property
    def evaluated(self) -> Run:
        assert self.run is not None
        return self.run

    @property
    def captions(self) -> int:
        """How many captions are evaluated, as far as that is known."""
        return 0 if self.loaded is None else len(self.loaded.caption_ids)

    @property
    def dataset_words(self) -> str:
        return DatasetSource(str(self.recipe.dataset), self.recipe.dataset_options).words()


def audit_sources(
    request: AuditRequest, options: AuditOptions, notify: Callable[[str], None] = lambda text: None
) -> tuple[AuditSource, ...]:
    """Every evaluation of an audit, the datasets read; conflicts and missing inputs raise.

    ``notify`` is called with what the names of datasets imply.
    """
    inputs = request.inputs
    stored = [Path(path) for path in inputs.runs if (Path(path) / RUN_FILE).exists()]
    if stored:
        if request.models or request.datasets or len(stored) < len(inputs.runs):
            fix = "name run folders alone: their recipes say what they are made from"
            raise UsageError("run folders beside other inputs", fix=fix)
        stored_sources = []
        for name, folder in zip(distinct_names(path.resolve().name for path in stored), stored, strict=True):
            recipe = replace(Recipe.read(folder / RECIPE_FILE).absolute(), name=None, fingerprints={})
            dataset = None if recipe.dataset is None else load_dataset(recipe.dataset, **recipe.dataset_options)
            stored_sources.append(AuditSource(name, name, "" if dataset is None else dataset.name, recipe, dataset))
        return tuple(stored_sources)
    if len(request.datasets) > 1 and not request.models:
        raise UsageError("several datasets and no model", fix=f"add {argument('model')}: files are of one dataset")
    source = require_one_source(
        f"pass {argument('model')}, or files", model=request.models, scores=inputs.scores, runs=inputs.runs,
        embeddings=inputs.image_embeddings or inputs.caption_embeddings,
    )  # fmt: skip
    if request.models and not request.datasets:
        raise UsageError(f"{argument('model')} requires {argument('dataset')}", fix=f"add {argument('dataset')}")
    # By name, by which results are told apart; one without anything where none is given.
    datasets: dict[str, tuple[DatasetSource | None, Dataset | None]] = {}
    for entry in request.datasets:
        dataset = entry.load()
        if dataset.name in datasets:
            fix = "audit each in a folder of its own" if is_known(entry.source) else "rename the file or folder of one"
            raise UsageError(f"two datasets are called {dataset.name!r}", fix=fix, option="dataset")
        datasets[dataset.name] = entry, dataset
    default = request.name or {"runs": "lists"}.get(source, source)
    labels = distinct_names(map(_label, request.models)) or [default]
    sources = []
    shared = {name: getattr(options, name) for name in ("seed", "resamples", "level", "threads")}
    for name, (origin, loaded) in (datasets or {"": (None, None)}).items():
        path, reading = (None, {}) if origin is None else (origin.source, origin.options)
        files, evaluate = evaluated_as_known(path, inputs, request.evaluate, notify)
        metrics = evaluate.metrics
        if path is not None and not files.runs:  # lists may be too short: what they allow is chosen by default
            # The sum over both directions only where captions have one image, and both are evaluated.
            with_sum = not files.qrels and len(set(evaluate.directions)) != 1
            classic = [metric for metric in DEFAULT_METRICS if with_sum or metric != "Rsum"]
            metrics = tuple(dict.fromkeys((*classic, *RECALLS, f"NCS[{options.phi}]@10", *metrics)))
        settings = replace(evaluate, metrics=metrics, **shared)
        for label, model in zip(labels, request.models or [None], strict=True):
            run = f"{label}-{_label(name)}" if len(datasets) > 1 else label
            recipe = Recipe(path, reading, files, replace(request.model, name=model), options=settings)
            sources.append(AuditSource(run, label, name, recipe.with_plugins(request.plugins), loaded))
    return tuple(sources)


def subject_of(source: AuditSource, encoding: EncodeOptions, seed: int) -> Subject:
    """What findings are looked for in: the rankings of an evaluated source, its vectors, and its model for texts."""
    recipe, run = source.recipe.absolute(), source.evaluated
    bare = replace(
        recipe, inputs=replace(recipe.inputs, phi=(), scores_from=(), qrels=None),
        options=replace(recipe.options, metrics=()), rerank=RerankOptions(),
    )  # fmt: skip
    loaded = load_inputs(bare, encoding, None)
    dataset = loaded.dataset or source.loaded
    assert dataset is not None
    rankings = dict(run.rankings)
    if TEXT_TO_TEXT in rankings:  # captions ask, and what they ask for are images, by their texts
        rankings[TEXT_TO_IMAGE] = rankings.pop(TEXT_TO_TEXT)
    images, captions, score, encode = None, None, "cosine", None
    if loaded.images is not None and loaded.captions is not None:
        images, captions = align_both(dataset, loaded.images, loaded.captions)
        score = recipe.options.score or default_score(images.kind, captions.kind)
        if recipe.model.name and recipe.model.image_text is None and recipe.queries is None:
            options = recipe.model.encode_options(encoding)
            encode = TextVectors(recipe.model.name, options)
    pictures: dict[str, str] = {}
    with suppress(InputError):
        paths = image_files(dataset, recipe.model.image_folder, skip_bad=True)
        pictures = {
            image: path for image, path in zip(dataset.image_ids, paths, strict=True) if outer_file(path).is_file()
        }
    return Subject(dataset, rankings, images, captions, score, encode, pictures, seed)


def subject_of_run(run: Run, encoding: EncodeOptions, seed: int = 0, dataset: Dataset | None = None) -> Subject:
    """What findings are looked for in, of a stored run: by the recipe in its folder, which names the dataset."""
    recipe = recipe_of_run(run)
    if recipe is None or recipe.dataset is None:
        fix = "evaluate, or audit, a dataset: lists and vectors alone have no captions"
        raise UsageError(f"the run {run.name} names no dataset", fix=fix)
    return subject_of(AuditSource(run.name, run.name, "", recipe, dataset, run=run), encoding, seed)


@dataclass
class TextVectors:
    """A model as a function from texts to vectors, loaded when it is first called; its cache is used."""

    model: str
    options: EncodeOptions

    def __call__(self, texts: Sequence[str]) -> Array:
        if not hasattr(self, "_encoder"):
            self._encoder = load_encoder(self.model, self.options)
        return encode_texts(self._encoder, texts, **self.options.stream(None)).rows


def _label(model: str) -> str:
    """A model's name as a folder can be called; of an object in a file of the user, the name of the object."""
    kind, _, source = model.partition(":")
    name = source.rpartition(":")[2] if kind == "callable" else model
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "model"
