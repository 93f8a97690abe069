"""The files a recipe names, read into the values that :func:`crosslens.evaluate` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UsageError, reading
from crosslens.core.fingerprint import file_fingerprint
from crosslens.core.ids import Ids, as_ids
from crosslens.core.lists import RankedLists
from crosslens.core.relevance import Relevance
from crosslens.data import load_dataset, read_qrels, read_run
from crosslens.data.files import read_array, read_lines
from crosslens.pipeline.recipe.recipe import Recipe
from crosslens.pipeline.recipe.values import Inputs
from crosslens.pipeline.sources import lists_by_direction


@dataclass(frozen=True)
class Loaded:
    """What the inputs of a recipe hold."""

    dataset: Dataset | None
    images: Embeddings | None
    captions: Embeddings | None
    scores: np.ndarray[Any, Any] | None
    run: Mapping[str, RankedLists] | None
    relevance: Relevance | None


def load(recipe: Recipe) -> Loaded:
    """Read every input of a recipe whose paths are absolute."""
    inputs = recipe.inputs
    _demand_something(inputs)
    dataset = None if recipe.dataset is None else load_dataset(recipe.dataset, **recipe.dataset_options)
    known = (None, None) if dataset is None else (dataset.image_ids, dataset.caption_ids)
    return Loaded(
        dataset,
        _embeddings(inputs.image_embeddings, inputs.image_ids, known[0], "image"),
        _embeddings(inputs.caption_embeddings, inputs.caption_ids, known[1], "caption"),
        _scores(inputs.scores, dataset),
        _runs(recipe, dataset),
        None if inputs.qrels is None else read_qrels(inputs.qrels),
    )


def fingerprints(recipe: Recipe, dataset: Dataset | None) -> dict[str, str | tuple[str, ...]]:
    """The content hash of every input: the dataset as it was understood, the other files byte by byte."""
    found: dict[str, str | tuple[str, ...]] = {}
    if dataset is not None:
        found["dataset"] = dataset.fingerprint
    for key, path in vars(recipe.inputs).items():
        if isinstance(path, tuple):
            found.update({key: tuple(map(_content, path))} if path else {})
        elif path is not None:
            found[key] = _content(path)
    return found


def _content(path: str) -> str:
    place = Path(path)
    files = sorted(one for one in place.iterdir() if one.is_file()) if place.is_dir() else [place]
    return file_fingerprint(files)


def _embeddings(path: str | None, id_file: str | None, known: Ids | None, what: str) -> Embeddings | None:
    """Vectors with ids: those in the folder, those in the id file, or those of the dataset in its order."""
    if path is None:
        if id_file is not None:
            raise UsageError(f"{what} ids without {what} embeddings", fix=f"pass --{what}-embeddings too")
        return None
    if Path(path).is_dir():
        if id_file is not None:
            raise UsageError(f"{path} holds its own ids", fix=f"drop --{what}-ids")
        return Embeddings.load(path, mmap=True)
    ids = known if id_file is None else _ids(id_file, what)
    if ids is None:
        raise UsageError(
            f"nothing says which {what}s the rows of {path} are",
            fix=f"pass --dataset (rows in its order), or --{what}-ids with one id per line",
        )
    with reading(path):
        return Embeddings(ids, read_array(path))


def _ids(path: str, what: str) -> Ids:
    with reading(path):
        return as_ids((line.strip() for line in read_lines(path)), what)


def _scores(path: str | None, dataset: Dataset | None) -> np.ndarray[Any, Any] | None:
    if path is None:
        return None
    scores = read_array(path)
    if dataset is not None and scores.shape != (len(dataset.image_ids), len(dataset.caption_ids)):
        raise InputError(
            f"scores of shape {'×'.join(map(str, scores.shape))}",
            file=path,
            expected=f"images × captions, here {len(dataset.image_ids)}×{len(dataset.caption_ids)}",
            fix="transpose the matrix if its rows are captions; check that both come from the same split",
        )
    return scores


def _runs(recipe: Recipe, dataset: Dataset | None) -> dict[str, RankedLists] | None:
    """The ready-made lists by direction: the one asked for, or the one their ids tell."""
    asked, paths = recipe.options.directions, recipe.inputs.runs
    if not paths:
        return None
    if asked and len(asked) != len(paths):
        raise UsageError(
            f"{len(paths)} run files and {len(asked)} directions", fix="give one --direction per --run, in that order"
        )
    found: dict[str, RankedLists] = {}
    for place, path in enumerate(paths):
        with reading(path):
            lists = lists_by_direction(dataset, read_run(path), asked[place : place + 1])
        for direction in lists:
            if direction in found:
                raise UsageError(
                    f"two run files for {direction}",
                    fix="say --direction i2t --direction t2i, or evaluate them one at a time and compare",
                )
        found |= lists
    return found


def _demand_something(inputs: Inputs) -> None:
    sides = (inputs.image_embeddings, inputs.caption_embeddings)
    if not (any(sides) or inputs.scores or inputs.runs):
        raise UsageError(
            "nothing to evaluate", fix="pass --image-embeddings and --caption-embeddings, or --scores, or --run"
        )
    given = [
        name for name, one in (("embeddings", any(sides)), ("scores", inputs.scores), ("runs", inputs.runs)) if one
    ]
    if len(given) > 1:
        raise UsageError(f"both {' and '.join(given)}", fix="evaluate one of them at a time")
    if any(sides) and not all(sides):
        missing = "image" if sides[0] is None else "caption"
        raise UsageError(f"no {missing} embeddings", fix=f"pass --{missing}-embeddings too")
