"""A folder of changed pictures in the making: what it is to become, what is there, and its last step.

``perturbation.json`` is written first; pictures appear in ``images/`` one by one, each whole; the dataset's header
comes last and says that all is there.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslens.core.atomic import PARTIAL, refuse_strangers, sweep, write_text
from crosslens.core.bundle import HEADER, read_header
from crosslens.core.dataset import Dataset
from crosslens.core.errors import ConflictError
from crosslens.core.fingerprint import fingerprint
from crosslens.data.inside import outer_file
from crosslens.perturb.images.perturbation import ImagePerturbation
from crosslens.perturb.images.planes import pillow

REQUEST = "perturbation.json"
PICTURES = "images"
DRAWING = 1
"""Raised whenever the same seed gives other pictures than before."""
_OWN = (REQUEST, HEADER, "*.parquet", PICTURES)
"""All that such a folder consists of."""
_LONGEST = 100


def request(dataset: Dataset, wanted: ImagePerturbation, seed: int, sources: Sequence[str]) -> dict[str, Any]:
    """What makes two folders the same: the pictures, the change, the seed, and the programs it is done with."""
    return {
        "format": "crosslens/image-perturbation",
        "version": 1,
        "perturbation": str(wanted),
        "amount": wanted.amount,
        "seed": seed,
        "dataset": dataset.fingerprint,
        "pictures": _sizes(sources),
        "drawing": DRAWING,
        "pillow": pillow().__version__,
    }


def finished(folder: Path, wanted: dict[str, Any], overwrite: bool) -> bool:
    """True if the very set stands there complete; raises if something else stands there."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / REQUEST).is_file():
        raise ConflictError(
            f"{folder} exists and is not a set of changed pictures", fix="choose another place: it is not replaced"
        )
    there = read_header(folder / REQUEST, "image-perturbation")
    changed = [name for name in wanted if there.get(name) != wanted[name]]
    complete = (folder / HEADER).exists()
    if not changed or (complete and changed == ["pillow"]):
        return complete
    if not overwrite:
        raise ConflictError(
            f"{folder} holds another set of changed pictures (different: {', '.join(changed)})",
            fix="choose another place, or pass overwrite=True",
        )
    refuse_strangers(folder, _OWN)
    shutil.rmtree(folder)
    return False


def prepare(folder: Path, wanted: dict[str, Any]) -> None:
    """Make the folder, or clear away what a killed process left half written."""
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    sweep(folder / PICTURES)
    sweep(folder)
    if not (folder / REQUEST).exists():
        write_text(folder / REQUEST, json.dumps(wanted, indent=2) + "\n")


def publish(folder: Path, dataset: Dataset) -> None:
    """Put the tables beside the pictures, the header last."""
    with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=folder) as place:
        saved = dataset.save(Path(place) / "dataset")
        for file in sorted(saved.iterdir(), key=lambda file: file.name == HEADER):
            file.replace(folder / file.name)


def file_names(ids: Sequence[str]) -> list[str]:
    """Where each picture goes, seen from the folder: named after its id, or where ids make poor names, numbered."""
    plain = [re.sub(r"[^\w.-]+", "-", one).lstrip(".-") for one in ids]
    distinct = len({one.casefold() for one in plain}) == len(plain)  # some file systems do not tell A from a
    if not distinct or not all(0 < len(one.encode()) <= _LONGEST for one in plain):
        plain = [f"{row:07d}" for row in range(len(ids))]
    return [f"{PICTURES}/{one}.png" for one in plain]


def _sizes(sources: Sequence[str]) -> str:
    """A hash of the files' sizes: enough to notice other pictures under the same names, without reading them all."""
    files = list(dict.fromkeys(map(outer_file, sources)))
    return fingerprint("files", {"sizes": [one.stat().st_size if one.is_file() else None for one in files]})
