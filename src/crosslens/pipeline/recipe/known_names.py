"""What a dataset's name says about its evaluation: ``eccv`` the judgements, ``coco-karpathy-1k`` five folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from crosslens.data import is_known, known_dataset
from crosslens.pipeline.options import EvaluateOptions
from crosslens.pipeline.recipe.options import InputOptions


def evaluated_as_known(
    dataset: str | None,
    inputs: InputOptions,
    options: EvaluateOptions,
    notify: Callable[[str], None] = lambda text: None,
) -> tuple[InputOptions, EvaluateOptions]:
    """Inputs and options with what the name of the dataset implies, unless they say something else themselves."""
    if dataset is None or not is_known(dataset):
        return inputs, options
    known = known_dataset(dataset)
    implied = []
    if known.relevance is not None and inputs.qrels is None:
        inputs = replace(inputs, qrels=known.relevance)
        implied.append(f"the judgements {known.relevance}")
    if known.folds > 1 and options.folds == 1:
        options = replace(options, folds=known.folds)
        implied.append(f"{known.folds} folds")
    if implied:
        notify(f"note: {known.name} is {known.called} with {' and '.join(implied)}")
    return inputs, options
