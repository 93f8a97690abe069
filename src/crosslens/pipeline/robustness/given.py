"""Variants that are there already: folders that ``crosslens perturb`` wrote, and vectors in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crosslens.core.bundle import HEADER, read_header
from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError
from crosslens.data.files import existing_file, read_array
from crosslens.perturb.choice import is_image_perturbation

_NPY = ".npy"


def read_variants(folder: str | Path) -> tuple[dict[str, Any], dict[str, Dataset]]:
    """By perturbation, the vectors and the datasets that stand in a folder.

    ``char_swap.npy`` holds vectors in the order of the dataset's captions (``blur@3.npy``: of its images), a folder
    ``char_swap/`` embeddings with ids, or a dataset.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("no such folder", file=folder, expected="the folder of the variants", fix="check the path")
    vectors: dict[str, Any] = {}
    datasets: dict[str, Dataset] = {}
    for part in sorted(folder.iterdir()):
        name = part.name.removesuffix(_NPY)
        if part.suffix == _NPY:
            vectors[name] = _as_variant(name, read_array(part))
        elif (part / HEADER).is_file():
            if _kind(part) == "crosslens/embeddings":
                vectors[name] = _as_variant(name, Embeddings.load(part))
            elif _kind(part) == "crosslens/dataset":
                datasets[name] = Dataset.load(part)
    if not vectors and not datasets:
        raise InputError(
            "no variants here",
            file=folder,
            expected="NAME.npy, or folders NAME with embeddings or a dataset, each named by its perturbation",
            fix="write them with crosslens perturb -o",
        )
    return vectors, datasets


def read_vectors(path: str | Path | None) -> Any:
    """Vectors from a ``.npy`` file or an embeddings folder; None for None."""
    if path is None:
        return None
    return Embeddings.load(path) if Path(path).is_dir() else read_array(existing_file(path))


def _as_variant(name: str, vectors: Any) -> Any:
    return (vectors, None) if is_image_perturbation(name) else vectors


def _kind(folder: Path) -> str:
    try:
        return str(json.loads((folder / HEADER).read_text(encoding="utf-8")).get("format"))
    except (ValueError, AttributeError):
        return str(read_header(folder / HEADER, "dataset"))  # raises, and says what is wrong
