"""The score of every caption of a case with every picture of it: from a model, vectors, a table, or captions alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl

from crosslens.analyze.hard_negatives.cases import HardNegatives
from crosslens.analyze.hard_negatives.result import HardNegativesResult, evaluate_scores
from crosslens.analyze.options import CaseOptions, JudgingOptions
from crosslens.analyze.pair_scores import ImageCaptionPairs, exact_scores, rows_of
from crosslens.core import InputError, UnknownNameError, UsageError, accepts_options, argument, refuse_other_keywords
from crosslens.data import check_ids, check_known, image_names
from crosslens.encode import (
    TEXTS,
    EncodeOptions,
    Encoder,
    PairScorer,
    caption_rows,
    encode_texts,
    load_encoder,
    load_pair_scorer,
    require_modality,
)
from crosslens.engine import Progress
from crosslens.rank import default_score
from crosslens.storage import FloatArray
from crosslens.values import Dataset, Embeddings, align_embeddings, without_image_ending

if TYPE_CHECKING:
    from crosslens.analyze.keywords import HardNegativesKeywords

BLIND: Mapping[str, Callable[[str], float]] = {
    "shorter": lambda text: -float(len(text)),
    "longer": lambda text: float(len(text)),
}
"""Scores that ignore the picture: cases on which one of them does well do not test vision."""

_COLUMNS = "caption (its id, such as 12:right), score; image where cases have two"


def _text_only_scores(
    negatives: HardNegatives, encoder: Encoder, described: Dataset, score: str | None, encoding: Mapping[str, Any]
) -> FloatArray:
    """The scores of a text encoder: a picture is the mean of its captions' vectors, without the right one's.

    ``described`` has the pictures' captions; one that equals the case's right caption is left out. A picture that
    ``described`` does not have, or that has no other caption, scores NaN.
    """
    require_modality(encoder, TEXTS)
    case_images = list(negatives.pairs.select("case", "image").iter_rows())
    distinct_pairs = list(dict.fromkeys(case_images))
    other_rows = _other_captions(negatives, described, distinct_pairs)
    encoded_rows = sorted({row for rows in other_rows for row in rows})
    if not encoded_rows:
        raise InputError(
            f"{described.name} has no captions of the images of {negatives.name}",
            expected=f"images such as {negatives.dataset.image_ids[0]!r}, found {described.image_ids[0]!r}",
            fix="check that the dataset has the captions of these images",
        )
    texts = [*(described.texts[row] for row in encoded_rows), *negatives.dataset.texts]
    vectors = encode_texts(encoder, texts, **encoding).rows
    vector_of = {row: position for position, row in enumerate(encoded_rows)}
    with_others = [(image, rows) for image, rows in zip(distinct_pairs, other_rows, strict=True) if rows]
    means = np.stack([vectors[[vector_of[row] for row in rows]].mean(axis=0) for _, rows in with_others])
    mean_of = {image: position for position, (image, _) in enumerate(with_others)}
    rows = np.array([mean_of.get(image, -1) for image in case_images], np.int64)
    captions = Embeddings.of(vectors[len(encoded_rows) :])
    name = score or default_score("single")
    return exact_scores(Embeddings.of(means), captions, name, rows, negatives.pairs["caption"].to_numpy())


def _other_captions(negatives: HardNegatives, described: Dataset, pairs: list[tuple[int, int]]) -> list[list[int]]:
    """For each case and picture, the captions of the picture that differ from the case's right one."""
    dataset = negatives.dataset
    row_of = image_names(described)
    captions = caption_rows(described)
    normalized = [_normalize(text) for text in described.texts]
    right = {
        (case, image): _normalize(dataset.texts[caption])
        for case, caption, image, is_right in negatives.pairs.iter_rows()
        if is_right
    }
    # What each image may be called elsewhere: its id, its photo, the name of its file, with or without its ending.
    columns = [name for name in ("image", "photo", "file") if name in dataset.images.columns]
    names = [
        [part for name in row if name for part in (name, Path(name).name, without_image_ending(Path(name).name))]
        for row in dataset.images.select(columns).iter_rows()
    ]
    other_rows = []
    for case, image in pairs:
        match = next((row_of[name] for name in names[image] if name in row_of), None)
        rows = [] if match is None else captions[match]
        other_rows.append([row for row in rows if normalized[row] != right[case, image]])
    return other_rows


def _normalize(text: str) -> str:
    """A caption without case, runs of white space and the mark at the end."""
    return " ".join(text.casefold().split()).rstrip(" .!")


def read_pair_scores(source: str | Path | pl.DataFrame, negatives: HardNegatives) -> FloatArray:
    """The score of every pair of a caption and an image, in the order of ``negatives.pairs``; NaN where there is none.

    The table, or its .csv, .tsv, .parquet or .jsonl file, has a row per pair. ``caption`` is the caption's id; with a
    column ``case`` its end, such as ``right``, suffices. ``image`` may be left out where each case has one picture.
    Rows of cases that are not in ``negatives`` raise.
    """
    with rows_of(source, ("caption", "score"), _COLUMNS) as (frame, row_name):
        captions = check_ids(frame["caption"].to_list(), "caption", row_name)
        caption_ids = set(negatives.dataset.caption_ids)
        if "case" in frame.columns:
            cases = check_ids(frame["case"].to_list(), "case", row_name)
            check_known(cases, set(negatives.cases["case"]), "case", row_name)
            keys = zip(cases, captions, strict=True)
            captions = [caption if caption in caption_ids else f"{case}:{caption}" for case, caption in keys]
        check_known(captions, caption_ids, "caption", row_name)
        if "image" not in frame.columns and len(negatives.measures) > 1:
            fix = "name the image of each score in a column image"
            raise InputError("no column 'image'", expected=_COLUMNS, fix=fix)
        frame = frame.with_columns(pl.Series("caption", captions, dtype=pl.String))
        return _pairs_of(negatives).from_rows(frame, row_name, strict=True)


def _pairs_of(negatives: HardNegatives) -> ImageCaptionPairs:
    images, captions = (negatives.pairs[name].to_numpy() for name in ("image", "caption"))
    return ImageCaptionPairs(negatives.dataset, images, captions)


@accepts_options(CaseOptions, JudgingOptions, EncodeOptions)
def score_hard_negatives(
    cases: HardNegatives | str | Path | None = None,
    model: str | Encoder | Any | None = None,
    *,
    pair_model: str | PairScorer | None = None,
    images: Any = None,
    captions: Any = None,
    scores: str | Path | pl.DataFrame | None = None,
    blind: str | None = None,
    image_text: Dataset | None = None,
    score: str | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[HardNegativesKeywords],
) -> HardNegativesResult:
    """How often the right caption scores higher than captions that are nearly right.

    The scores come from a model, from vectors, from ``scores`` or from ``blind``. A tie is wrong. Intervals resample
    photos.

    Args:
        cases: SugarCrepe's, ARO's or Winoground's files, a table with the columns case and right, or a
            :class:`HardNegatives`; instead of them, captions of ``dataset`` against what ``perturbations`` make of
            them.
        model: An encoder, or its name; with ``image_text`` a text encoder suffices.
        pair_model: A model that takes picture and text together, such as ``blip:Salesforce/blip-itm-base-coco``.
        images: Vectors of the images, with the ids of the cases' dataset (``HardNegatives.as_dataset``), or an array in
            its order.
        captions: Vectors of the captions, likewise.
        scores: A table or its file, with the columns caption, score, and image where cases have two.
        blind: ``shorter`` or ``longer``: the length of the caption and nothing else.
        image_text: A dataset with the pictures' captions.
        score: The score function of the vectors.
        name: What the model is called.
        progress: Told how much is done.
    """
    refuse_other_keywords(options, score_hard_negatives)
    reading, judging, encoding = CaseOptions.pick(options), JudgingOptions.pick(options), EncodeOptions.pick(options)
    negatives = reading.load(cases, judging.seed, progress)
    dataset, pairs = negatives.dataset, _pairs_of(negatives)
    vectors = None if images is None and captions is None else (images, captions)
    sources = [source for source in (model, pair_model, scores, blind, vectors) if source is not None]
    if len(sources) != 1:
        alternatives = ", ".join(map(argument, ("model", "pair_model", "scores", "blind")))
        raise UsageError(
            "scores from several sources" if sources else "no scores for the cases",
            fix=f"pass one of {alternatives}, or {argument('images')} and {argument('captions')}",
        )
    if judging.skip_missing:
        encoding = replace(encoding, skip_bad=True)
    if model is not None:
        encoder = load_encoder(model, encoding)
        label = encoder.name
        if image_text is None:
            values = pairs.from_model(encoder, encoding, score, progress)
        else:
            values = _text_only_scores(
                negatives, encoder, image_text, score, encoding.stream(progress, unasked_cache=False)
            )
    elif pair_model is not None:
        scorer = load_pair_scorer(pair_model, encoding) if isinstance(pair_model, str) else pair_model
        values, label = pairs.from_pair_model(scorer, encoding, progress), scorer.name
    elif scores is not None:
        label = "scores" if isinstance(scores, pl.DataFrame) else Path(scores).stem
        values = read_pair_scores(scores, negatives)
    elif blind is not None:
        if blind not in BLIND:
            raise UnknownNameError("blind score", blind, BLIND)
        values = np.array([BLIND[blind](text) for text in dataset.texts], np.float64)[pairs.captions]
        label = f"the {blind} caption"
    else:
        if images is None or captions is None:
            side = "images" if images is None else "captions"
            fix = f"pass both {argument('images')} and {argument('captions')}"
            raise UsageError(f"no embeddings of {side}", fix=fix)
        image_vectors, caption_vectors = (
            vectors if isinstance(vectors, Embeddings) else align_embeddings(vectors, ids, noun)
            for vectors, ids, noun in (
                (images, dataset.image_ids, "image"),
                (captions, dataset.caption_ids, "caption"),
            )
        )
        values, label = pairs.from_vectors(image_vectors, caption_vectors, score), image_vectors.model or "embeddings"
    return evaluate_scores(negatives, values, name or label, **vars(judging))
