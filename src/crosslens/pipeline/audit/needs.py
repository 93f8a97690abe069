"""What stages need, and how an audit says that it is missing."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from crosslens.core import TEXT_TO_IMAGE
from crosslens.explanations import TEXT_TO_TEXT
from crosslens.pipeline.audit.stage import Need, StageWork


def _dataset(work: StageWork) -> str | None:
    return None if work.dataset is not None else "none is given"


def _several_captions(work: StageWork) -> str | None:
    if work.dataset is None:
        return "no dataset is given"
    dataset = work.labelled_dataset()
    counts = np.bincount(dataset.caption_image, minlength=1)
    return None if counts.max() > 1 or dataset.corpus is not None else "no image has two captions"


def _model(work: StageWork) -> str | None:
    recipes = [audited.source.recipe for audited in work.runs.values()]
    if all(recipe.model.name is not None for recipe in recipes):
        return None
    return "only vectors, scores or lists are given"


def _vectors(work: StageWork) -> str | None:
    recipe = work.run.source.recipe
    if recipe.model.image_text is not None:
        return "the model encodes texts only"
    return None if recipe.model.name or recipe.inputs.image_embeddings else "only scores or lists are given"


def _scores(work: StageWork) -> str | None:
    lists = [name for name, audited in work.runs.items() if audited.source.recipe.inputs.runs]
    return f"{lists[0]} is given as lists" if lists else None


def _caption_queries(work: StageWork) -> str | None:
    missing = [name for name, audited in work.runs.items() if TEXT_TO_IMAGE not in audited.evaluated.rankings]
    return f"{missing[0]} has none" if missing else None


def _text_queries(work: StageWork) -> str | None:
    missing = [name for name, run in work.loaded().items() if not {TEXT_TO_IMAGE, TEXT_TO_TEXT} & set(run.rankings)]
    return f"{missing[0]} has none" if missing else None


def _rankings(work: StageWork) -> str | None:
    return None if all(audited.evaluated.rankings for audited in work.runs.values()) else "the run keeps none"


def _several_images(work: StageWork) -> str | None:
    images = 0 if work.dataset is None else len(work.dataset.image_ids)
    return None if images > 2 else f"there are {images}"


def _language(work: StageWork) -> str | None:
    return None if find_spec("spacy") else "pip install 'crosslens[language]'"


def _cases(work: StageWork) -> str | None:
    return None if work.options.hard_negatives is not None else "none are given"


def _several_runs(work: StageWork) -> str | None:
    return None if len(work.runs) > 1 else "there is one"


A_DATASET = Need("a dataset", _dataset)
SEVERAL_CAPTIONS = Need("several captions per image", _several_captions)
A_MODEL = Need("a model that encodes new captions", _model)
VECTORS = Need("vectors of images and captions", _vectors)
SCORES = Need("scores of all pairs", _scores)
CAPTION_QUERIES = Need("caption queries for images", _caption_queries)
TEXT_QUERIES = Need("caption queries", _text_queries)
RANKINGS = Need("rankings", _rankings)
SEVERAL_IMAGES = Need("at least three images", _several_images)
LANGUAGE = Need("a parser", _language)
CASES = Need("hard negatives", _cases)
SEVERAL_RUNS = Need("several runs", _several_runs)
