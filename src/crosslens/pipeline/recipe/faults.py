"""Inputs that do not go together: found before anything is read, told as flags or as the keys of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from crosslens.pipeline.recipe.values import Inputs, Model, Rerank

KEYS: Mapping[str, str] = {
    **{one.name: one.name for one in fields(Inputs)},
    "model": "a name in [model]",
    "rerank": "a model in [rerank]",
    "image_text": "image_text",
    "dataset": "a [dataset]",
    "directions": "directions",
}
"""What stands in a recipe."""
FLAGS: Mapping[str, str] = {
    **{one.name: "--" + one.name.replace("_", "-") for one in fields(Inputs)},
    "runs": "--run",
    "model": "--model",
    "rerank": "--rerank",
    "image_text": "--image-text",
    "dataset": "--dataset",
    "directions": "--direction",
}
"""What stands on the command line."""


@dataclass(frozen=True)
class Fault:
    """Where in a recipe the fault is, what it is, and the fix, in which ``{scores}`` stands for a key or flag."""

    place: tuple[str, ...]
    problem: str
    fix: str


def first_fault(
    inputs: Inputs, model: Model, rerank: Rerank, directions: Sequence[str], *, dataset: bool
) -> Fault | None:
    """What is missing or too much in an evaluation with or without a dataset; None if all is well."""
    found = (*_of_ids(inputs), *_of_rerank(rerank, model, dataset), *_of_model(model, rerank, directions, dataset))
    return next(iter((*found, *_of_sources(inputs, model), *_of_company(inputs, directions, dataset))), None)


def _of_ids(inputs: Inputs) -> Iterator[Fault]:
    for side in ("image", "caption"):
        if getattr(inputs, f"{side}_ids") and not getattr(inputs, f"{side}_embeddings"):
            fix = f"give {{{side}_embeddings}} too"
            yield Fault(("inputs", f"{side}_ids"), f"{side} ids without {side} embeddings", fix)


def _of_rerank(rerank: Rerank, model: Model, dataset: bool) -> Iterator[Fault]:
    if rerank.model is None:
        if rerank != Rerank():
            yield Fault(("rerank",), "a depth to re-rank, but no model for it", "give {rerank}, or drop it")
        return
    if not dataset:
        yield Fault(("rerank", "model"), "a model to re-rank with and nothing to look at", "give {dataset}")
    if model.image_text:
        problem = "text-only retrieval shows no images to re-rank"
        yield Fault(("rerank", "model"), problem, "drop {rerank}, or {image_text}")


def _of_model(model: Model, rerank: Rerank, directions: Sequence[str], dataset: bool) -> Iterator[Fault]:
    own = model if rerank.model is None else replace(model, image_folder=None, precision=Model().precision)
    if model.name is None and own != Model():
        yield Fault(("model",), "options for a model, but no model", "give {model}, or drop them")
    if model.name is not None and not dataset:
        yield Fault(("model", "name"), "a model and nothing to encode", "give {dataset}")
    if model.image_text and directions:
        problem = "text-only retrieval has one direction, t2t"
        yield Fault(("model", "image_text"), problem, "drop {directions}")


def _of_sources(inputs: Inputs, model: Model) -> Iterator[Fault]:
    """One thing is evaluated at a time."""
    images, captions = inputs.image_embeddings, inputs.caption_embeddings
    sources = (
        ("embeddings", images or captions, ("inputs", "image_embeddings" if images else "caption_embeddings")),
        ("scores", inputs.scores, ("inputs", "scores")),
        ("runs", inputs.runs, ("inputs", "runs")),
        ("a model", model.name, ("model", "name")),
    )
    given = [(name, place) for name, one, place in sources if one]
    if not given:
        fix = "give {image_embeddings} and {caption_embeddings}, or {scores}, or {runs}, or {model}"
        yield Fault(("inputs",), "nothing to evaluate", fix)
    elif len(given) > 1:
        both = " and ".join(name for name, _ in given)
        yield Fault(given[-1][1], f"both {both}", "evaluate one of them at a time")
    elif bool(images) != bool(captions):
        missing = "caption" if images else "image"
        yield Fault(given[0][1], f"no {missing} embeddings", f"give {{{missing}_embeddings}} too")


def _of_company(inputs: Inputs, directions: Sequence[str], dataset: bool) -> Iterator[Fault]:
    """What scores and lists need beside them."""
    if inputs.scores and not dataset:
        yield Fault(("inputs", "scores"), "scores without a dataset", "give {dataset}: the one they are of")
    if inputs.runs and not dataset and not inputs.qrels:
        yield Fault(("inputs", "runs"), "a run without judgements", "give {qrels}, or {dataset}")
    if inputs.runs and directions and len(directions) != len(inputs.runs):
        problem = f"{len(inputs.runs)} run files and {len(directions)} directions"
        yield Fault(("inputs", "runs"), problem, "give {directions} for each of {runs}, in that order")
