"""Pictures to train on: pixels as a pretrained model sees them, computed once and kept on disk."""

from __future__ import annotations

from pathlib import Path

from crosslens.core import Dataset, UsageError
from crosslens.data import image_files, load_dataset
from crosslens.encode import Pretrained, stored_pixels
from crosslens.train.inputs.feature_sets import FEATURE_SETS, ImageFeatures, Split, TrainingData


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

    def dataset(split: str) -> Dataset:
        if captions.endswith(".json"):
            return load_dataset("karpathy", captions=folder / captions, split=split)
        return load_dataset("flickr", captions=folder / captions, images=folder / f"Flickr_8k.{split}Images.txt")

    def loaded(name: str) -> Split:
        chosen = dataset(name)
        files = image_files(chosen, folder / pictures)
        return Split(chosen, ImageFeatures(pixels=stored_pixels(pretrained, files)))

    return TrainingData(
        loaded(train), loaded(validation or ("val" if captions.endswith(".json") else "dev")), loaded(test)
    )
