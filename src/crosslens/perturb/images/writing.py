"""Whole datasets with changed pictures, as folders that every command reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from crosslens.core.dataset import Card, Dataset
from crosslens.core.errors import InputError
from crosslens.core.machine import available_cores
from crosslens.core.progress import Progress, Silent
from crosslens.data.genome_writing import REGION_SIDES
from crosslens.data.picture_files import image_files
from crosslens.perturb.images.boxes import moved_objects
from crosslens.perturb.images.copies import Copy, write_copies
from crosslens.perturb.images.folder import file_names, finished, prepare, publish, request
from crosslens.perturb.images.perturbation import ImagePerturbation, parse_image_perturbation
from crosslens.perturb.images.picture import draws_of
from crosslens.perturb.images.planes import pillow


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
    """Write the dataset again with every picture changed by ``name`` (``blur@3``), and return it.

    Images and captions keep their ids and their order, pictures their size; objects get the boxes they now have, and
    those that a crop or a tilt takes out of the picture are left out (the card says how many). Pictures are written
    without loss. The same arguments give the same bytes, with any number of ``threads`` (default: one per core). What
    a stopped run left is gone on with. A picture that cannot be read raises with its name; with ``skip_bad`` it is left
    out together with its captions.
    """
    folder, wanted = Path(output), name if isinstance(name, ImagePerturbation) else parse_image_perturbation(name)
    sources = image_files(dataset, image_folder, skip_bad=skip_bad)
    asked = request(dataset, wanted, seed, sources)
    if finished(folder, asked, overwrite):
        return _complete(Dataset.load(folder), dataset, folder, skip_bad)
    prepare(folder, asked)
    files = file_names(dataset.image_ids)
    copies = [Copy(*one[:2], folder / one[2]) for one in zip(dataset.image_ids, sources, files, strict=True)]
    bad = write_copies(
        copies, wanted, seed, threads=threads or available_cores(), skip_bad=skip_bad, progress=progress or Silent()
    )
    made = _with_files(dataset, files, wanted, seed)
    if bad:
        made = _without(made, bad)
    made, gone = _moved(made, wanted, seed, folder)
    made = replace(made, home=folder, card=_card(dataset.card, wanted, seed, gone, len(bad)))
    publish(folder, made)
    return made


def _complete(made: Dataset, dataset: Dataset, folder: Path, skip_bad: bool) -> Dataset:
    """What was made earlier, unless it lacks pictures that nobody allows to be lacking now."""
    lacking = dataset.images.height - made.images.height
    if lacking and not skip_bad:
        said = "1 image was" if lacking == 1 else f"{lacking:,} images were"
        raise InputError(
            f"{said} left out of this set, being unreadable",
            file=folder,
            fix="repair the files and choose another place, or pass --skip-bad (skip_bad=True)",
        )
    return made


def _with_files(dataset: Dataset, files: Sequence[str], wanted: ImagePerturbation, seed: int) -> Dataset:
    """The images' new files, and a column that tells this dataset from one with other pictures."""
    change = f"{wanted} (seed {seed})"
    earlier = "perturbation" in dataset.images.columns and dataset.images.schema["perturbation"] == pl.String
    column = (
        pl.concat_str("perturbation", pl.lit(change), separator=", ", ignore_nulls=True) if earlier else pl.lit(change)
    )
    images = dataset.images.with_columns(pl.Series("file", files), perturbation=column)
    return replace(dataset, name=f"{dataset.name}-{wanted}", images=images)


def _without(dataset: Dataset, bad: Mapping[str, str]) -> Dataset:
    left = [one for one in dataset.image_ids if one not in bad]
    if not left:
        first = next(iter(bad))
        raise InputError(f"no image could be read; image {first!r} is {bad[first]}", fix="check --image-folder")
    return dataset.select(left)


def _moved(dataset: Dataset, wanted: ImagePerturbation, seed: int, folder: Path) -> tuple[Dataset, int]:
    """Boxes where things now are; how many objects are gone."""
    move = wanted.entry.details["move"]
    if move is None:
        return dataset, 0
    moves = {}
    for image, file in dataset.images.select("image", "file").iter_rows():
        with pillow().Image.open(folder / file) as picture:  # reads no more than the size
            size = picture.size
        moves[image] = move(size, wanted.amount, draws_of(wanted, seed, image)), size
    regions = [name for name in REGION_SIDES if name in dataset.captions.columns]
    if regions:
        captions = dataset.captions.with_columns(
            pl.lit(None).cast(dataset.captions.schema[one]).alias(one) for one in regions
        )
        dataset = replace(dataset, captions=captions)
    return moved_objects(dataset, moves)


def _card(card: Card, wanted: ImagePerturbation, seed: int, gone: int, bad: int) -> Card:
    """Where it came from stays; what was done to the pictures is added."""
    notes = [
        card.notes.rstrip(". "),
        f"Pictures changed by {wanted} ({wanted.amount:g}: {wanted.entry.details['unit']}), seed {seed}, "
        f"Pillow {pillow().__version__}; captions are those of the unchanged pictures",
        "Boxes moved with the pictures and cut off at the frame" if wanted.entry.details["move"] else "",
        f"{gone:,} objects of which less than a tenth was left were taken off" if gone else "",
        f"{bad:,} unreadable {'picture was' if bad == 1 else 'pictures were'} left out with their captions"
        if bad
        else "",
    ]
    return replace(card, notes=". ".join(one for one in notes if one))
