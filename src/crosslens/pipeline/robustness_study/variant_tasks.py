"""The variants of a model as tasks of an engine: encoded from here, evaluated anywhere, stored here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import Dataset, Embeddings, SilentProgress, current_engine
from crosslens.pipeline.robustness_study.variant_runner import (
    NamedVariant,
    PrefixedProgress,
    QueryResults,
    ResultSource,
    VariantRunner,
)
from crosslens.pipeline.robustness_study.variants import Variant
from crosslens.pipeline.run_directory import run_directory


@dataclass(frozen=True)
class VariantWork:
    """What the evaluations of all variants read: the settings, and the inputs that variants leave as they are."""

    runner: VariantRunner
    inputs: Mapping[str, Any]


class VariantTask(NamedTuple):
    """One evaluation: ``inputs`` are those that differ from the others'."""

    name: str
    dataset: Dataset | None
    inputs: Mapping[str, Any]


def evaluate_variant(work: VariantWork, task: VariantTask) -> QueryResults:
    """The results of one variant."""
    unchanged = {key: value for key, value in work.inputs.items() if key not in task.inputs}
    return work.runner.measure({**unchanged, **task.inputs}, task.dataset, task.name, None, SilentProgress())


def run_in_tasks(
    runner: VariantRunner, source: ResultSource, variants: Sequence[Variant | None]
) -> dict[str, QueryResults]:
    """The results of a model on these variants; finished ones are loaded, each new one is stored when it is done."""
    named = [runner.named(source, variant) for variant in variants]
    stored = {entry.label: entry.load(runner.settings.table_direction) for entry in named}
    missing = [(variant, entry) for variant, entry in zip(variants, named, strict=True) if stored[entry.label] is None]
    results = {label: loaded for label, loaded in stored.items() if loaded is not None}
    for entry, computed in zip((entry for _, entry in missing), _computed(runner, source, missing), strict=True):
        if entry.folder is not None:
            with run_directory(entry.folder, computed.run.provenance["key"], overwrite=True) as directory:
                if directory.finished is None:
                    directory.finish(computed.run)
        runner.save(computed, entry)
        results[entry.label] = computed
    return {entry.label: results[entry.label] for entry in named}


def _computed(
    runner: VariantRunner, source: ResultSource, missing: Sequence[tuple[Variant | None, NamedVariant]]
) -> Iterator[QueryResults]:
    if not missing:
        return
    first = source.inputs(missing[0][0], PrefixedProgress(runner.progress, missing[0][1].name))
    plain = replace(runner.options, image_text=None, options=None)  # models stay here: they have encoded already
    work = VariantWork(replace(runner, directory=None, options=plain, progress=SilentProgress(), dataset=None), first)

    def tasks() -> Iterator[VariantTask]:
        for number, (variant, entry) in enumerate(missing):
            progress = PrefixedProgress(runner.progress, entry.name)
            inputs = source.inputs(variant, progress) if number else first
            changed = {key: value for key, value in inputs.items() if value is not first.get(key)}
            yield VariantTask(entry.name, runner.dataset_of(variant), changed)

    finished = 0

    def show(task: VariantTask) -> None:
        nonlocal finished
        finished += 1
        runner.progress.start(f"{source.name}: variants", len(missing))  # encoding has shown its own bar meanwhile
        runner.progress.advance(finished)

    try:
        yield from current_engine().run(evaluate_variant, work, tasks(), done=show, size=_size(first))
    finally:
        runner.progress.finish()


def _size(inputs: Mapping[str, Any]) -> int:
    """Bytes that a variant takes, at most: all inputs."""
    values = (value for value in inputs.values() if isinstance(value, Embeddings | np.ndarray))
    return sum(math.prod(value.shape) * value.dtype.itemsize for value in values)
