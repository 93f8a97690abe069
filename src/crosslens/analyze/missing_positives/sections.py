"""How missing positives are shown: counts at several thresholds, what verification says, and the first pairs."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from crosslens.core import Cards, Cell, Figure, Part, PictureCard, Section, Table, Text
from crosslens.metrics import format_count

if TYPE_CHECKING:
    from crosslens.analyze.missing_positives.search import MissingPositives

_SHOWN, _EXAMINED = 5, 100


def missing_sections(result: MissingPositives) -> Iterator[Section]:
    """A summary, the counts at several thresholds, and the first pairs."""
    others = len(result.dataset.image_ids) * len(result.dataset.caption_ids) - len(result.truth.relevant().items)
    head = (
        f"{result.phi} on {result.dataset.name}: "
        f"{format_count(result.levels[0].pairs, 'pair')} outside the ground truth "
        f"of {others:,} reach φ ≥ {result.threshold:.4g}"
    )
    parts: list[Part] = [_levels(result), Text(tuple(_notes(result)), note=True)]
    if len(result):
        parts.append(Cards("The first:", tuple(_first_pairs(result))))
    yield Section(head, tuple(parts))


def _levels(result: MissingPositives) -> Table:
    header = ["φ at least", "annotated pairs", "missing positives"]
    rows: list[list[Cell]] = []
    for level in result.levels:
        reached = np.mean(result.annotated >= np.float32(level.threshold)) if len(result.annotated) else nan
        rows.append([f"{level.threshold:.4g}", Figure(float(reached), scale=100, digits=0, unit=" %"), level.pairs])
    rows[0][0] = f"{rows[0][0]} ←"
    if result.verification is not None:
        header += ["precision", "recall"]
        for row, point in zip(rows, result.verification.points, strict=True):
            row += [_percent(point.precision), _percent(point.recall)]
    order = np.argsort([-level.threshold for level in result.levels], kind="stable")
    return Table(tuple(header), tuple(tuple(rows[row]) for row in order), "l" + "r" * (len(header) - 1))


def _percent(value: float, low: float = nan, high: float = nan) -> Figure:
    """In percent; a very small share with two digits that count."""
    digits = len(f"{100 * value:.2g}".partition(".")[2]) if 0 < value < 0.001 else 1
    return Figure(value, low, high, scale=100, digits=digits, unit=" %")


def _notes(result: MissingPositives) -> Iterator[str]:
    yield "← the threshold. Annotated pairs: how many captions, each against the others of its image, reach it."
    if result.left_out:
        yield f"Kept: the {len(result):,} highest; {format_count(result.left_out, 'pair')} more reach the threshold."
    if (verified := result.verification) is not None:
        precision, recall = (
            _percent(estimate.mean, estimate.low, estimate.high) for estimate in (verified.precision, verified.recall)
        )
        yield (
            f"Measured on the {verified.pairs:,} pairs of queries that people judged, {verified.positives:,} of them "
            f"verified: precision {precision}, recall {recall}, "
            f"average precision {_percent(verified.average_precision)} (guessing: {_percent(verified.chance)}). A pair "
            f"that nobody looked at counts as wrong: precision is a lower bound."
        )


def _first_pairs(result: MissingPositives) -> Iterator[PictureCard]:
    table = result.table.head(_EXAMINED).with_columns(pl.col("text", "image_caption").str.replace_all(r"\s+", " "))
    table = table.unique(("image", pl.col("text").str.to_lowercase()), keep="first", maintain_order=True)
    for image, phi, text, own in table.head(_SHOWN).select("image", "phi", "text", "image_caption").iter_rows():
        yield PictureCard(f"{phi:.4g}  image {image}, “{own}”:", (f"“{text}”",), image=image)
