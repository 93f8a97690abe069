"""Datasets changed for a comparison: the captions of one style or source, images under other ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from crosslens.core import Dataset, InputError, UnknownNameError

_MOST = 24
"""A column with more values than this does not hold kinds of captions but something else, such as ids."""


def rename_images(dataset: Dataset, names: Sequence[str]) -> Dataset:
    """The dataset with these image ids, in the order of its own."""
    new_name = {old: new for old, new in zip(dataset.image_ids, names, strict=True) if old != new}
    if not new_name:
        return dataset
    tables = {name: getattr(dataset, name) for name in ("images", "captions", "objects", "relations")}
    renamed = pl.col("image").replace(new_name)
    changed: dict[str, Any] = {
        name: table.with_columns(renamed)
        for name, table in tables.items()
        if table is not None and "image" in table.columns
    }
    return replace(dataset, **changed)


def captions_by(dataset: Dataset, column: str) -> dict[str, Dataset]:
    """One dataset per value of a caption (or image) column, in the order in which values appear.

    All of them have all images, so that they can be compared image by image; captions without a value are in none.
    """
    captions = dataset.captions
    if column in captions.columns:
        labels = captions[column]
    elif column in dataset.images.columns:
        labels = captions.join(dataset.images, on="image", how="left", maintain_order="left")[column]
    else:
        raise UnknownNameError("column", column, [*captions.columns, *dataset.images.columns])
    labels = labels.cast(pl.String)
    values = labels.drop_nulls().unique(maintain_order=True).to_list()
    if len(values) > _MOST:
        expected = f"a column that makes at most {_MOST} sets of captions"
        fix = "choose another, such as one for the style or the source of captions"
        raise InputError(f"the column {column!r} has {len(values):,} different values", expected=expected, fix=fix)
    return {value: replace(dataset, name=value, captions=captions.filter(labels == value)) for value in values}


def captions_where(dataset: Dataset, column: str, value: str) -> Dataset:
    """The captions whose ``column`` is ``value``, with all images of the dataset."""
    parts = captions_by(dataset, column)
    if value not in parts:
        raise UnknownNameError(f"value of {column}", value, parts)
    return parts[value]
