"""Whole datasets with changed images, as folders that every command reads."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError, argument, available_cores, where_option
from crosslens.data import REGION_SIDES, REPAIR_IMAGE, image_files, outer_file, read_image_bytes
from crosslens.engine import Progress, shown_progress, stage
from crosslens.perturbations.images.changes import (
    SEVERITIES,
    ImagePerturbation,
    Move,
    Size,
    image_draws,
    join,
    opened,
    parse_image_perturbation,
    perturb_picture,
    pillow,
    png,
    split,
)
from crosslens.storage import (
    Layout,
    ResumableFolder,
    Workspace,
    atomic_file,
    fingerprint,
    read_header,
    refuse_existing,
    write_header,
)
from crosslens.values import DATASET_LAYOUT, Dataset

REQUEST = "perturbation.json"
DRAWING = 1
"""Raised whenever the same seed gives other pictures than before."""
IMAGES_LAYOUT = Layout("a set of changed images", REQUEST, (DATASET_LAYOUT.marker, *DATASET_LAYOUT.files))
"""Without the pictures: their names are in the dataset."""
LEAST_LEFT = 0.1
"""Share of its box that must still be in the picture, or the object is taken off the list."""
_LONGEST = 100
_AHEAD = 4
"""Pictures in progress for each thread: enough to keep it busy while files are written."""


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
    folder = Path(output)
    images = ChangedImages(dataset, parse_image_perturbation(name), seed, image_folder, skip_bad)

    def write(work: Workspace) -> Dataset:
        changed = replace(images.write(work.new, threads or available_cores(), shown_progress(progress)), home=folder)
        changed.write_into(work.new)
        write_header(work.new / REQUEST, images.requested)
        work.publish(IMAGES_LAYOUT, stored_pictures(folder))
        return changed

    return images.folder(folder, overwrite).make(images.stored_key, images.read, write)


def stored_pictures(folder: Path) -> list[str]:
    """The pictures that were written into a folder: paths within it, as its dataset names them."""
    return Dataset.load(folder).images["file"].to_list() if IMAGES_LAYOUT.holds(folder) else []


@dataclass(frozen=True)
class ChangedImages:
    """The images of a dataset under one change."""

    dataset: Dataset
    change: ImagePerturbation
    seed: int
    image_folder: str | Path | None
    skip_bad: bool

    @cached_property
    def sources(self) -> Sequence[str]:
        """The files of the images as they were."""
        return image_files(self.dataset, self.image_folder, skip_bad=self.skip_bad)

    @cached_property
    def requested(self) -> dict[str, Any]:
        """What decides the content of a folder: the pictures, the change, the seed, and the programs it is done with.

        The sizes of the files are enough to notice other pictures under the same names, without reading them all.
        """
        files = list(dict.fromkeys(map(outer_file, self.sources)))
        sizes = {"sizes": [file.stat().st_size if file.is_file() else None for file in files]}
        return {
            "format": "crosslens/image-perturbation",
            "version": 1,
            "perturbation": str(self.change),
            "amount": self.change.amount,
            "seed": self.seed,
            "dataset": self.dataset.fingerprint,
            "pictures": fingerprint("files", sizes),
            "drawing": DRAWING,
            "pillow": pillow().__version__,
        }

    @property
    def key(self) -> str:
        """Of what decides the content of a folder."""
        return fingerprint("image-perturbation", self.requested)

    def folder(self, path: Path, overwrite: bool) -> ResumableFolder:
        """Where they are written."""

        def why(path: Path) -> str:
            return f" (different: {', '.join(self._different(path))})"

        return ResumableFolder(IMAGES_LAYOUT, path, self.key, overwrite, why, stored_pictures)

    def _different(self, folder: Path) -> list[str]:
        header = read_header(folder / REQUEST, "image-perturbation")
        return [name for name in self.requested if header.get(name) != self.requested[name]]

    def stored_key(self, folder: Path) -> str | None:
        """The key where the folder holds these images, as any Pillow draws them."""
        return self.key if set(self._different(folder)) <= {"pillow"} else None

    def read(self, folder: Path) -> Dataset:
        """The images in a folder; a set that lacks unreadable ones raises, unless those may be missing."""
        existing = Dataset.load(folder)
        missing = self.dataset.images.height - existing.images.height
        if missing and not self.skip_bad:
            count = "1 unreadable image was" if missing == 1 else f"{missing:,} unreadable images were"
            raise InputError(
                f"{count} left out of this set",
                file=folder,
                fix="repair the files and choose another output"
                + where_option("skip_bad", f", or pass {argument('skip_bad', True)}"),
            )
        return existing

    def write(self, folder: Path, threads: int, progress: Progress) -> Dataset:
        """Write the pictures that are not there yet; returns the dataset of all of them."""
        dataset, change, seed = self.dataset, self.change, self.seed
        files = file_names(dataset.image_ids)
        bad = self._write_pictures([folder / file for file in files], threads, progress)
        # A column tells this dataset from one with other pictures.
        label = pl.lit(f"{change} (seed {seed})")
        earlier = "perturbation" in dataset.images.columns and dataset.images.schema["perturbation"] == pl.String
        column = pl.concat_str("perturbation", label, separator=", ", ignore_nulls=True) if earlier else label
        images = dataset.images.with_columns(pl.Series("file", files), perturbation=column)
        changed = replace(dataset, name=f"{dataset.name}-{change}", images=images)
        if bad:
            readable = [image for image in dataset.image_ids if image not in bad]
            if not readable:
                problem = "no image could be read; image {!r} is {}".format(*next(iter(bad.items())))
                raise InputError(problem, fix=f"check {argument('image_folder')}")
            changed = changed.select(readable)
        changed, gone = self._with_moved_boxes(changed, folder)
        unreadable = "picture was" if len(bad) == 1 else "pictures were"
        notes = [
            dataset.card.notes.rstrip(". "),
            f"Pictures changed by {change} ({change.amount:g}: {change.entry.details['unit']}), seed {seed}, "
            f"Pillow {pillow().__version__}; captions are those of the unchanged pictures",
            "Boxes moved with the pictures and cut off at the frame" if change.entry.details["move"] else "",
            f"{gone:,} objects of which less than a tenth was left were taken off" if gone else "",
            f"{len(bad):,} unreadable {unreadable} left out with their captions" if bad else "",
        ]
        return replace(changed, card=replace(dataset.card, notes=". ".join(note for note in notes if note)))

    def _write_pictures(self, targets: Sequence[Path], threads: int, progress: Progress) -> dict[str, str]:
        """Write the missing files; returns the ids of unreadable pictures, and why (with ``skip_bad``).

        Several threads compute, one after the other is written.
        """
        copies = list(zip(self.dataset.image_ids, self.sources, targets, strict=True))
        missing = [copy for copy in copies if not copy[2].exists()]
        bad: dict[str, str] = {}
        label, done = f"changing images: {self.change}", len(copies) - len(missing)
        with stage(progress, label, len(copies), done=done, unit="image"), ThreadPoolExecutor(threads) as pool:
            waiting: deque[tuple[str, str, Path, Future[bytes]]] = deque()
            remaining = iter(missing)
            try:
                while True:
                    while len(waiting) < _AHEAD * threads and (copy := next(remaining, None)) is not None:
                        waiting.append((*copy, pool.submit(self._changed, *copy[:2])))
                    if not waiting:
                        return bad
                    image, source, target, future = waiting.popleft()
                    try:
                        content = future.result()
                    except InputError as error:
                        if not self.skip_bad:
                            problem = f"image {image!r} is {error.problem}"
                            raise InputError(problem, file=source, fix=REPAIR_IMAGE) from error
                        bad[image] = error.problem
                    else:
                        with atomic_file(target) as partial:
                            partial.write_bytes(content)
                    progress.advance()
            finally:
                for *_, future in waiting:
                    future.cancel()

    def _changed(self, image: str, source: str) -> bytes:
        return png(perturb_picture(self.change, _opened(source), seed=self.seed, key=image))

    def _with_moved_boxes(self, dataset: Dataset, folder: Path) -> tuple[Dataset, int]:
        """The dataset with boxes where the objects now are, and how many objects are gone.

        Boxes are cut off at the frame. An object of which less than a tenth is left is gone, with its relations; one
        without a box stays.
        """
        move_of = self.change.entry.details["move"]
        if move_of is None:
            return dataset, 0
        schema = dataset.captions.schema
        regions = [pl.lit(None).cast(schema[side]).alias(side) for side in REGION_SIDES if side in schema]
        dataset = replace(dataset, captions=dataset.captions.with_columns(regions)) if regions else dataset
        if dataset.objects is None or not dataset.objects["x"].count():
            return dataset, 0
        objects = dataset.objects.with_row_index("_row")
        boxed = objects.filter(pl.col("x").is_not_null())
        images = boxed["image"].to_list()
        sizes: dict[str, Size] = {}  # in pixels
        for image, file in dataset.images.select("image", "file").iter_rows():
            with pillow().Image.open(folder / file) as picture:  # reads no more than the size
                sizes[image] = picture.size
        # Boxes may be given for another size than the file has.
        declared: dict[str, Sequence[float | None]] = dict(sizes)
        if {"width", "height"} <= set(dataset.images.columns):
            declared = {image: size for image, *size in dataset.images.select("image", "width", "height").rows()}
        frame = np.array([sizes[image] * 2 for image in images], float)
        units = [
            [side or pixels for side, pixels in zip(declared[image], sizes[image], strict=True)] for image in images
        ]
        stretch = frame / np.tile(units, 2)
        moves = {
            image: move_of(sizes[image], self.change.amount, image_draws(self.change, self.seed, image))
            for image in dict.fromkeys(images)
        }
        move = Move(*np.transpose([moves[image] for image in images]))
        corners = move.corners(boxed.select("x", "y", "w", "h").to_numpy() * stretch)
        inside = np.clip(corners, 0, frame)
        whole, seen = (np.prod(each[:, 2:] - each[:, :2], axis=1) for each in (corners, inside))
        x, y, right, bottom = (inside / stretch).T
        moved = boxed.with_columns(x=x.copy(), y=y.copy(), w=right - x, h=bottom - y)
        moved = moved.filter(pl.Series(seen >= LEAST_LEFT * whole) & (moved["w"] > 0) & (moved["h"] > 0))
        visible = pl.concat([objects.filter(pl.col("x").is_null()), moved]).sort("_row").drop("_row")
        relations = dataset.relations
        if relations is not None:
            for end in ("subject", "object"):
                ends = visible.select("image", pl.col("object").alias(end)).unique()
                relations = relations.join(ends, on=["image", end], how="semi", maintain_order="left")
        return replace(dataset, objects=visible, relations=relations), objects.height - visible.height


def _opened(source: str) -> Any:
    """The picture in a file; the problem of an ``InputError`` says what the image is."""
    try:
        return opened(read_image_bytes(source))
    except OSError as error:
        problem = "missing" if isinstance(error, FileNotFoundError) else f"not readable: {error}"
        raise InputError(problem) from error


def file_names(ids: Sequence[str]) -> list[str]:
    """The path of each picture within the folder: named after its id, or where ids make poor names, numbered."""
    names = [re.sub(r"[^\w.-]+", "-", id).lstrip(".-") for id in ids]
    distinct = len({name.casefold() for name in names}) == len(names)  # some file systems do not tell A from a
    if not distinct or not all(0 < len(name.encode()) <= _LONGEST for name in names):
        names = [f"{row:07d}" for row in range(len(ids))]
    return [f"images/{name}.png" for name in names]


SHEET_IMAGES = 3
"""How many images of a dataset a sheet shows."""
_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
_GAP, _LINE = 6, 18
_PAPER, _INK = (255, 255, 255), (40, 40, 40)


def severity_sheet(
    pictures: Sequence[Any], names: Sequence[str], *, keys: Sequence[str] | None = None, seed: int = 0, side: int = 180
) -> Any:
    """A Pillow picture with a row for each perturbation of each picture: unchanged, then severities 1 to 5.

    ``pictures`` are Pillow pictures or arrays; ``names`` perturbations, whose severity, if one is given, is ignored;
    ``keys`` the images' ids, which decide what chance does to them. ``side`` is the longer side of a shown picture.
    """
    if not pictures or not names:
        raise UsageError("a sheet needs pictures and perturbations", fix="give at least one of each")
    if keys is not None and len(keys) != len(pictures):
        raise UsageError(f"{len(keys)} keys for {len(pictures)} pictures", fix="give each picture its id")
    stems = [parse_image_perturbation(name).name for name in names]
    keys = keys or [str(number) for number in range(len(pictures))]
    rows = []
    for picture, key in zip(pictures, keys, strict=True):
        for stem in stems:
            row = [(f"image {key}", _small(picture, side))]
            for step in (ImagePerturbation(stem, severity) for severity in SEVERITIES):
                changed = perturb_picture(step, picture, seed=seed, key=key)
                row.append((f"{step}: {step.amount:g}", _small(changed, side)))
            rows.append(row)
    heights = [_LINE + max(picture.height for _, picture in row) + _GAP for row in rows]
    sheet = pillow().Image.new("RGB", (len(rows[0]) * (side + _GAP) + _GAP, sum(heights) + _GAP), _PAPER)
    draw = pillow().ImageDraw.Draw(sheet)
    top = _GAP
    for row, height in zip(rows, heights, strict=True):
        for column, (label, picture) in enumerate(row):
            left = _GAP + column * (side + _GAP)
            draw.text((left, top), label, fill=_INK, font=pillow().ImageFont.load_default(12))
            sheet.paste(picture, (left, top + _LINE))
        top += height
    return sheet


def check_sheet(file: Path, *, overwrite: bool = False) -> None:
    """Raise for a file that a sheet cannot be written to: before the work, not after it."""
    if file.suffix.lower() not in _FORMATS:
        raise UsageError(f"{file}: unknown image format", fix=f"use a file name that ends in {', '.join(_FORMATS)}")
    refuse_existing(file, overwrite)


def write_sheet(
    dataset: Dataset,
    names: Sequence[str],
    file: str | Path,
    *,
    seed: int = 0,
    image_folder: str | Path | None = None,
    overwrite: bool = False,
) -> Path:
    """A sheet of a dataset's first images, as the perturbed dataset will show them."""
    file = Path(file)
    check_sheet(file, overwrite=overwrite)
    first_images = dataset.select(dataset.image_ids[:SHEET_IMAGES])
    pictures = []
    for image, source in zip(first_images.image_ids, image_files(first_images, image_folder), strict=True):
        try:
            pictures.append(_opened(source))
        except InputError as error:
            problem = f"image {image!r} is {error.problem}"
            raise InputError(problem, file=source, fix="repair or replace the file") from error
    once = list(dict.fromkeys(parse_image_perturbation(name).name for name in names))
    sheet = severity_sheet(pictures, once, keys=first_images.image_ids, seed=seed)
    with atomic_file(file) as partial:
        sheet.save(partial, _FORMATS[file.suffix.lower()])
    return file


def _small(picture: Any, side: int) -> Any:
    """The picture the right way up, on white where it is transparent, no larger than a cell of the sheet."""
    if isinstance(picture, np.ndarray):
        picture = join(*split(picture), like=pillow().Image.new("L", (1, 1)))
    upright = pillow().ImageOps.exif_transpose(picture).convert("RGBA")
    paper = pillow().Image.new("RGBA", upright.size, (*_PAPER, 255))
    paper.alpha_composite(upright)
    cell = paper.convert("RGB")
    cell.thumbnail((side, side), pillow().Image.Resampling.BICUBIC)
    return cell
