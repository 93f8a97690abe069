"""What models are trained on: images' features and captions, in splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import Dataset, InputError, Registry, UsageError, random_stream, reading
from crosslens.data import load_dataset, read_array, read_lines
from crosslens.train.models.protocol import ImageBatch
from crosslens.train.settings import call_registered

Array = np.ndarray[Any, Any]

PER_IMAGE = 5
"""Captions of every image in precomputed features."""


@dataclass(frozen=True)
class ImageFeatures:
    """What a model sees of images, row by row: a global vector each, local ones (regions, grid cells), or both."""

    vectors: Array | None = None
    """n×d."""
    regions: Array | None = None
    """n×regions×d."""

    def __post_init__(self) -> None:
        arrays = self.arrays()
        if not arrays:
            raise InputError("no features", expected="images × dimension, images × regions × dimension, or both")
        for name, array in arrays.items():
            if array.ndim != (2 if name == "vectors" else 3):
                raise InputError(
                    f"features of shape {array.shape}",
                    expected="images × dimension, or images × regions × dimension",
                )
        counts = {len(array) for array in arrays.values()}
        if len(counts) > 1:
            raise InputError(
                " and ".join(f"{len(array)} rows of {name}" for name, array in arrays.items()),
                expected="one row per image",
            )

    @classmethod
    def of(cls, *arrays: Array) -> ImageFeatures:
        """Features from arrays that tell by their shape what they are."""
        kinds = {"vectors" if array.ndim == 2 else "regions": array for array in arrays}
        if len(kinds) < len(arrays):
            raise InputError(
                f"two arrays of features of the shapes {' and '.join(str(array.shape) for array in arrays)}",
                expected="at most one of images × dimension and one of images × regions × dimension",
            )
        return cls(**kinds)

    def arrays(self) -> dict[str, Array]:
        """The arrays there are, by name."""
        return {name: array for name, array in vars(self).items() if array is not None}

    def __len__(self) -> int:
        return len(next(iter(self.arrays().values())))

    def __getitem__(self, rows: Array | slice) -> ImageFeatures:
        return ImageFeatures(**{name: array[rows] for name, array in self.arrays().items()})

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of one image, by name."""
        return {name: array.shape[1:] for name, array in self.arrays().items()}

    def batch(self, rows: Array | slice, device: Any) -> ImageBatch:
        """The features of these rows, there."""
        import torch

        def tensor(array: Array) -> Any:
            return torch.from_numpy(np.asarray(array[rows], np.float32)).to(device)

        return ImageBatch(**{name: tensor(array) for name, array in self.arrays().items()})


@dataclass(frozen=True)
class Split:
    """A dataset and the features of its images, row by row."""

    dataset: Dataset
    features: ImageFeatures

    def __post_init__(self) -> None:
        if len(self.features) != len(self.dataset.image_ids):
            raise InputError(
                f"{len(self.features)} rows of features for {len(self.dataset.image_ids)} images",
                expected="one row per image",
                fix="pass the features of these images, in their order",
            )
        for array in self.features.arrays().values():
            wrong = np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(axis=1))
            if len(wrong):
                raise InputError(
                    f"the features of {self.dataset.image_ids[wrong[0]]} are not finite", row=int(wrong[0]),
                    expected="numbers", fix="compute these features again, or leave the image out",
                )  # fmt: skip

    def part(self, fraction: float, seed: int) -> Split:
        """A share of the images, drawn by the seed: a smaller share is part of a larger one."""
        if not 0 < fraction <= 1:
            raise UsageError(f"fraction is {fraction}", fix="fraction must be above 0 and at most 1", option="fraction")
        if fraction == 1:
            return self
        order = random_stream(seed, "training images").permutation(len(self.features))
        rows = np.sort(order[: max(1, round(fraction * len(order)))])
        return Split(self.dataset.select([self.dataset.image_ids[row] for row in rows]), self.features[rows])


@dataclass(frozen=True)
class TrainingData:
    """The three splits of a collection."""

    train: Split
    validation: Split
    test: Split

    def __post_init__(self) -> None:
        for name, split in vars(self).items():
            if split.features.shapes != self.train.features.shapes:
                raise InputError(
                    f"features of shape {_written(split)} in {name} and {_written(self.train)} in train",
                    expected="features of one model in all splits",
                )


def _written(split: Split) -> str:
    return " and ".join(str(shape) for shape in split.features.shapes.values())


FEATURE_SETS: Registry[Callable[..., TrainingData]] = Registry(
    "feature set", "feature_sets", ("crosslens.train.feature_sets",)
)
"""Layouts of folders: ``(folder: Path, **options) -> TrainingData``."""


def load_features(layout: str, folder: str | Path, options: Mapping[str, Any], source: str = "recipe") -> TrainingData:
    """The splits in a folder of a registered layout; ``source`` is the recipe that names the options."""
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", fix="name the folder with captions and features", option="data")
    data: TrainingData = call_registered(FEATURE_SETS[layout], options, folder, table="[data]", source=source)
    return data


@FEATURE_SETS.register("flickr8k")
def flickr8k(folder: Path, *, features: str = "efficientnet_lite0_global.npy") -> TrainingData:
    """Flickr8k's files, with features of all photos in `features/`, row by row as in `features/names.txt`.

    features: the array below `features/`; or two, joined by `+`: one of global features and one of local ones
    """
    files = [folder / "features" / name.strip() for name in features.split("+")]
    arrays = [read_array(file) for file in files]
    name_file = folder / "features" / "names.txt"
    names = read_lines(name_file)
    for file, array in zip(files, arrays, strict=True):
        if len(names) != len(array):
            raise InputError(
                f"{len(names)} names for {len(array)} rows of {file.name}", file=name_file, expected="one name per row"
            )
    row_of = {name.strip(): row for row, name in enumerate(names)}

    def split(list_name: str) -> Split:
        dataset = load_dataset(
            "flickr", captions=folder / "Flickr8k.token.txt", images=folder / f"Flickr_8k.{list_name}Images.txt"
        )
        missing = [image for image in dataset.image_ids if image not in row_of]
        if missing:
            raise InputError(f"no features of {missing[0]}", file=name_file, expected="every image's name")
        rows = [row_of[image] for image in dataset.image_ids]
        with reading(files[0]):
            return Split(dataset, ImageFeatures.of(*(np.asarray(array[rows]) for array in arrays)))

    return TrainingData(split("train"), split("dev"), split("test"))


@FEATURE_SETS.register("precomp")
def precomp(folder: Path, *, train: str = "train", validation: str = "dev", test: str = "test") -> TrainingData:
    """Precomputed features as VSE++ and its successors keep them: `{split}_ims.npy` and `{split}_caps.txt`.

    The array has a row per image or, with the images repeated, a row per caption; five captions per image.

    train: the name of the split to train on
    validation: the name of the split to choose by
    test: the name of the split to report
    """

    def split(name: str) -> Split:
        caption_file, feature_file = folder / f"{name}_caps.txt", folder / f"{name}_ims.npy"
        captions, features = read_lines(caption_file), read_array(feature_file)
        images, rest = divmod(len(captions), PER_IMAGE)
        if rest or len(features) not in (images, len(captions)):
            raise InputError(
                f"{len(captions)} captions for {len(features)} rows of {feature_file.name}", file=caption_file,
                expected=f"{PER_IMAGE} captions per image, and a row per image or per caption",
            )  # fmt: skip
        step = PER_IMAGE if len(features) == len(captions) else 1
        texts = {f"{name}-{row}": captions[PER_IMAGE * row :][:PER_IMAGE] for row in range(images)}
        with reading(caption_file):
            dataset = Dataset.of(texts, name=f"{folder.name} {name}")
        with reading(feature_file):
            return Split(dataset, ImageFeatures.of(np.asarray(features[::step])))

    return TrainingData(split(train), split(validation), split(test))
