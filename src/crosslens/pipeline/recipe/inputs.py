"""The files a recipe names, read into the values that :func:`crosslens.evaluate` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UsageError, reading
from crosslens.core.fingerprint import file_fingerprint
from crosslens.core.ids import Ids
from crosslens.core.lists import RankedLists
from crosslens.core.progress import Progress
from crosslens.core.relevance import Relevance
from crosslens.data import load_dataset, read_qrels, read_run
from crosslens.data.files import read_array
from crosslens.encode import SecondStage
from crosslens.pipeline.recipe.faults import FLAGS, first_fault
from crosslens.pipeline.recipe.graded import given_encoders, given_phi, similarity_prints, source_print
from crosslens.pipeline.recipe.matching import check_company, check_judgements, check_lists, demand_all, read_ids
from crosslens.pipeline.recipe.model import Encoding, make, make_second_stage, pair_scorer
from crosslens.pipeline.recipe.recipe import Recipe
from crosslens.pipeline.recipe.values import NAMED, entry_of
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
    directions: tuple[str, ...] = ()
    made_from: Mapping[str, str] = field(default_factory=dict)
    second_stage: SecondStage | None = None
    phi: Mapping[str, Path] = field(default_factory=dict)
    scores_from: Mapping[str, Any] = field(default_factory=dict)


def load(recipe: Recipe, how: Encoding, progress: Progress | None = None) -> Loaded:
    """Read every input of a recipe whose paths are absolute, or have its model make them."""
    fault = first_fault(
        recipe.inputs, recipe.model, recipe.rerank, recipe.options.directions, dataset=recipe.dataset is not None
    )
    if fault is not None:
        raise UsageError(fault.problem, fix=fault.fix.format(**FLAGS))
    scorer = pair_scorer(recipe.rerank, recipe.model, how)  # a mistake in its name should not cost the wait for vectors
    phi = given_phi(recipe)
    loaded = _load(recipe, how, progress)
    encoders = given_encoders(recipe, loaded.dataset, how, progress, load)
    loaded = replace(loaded, phi=phi, scores_from=encoders)
    if scorer is None or loaded.dataset is None:
        return loaded
    second = make_second_stage(scorer, recipe.rerank, recipe.model, loaded.dataset, how, progress)
    prints = {"rerank_model": second.scorer.revision, "pictures": second.content}
    made_from = {**loaded.made_from, **{key: one for key, one in prints.items() if one}}
    return replace(loaded, made_from=made_from, second_stage=second)


def _load(recipe: Recipe, how: Encoding, progress: Progress | None) -> Loaded:
    inputs = recipe.inputs
    dataset = None if recipe.dataset is None else load_dataset(recipe.dataset, **recipe.dataset_options)
    if dataset is not None and not dataset.caption_ids:
        raise InputError(
            "the dataset has no captions",
            file=recipe.dataset_options.get("captions", recipe.dataset),
            expected="at least one caption: without any there is nothing to find",
            fix="check the file and the options of its reader",
        )
    relevance = None if inputs.qrels is None else read_qrels(inputs.qrels)
    if recipe.model.name is not None:
        made = make(recipe.model, dataset, how, progress)
        return Loaded(
            made.dataset, made.images, made.captions, None, None, relevance, made.directions, made.fingerprints
        )
    lists = _runs(recipe, dataset)
    if relevance is not None and inputs.qrels is not None:
        if dataset is not None:
            check_judgements(inputs.qrels, relevance, dataset)
        else:
            check_company(inputs.qrels, relevance, (lists or {}).values())
    known = (None, None) if dataset is None else (dataset.image_ids, dataset.caption_ids)
    return Loaded(
        dataset,
        read_embeddings(inputs.image_embeddings, inputs.image_ids, known[0], "image"),
        read_embeddings(inputs.caption_embeddings, inputs.caption_ids, known[1], "caption"),
        _scores(inputs.scores, dataset),
        lists,
        relevance,
    )


def fingerprints(recipe: Recipe, dataset: Dataset | None) -> dict[str, str | tuple[str, ...]]:
    """The content hash of every input: the dataset as it was understood, the other files byte by byte."""
    found: dict[str, str | tuple[str, ...]] = {}
    if dataset is not None:
        found["dataset"] = dataset.fingerprint
    for key, path in vars(recipe.inputs).items():
        if key in NAMED:
            found.update({key: tuple(source_print(entry_of(one, key)[1]) for one in path)} if path else {})
        elif isinstance(path, tuple):
            found.update({key: tuple(map(_content, path))} if path else {})
        elif path is not None:
            found[key] = _content(path)
    similarities = similarity_prints(recipe)
    return {**found, "similarities": similarities} if similarities else found


def _content(path: str) -> str:
    place = Path(path)
    files = sorted(one for one in place.iterdir() if one.is_file()) if place.is_dir() else [place]
    return file_fingerprint(files)


def read_embeddings(path: str | None, id_file: str | None, known: Ids | None, what: str) -> Embeddings | None:
    """Vectors with ids: those in the folder, those in the id file, or those of the dataset in its order."""
    if path is None:
        return None
    if Path(path).is_dir():
        if id_file is not None:
            raise UsageError(f"{path} holds its own ids", fix=f"leave the file of {what} ids out")
        folder = Embeddings.load(path, mmap=True)
        with reading(path):
            demand_all(folder.ids, known, what)
        return folder
    ids = known if id_file is None else read_ids(id_file, known, what)
    if ids is None:
        raise UsageError(
            f"nothing says which {what}s the rows of {path} are",
            fix=f"name the dataset (rows in its order), or a file of {what} ids with one per line",
        )
    with reading(path):
        return Embeddings(ids, read_array(path))


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
    found: dict[str, RankedLists] = {}
    for place, path in enumerate(paths):
        with reading(path):
            lists = lists_by_direction(dataset, read_run(path), asked[place : place + 1])
        for direction, one in lists.items():
            if direction in found:
                raise UsageError(
                    f"two run files for {direction}",
                    fix="say which is i2t and which t2i, or evaluate them one at a time and compare",
                )
            if dataset is not None:
                check_lists(path, one, direction, dataset)
        found |= lists
    return found
