"""The scores behind stored runs and in files, of several models over one dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import (
    Dataset,
    InputError,
    Progress,
    TrustCode,
    UsageError,
    argument,
    reading,
    trusting,
)
from crosslens.data import ARRAY_SUFFIXES
from crosslens.encode import EncodeOptions
from crosslens.pipeline.encoding import LoadedInputs
from crosslens.pipeline.inputs import read_scores, score_source
from crosslens.pipeline.recipe.graded_inputs import inputs_of_run
from crosslens.pipeline.recipe.inputs import load_inputs


@dataclass(frozen=True, eq=False)
class ModelScores:
    """A model's scores of every image and caption of a dataset, computed when they are asked for.

    ``model`` is what encoded them, where that is known; ``home`` is the folder with the dataset's images, likewise.
    """

    name: str
    dataset: Dataset
    scores: Any
    source: str
    model: str = ""
    home: Path | None = None


def parse_source(word: str) -> tuple[str | None, str]:
    """The name, where one is given, and the source in ``NAME=SOURCE`` or ``SOURCE``."""
    name, mark, source = word.partition("=")
    return (None, word) if Path(word).exists() or not (mark and name and source) else (name, source)


def read_panel(
    sources: Sequence[str],
    dataset: Dataset | None = None,
    *,
    encoding: EncodeOptions | None = None,
    trust_code: TrustCode | None = None,
    progress: Progress | None = None,
) -> list[ModelScores]:
    """The scores of each source: a run folder, or a matrix of images × captions in a file; all of one dataset.

    A source may be given a name, ``NAME=SOURCE``; a run's is otherwise that of its folder, a file's its own. Matrices
    alone do not say of what: ``dataset`` does. Scores of a run come from what its recipe names: vectors, a matrix, or
    its model, whose vectors are usually in the cache.
    """
    panel: list[ModelScores] = []
    for word in sources:
        name, source = parse_source(word)
        if Path(source).suffix.lower() in ARRAY_SUFFIXES:
            known = dataset or (panel[0].dataset if panel else None)
            member = _from_matrix(name or Path(source).stem, source, known)
        else:
            with trusting(trust_code):
                member = _from_run(name or Path(source).resolve().name, source, encoding, progress)
        if member.name in {other.name for other in panel}:
            raise UsageError(
                f"two models of the panel are called {member.name!r}",
                fix=f"name them: {argument('runs', f'{member.name}-2={source}')}",
                option="runs",
            )
        _check_same_dataset(dataset, panel, member)
        panel.append(member)
    if not panel:
        raise UsageError("no models", fix=f"name run folders or score matrices: {argument('runs')}", option="runs")
    return panel


def _from_matrix(name: str, source: str, dataset: Dataset | None) -> ModelScores:
    if dataset is None:
        fix = f"pass {argument('dataset')}, or name a run first"
        raise UsageError(f"{source} does not say which images and captions it scores", fix=fix, option="dataset")
    with reading(source):
        matrix = read_scores(dataset, source)
        score_source(dataset, scores=matrix)  # a wrong shape or type raises
    return ModelScores(name, dataset, matrix, source)


def _from_run(name: str, source: str, encoding: EncodeOptions | None, progress: Progress | None) -> ModelScores:
    folder = Path(source)
    recipe, loaded = inputs_of_run(folder, encoding or EncodeOptions(), progress, load_inputs)
    problem = _unscored(loaded)
    if problem is not None:
        raise InputError(
            problem,
            file=folder,
            expected="a run from embeddings, from a model or from a score matrix, over a dataset",
            fix=f"name its scores of all pairs instead: {name}=scores.npy (images × captions)",
        )
    assert loaded.dataset is not None
    source_of = score_source(loaded.dataset, loaded.images, loaded.captions, loaded.scores, recipe.options.score)
    scores = loaded.scores if loaded.scores is not None else source_of.scorer
    model = recipe.absolute().model
    encoder = model.name or (loaded.images.model if loaded.images is not None else "")
    home = None if model.image_folder is None else Path(model.image_folder)
    return ModelScores(name, loaded.dataset, scores, source, encoder or "", home)


def _unscored(loaded: LoadedInputs) -> str | None:
    if loaded.dataset is None:
        return "a run without a dataset"
    if loaded.second_stage is not None:
        return "a re-ranked run, whose second stage scored the top of each list only"
    if loaded.scores is None and (loaded.images is None or loaded.captions is None):
        return "a run of ranked lists, which do not score every pair"
    return None


def _check_same_dataset(dataset: Dataset | None, panel: Sequence[ModelScores], member: ModelScores) -> None:
    """Raise unless the new member scores the same images and captions as the others."""
    first = panel[0].dataset if panel else dataset
    if first is None or first is member.dataset:
        return
    whose = panel[0].source if panel else f"the dataset {first.name!r}"
    for what, ids, others in (
        ("images", member.dataset.image_ids, first.image_ids),
        ("captions", member.dataset.caption_ids, first.caption_ids),
        ("texts", member.dataset.texts, first.texts),
    ):
        if list(ids) != list(others):
            counts = f"{len(ids):,} {what} against {len(others):,}" if len(ids) != len(others) else f"other {what}"
            raise UsageError(
                f"{member.source} is over another dataset than {whose}: {counts}",
                fix="name runs of one dataset, all images and captions of it in the same order",
                code="different-datasets",
                option="runs",
            )
