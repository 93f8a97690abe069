"""A sheet that shows what the severities do to some images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import ConflictError, Dataset, InputError, UsageError, argument, atomic_file
from crosslens.data import image_files, read_image_bytes
from crosslens.perturbations.images.picture import join, opened, pillow, split
from crosslens.perturbations.images.registry import (
    SEVERITIES,
    ImagePerturbation,
    parse_image_perturbation,
    perturb_picture,
)

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
    rows = [_row(name, picture, key, seed) for picture, key in zip(pictures, keys, strict=True) for name in stems]
    shown = [[(label, _small(picture, side)) for label, picture in row] for row in rows]
    heights = [_LINE + max(picture.height for _, picture in row) + _GAP for row in shown]
    sheet = pillow().Image.new("RGB", (len(shown[0]) * (side + _GAP) + _GAP, sum(heights) + _GAP), _PAPER)
    draw = pillow().ImageDraw.Draw(sheet)
    top = _GAP
    for row, height in zip(shown, heights, strict=True):
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
    if file.exists() and not overwrite:
        raise ConflictError(f"{file} already exists", fix=f"choose another name, or pass {argument('overwrite', True)}")


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
    shown = dataset.select(dataset.image_ids[:SHEET_IMAGES])
    pictures = list(map(_opened, shown.image_ids, image_files(shown, image_folder)))
    once = list(dict.fromkeys(parse_image_perturbation(name).name for name in names))
    sheet = severity_sheet(pictures, once, keys=shown.image_ids, seed=seed)
    with atomic_file(file) as partial:
        sheet.save(partial, _FORMATS[file.suffix.lower()])
    return file


def _opened(image: str, source: str) -> Any:
    try:
        return opened(read_image_bytes(source))
    except OSError as error:
        raise InputError(f"image {image!r} cannot be opened: {error}", file=source) from error
    except InputError as error:
        problem = f"image {image!r} is {error.problem}"
        raise InputError(problem, file=source, fix="repair or replace the file") from error


def _row(name: str, picture: Any, key: str, seed: int) -> list[tuple[str, Any]]:
    steps = [ImagePerturbation(name, severity) for severity in SEVERITIES]
    changed = [(f"{step}: {step.amount:g}", perturb_picture(step, picture, seed=seed, key=key)) for step in steps]
    return [(f"image {key}", picture), *changed]


def _small(picture: Any, side: int) -> Any:
    """The picture the right way up, on white where it is transparent, no larger than a cell of the sheet."""
    if isinstance(picture, np.ndarray):
        picture = join(*split(picture), like=pillow().Image.new("L", (1, 1)))
    upright = pillow().ImageOps.exif_transpose(picture).convert("RGBA")
    paper = pillow().Image.new("RGBA", upright.size, (*_PAPER, 255))
    paper.alpha_composite(upright)
    shown = paper.convert("RGB")
    shown.thumbnail((side, side), pillow().Image.Resampling.BICUBIC)
    return shown
