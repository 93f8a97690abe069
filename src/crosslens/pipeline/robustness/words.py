"""Which words are dear: what an edit costs, by the part of speech of the word that was edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import MissingExtraError
from crosslens.core.progress import Progress
from crosslens.language.parsing import parse_texts
from crosslens.perturb.caption import Caption, Token
from crosslens.perturb.edit import Edit, Perturbed
from crosslens.pipeline.robustness.outcome import FloatArray, Outcome
from crosslens.pipeline.robustness.variants import BoolArray, Variant
from crosslens.statistics import Bootstrap

TYPOS = ("char_swap", "missing_char", "extra_char", "nearby_char")
POOLED = "typos"
"""The row of the four typos together."""
_EDITED_WORDS = ("word", "adversarial", "beyond")
_ARTICLES = ("a", "an")

WORD_COLUMNS: Mapping[str, Any] = {
    "model": pl.String, "perturbation": pl.String, "part_of_speech": pl.String, "captions": pl.Int64,
    "change": pl.Float64, "low": pl.Float64, "high": pl.Float64, "decreased": pl.Float64,
}  # fmt: skip
"""``change`` is the mean of 100 × (hits after − hits before): from −300 to 300, in points of a half of Rsum."""


def edited_parts(
    dataset: Dataset, variants: Sequence[Variant], threads: int | None, progress: Progress | None
) -> tuple[dict[str, dict[str, BoolArray]], str]:
    """Per variant and part of speech, which captions had such a word edited; and a note where that is not known.

    Only for perturbations that change words one by one: a shuffle edits no word in particular.
    """
    chosen = [one for one in variants if one.level in _EDITED_WORDS and one.captions is not None and one.applied.any()]
    if not chosen:
        return {}, ""
    try:
        parses = parse_texts(dataset.texts, threads=threads, progress=progress)
    except MissingExtraError as error:
        return {}, f"no table by part of speech: {error.problem}"
    captions = [Caption(text, parse=parse) for text, parse in zip(dataset.texts, parses, strict=True)]
    return {one.label: _by_part(captions, one.captions or ()) for one in chosen}, ""


def word_rows(
    model: str,
    parts: Mapping[str, Mapping[str, BoolArray]],
    before: Outcome,
    outcomes: Mapping[str, Outcome],
    *,
    resamples: int,
    level: float,
    seed: int,
) -> list[dict[str, Any]]:
    """A row per variant and part of speech; then the typos together."""
    rows = []
    pooled: dict[str, list[tuple[FloatArray, Any]]] = {}
    for label, by_part in parts.items():
        change = 100 * (outcomes[label].hits - before.hits)
        for part, chosen in by_part.items():
            counted = chosen & np.isfinite(change)
            if counted.any():
                found = change[counted], before.clusters[counted]
                rows.append(_row(model, label, part, *found, resamples, level, seed))
                if label in TYPOS:
                    pooled.setdefault(part, []).append(found)
    for part, several in pooled.items():
        values, clusters = (np.concatenate(one) for one in zip(*several, strict=True))
        rows.append(_row(model, POOLED, part, values, clusters, resamples, level, seed))
    return sorted(rows, key=lambda row: (row["perturbation"] == POOLED, list(parts).index(row["perturbation"])
                                         if row["perturbation"] in parts else 0, row["change"]))  # fmt: skip


def _row(
    model: str, name: str, part: str, change: FloatArray, clusters: Any, resamples: int, level: float, seed: int
) -> dict[str, Any]:
    found = Bootstrap(clusters, resamples, seed).estimate(change, level=level)
    return {
        "model": model, "perturbation": name, "part_of_speech": part, "captions": len(change),
        "change": found.mean, "low": found.low, "high": found.high, "decreased": float((change < 0).mean()),
    }  # fmt: skip


def _by_part(captions: Sequence[Caption], results: Sequence[Perturbed]) -> dict[str, BoolArray]:
    found: dict[str, BoolArray] = {}
    for row, (caption, one) in enumerate(zip(captions, results, strict=True)):
        for part in parts_of(caption, one.edits):
            found.setdefault(part, np.zeros(len(captions), np.bool_))[row] = True
    return found


def parts_of(caption: Caption, edits: Sequence[Edit]) -> set[str]:
    """The parts of speech of the edited words; an article that only follows another edit (a → an) does not count."""
    words = [edit for edit in edits if len(edits) == 1 or edit.before.lower() not in _ARTICLES]
    return {token.pos for edit in words or edits for token in _under(caption.tokens, edit)}


def _under(tokens: Sequence[Token], edit: Edit) -> list[Token]:
    """The tokens that an edit touches; an insertion touches the token it stands in or right behind."""
    if edit.start < edit.end:
        return [one for one in tokens if one.start < edit.end and edit.start < one.end]
    return [one for one in tokens if one.start < edit.start <= one.end] or [
        one for one in tokens if one.start == edit.start
    ]
