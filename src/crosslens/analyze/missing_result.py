"""What a search for missing positives found: as qrels, as a table, and as text."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.verification import Verification
from crosslens.core.dataset import Dataset
from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.core.json_form import json_form
from crosslens.core.relevance import Relevance
from crosslens.data.files import writing_bytes
from crosslens.metrics.figures import count
from crosslens.statistics import Estimate

Array = np.ndarray[Any, Any]

_SHOWN, _LOOKED_AT = 5, 100
_INDENT = 8 * " "


@dataclass(frozen=True)
class Level:
    """How many pairs outside the ground truth reach a threshold."""

    threshold: float
    pairs: int


@dataclass(frozen=True, eq=False)
class MissingPositives:
    """Pairs outside the ground truth that are as relevant as annotated ones, the highest φ first; prints as a summary.

    ``images`` and ``captions`` are rows of the dataset. ``annotated`` is φ of captions that people wrote about an
    image, each against the image's others. ``levels`` begin with the threshold itself.
    """

    dataset: Dataset
    phi: str
    truth: Relevance
    images: Array
    captions: Array
    values: Array
    threshold: float
    annotated: Array
    levels: tuple[Level, ...]
    verification: Verification | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def left_out(self) -> int:
        """How many pairs reach the threshold and were not kept."""
        return self.levels[0].pairs - len(self)

    def relevance(self, *, extra_only: bool = False) -> Relevance:
        """The ground truth and the pairs that were missing, as judgements to evaluate with; or these alone."""
        truth = self.truth.relevant()
        images, captions = self.images, self.captions
        grades = np.ones(len(images), np.float32)
        if not extra_only:
            images, captions = np.concatenate([truth.rows, images]), np.concatenate([truth.items, captions])
            grades = np.concatenate([truth.grades, grades])
        ids = (truth.query_ids, truth.item_ids)
        source = f"{self.phi} ≥ {self.threshold:.4g}"
        return Relevance.from_indices(
            *ids, images, captions, grades, source if extra_only else f"{truth.source} + {source}"
        )

    @property
    def table(self) -> pl.DataFrame:
        """One row per pair: image, caption, φ, the caption's text and its own image; whether people verified it."""
        columns: dict[str, Any] = {
            "image": [self.dataset.image_ids[one] for one in self.images],
            "caption": [self.dataset.caption_ids[one] for one in self.captions],
            "phi": self.values,
            "text": [self.dataset.texts[one] for one in self.captions],
            "caption_of": [self.dataset.image_ids[self.dataset.caption_image[one]] for one in self.captions],
            "image_caption": self._first_captions(),
        }
        return pl.DataFrame(columns, schema_overrides={"phi": pl.Float32, "image": pl.String, "caption": pl.String})

    def write_table(self, path: str | Path) -> Path:
        """The table as a CSV file, which replaces one that stands there; .gz too."""
        with writing_bytes(path) as out:
            self.table.write_csv(out)
        return Path(path)

    def as_dict(self) -> dict[str, Any]:
        """The figures, without the pairs."""
        found: dict[str, Any] = {
            "dataset": self.dataset.name,
            "phi": self.phi,
            "threshold": self.threshold,
            "pairs": self.levels[0].pairs,
            "kept": len(self),
            "annotated": {"pairs": len(self.annotated), **_quantiles(self.annotated)},
            "levels": [{"threshold": one.threshold, "pairs": one.pairs} for one in self.levels],
        }
        if self.verification is not None:
            found["verification"] = _verification_dict(self.verification)
        plain: dict[str, Any] = json_form(found)
        return plain

    def text(self, width: int | None = None) -> str:
        """A summary, the figures at several thresholds, and the first pairs."""
        width = width or PAGE_WIDTH
        others = len(self.dataset.image_ids) * len(self.dataset.caption_ids) - len(self.truth.relevant().items)
        head = (
            f"{self.phi} on {self.dataset.name}: {count(self.levels[0].pairs, 'pair')} outside the ground truth "
            f"of {others:,} reach φ ≥ {self.threshold:.4g}"
        )
        parts = ["\n".join(textwrap.wrap(head, width)), self._levels_grid().text(width)]
        parts.append("\n".join(line for one in self._notes() for line in textwrap.wrap(one, width)))
        if len(self):
            parts.append(self._first_pairs(width))
        return "\n\n".join(part for part in parts if part)

    def __str__(self) -> str:
        return self.text()

    def _first_captions(self) -> list[str]:
        """A caption that the image has, to hold the found one against."""
        first: dict[int, str] = {}
        for text, image in zip(self.dataset.texts, self.dataset.caption_image.tolist(), strict=True):
            first.setdefault(image, text)
        return [first.get(int(one), "") for one in self.images]

    def _levels_grid(self) -> Grid:
        header = ["φ at least", "annotated pairs", "missing positives"]
        rows = [[f"{one.threshold:.4g}", self._share(one), f"{one.pairs:,}"] for one in self.levels]
        rows[0][0] += " ←"
        if self.verification is not None:
            header += ["precision", "recall"]
            for row, point in zip(rows, self.verification.points, strict=True):
                row += [_percent(point.precision), _percent(point.recall)]
        order = np.argsort([-one.threshold for one in self.levels], kind="stable")
        return Grid(tuple(header), tuple(tuple(rows[one]) for one in order), "l" + "r" * (len(header) - 1))

    def _share(self, level: Level) -> str:
        """How many annotated pairs reach a threshold."""
        if not len(self.annotated):
            return "–"
        return f"{100 * float(np.mean(self.annotated >= np.float32(level.threshold))):.0f} %"

    def _notes(self) -> list[str]:
        notes = ["← the threshold. Annotated pairs: how many captions, each against the others of its image, reach it."]
        if self.left_out:
            notes.append(f"Kept: the {len(self):,} highest; {count(self.left_out, 'pair')} more reach the threshold.")
        if (one := self.verification) is not None:
            notes.append(
                f"Measured on the {one.pairs:,} pairs of queries that people judged, {one.positives:,} of them "
                f"verified: precision {_with_interval(one.precision)}, recall {_with_interval(one.recall)}, average "
                f"precision {_percent(one.average_precision)} (guessing: {_percent(one.chance)}). A pair that nobody "
                f"looked at counts as wrong: precision is a lower bound."
            )
        return notes

    def _first_pairs(self, width: int) -> str:
        lines = ["The first:"]
        told = self.table.head(_LOOKED_AT).with_columns(pl.col("text", "image_caption").str.replace_all(r"\s+", " "))
        told = told.unique(("image", pl.col("text").str.to_lowercase()), keep="first", maintain_order=True)
        for image, phi, text, own in told.head(_SHOWN).select("image", "phi", "text", "image_caption").iter_rows():
            lines += textwrap.wrap(
                f"{phi:.4g}  image {image}, “{own}”:", width, initial_indent="  ", subsequent_indent=_INDENT
            )
            lines += textwrap.wrap(f"“{text}”", width, initial_indent=_INDENT, subsequent_indent=_INDENT)
        return "\n".join(lines)


def _quantiles(values: Array) -> dict[str, float]:
    return {f"q{100 * one:g}": float(np.quantile(values, one)) for one in (0.1, 0.25, 0.5, 0.75, 0.9) if len(values)}


def _verification_dict(one: Verification) -> dict[str, Any]:
    return {
        "pairs": one.pairs,
        "positives": one.positives,
        "precision": {"value": one.precision.mean, "low": one.precision.low, "high": one.precision.high},
        "recall": {"value": one.recall.mean, "low": one.recall.low, "high": one.recall.high},
        "average_precision": one.average_precision,
        "chance": one.chance,
        "points": [
            {"threshold": p.threshold, "found": p.found, "precision": p.precision, "recall": p.recall}
            for p in one.points
        ],
    }


def _percent(value: float) -> str:
    if not isfinite(value):
        return "–"
    return f"{100 * value:.1f} %" if value >= 0.001 or value == 0 else f"{100 * value:.2g} %"


def _with_interval(one: Estimate) -> str:
    bounds = f" [{100 * one.low:.1f}, {100 * one.high:.1f}]" if isfinite(one.low) else ""
    return f"{_percent(one.mean)}{bounds}"
