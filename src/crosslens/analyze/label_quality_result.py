"""What a look at the labels found: the list to review, each run's failures apart, and both as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.label_quality_signals import ALSO_FITS, MOVE, REMOVE
from crosslens.core.dataset import Dataset
from crosslens.core.errors import UsageError
from crosslens.core.json_form import json_form
from crosslens.core.relevance import Relevance
from crosslens.data.files import format_suffix, writing_bytes

ANNOTATED, SUSPECTED = 2, 1
"""Grades in the proposed judgements: what the dataset says, and what is only suspected to fit."""

RUN_COLUMNS: Mapping[str, Any] = {
    "run": pl.String,
    "direction": pl.String,
    "queries": pl.Int64,
    "failures": pl.Int64,
    "words": pl.Int64,
    "same_caption": pl.Int64,
    "same_picture": pl.Int64,
    "annotation": pl.Int64,
    "model": pl.Int64,
}
"""Of each run: its failures, those that are annotation problems by each reason and by any, and the model's."""

REVIEW_SUFFIXES = (".csv", ".parquet", ".jsonl")


@dataclass(frozen=True, eq=False)
class LabelQuality:
    """Labels to review, the most suspect first (``table``), and what remains of each run's failures (``runs``)."""

    dataset: Dataset
    table: pl.DataFrame
    runs: pl.DataFrame
    settings: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.table.height

    @property
    def reasons(self) -> dict[str, int]:
        """How often each reason was found."""
        every = self.table["reason"].str.split(" + ").explode().value_counts(sort=True)
        return dict(zip(every["reason"].to_list(), every["count"].to_list(), strict=True))

    def write(self, path: str | Path, limit: int | None = None) -> Path:
        """The list for the person who reviews it, by the ending .csv, .parquet or .jsonl (.gz too); replaces a file."""
        suffix = check_review_name(path)
        table = self.table if limit is None else self.table.head(limit)
        with writing_bytes(path) as out:
            if suffix == ".csv":
                table.write_csv(out)
            elif suffix == ".jsonl":
                table.write_ndjson(out)
            else:
                table.write_parquet(out)
        return Path(path)

    def relevance(self, limit: int | None = None) -> Relevance:
        """A proposal, images × captions: the annotated pairs with grade 2, and suspected further ones with grade 1."""
        dataset = self.dataset
        pairs = set(zip(dataset.caption_image.tolist(), range(len(dataset.caption_ids)), strict=True))
        image = {one: row for row, one in enumerate(dataset.image_ids)}
        caption = {one: row for row, one in enumerate(dataset.caption_ids)}
        extra = set()
        table = (self.table if limit is None else self.table.head(limit)).filter(
            pl.col("proposal").is_in([ALSO_FITS, MOVE])
        )
        for own, one, other in table.select("image", "caption", "suggested_image").iter_rows():
            if one is not None:
                extra.add((image[other], caption[one]))
            else:  # one picture under two ids
                extra |= {(image[other], row) for owner, row in pairs if owner == image[own]}
                extra |= {(image[own], row) for owner, row in pairs if owner == image[other]}
        listed = [*sorted(pairs), *sorted(extra - pairs)]
        rows, columns = np.array(listed, np.int64).reshape(-1, 2).T
        grades = [ANNOTATED] * len(pairs) + [SUSPECTED] * (len(listed) - len(pairs))
        return Relevance.from_indices(
            dataset.image_ids, dataset.caption_ids, rows, columns, np.array(grades, np.float32), "captions + suspected"
        )

    def left_out(self, limit: int | None = None) -> list[str]:
        """The captions that are better not asked: those that the list proposes to remove or to move."""
        table = self.table if limit is None else self.table.head(limit)
        chosen = table.filter(pl.col("proposal").is_in([REMOVE, MOVE]) & pl.col("caption").is_not_null())
        return chosen["caption"].to_list()

    def as_dict(self, limit: int | None = None) -> dict[str, Any]:
        """Everything as plain values."""
        table = self.table if limit is None else self.table.head(limit)
        plain: dict[str, Any] = json_form(
            {
                "dataset": self.dataset.name,
                "suspects": len(self),
                "reasons": self.reasons,
                "runs": self.runs.to_dicts(),
                "settings": dict(self.settings),
                "notes": list(self.notes),
                "review": table.to_dicts(),
            }
        )
        return plain


def check_review_name(path: str | Path) -> str:
    """The ending of a review file, if it is one that can be written."""
    suffix = format_suffix(path)
    if suffix not in REVIEW_SUFFIXES:
        raise UsageError(
            f"{path}: a list to review is not written as that", fix="end the name in .csv, .parquet or .jsonl"
        )
    return suffix
