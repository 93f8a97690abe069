"""What models are trained on: images' features and captions, in splits."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import InputError, Registry, UsageError, reading
from crosslens.data import image_files, load_dataset, path_options, read_array, read_lines, read_precomputed
from crosslens.encode import PixelRows, Pretrained, stored_pixels
from crosslens.storage import HEADER_FILE, Array, fingerprint, random_stream
from crosslens.train.models.protocol import ImageBatch
from crosslens.train.recipe import call_registered
from crosslens.values import Dataset, Embeddings, align_embeddings

_KINDS = {2: "vectors", 3: "regions", 4: "pixels"}
"""What an array of features is, by its axes."""
EMBEDDINGS = "embeddings"
"""The layout of what ``crosslens encode`` writes."""


@dataclass(frozen=True)
class ImageFeatures:
    """What a model sees of images, row by row: a global vector each, local ones (regions, grid cells), or both.

    Or the pixels of the pictures themselves, for a model that reads them.
    """

    vectors: Array | None = None
    """n×d."""
    regions: Array | None = None
    """n×regions×d."""
    pixels: PixelRows | Array | None = None
    """n×channels×height×width: on disk while a model is trained."""

    def __post_init__(self) -> None:
        if not self._parts():
            raise InputError("no features", expected="images × dimension, images × regions × dimension, or both")
        for name, array in self.arrays().items():
            if array.ndim != (2 if name == "vectors" else 3):
                raise InputError(
                    f"features of shape {array.shape}", expected="images × dimension, or images × regions × dimension"
                )
        if len({len(part) for part in self._parts().values()}) > 1:
            raise InputError(
                " and ".join(f"{len(part)} rows of {name}" for name, part in self._parts().items()),
                expected="one row per image",
            )

    @classmethod
    def of(cls, *arrays: Array) -> ImageFeatures:
        """Features from arrays that tell by their shape what they are."""
        kinds: dict[str, Any] = {_KINDS.get(array.ndim, "regions"): array for array in arrays}
        if len(kinds) < len(arrays):
            raise InputError(
                f"two arrays of features of the shapes {' and '.join(str(array.shape) for array in arrays)}",
                expected="at most one of images × dimension and one of images × regions × dimension",
            )
        return cls(**kinds)

    def _parts(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if part is not None}

    def arrays(self) -> dict[str, Array]:
        """The features in memory, by name."""
        return {name: part for name, part in self._parts().items() if name != "pixels"}

    def identity(self) -> dict[str, Any]:
        """What decides about the features: the arrays, and what stands for pixels."""
        if not isinstance(self.pixels, PixelRows):
            return self._parts()
        return {**self.arrays(), "pixels": self.pixels.key, "pixel rows": self.pixels.rows}

    def __len__(self) -> int:
        return len(next(iter(self._parts().values())))

    def __getitem__(self, rows: Array | slice) -> ImageFeatures:
        return ImageFeatures(**{name: part[rows] for name, part in self._parts().items()})

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of one image, by name."""
        return {name: part.shape[1:] for name, part in self._parts().items()}

    def batch(self, rows: Array | slice, device: Any) -> ImageBatch:
        import torch

        def tensor(part: Any) -> Any:
            values = part[rows].read() if isinstance(part, PixelRows) else part[rows]
            return torch.from_numpy(np.require(values, np.float32, "W")).to(device)  # mapped files are read-only

        return ImageBatch(**{name: tensor(part) for name, part in self._parts().items()})


@dataclass(frozen=True)
class FeatureOrigin:
    """Where features come from: what is needed to find those of other images later."""

    layout: str
    folder: Path
    options: Mapping[str, Any]
    encoder: str = ""
    """The encoder that made them, with the beginning of its revision; empty where that is not known."""

    def seen_from(self, folder: Path) -> dict[str, Any]:
        """For a card in ``folder``: with a relative path, so that both can move together."""
        relative = os.path.relpath(self.folder.resolve(), folder.resolve())
        return {"layout": self.layout, "folder": relative, "options": dict(self.options), "encoder": self.encoder}


@dataclass(frozen=True)
class Split:
    """A dataset and the features of its images, row by row; ``encoder`` made them, where that is known."""

    dataset: Dataset
    features: ImageFeatures
    encoder: str = ""
    origin: FeatureOrigin | None = None

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
        dataset = self.dataset.select([self.dataset.image_ids[row] for row in rows])
        return Split(dataset, self.features[rows], self.encoder, self.origin)


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
                    f"features of shape {shapes_text(split.features.shapes)} in {name} and "
                    f"{shapes_text(self.train.features.shapes)} in train",
                    expected="features of one model in all splits",
                )
            if split.encoder != self.train.encoder:
                raise InputError(
                    f"features by {split.encoder or 'an unknown encoder'} in {name} and by "
                    f"{self.train.encoder or 'an unknown encoder'} in train",
                    expected="features of one model in all splits",
                    fix="encode all splits with the same model",
                )

    def fingerprint(self) -> str:
        """Changes with any caption or feature."""
        return fingerprint("training data", {
            f"{name} {what}": value
            for name, split in vars(self).items()
            for what, value in {"captions": split.dataset.fingerprint, **split.features.identity()}.items()
        })  # fmt: skip


def shapes_text(shapes: Mapping[str, tuple[int, ...]]) -> str:
    """The shapes of an image's features, as errors say them."""
    return " and ".join(map(str, shapes.values()))


FEATURE_SETS: Registry[Callable[..., TrainingData]] = Registry(
    "feature set", "feature_sets", ("crosslens.train.features",)
)
"""Layouts of folders: ``(folder: Path, **options) -> TrainingData``."""


def load_features(layout: str, folder: str | Path, options: Mapping[str, Any], source: str = "recipe") -> TrainingData:
    """The splits in a folder of a registered layout; ``source`` is the recipe that names the options."""
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", fix="name the folder with captions and features", option="data")
    data: TrainingData = call_registered(FEATURE_SETS[layout], options, folder, table="[data]", source=source)
    origin = FeatureOrigin(layout, folder, options, data.train.encoder)
    splits = [copy(split) for split in vars(data).values()]
    for split in splits:  # whose features, which may be large, are checked already
        object.__setattr__(split, "origin", origin)
    return TrainingData(*splits)


@FEATURE_SETS.register("flickr8k")
def flickr8k(folder: Path, *, features: str = "efficientnet_lite0_global.npy") -> TrainingData:
    """Flickr8k's files, with features of all photos in `features/`, row by row as in `features/names.txt`.

    features: the array below `features/`, or a folder `…/images` that `crosslens encode` wrote there; or two, joined by
        `+`: one of global features and one of local ones
    """
    files = [folder / "features" / name.strip() for name in features.split("+")]
    stored: list[tuple[Array, dict[str, int], Path]] = []
    """Arrays, the row of every image by its name, and the file that says so."""
    for file in files:
        if file.is_dir():
            embedded = Embeddings.load(file, mmap=True)
            stored.append((embedded.vectors, {image: row for row, image in enumerate(embedded.ids)}, file))
            continue
        array, name_file = read_array(file), file.parent / "names.txt"
        names = read_lines(name_file)
        if len(names) != len(array):
            raise InputError(
                f"{len(names)} names for {len(array)} rows of {file.name}", file=name_file, expected="one name per row"
            )
        stored.append((array, {name.strip(): row for row, name in enumerate(names)}, name_file))

    def split(list_name: str) -> Split:
        dataset = load_dataset(
            "flickr", captions=folder / "Flickr8k.token.txt", images=folder / f"Flickr_8k.{list_name}Images.txt"
        )
        arrays = []
        for array, row_of, name_file in stored:
            missing = [image for image in dataset.image_ids if image not in row_of]
            if missing:
                raise InputError(f"no features of {missing[0]}", file=name_file, expected="every image's name")
            arrays.append(np.asarray(array[[row_of[image] for image in dataset.image_ids]]))
        with reading(files[0]):
            return Split(dataset, ImageFeatures.of(*arrays))

    return TrainingData(split("train"), split("dev"), split("test"))


@FEATURE_SETS.register("precomp")
def precomp(
    folder: Path, *, captions: int = 5, train: str = "train", validation: str = "dev", test: str = "test"
) -> TrainingData:
    """Precomputed features as VSE++ and its successors keep them: `{split}_ims.npy` and `{split}_caps.txt`.

    The array has a row per image or, with the images repeated, a row per caption. Images are called as by the reader
    `precomputed`: by `{split}_ids.txt` or, without it, `0`, `1`, …

    captions: how many there are of every image
    train: the name of the split to train on
    validation: the name of the split to choose by
    test: the name of the split to report
    """

    if captions < 1:
        raise UsageError(f"captions is {captions}", fix="captions must be at least 1", option="captions")

    def split(name: str) -> Split:
        dataset, stored = read_precomputed(folder, name, captions)
        with reading(folder / f"{name}_ims.npy"):
            return Split(dataset, ImageFeatures.of(np.asarray(stored.vectors)))

    return TrainingData(split(train), split(validation), split(test))


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
    sources = dict(zip(_SPLITS, (train, validation, test), strict=True))
    return TrainingData(*(_split(folder, name, entry) for name, entry in sources.items()))


def _split(folder: Path, name: str, entry: Any) -> Split:
    table = {"source": entry} if isinstance(entry, str) else entry
    if not isinstance(table, Mapping) or not isinstance(table.get("source"), str):
        raise UsageError(
            f"{name} is {entry!r:.80}",
            fix=f'write a path, or a table: {name} = {{ source = "flickr", captions = "captions.txt" }}',
            option=name,
        )
    source, options = table["source"], {key: table[key] for key in table if key not in ("source", EMBEDDINGS)}
    paths = path_options(source, options, folder)  # seen from the folder of the data
    located = {key: str(folder / value) if key in paths else value for key, value in options.items()}
    dataset = load_dataset(str(folder / source) if "source" in paths else source, **located)
    candidates = [folder / str(table[EMBEDDINGS])] if EMBEDDINGS in table else [folder / name, folder]
    folders = (path for candidate in candidates for path in (candidate / _IMAGES, candidate))
    stored_in = next((path for path in folders if (path / HEADER_FILE).is_file()), None)
    if stored_in is None:
        raise InputError(
            f"no embeddings of the {name} images",
            file=candidates[0],
            expected=f"a folder {_IMAGES}, as crosslens encode writes it",
            fix=f"crosslens encode --model KIND:SOURCE --dataset … -o {candidates[0]}",
        )
    stored = Embeddings.load(stored_in, mmap=True)
    with reading(stored_in):
        vectors = align_embeddings(stored, dataset.image_ids, "image").vectors
        return Split(dataset, ImageFeatures.of(vectors), stored.model)


@FEATURE_SETS.register("images")
def images(
    folder: Path,
    *,
    encoder: str = "",
    captions: str = "Flickr8k.token.txt",
    pictures: str = "images",
    train: str = "train",
    validation: str = "",
    test: str = "test",
) -> TrainingData:
    """Pictures and captions, for a model that reads pictures: `dual-encoder`, or `pvse`, `dive` and `pcme` on one.

    The encoder's own image processor prepares every picture once; the pixels are kept in the cache (`CROSSLENS_CACHE`),
    as half-precision numbers: about 300 kB per picture of 224 × 224.

    encoder: the pretrained model, as `KIND:SOURCE` or a path
    captions: the file with the captions: Flickr8k's, with `Flickr_8k.{split}Images.txt` beside it, or a `.json` file of
        Karpathy's splits
    pictures: the folder with the image files
    train: the name of the split to train on
    validation: the name of the split to choose by; without one, `dev`, or `val` of a `.json` file
    test: the name of the split to report
    """
    if not encoder:
        raise UsageError("no encoder", fix='name it in [data]: encoder = "clip:…"', option="encoder")
    pretrained = Pretrained(encoder)

    karpathy = captions.endswith(".json")

    def loaded(name: str) -> Split:
        if karpathy:
            dataset = load_dataset("karpathy", captions=folder / captions, split=name)
        else:
            lines = folder / f"Flickr_8k.{name}Images.txt"
            dataset = load_dataset("flickr", captions=folder / captions, images=lines)
        files = image_files(dataset, folder / pictures)
        return Split(dataset, ImageFeatures(pixels=stored_pixels(pretrained, files)))

    return TrainingData(loaded(train), loaded(validation or ("val" if karpathy else "dev")), loaded(test))
