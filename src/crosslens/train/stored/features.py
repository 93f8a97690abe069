"""The features of images that a trained model is asked about, found by the images' ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import HEADER_FILE, Embeddings, InputError, UsageError, match_ids
from crosslens.train.inputs.feature_sets import ImageFeatures, load_features
from crosslens.train.models.protocol import InputShape

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class FeatureFolder:
    """Features in a folder of a registered layout, or in one that ``crosslens encode`` wrote.

    ``split`` restricts the search to one split: images may share their ids with those of another.
    """

    model: str
    """The name of the model, for messages."""
    folder: Path
    layout: str
    options: Mapping[str, Any]
    shape: InputShape
    split: str = ""

    def of(self, image_ids: Sequence[str]) -> list[tuple[Array, ...]]:
        """The features of each image; an image without any raises."""
        ids, owners = self._index
        rows = match_ids(image_ids, ids)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            raise InputError(
                f"no features of the image {image_ids[missing[0]]!r}{more}", file=self.folder,
                expected=f"features of every image that {self.model} is asked about; here are those of {len(ids):,}",
                fix="name a folder that has them: path:MODEL?features=FOLDER", code="unknown-id",
                subject=image_ids[missing[0]],
            )  # fmt: skip
        return [_row(*owners[row]) for row in rows]

    @cached_property
    def _index(self) -> tuple[list[str], list[tuple[ImageFeatures, int]]]:
        """All ids, and where the features of each are."""
        where: dict[str, tuple[ImageFeatures, int]] = {}
        for ids, features in self._parts():
            self._check(features)
            for row, image in enumerate(ids):
                if image in where:
                    raise UsageError(
                        f"the image {image!r} is in more than one split of {self.folder}",
                        fix="say which split is meant: path:MODEL?split=test", option="split",
                    )  # fmt: skip
                where[image] = features, row
        return list(where), list(where.values())

    def _parts(self) -> list[tuple[Sequence[str], ImageFeatures]]:
        if (self.folder / "images" / HEADER_FILE).is_file():
            stored = Embeddings.load(self.folder / "images", mmap=True)
            return [(stored.ids, ImageFeatures.of(stored.vectors))]
        if not self.folder.is_dir():
            raise UsageError(
                f"the features of {self.model} are not in {self.folder}",
                fix="name the folder that has them: path:MODEL?features=FOLDER", option="features",
            )  # fmt: skip
        splits = vars(load_features(self.layout, self.folder, self.options, self.model))
        if self.split and self.split not in splits:
            problem, fix = f"{self.folder} has no split {self.split!r}", f"choose from {', '.join(splits)}"
            raise UsageError(problem, fix=fix, option="split")
        chosen = [splits[self.split]] if self.split else splits.values()
        return [(split.dataset.image_ids, split.features) for split in chosen]

    def _check(self, features: ImageFeatures) -> None:
        expected = input_shapes(self.shape)
        if features.shapes != expected:
            raise InputError(
                f"features of shape {_written(features.shapes)}", file=self.folder,
                expected=f"{_written(expected)}, as {self.model} was trained on",
                fix="name the folder with the features of the same model",
            )  # fmt: skip


def input_shapes(shape: InputShape) -> dict[str, tuple[int, ...]]:
    """The shapes of one image's features, by name, in the order in which they are kept."""
    return {
        **({"vectors": (shape.vector,)} if shape.vector else {}),
        **({"regions": shape.regions} if shape.regions else {}),
    }


def _row(features: ImageFeatures, row: int) -> tuple[Array, ...]:
    return tuple(array[row] for array in features.arrays().values())


def _written(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return " and ".join(str(shape) for shape in shapes.values())
