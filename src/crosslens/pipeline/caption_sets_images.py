"""The images that two caption sets share, in one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError


def matched(before: Dataset, after: Dataset, *, shared: bool) -> tuple[Dataset, Dataset, list[str]]:
    """Both sets over the same images in the order of ``before``, and what had to be left out for that.

    Unless ``shared``, nothing is: a difference raises. An image without captions in both sets stays: it is there to be
    confused with.
    """
    there = set(after.image_ids)
    both = [one for one in before.image_ids if one in there]
    if not both:
        raise InputError(
            f"{before.name!r} and {after.name!r} share no image: one has {before.image_ids[0]!r}, the other "
            f"{after.image_ids[0]!r}",
            expected="two sets of captions of the same images, under the same ids",
            fix="read both so that ids agree; the reader fine_grained has coco_ids=true for COCO's own ids",
        )
    notes: list[str] = []
    first_name, second_name = told_apart(before.name, after.name)
    sides = ((before, after, first_name, second_name), (after, before, second_name, first_name))
    for one, other, name, other_name in sides:
        known = set(other.image_ids)
        lacking = [image for image in one.image_ids if image not in known]
        _demand(lacking, one, f"{name!r} are not in {other_name!r}", shared, notes)
    before, after = (one if list(one.image_ids) == both else one.select(both) for one in (before, after))
    first, second = set(before.captions["image"]), set(after.captions["image"])
    for one, only, name, other_name in (
        (before, first - second, first_name, second_name),
        (after, second - first, second_name, first_name),
    ):
        lacking = [image for image in one.image_ids if image in only]
        _demand(lacking, one, f"{name!r} are without a caption in {other_name!r}", shared, notes)
    common = pl.Series("image", sorted(first & second), dtype=pl.String)
    if not len(common):
        raise InputError("no image has captions in both sets", fix="check that both are of the same split")
    before, after = (
        replace(one, captions=one.captions.filter(pl.col("image").is_in(common.implode()))) for one in (before, after)
    )
    return before, after, notes


def told_apart(before: str, after: str) -> tuple[str, str]:
    """The names of two sets, which may be one."""
    return (before, after) if before != after else (f"{before} (before)", f"{after} (after)")


def _demand(missing: Sequence[str], one: Dataset, what: str, shared: bool, notes: list[str]) -> None:
    if not missing:
        return
    said = f"{len(missing):,} of the {len(one.image_ids):,} images of {what}"
    if not shared:
        raise InputError(
            f"{said}, the first is {missing[0]!r}",
            expected="two sets of captions of the same images",
            fix="compare the images that both have: shared_images=True, or --shared-images",
        )
    notes.append(f"Left out: {said}.")
