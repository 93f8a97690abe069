"""Hard negatives from their files to accuracies: read or make the cases, score them, judge them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.hard_negatives.cases import HardNegatives
from crosslens.analyze.hard_negatives.options import CaseOptions, JudgingOptions
from crosslens.analyze.hard_negatives.result import HardNegativesResult, evaluate_scores
from crosslens.analyze.hard_negatives.scoring import (
    FloatArray,
    blind_scores,
    model_scores,
    pair_model_scores,
    pair_scores,
    read_pair_scores,
    vector_scores,
)
from crosslens.core import Dataset, Embeddings, Ids, InputError, Progress, UsageError, argument, refuse_unknown
from crosslens.encode import EncodeOptions, Encoder, PairScorer, load_encoder, load_pair_scorer

TableLike = str | Path | pl.DataFrame


def score_hard_negatives(
    cases: HardNegatives | str | Path | None = None,
    model: str | Encoder | Any | None = None,
    *,
    pair_model: str | PairScorer | None = None,
    images: Any = None,
    captions: Any = None,
    scores: TableLike | None = None,
    blind: str | None = None,
    image_text: Dataset | None = None,
    score: str | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> HardNegativesResult:
    """How often the right caption scores higher than captions that are nearly right.

    The cases are ``cases`` (SugarCrepe's, ARO's or Winoground's files, a table with the columns case and right, or a
    :class:`HardNegatives`), or the captions of ``dataset=`` against what ``perturbations=`` make of them
    (``together=True``: one case per caption). ``form=``, ``crop=`` and ``by=`` say how files are read and grouped.
    The scores come from one of

    model: an encoder, or its name; with ``image_text``, a dataset with the pictures' captions, a text encoder suffices
    pair_model: a model that takes picture and text together, such as ``blip:Salesforce/blip-itm-base-coco``
    images, captions: embeddings with the ids of the cases' dataset (``HardNegatives.as_dataset``), or arrays in its
        order
    scores: a table or its file, with the columns caption, score, and image where cases have two
    blind: ``shorter`` or ``longer``, the length of the caption and nothing else

    ``score`` names the score function of the vectors. Options of encoding are ``image_folder``, ``cache`` (a folder;
    without one nothing is cached), ``batch_size``, ``precision``, ``device``, ``offline``. A tie is wrong;
    ``tolerance=0.0`` widens what a tie is; ``skip_missing=True`` leaves out cases without a score, which raise
    otherwise. Intervals resample photos: ``resamples=1000``, ``level=0.95``, ``seed=0``.
    """
    which, judging, encoding = CaseOptions.pick(options), JudgingOptions.pick(options), EncodeOptions.pick(options)
    refuse_unknown(options, [*vars(which), *vars(judging), *vars(encoding)])
    negatives = which.load(cases, judging.seed, progress)
    vectors = None if images is None and captions is None else (images, captions)
    sources = [source for source in (model, pair_model, scores, blind, vectors) if source is not None]
    if len(sources) != 1:
        known = ", ".join(map(argument, ("model", "pair_model", "scores", "blind")))
        raise UsageError(
            "scores from several sources" if sources else "no scores for the cases",
            fix=f"pass one of {known}, or {argument('images')} and {argument('captions')}",
        )
    if judging.skip_missing:
        encoding = replace(encoding, skip_bad=True)
    if model is not None:
        encoder = load_encoder(model, encoding)
        values, label = model_scores(negatives, encoder, image_text, encoding, score, progress), encoder.name
    elif pair_model is not None:
        scorer = load_pair_scorer(pair_model, encoding) if isinstance(pair_model, str) else pair_model
        values, label = pair_model_scores(negatives, scorer, encoding, progress), scorer.name
    elif isinstance(scores, pl.DataFrame):
        values, label = pair_scores(scores, negatives), "scores"
    elif scores is not None:
        values, label = read_pair_scores(scores, negatives), Path(scores).stem
    elif blind is not None:
        values, label = blind_scores(negatives, blind), f"the {blind} caption"
    else:
        values, label = _from_vectors(negatives, images, captions, score)
    return evaluate_scores(negatives, values, name or label, **vars(judging))


def _from_vectors(negatives: HardNegatives, images: Any, captions: Any, score: str | None) -> tuple[FloatArray, str]:
    if images is None or captions is None:
        missing = "images" if images is None else "captions"
        raise UsageError(
            f"no embeddings of {missing}", fix=f"pass both {argument('images')} and {argument('captions')}"
        )
    left = _with_ids(images, negatives.dataset.image_ids, "image")
    right = _with_ids(captions, negatives.dataset.caption_ids, "caption")
    return vector_scores(negatives, left, right, score), left.model or "embeddings"


def _with_ids(vectors: Any, ids: Ids, what: str) -> Embeddings:
    if isinstance(vectors, Embeddings):
        return vectors
    if hasattr(vectors, "detach"):  # a torch tensor on any device
        vectors = vectors.detach().cpu()
        vectors = vectors.float() if str(vectors.dtype) == "torch.bfloat16" else vectors
    array = np.asanyarray(vectors)
    if array.ndim < 2 or len(array) != len(ids):
        raise InputError(
            f"{what} embeddings of shape {array.shape} for {len(ids)} {what}s",
            expected=f"one row per {what}, in the order of the dataset's {what} ids",
            fix="encode the dataset of the cases, or pass Embeddings with ids",
        )
    return Embeddings(ids, array)
