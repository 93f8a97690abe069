"""The folder that changed images are written to: what it is for, and its files.

It is prepared beside its target, where pictures appear in ``images/`` one by one, each complete.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import (
    DATASET_LAYOUT,
    ConflictError,
    Dataset,
    InputError,
    Layout,
    Progress,
    argument,
    atomic_file,
    fingerprint,
    read_header,
    stage,
    tidy_output,
    write_header,
)
from crosslens.data import REPAIR_IMAGE, outer_file, read_image_bytes
from crosslens.perturbations.images.picture import opened, pillow, png
from crosslens.perturbations.images.registry import ImagePerturbation, perturb_picture

REQUEST = "perturbation.json"
PICTURES = "images"
DRAWING = 1
"""Raised whenever the same seed gives other pictures than before."""
IMAGES_LAYOUT = Layout("a set of changed images", REQUEST, (DATASET_LAYOUT.marker, *DATASET_LAYOUT.files))
"""Without the pictures: their names are in the dataset."""
_LONGEST = 100
_AHEAD = 4
"""Pictures in progress for each thread: enough to keep it busy while files are written."""


def request(dataset: Dataset, change: ImagePerturbation, seed: int, sources: Sequence[str]) -> dict[str, Any]:
    """What decides the content of a folder: the pictures, the change, the seed, and the programs it is done with."""
    return {
        "format": "crosslens/image-perturbation",
        "version": 1,
        "perturbation": str(change),
        "amount": change.amount,
        "seed": seed,
        "dataset": dataset.fingerprint,
        "pictures": _sizes_hash(sources),
        "drawing": DRAWING,
        "pillow": pillow().__version__,
    }


def finished(folder: Path, requested: dict[str, Any], overwrite: bool) -> bool:
    """True if the folder holds the requested set; raises if it holds something else."""
    if not IMAGES_LAYOUT.holds(folder):
        return False
    existing = read_header(folder / REQUEST, "image-perturbation")
    changed = [name for name in requested if existing.get(name) != requested[name]]
    if not changed or changed == ["pillow"]:
        tidy_output(folder, key_of(requested))
        return True
    if not overwrite:
        raise ConflictError(
            f"{folder} already contains a different set of changed images (different: {', '.join(changed)})",
            fix=f"choose another output, or pass {argument('overwrite', True)}",
        )
    IMAGES_LAYOUT.refuse_foreign_files(folder, stored_pictures(folder))
    return False


def key_of(requested: dict[str, Any]) -> str:
    """The same for two calls that write the same folder."""
    return fingerprint("image-perturbation", requested)


def stored_pictures(folder: Path) -> list[str]:
    """The pictures that were written into a folder: paths within it, as its dataset names them."""
    return Dataset.load(folder).images["file"].to_list() if IMAGES_LAYOUT.holds(folder) else []


def write_tables(folder: Path, dataset: Dataset, requested: dict[str, Any]) -> None:
    """Put everything beside the pictures."""
    dataset.write_into(folder)
    write_header(folder / REQUEST, requested)


def file_names(ids: Sequence[str]) -> list[str]:
    """The path of each picture within the folder: named after its id, or where ids make poor names, numbered."""
    names = [re.sub(r"[^\w.-]+", "-", id).lstrip(".-") for id in ids]
    distinct = len({name.casefold() for name in names}) == len(names)  # some file systems do not tell A from a
    if not distinct or not all(0 < len(name.encode()) <= _LONGEST for name in names):
        names = [f"{row:07d}" for row in range(len(ids))]
    return [f"{PICTURES}/{name}.png" for name in names]


def _sizes_hash(sources: Sequence[str]) -> str:
    """A hash of the files' sizes: enough to notice other pictures under the same names, without reading them all."""
    files = list(dict.fromkeys(map(outer_file, sources)))
    return fingerprint("files", {"sizes": [file.stat().st_size if file.is_file() else None for file in files]})


@dataclass(frozen=True)
class PictureCopy:
    """One picture: its id, where it is read, where it is written."""

    image: str
    source: str
    target: Path


def write_copies(
    copies: Sequence[PictureCopy],
    change: ImagePerturbation,
    seed: int,
    *,
    threads: int,
    skip_bad: bool,
    progress: Progress,
) -> dict[str, str]:
    """Write the missing files; returns the ids of unreadable pictures, and why (with ``skip_bad``).

    Several threads compute, one after the other is written.
    """
    missing = [copy for copy in copies if not copy.target.exists()]
    bad: dict[str, str] = {}
    with stage(progress, f"changing images: {change}", len(copies)), ThreadPoolExecutor(threads) as pool:
        progress.advance(len(copies) - len(missing))
        waiting: deque[tuple[PictureCopy, Future[bytes]]] = deque()
        left = iter(missing)
        try:
            while True:
                while len(waiting) < _AHEAD * threads and (copy := next(left, None)) is not None:
                    waiting.append((copy, pool.submit(_changed, copy, change, seed)))
                if not waiting:
                    return bad
                copy, future = waiting.popleft()
                _write(copy, future, bad if skip_bad else None)
                progress.advance()
        finally:
            for _, future in waiting:
                future.cancel()


def _changed(copy: PictureCopy, change: ImagePerturbation, seed: int) -> bytes:
    try:
        content = read_image_bytes(copy.source)
    except OSError as error:
        problem = "missing" if isinstance(error, FileNotFoundError) else f"cannot be opened: {error}"
        raise InputError(problem) from error
    return png(perturb_picture(change, opened(content), seed=seed, key=copy.image))


def _write(copy: PictureCopy, future: Future[bytes], bad: dict[str, str] | None) -> None:
    try:
        content = future.result()
    except InputError as error:
        if bad is None:
            raise InputError(
                f"image {copy.image!r} is {error.problem}",
                file=copy.source,
                fix=REPAIR_IMAGE,
            ) from error
        bad[copy.image] = error.problem
        return
    with atomic_file(copy.target) as partial:
        partial.write_bytes(content)
