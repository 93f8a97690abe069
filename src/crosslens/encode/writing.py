"""An encoded dataset as a folder: the embeddings of its images and of its captions, written and replaced together."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from crosslens.core import (
    DATASET_LAYOUT,
    EMBEDDINGS_LAYOUT,
    HEADER_FILE,
    ConflictError,
    CrosslensError,
    Dataset,
    Embeddings,
    Layout,
    argument,
    atomic_folder,
    tidy_output,
)
from crosslens.encode.dataset import Encoded

_EMBEDDINGS = ("images", "captions")
_DATASET = "dataset"
_LAYOUT = Layout(
    "a folder of embeddings",
    f"*/{HEADER_FILE}",
    (*(file for part in _EMBEDDINGS for file in EMBEDDINGS_LAYOUT.within(part)), *DATASET_LAYOUT.within(_DATASET)),
)


def save_encoded(encoded: Encoded, output: str | Path, *, overwrite: bool = False) -> dict[str, Path]:
    """Write ``images/`` and ``captions/``; returns their paths. Other embeddings are replaced only with ``overwrite``.

    Where images were skipped there is also ``dataset/``, without them: embeddings of a part of a dataset can be
    evaluated only with that part.
    """
    output = Path(output)
    embeddings = zip(_EMBEDDINGS, (encoded.images, encoded.captions), strict=True)
    parts: dict[str, Embeddings | Dataset] = {name: part for name, part in embeddings if part is not None}
    if encoded.skipped:
        parts[_DATASET] = encoded.dataset
    written = {name: output / name for name in parts}
    if _LAYOUT.holds(output) and not overwrite:
        if not _is_stored(parts, output):
            fix = f"choose another output, or pass {argument('overwrite', True)}"
            raise ConflictError(f"{output} already contains other embeddings", fix=fix)
        tidy_output(output)
        return written
    with atomic_folder(output, _LAYOUT) as folder:
        for name, part in parts.items():
            part.save(folder / name)
    return written


def _is_stored(parts: Mapping[str, Embeddings | Dataset], folder: Path) -> bool:
    """Whether the folder holds exactly these."""
    if sorted(path.name for path in folder.iterdir() if path.is_dir()) != sorted(parts):
        return False
    with suppress(CrosslensError):
        return all(_fingerprint(name, folder / name) == part.fingerprint for name, part in parts.items())
    return False


def _fingerprint(name: str, folder: Path) -> str:
    return (Dataset.load(folder) if name == _DATASET else Embeddings.load(folder, mmap=True)).fingerprint
