"""Hard negatives from their files to figures: read or make the cases, score them, judge them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.analyze.hard_negatives_result import FloatArray, HardNegativesResult, measure_negatives
from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import UsageError
from crosslens.core.progress import Progress
from crosslens.data.hard_negatives import HardNegatives
from crosslens.data.hard_negatives_scores import pair_scores, read_pair_scores
from crosslens.encode import Cache, Encoder, PairScorer, load_encoder, load_pair_scorer
from crosslens.pipeline.negative_cases import load_cases, one_source, perturbed_negatives
from crosslens.pipeline.negative_scores import (
    Making,
    blind_scores,
    model_scores,
    pair_model_scores,
    text_only_scores,
    vector_scores,
)
from crosslens.pipeline.sources import aligned

TableLike = str | Path | pl.DataFrame


def hard_negatives(
    cases: HardNegatives | str | Path | None = None,
    model: str | Encoder | Any | None = None,
    *,
    dataset: Dataset | None = None,
    perturbations: str | Sequence[str] | None = None,
    together: bool = False,
    pair_model: str | PairScorer | None = None,
    images: Any = None,
    captions: Any = None,
    scores: TableLike | None = None,
    blind: str | None = None,
    image_text: Dataset | None = None,
    name: str | None = None,
    form: str | None = None,
    crop: bool = True,
    by: Sequence[str] = (),
    score: str | None = None,
    skip_missing: bool = False,
    tolerance: float = 0.0,
    image_folder: str | Path | None = None,
    cache: Cache | None = None,
    batch_size: int | None = None,
    precision: str = "fp32",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> HardNegativesResult:
    """How often the right caption scores higher than captions that are nearly right.

    The cases are ``cases`` (SugarCrepe's, ARO's or Winoground's files, a table with the columns case and right, or a
    value that was read before), or a ``dataset``'s captions against what ``perturbations`` make of them. Their scores
    come from one of

    model: an encoder, or its name; with ``image_text``, a dataset with the pictures' captions, a text encoder will do
    pair_model: a model that looks at picture and text together, such as ``blip:Salesforce/blip-itm-base-coco``
    images, captions: embeddings with the ids of the cases' dataset (``HardNegatives.as_dataset``), or arrays in its
        order
    scores: a table or its file, with the columns caption, score, and image where cases have two
    blind: ``shorter`` or ``longer``, the length of the caption and nothing else

    A tie is wrong. ``tolerance`` widens what a tie is; ``skip_missing`` leaves out cases without a score, which raise
    otherwise. Intervals resample photos. ``score`` names the score function of the vectors.
    """
    one_source(cases, dataset, perturbations, form=form, by=by, crop=crop, together=together)
    if cases is None:
        assert dataset is not None
        assert perturbations is not None
        cases = perturbed_negatives(dataset, perturbations, together=together, seed=seed, progress=progress)
    elif not isinstance(cases, HardNegatives):
        cases = load_cases(cases, form, crop=crop, by=by, seed=seed, progress=progress)
    given = [one is not None for one in (model, pair_model, scores, blind, images if images is not None else captions)]
    if sum(given) != 1:
        raise UsageError(
            "no scores for the cases" if not any(given) else "scores from several sources",
            fix="pass one of model=, pair_model=, scores=, blind=, or images= and captions=",
        )
    how = Making(image_folder, cache, batch_size, precision, progress)
    if model is not None:
        encoder = load_encoder(model, precision=precision)
        found = scores_of_model(cases, encoder, image_text, how, score=score, skip_missing=skip_missing)
        label = encoder.name
    elif pair_model is not None:
        scorer = load_pair_scorer(pair_model, precision=precision) if isinstance(pair_model, str) else pair_model
        found, label = pair_model_scores(cases, scorer, how), scorer.name
    elif scores is not None:
        found, label = _from_table(cases, scores), "scores" if isinstance(scores, pl.DataFrame) else Path(scores).stem
    elif blind is not None:
        found, label = blind_scores(cases, blind), f"the {blind} caption"
    else:
        found, label = _from_vectors(cases, images, captions, score)
    return measure_negatives(
        cases, found, name or label, skip_missing=skip_missing, tolerance=tolerance, resamples=resamples, level=level,
        seed=seed,
    )  # fmt: skip


def scores_of_model(
    cases: HardNegatives,
    encoder: Encoder,
    image_text: Dataset | None,
    how: Making,
    *,
    score: str | None = None,
    skip_missing: bool = False,
) -> FloatArray:
    """A model's scores: of pictures, or of their captions where ``image_text`` has them."""
    if image_text is not None:
        return text_only_scores(cases, encoder, image_text, how, score)
    return model_scores(cases, encoder, how, score=score, skip_missing=skip_missing)


def _from_table(cases: HardNegatives, scores: TableLike) -> FloatArray:
    return pair_scores(scores, cases) if isinstance(scores, pl.DataFrame) else read_pair_scores(scores, cases)


def _from_vectors(cases: HardNegatives, images: Any, captions: Any, score: str | None) -> tuple[FloatArray, str]:
    if images is None or captions is None:
        raise UsageError("one kind of embeddings", fix="pass both images= and captions=")
    left, right = (
        one if isinstance(one, Embeddings) else aligned(one, ids, what)
        for one, ids, what in (
            (images, cases.dataset.image_ids, "image"),
            (captions, cases.dataset.caption_ids, "caption"),
        )
    )
    return vector_scores(cases, left, right, score), left.model or "embeddings"
