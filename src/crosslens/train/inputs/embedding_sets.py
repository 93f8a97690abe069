"""Training on embeddings that ``crosslens encode`` wrote, split by datasets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslens.core import HEADER_FILE, Dataset, Embeddings, InputError, UsageError, align_embeddings, reading
from crosslens.data import load_dataset, path_options
from crosslens.train.inputs.feature_sets import EMBEDDINGS, FEATURE_SETS, ImageFeatures, Split, TrainingData

_SPLITS = ("train", "validation", "test")
_IMAGES = "images"


@FEATURE_SETS.register(EMBEDDINGS)
def embeddings(
    folder: Path,
    *,
    train: Any = "train.jsonl",
    validation: Any = "validation.jsonl",
    test: Any = "test.jsonl",
    encoder: str = "",
) -> TrainingData:
    """Embeddings that `crosslens encode` wrote: in `train/`, `validation/` and `test/`, or of all images in one folder.

    train: the dataset to train on: a path, or a table of a reader's name (`source`) and its options; `embeddings` in
        the table names a folder of its own
    validation: the dataset to choose by
    test: the dataset to report
    encoder: what encodes new pictures, where that is not the name that the embeddings have (a model that was moved)
    """
    named = dict(zip(_SPLITS, (train, validation, test), strict=True))
    return TrainingData(*(_split(folder, name, entry) for name, entry in named.items()))


def _split(folder: Path, name: str, entry: Any) -> Split:
    table = {"source": entry} if isinstance(entry, str) else entry
    if not isinstance(table, Mapping) or not isinstance(table.get("source"), str):
        raise UsageError(
            f"{name} is {entry!r:.80}",
            fix=f'write a path, or a table: {name} = {{ source = "flickr", captions = "captions.txt" }}', option=name,
        )  # fmt: skip
    options = {key: value for key, value in table.items() if key not in ("source", EMBEDDINGS)}
    dataset = _dataset(folder, table["source"], options)
    stored_in = _embedding_folder(folder, name, table.get(EMBEDDINGS))
    stored = Embeddings.load(stored_in, mmap=True)
    with reading(stored_in):
        vectors = align_embeddings(stored, dataset.image_ids, "image").vectors
        return Split(dataset, ImageFeatures.of(vectors), stored.model)


def _dataset(folder: Path, source: str, options: Mapping[str, Any]) -> Dataset:
    """The dataset; its paths are seen from the folder of the data."""
    paths = path_options(source, options, folder)
    moved = {key: str(folder / value) if key in paths else value for key, value in options.items()}
    return load_dataset(str(folder / source) if "source" in paths else source, **moved)


def _embedding_folder(folder: Path, name: str, own: Any) -> Path:
    """The first of these folders that holds embeddings of images."""
    candidates = [folder / str(own)] if own is not None else [folder / name, folder]
    for candidate in candidates:
        for path in (candidate / _IMAGES, candidate):
            if (path / HEADER_FILE).is_file():
                return path
    raise InputError(
        f"no embeddings of the {name} images", file=candidates[0],
        expected=f"a folder {_IMAGES}, as crosslens encode writes it",
        fix=f"crosslens encode --model KIND:SOURCE --dataset … -o {candidates[0]}",
    )  # fmt: skip
