"""Objects after a change that moves them: new boxes, and nothing that is no longer in the picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.perturb.images.frame import Move, Size

LEAST_LEFT = 0.1
"""Share of its box that must still be in the picture, or the object is taken off the list."""


def moved_objects(dataset: Dataset, moves: Mapping[str, tuple[Move, Size]]) -> tuple[Dataset, int]:
    """The dataset with boxes where the objects now are, and how many objects are gone.

    ``moves`` has, for every image, what happened to it and its size in pixels. Boxes are cut off at the frame. An
    object of which less than a tenth is left is gone, with its relations; one without a box stays.
    """
    if dataset.objects is None or not dataset.objects.height:
        return dataset, 0
    objects = dataset.objects.with_row_index("_row")
    boxed = objects.filter(pl.col("x").is_not_null())
    scales = _scales(dataset, moves)
    parts = [objects.filter(pl.col("x").is_null())]
    for (image,), rows in boxed.group_by(["image"], maintain_order=True):
        move, size = moves[str(image)]
        parts.append(_moved(rows, move, size, scales[str(image)]))
    left = pl.concat(parts).sort("_row").drop("_row")
    gone = objects.height - left.height
    return replace(dataset, objects=left, relations=_between(dataset.relations, left)), gone


def _moved(rows: pl.DataFrame, move: Move, size: Size, scale: tuple[float, float]) -> pl.DataFrame:
    stretch = np.array([*scale, *scale])
    corners = move.corners(rows.select("x", "y", "w", "h").to_numpy() * stretch)
    width, height = size
    inside = np.clip(corners, 0, [width, height, width, height])
    whole, seen = (np.prod(each[:, 2:] - each[:, :2], axis=1) for each in (corners, inside))
    inside /= stretch
    x, y, right, bottom = inside.T
    placed = rows.with_columns(x=pl.lit(pl.Series(x)), y=pl.lit(pl.Series(y)), w=right - x, h=bottom - y)
    return placed.filter(pl.Series(seen >= LEAST_LEFT * whole) & (placed["w"] > 0) & (placed["h"] > 0))


def _scales(dataset: Dataset, moves: Mapping[str, tuple[Move, Size]]) -> dict[str, tuple[float, float]]:
    """Pixels of the picture for each unit of its boxes: boxes may be given for another size than the file has."""
    if not {"width", "height"} <= set(dataset.images.columns):
        return dict.fromkeys(moves, (1.0, 1.0))
    noted = {
        image: (width, height) for image, width, height in dataset.images.select("image", "width", "height").rows()
    }
    return {
        image: (width / (noted[image][0] or width), height / (noted[image][1] or height))
        for image, (_, (width, height)) in moves.items()
    }


def _between(relations: pl.DataFrame | None, objects: pl.DataFrame) -> pl.DataFrame | None:
    """Relations whose two objects are still there."""
    if relations is None:
        return None
    there = objects.select("image", "object")
    for end in ("subject", "object"):
        named = there.rename({"object": end}) if end != "object" else there
        relations = relations.join(named.unique(), on=["image", end], how="semi", maintain_order="left")
    return relations
