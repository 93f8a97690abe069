"""Whole datasets with changed images, as folders that every command reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from crosslens.core import (
    Card,
    Dataset,
    InputError,
    Progress,
    SilentProgress,
    argument,
    available_cores,
    where_option,
    workspace,
)
from crosslens.data import REGION_SIDES, image_files
from crosslens.perturbations.images.folder import (
    IMAGES_LAYOUT,
    PictureCopy,
    file_names,
    finished,
    key_of,
    request,
    stored_pictures,
    write_copies,
    write_tables,
)
from crosslens.perturbations.images.framing import Move, Size
from crosslens.perturbations.images.picture import pillow
from crosslens.perturbations.images.registry import ImagePerturbation, image_draws, parse_image_perturbation

LEAST_LEFT = 0.1
"""Share of its box that must still be in the picture, or the object is taken off the list."""


def perturb_images(
    dataset: Dataset,
    name: str | ImagePerturbation,
    output: str | Path,
    *,
    seed: int = 0,
    threads: int | None = None,
    image_folder: str | Path | None = None,
    skip_bad: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Write the dataset again with every image changed by ``name`` (``blur@3``), and return it.

    Images and captions keep their ids and their order, pictures their size; objects get the boxes they now have, and
    those that a crop or a tilt takes out of the picture are left out (the card says how many). Pictures are written
    without loss. The same arguments give the same bytes, with any number of ``threads`` (default: one per core).
    Interrupted runs resume. A picture that cannot be read raises with its name; with ``skip_bad`` it is left out
    together with its captions.
    """
    folder, change = Path(output), name if isinstance(name, ImagePerturbation) else parse_image_perturbation(name)
    sources = image_files(dataset, image_folder, skip_bad=skip_bad)
    requested = request(dataset, change, seed, sources)
    if finished(folder, requested, overwrite):
        return _complete(Dataset.load(folder), dataset, folder, skip_bad)
    with workspace(folder, key_of(requested)) as work:
        if finished(folder, requested, overwrite):  # by another process, just now
            return _complete(Dataset.load(folder), dataset, folder, skip_bad)
        changed = _write(work.new, dataset, change, seed, sources, threads, skip_bad, progress)
        changed = replace(changed, home=folder)
        write_tables(work.new, changed, requested)
        work.publish(IMAGES_LAYOUT, stored_pictures(folder))
    return changed


def has_images(
    dataset: Dataset, name: str, folder: Path, *, seed: int, image_folder: str | Path | None, skip_bad: bool,
    overwrite: bool,
) -> bool:  # fmt: skip
    """Whether :func:`perturb_images` with these arguments has nothing to do; raises where it would."""
    sources = image_files(dataset, image_folder, skip_bad=skip_bad)
    if not finished(folder, request(dataset, parse_image_perturbation(name), seed, sources), overwrite):
        return False
    _complete(Dataset.load(folder), dataset, folder, skip_bad)
    return True


def _write(
    folder: Path, dataset: Dataset, change: ImagePerturbation, seed: int, sources: Sequence[str], threads: int | None,
    skip_bad: bool, progress: Progress | None,
) -> Dataset:  # fmt: skip
    """Write the pictures that are not there yet; returns the dataset of all of them."""
    files = file_names(dataset.image_ids)
    copies = [
        PictureCopy(image, source, folder / file)
        for image, source, file in zip(dataset.image_ids, sources, files, strict=True)
    ]
    threads, progress = threads or available_cores(), progress or SilentProgress()
    bad = write_copies(copies, change, seed, threads=threads, skip_bad=skip_bad, progress=progress)
    changed = _with_files(dataset, files, change, seed)
    if bad:
        changed = _without(changed, bad)
    changed, gone = _with_moved_boxes(changed, change, seed, folder)
    return replace(changed, card=_card(dataset.card, change, seed, gone, len(bad)))


def _complete(existing: Dataset, dataset: Dataset, folder: Path, skip_bad: bool) -> Dataset:
    """What was written earlier, unless it lacks images and ``skip_bad`` is not set now."""
    missing = dataset.images.height - existing.images.height
    if missing and not skip_bad:
        count = "1 unreadable image was" if missing == 1 else f"{missing:,} unreadable images were"
        raise InputError(
            f"{count} left out of this set",
            file=folder,
            fix="repair the files and choose another output"
            + where_option("skip_bad", f", or pass {argument('skip_bad', True)}"),
        )
    return existing


def _with_files(dataset: Dataset, files: Sequence[str], change: ImagePerturbation, seed: int) -> Dataset:
    """The images' new files, and a column that tells this dataset from one with other pictures."""
    label = pl.lit(f"{change} (seed {seed})")
    earlier = "perturbation" in dataset.images.columns and dataset.images.schema["perturbation"] == pl.String
    column = pl.concat_str("perturbation", label, separator=", ", ignore_nulls=True) if earlier else label
    images = dataset.images.with_columns(pl.Series("file", files), perturbation=column)
    return replace(dataset, name=f"{dataset.name}-{change}", images=images)


def _without(dataset: Dataset, bad: Mapping[str, str]) -> Dataset:
    readable = [image for image in dataset.image_ids if image not in bad]
    if not readable:
        first = next(iter(bad))
        raise InputError(
            f"no image could be read; image {first!r} is {bad[first]}", fix=f"check {argument('image_folder')}"
        )
    return dataset.select(readable)


def _with_moved_boxes(dataset: Dataset, change: ImagePerturbation, seed: int, folder: Path) -> tuple[Dataset, int]:
    """The dataset with boxes where the objects now are, and how many objects are gone."""
    move = change.entry.details["move"]
    if move is None:
        return dataset, 0
    moves = {}
    for image, file in dataset.images.select("image", "file").iter_rows():
        with pillow().Image.open(folder / file) as picture:  # reads no more than the size
            size = picture.size
        moves[image] = move(size, change.amount, image_draws(change, seed, image)), size
    schema = dataset.captions.schema
    regions = [pl.lit(None).cast(schema[side]).alias(side) for side in REGION_SIDES if side in schema]
    dataset = replace(dataset, captions=dataset.captions.with_columns(regions)) if regions else dataset
    return moved_objects(dataset, moves)


def _card(card: Card, change: ImagePerturbation, seed: int, gone: int, bad: int) -> Card:
    """The card with what was done to the images added to its notes."""
    unreadable = "picture was" if bad == 1 else "pictures were"
    notes = [
        card.notes.rstrip(". "),
        f"Pictures changed by {change} ({change.amount:g}: {change.entry.details['unit']}), seed {seed}, "
        f"Pillow {pillow().__version__}; captions are those of the unchanged pictures",
        "Boxes moved with the pictures and cut off at the frame" if change.entry.details["move"] else "",
        f"{gone:,} objects of which less than a tenth was left were taken off" if gone else "",
        f"{bad:,} unreadable {unreadable} left out with their captions" if bad else "",
    ]
    return replace(card, notes=". ".join(note for note in notes if note))


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
        parts.append(_moved_boxes(rows, move, size, scales[str(image)]))
    left = pl.concat(parts).sort("_row").drop("_row")
    gone = objects.height - left.height
    return replace(dataset, objects=left, relations=_between(dataset.relations, left)), gone


def _moved_boxes(rows: pl.DataFrame, move: Move, size: Size, scale: tuple[float, float]) -> pl.DataFrame:
    stretch = np.array([*scale, *scale])
    corners = move.corners(rows.select("x", "y", "w", "h").to_numpy() * stretch)
    width, height = size
    inside = np.clip(corners, 0, [width, height, width, height])
    whole, seen = (np.prod(each[:, 2:] - each[:, :2], axis=1) for each in (corners, inside))
    inside /= stretch
    x, y, right, bottom = inside.T
    moved = rows.with_columns(x=pl.lit(pl.Series(x)), y=pl.lit(pl.Series(y)), w=right - x, h=bottom - y)
    return moved.filter(pl.Series(seen >= LEAST_LEFT * whole) & (moved["w"] > 0) & (moved["h"] > 0))


def _scales(dataset: Dataset, moves: Mapping[str, tuple[Move, Size]]) -> dict[str, tuple[float, float]]:
    """Pixels of the picture for each unit of its boxes: boxes may be given for another size than the file has."""
    if not {"width", "height"} <= set(dataset.images.columns):
        return dict.fromkeys(moves, (1.0, 1.0))
    declared = {image: size for image, *size in dataset.images.select("image", "width", "height").rows()}
    return {
        image: (width / (declared[image][0] or width), height / (declared[image][1] or height))
        for image, (_, (width, height)) in moves.items()
    }


def _between(relations: pl.DataFrame | None, objects: pl.DataFrame) -> pl.DataFrame | None:
    """The relations whose two objects are left."""
    if relations is None:
        return None
    for end in ("subject", "object"):
        ends = objects.select("image", pl.col("object").alias(end)).unique()
        relations = relations.join(ends, on=["image", end], how="semi", maintain_order="left")
    return relations
