"""What an edit costs, by the part of speech of the word that was edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import Dataset, MissingExtraError, Progress
from crosslens.language import parse_texts
from crosslens.perturbations import Caption, Edit, Perturbed, Token, perturbations_with
from crosslens.pipeline.options import SignificanceOptions
from crosslens.pipeline.robustness_study.variant_runner import FloatArray, QueryResults
from crosslens.pipeline.robustness_study.variants import BoolArray, Variant
from crosslens.statistics import Bootstrap

POOLED = "typos"
"""The row of the four typos together."""
_EDITED_WORDS = ("word", "adversarial", "beyond")
_ARTICLES = ("a", "an")

WORD_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "part_of_speech": pl.String, "captions": pl.Int64,
    "change": pl.Float64, "low": pl.Float64, "high": pl.Float64, "decreased": pl.Float64,
}  # fmt: skip
"""``change`` is the mean of 100 × (hits after − hits before): from −300 to 300, in points of one direction's Rsum."""


def edited_parts(
    dataset: Dataset, variants: Sequence[Variant], threads: int | None, progress: Progress | None
) -> tuple[dict[str, dict[str, BoolArray]], str]:
    """Per variant and part of speech, which captions had such a word edited; and a note where that is not known.

    Only for perturbations that change words one by one: a shuffle edits no word in particular.
    """
    chosen = {
        variant.label: variant.captions
        for variant in variants
        if variant.level in _EDITED_WORDS and variant.captions is not None and variant.applied.any()
    }
    if not chosen:
        return {}, ""
    try:
        parses = parse_texts(dataset.texts, threads=threads, progress=progress)
    except MissingExtraError as error:
        return {}, f"no table by part of speech: {error.problem}"
    captions = [Caption(text, parse=parse) for text, parse in zip(dataset.texts, parses, strict=True)]
    return {label: _by_part(captions, results) for label, results in chosen.items()}, ""


def word_rows(
    model: str,
    parts: Mapping[str, Mapping[str, BoolArray]],
    before: QueryResults,
    results: Mapping[str, QueryResults],
    options: SignificanceOptions,
) -> list[dict[str, Any]]:
    """A row per variant and part of speech; then the typos together."""
    rows = []
    pooled: dict[str, list[tuple[FloatArray, Any]]] = {}
    typos = perturbations_with("typo")
    for label, by_part in parts.items():
        change = 100 * (results[label].hits - before.hits)
        for part, chosen in by_part.items():
            counted = chosen & np.isfinite(change)
            if counted.any():
                sample = change[counted], before.clusters[counted]
                rows.append(_row(model, label, part, *sample, options))
                if label in typos:
                    pooled.setdefault(part, []).append(sample)
    for part, samples in pooled.items():
        values, clusters = (np.concatenate(arrays) for arrays in zip(*samples, strict=True))
        rows.append(_row(model, POOLED, part, values, clusters, options))
    order = {label: number for number, label in enumerate(parts)}
    return sorted(
        rows, key=lambda row: (row["perturbation"] == POOLED, order.get(row["perturbation"], 0), row["change"])
    )


def _row(
    model: str, name: str, part: str, change: FloatArray, clusters: Any, options: SignificanceOptions
) -> dict[str, Any]:
    estimate = Bootstrap(clusters, options.resamples, options.seed).estimate(change, level=options.level)
    return {
        "model": model, "perturbation": name, "part_of_speech": part, "captions": len(change),
        "change": estimate.mean, "low": estimate.low, "high": estimate.high, "decreased": float((change < 0).mean()),
    }  # fmt: skip


def _by_part(captions: Sequence[Caption], results: Sequence[Perturbed]) -> dict[str, BoolArray]:
    by_part: dict[str, BoolArray] = {}
    for row, (caption, result) in enumerate(zip(captions, results, strict=True)):
        for part in parts_of(caption, result.edits):
            by_part.setdefault(part, np.zeros(len(captions), np.bool_))[row] = True
    return by_part


def parts_of(caption: Caption, edits: Sequence[Edit]) -> set[str]:
    """The parts of speech of the edited words; an article that only follows another edit (a → an) does not count."""
    words = [edit for edit in edits if len(edits) == 1 or edit.before.lower() not in _ARTICLES]
    return {token.pos for edit in words or edits for token in _edited_tokens(caption.tokens, edit)}


def _edited_tokens(tokens: Sequence[Token], edit: Edit) -> list[Token]:
    """The tokens that an edit overlaps; for an insertion, the token that contains it or ends there."""
    if edit.start < edit.end:
        return [token for token in tokens if token.start < edit.end and edit.start < token.end]
    return [token for token in tokens if token.start < edit.start <= token.end] or [
        token for token in tokens if token.start == edit.start
    ]
