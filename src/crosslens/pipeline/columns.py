"""What results can be grouped by: the dataset's columns, beside the queries of each direction."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.ranking import Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from crosslens.core.run import BOTH
from crosslens.pipeline.sources import TEXT_TO_TEXT

_GROUPABLE = pl.exclude(pl.Struct, pl.Array, pl.Binary)


def columns_of(dataset: Dataset | None, rankings: Mapping[str, Ranking]) -> dict[str, pl.DataFrame]:
    """Per direction, a table aligned with its queries; a caption has its image's columns too."""
    if dataset is None:
        return {}
    images, captions = _of_images(dataset), dataset.captions.select(_GROUPABLE)
    known = images.drop(_shared_by_captions(dataset))
    of_image = known.rename({c: f"image_{c}" for c in known.columns if c in captions.columns and c != "image"})
    of_captions = captions.join(of_image, on="image", how="left", maintain_order="left").drop("caption")
    of = {
        IMAGE_TO_TEXT: images.drop("image"),
        TEXT_TO_IMAGE: of_captions,
        TEXT_TO_TEXT: of_captions,
        BOTH: images.drop("image"),
    }
    present = {*rankings, *([BOTH] if len(rankings) > 1 else [])}
    return {
        one: table
        for one, table in of.items()
        if one in present and table.width and (one == BOTH or table.height == len(rankings[one].query_ids))
    }


def _of_images(dataset: Dataset) -> pl.DataFrame:
    """The images' own columns, the names of their objects, and what all captions of an image agree on."""
    images = dataset.images.select(_GROUPABLE)
    if dataset.objects is not None and "objects" not in images.columns:
        names = dataset.objects.group_by("image").agg(pl.col("name").drop_nulls().unique().sort().alias("objects"))
        images = images.join(names, on="image", how="left", maintain_order="left")
    shared = _shared_by_captions(dataset)
    if shared:
        values = dataset.captions.group_by("image").agg(pl.col(shared).first())
        images = images.join(values, on="image", how="left", maintain_order="left")
    return images


def _shared_by_captions(dataset: Dataset) -> list[str]:
    """Caption columns that say something about the image: a table of captions often carries them in every row."""
    free = [
        name
        for name, kind in dataset.captions.schema.items()
        if name not in ("caption", "image", "text", *dataset.images.columns) and not kind.is_nested()
    ]
    if not free or not dataset.captions.height:
        return []
    differing = dataset.captions.group_by("image").agg(pl.col(free).n_unique()).select(pl.col(free).max())
    # Where no image has two captions, every column would pass: then nothing is known about the image.
    if dataset.captions["image"].n_unique() == dataset.captions.height:
        return []
    return [name for name in free if differing[name][0] == 1]
