"""A stored model in use: what it makes of pictures, stored features and captions, with vectors or without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from crosslens.core import InputError, UsageError
from crosslens.encode import (
    IMAGES,
    TEXTS,
    Compute,
    EncodeOptions,
    Encoder,
    Pretrained,
    as_picture,
    load_encoder,
    name_of,
    require_modality,
)
from crosslens.engine import Progress, shown_progress
from crosslens.storage import HEADER_FILE, Array, fingerprint, named_by
from crosslens.train.captions import CaptionSource
from crosslens.train.evaluation import divide, score_features
from crosslens.train.features import EMBEDDINGS, ImageFeatures, load_features, shapes_text
from crosslens.train.models.protocol import MODELS, ImageBatch, InputShape
from crosslens.train.stored.model_folder import LoadedModel, load_model
from crosslens.values import Embeddings, match_ids


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
        places = (owners[row] for row in rows)
        return [tuple(array[row] for array in features.arrays().values()) for features, row in places]

    @cached_property
    def _index(self) -> tuple[list[str], list[tuple[ImageFeatures, int]]]:
        """All ids, and where the features of each are."""
        if (self.folder / "images" / HEADER_FILE).is_file():
            stored = Embeddings.load(self.folder / "images", mmap=True)
            parts = [(stored.ids, ImageFeatures.of(stored.vectors))]
        elif not self.folder.is_dir():
            raise UsageError(
                f"the features of {self.model} are not in {self.folder}",
                fix="name the folder that has them: path:MODEL?features=FOLDER",
                option="features",
            )
        else:
            splits = vars(load_features(self.layout, self.folder, self.options, self.model))
            if self.split and self.split not in splits:
                problem, fix = f"{self.folder} has no split {self.split!r}", f"choose from {', '.join(splits)}"
                raise UsageError(problem, fix=fix, option="split")
            searched = [splits[self.split]] if self.split else splits.values()
            parts = [(split.dataset.image_ids, split.features) for split in searched]
        where: dict[str, tuple[ImageFeatures, int]] = {}
        expected = input_shapes(self.shape)
        for ids, features in parts:
            if features.shapes != expected:
                raise InputError(
                    f"features of shape {shapes_text(features.shapes)}",
                    file=self.folder,
                    expected=f"{shapes_text(expected)}, as {self.model} was trained on",
                    fix="name the folder with the features of the same model",
                )
            for row, image in enumerate(ids):
                if image in where:
                    raise UsageError(
                        f"the image {image!r} is in more than one split of {self.folder}",
                        fix="say which split is meant: path:MODEL?split=test",
                        option="split",
                    )
                where[image] = features, row
        return list(where), list(where.values())


def input_shapes(shape: InputShape) -> dict[str, tuple[int, ...]]:
    """The shapes of one image's features, by name, in the order in which they are kept."""
    return {name: size for name, size in (("vectors", (shape.vector,)), ("regions", shape.regions)) if any(size)}


class PixelReader(Encoder):
    """A pretrained model's image processor: pictures in, pixels out, prepared as those that a model was trained on."""

    abilities = frozenset((IMAGES,))

    def __init__(self, pretrained: Pretrained) -> None:
        self._pretrained = pretrained
        self.name, self.revision, self.preprocessing = pretrained.model, pretrained.revision, pretrained.preprocessing

    def encode_images(self, images: Sequence[Any]) -> Array:
        """n×channels×height×width; rounded, as the pixels on disk are that a model is trained on."""
        return self._pretrained.pixels(images).astype(np.float16)


class PictureEncodings(PixelReader):
    """What a model without vectors makes of pictures, the numbers of each in a row: far fewer than its pixels.

    ``on_rows`` is the model where such rows are compared with captions.
    """

    def __init__(self, pretrained: Pretrained, model: Any, name: str, revision: str, device: Any) -> None:
        super().__init__(pretrained)
        self._model, self._device = model, device
        self.name, self.revision = name, fingerprint("pictures", {"model": revision, "encoder": self.revision})
        self.on_rows = SimpleNamespace(
            encode_images=self._unpacked, encode_captions=model.encode_captions, scores=model.scores,
            numbers_per_pair=getattr(model, "numbers_per_pair", lambda images, captions: 1),
        )  # fmt: skip

    def encode_images(self, images: Sequence[Any]) -> Array:
        import torch

        with torch.inference_mode():
            rows = torch.cat([part.flatten(1).float() for part in self._encoded(images)], dim=1)
            return np.asarray(rows.cpu().numpy())

    def _unpacked(self, images: ImageBatch) -> Any:
        """The model's own encoding, a tuple of tensors, of a batch of rows."""
        import torch

        assert images.vectors is not None
        parts = torch.split(images.vectors, [int(np.prod(shape)) for shape in self._shapes], dim=1)
        return tuple(part.reshape(len(part), *shape) for part, shape in zip(parts, self._shapes, strict=True))

    def _encoded(self, pictures: Sequence[Any]) -> Any:
        pixels = ImageFeatures(pixels=super().encode_images(pictures))
        return self._model.encode_images(pixels.batch(slice(None), self._device))

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        """Of the tensors of one picture's encoding."""
        import torch

        with torch.inference_mode():
            return [tuple(part.shape[1:]) for part in self._encoded([np.zeros((8, 8, 3), np.uint8)])]


class TrainedModel:
    """A stored model on its device, with all that it needs to read images and captions."""

    def __init__(self, folder: Path, queried: Mapping[str, str], options: EncodeOptions) -> None:
        self.name = name_of("path", str(folder))
        loaded = load_model(folder, encoder=queried.get("encoder", ""))
        compute = Compute(options, "a trained model")
        self.device, self._type, self._torch = compute.device, compute.dtype, compute.torch
        self.model = loaded.model.to(self.device)
        self.shape, self.vocabulary, card = loaded.shape, loaded.vocabulary, loaded.card
        self.has_vectors = "with" not in queried and bool(MODELS[card["identity"]["model"]].details.get("vectors"))
        self._pretrained = Pretrained(self.shape.encoder, options) if self.shape.encoder else None
        with named_by(folder / HEADER_FILE):
            self._sentences = None
            if not self._pretrained and (text_model := card["identity"].get("text_model")):
                self._sentences = load_encoder(text_model, options)  # frozen, as the model was trained with it
                require_modality(self._sentences, TEXTS)
                _require_revision(self._sentences, str(card.get("text_revision", "")), folder)
            self.pixels = self._pixel_reader(loaded, folder, queried, options)
        self.features = None
        stored, place = card.get("features", {}), queried.get("features")
        if self.pixels is None and (place is not None or stored):  # where it is named, or where the model was trained
            path = folder / str(stored.get("folder", "")) if place is None else Path(place).expanduser()
            layout, further = str(stored.get("layout", "")), dict(stored.get("options", {}))
            split = queried.get("split", "")
            self.features = FeatureFolder(self.name, path.resolve(), layout, further, self.shape, split)
        others = {"text": self._sentences, "pixels": self.pixels}
        revisions = {name: encoder.revision for name, encoder in others.items() if encoder is not None}
        # Without one of them nobody knows whether vectors are still the same, and nothing is cached.
        all_revisions = all(revisions.values())
        self.revision = fingerprint("path", {"model": loaded.revision, **revisions}) if all_revisions else ""
        self._other: TrainedModel | None = None
        if "with" in queried:  # the scores are the mean of both, which are given the same features of images
            rest = {name: value for name, value in queried.items() if name != "with"}
            other = self._other = TrainedModel(Path(queried["with"]).expanduser(), rest, options)
            inputs = [(input_shapes(part.shape), part.pixels and part.pixels.revision) for part in (self, other)]
            if inputs[0] != inputs[1] or not inputs[0][0]:
                raise UsageError(
                    f"{self.name} and {other.name} do not read the same features",
                    fix="average the scores of two models that were trained on the same features",
                    option="model",
                )
            self.name = f"{self.name}?with={other.name.partition(':')[2]}"
            both = (self.revision, other.revision)
            self.revision = fingerprint("mean", dict(zip("ab", both, strict=True))) if all(both) else ""

    def _pixel_reader(
        self, loaded: LoadedModel, folder: Path, queried: Mapping[str, str], options: EncodeOptions
    ) -> Encoder | None:
        """What reads pictures for the model, or makes the embeddings that it was trained on; None where features are
        looked up.
        """
        if self._pretrained is not None and self.shape.pictures:
            if "features" in queried:
                fix = f"leave ?features={queried['features']} out, and name the folder of the pictures"
                raise UsageError(f"{self.name} reads pictures, not features", fix=fix)
            if self.has_vectors:
                return PixelReader(self._pretrained)
            return PictureEncodings(self._pretrained, self.model, self.name, loaded.revision, self.device)
        stored = loaded.card.get("features", {})
        if "encoder" not in queried and ("features" in queried or stored.get("layout") != EMBEDDINGS):
            return None
        made_by, _, revision = str(stored.get("encoder", "")).partition("@")
        name = str(stored.get("options", {}).get("encoder") or made_by)
        if not name and "encoder" not in queried:
            raise InputError(
                "the card does not say which encoder made the features",
                file=folder / HEADER_FILE,
                fix="name it, path:MODEL?encoder=KIND:SOURCE, or name features: path:MODEL?features=FOLDER",
            )
        encoder = load_encoder(queried.get("encoder", name), options)
        require_modality(encoder, IMAGES)
        _require_revision(encoder, revision, folder)
        return encoder

    def images(self, images: Sequence[Any]) -> ImageFeatures:
        """Features from what :meth:`FeatureReader.features_of` gives, or from pictures."""
        if self.pixels is not None and not (images and isinstance(images[0], tuple)):
            images = [(row,) for row in self.pixels.encode_images([as_picture(image) for image in images])]
        kinds = len(input_shapes(self.shape)) or 1
        if not all(isinstance(image, tuple) and len(image) == kinds for image in images):
            raise UsageError(
                f"{self.name} reads stored features of images, not pictures",
                fix="pass what its features_of(image_ids) returns, or name the encoder that makes them: "
                "path:MODEL?encoder=KIND:SOURCE",
            )
        columns: Any = zip(*images, strict=True)
        return ImageFeatures.of(*(np.stack(rows) for rows in columns))

    def captions(self, texts: Sequence[str]) -> CaptionSource:
        if self._pretrained is not None:
            return CaptionSource(tokens=self._pretrained.tokens(texts))
        if self._sentences is None:
            return CaptionSource(*self.vocabulary.encode(texts))
        return CaptionSource(vectors=self._sentences.encode_texts(list(texts)))

    def encode(self, method: str, batch: Any) -> Array:
        with self._torch.inference_mode(), self._precision():
            vectors: Array = getattr(self.model, method)(batch).float().cpu().numpy()
        return vectors

    def scores(self, features: ImageFeatures, texts: Sequence[str], progress: Progress) -> Array:
        model: Any = self.pixels.on_rows if isinstance(self.pixels, PictureEncodings) else self.model
        with self._precision():
            scores = score_features(model, features, self.captions(texts), len(texts), self.device, progress)
        return scores if self._other is None else (scores + self._other.scores(features, texts, progress)) / 2

    def divide(self, images: Sequence[Any], texts: Sequence[str]) -> tuple[list[slice], list[Array]]:
        """Images and texts that are compared with each other at once."""
        if not images or self._sentences is not None:  # which encodes all texts at once
            return [slice(0, len(images))], [np.arange(len(texts))]
        return divide(len(images), self.images(images[:1]).pixels is not None, self.captions(texts), len(texts))

    def _precision(self) -> AbstractContextManager[Any]:
        if self._type == self._torch.float32:
            return nullcontext()
        autocast: AbstractContextManager[Any] = self._torch.autocast(self.device.type, self._type)
        return autocast


class TrainedEncoder(Encoder):
    """A trained model with one vector per image and caption, whose images are pictures."""

    abilities = frozenset((IMAGES, TEXTS))

    def __init__(self, model: TrainedModel) -> None:
        self._model, self.device = model, model.device
        self.name, self.revision = model.name, model.revision

    def encode_images(self, images: Sequence[Any]) -> Array:
        features = self._model.images(images)
        return self._model.encode("encode_images", features.batch(slice(None), self.device))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        return self._model.encode(
            "encode_captions", self._model.captions(texts).batch(np.arange(len(texts)), self.device)
        )


class TrainedScorer(Encoder):
    """A trained model as a scorer of pairs, one by one or all of them; the only form of those without vectors."""

    def __init__(self, model: TrainedModel) -> None:
        self._model, self.device, self.pixels = model, model.device, model.pixels
        self.name, self.revision = model.name, model.revision

    def score_matrix(self, features: Sequence[Any], texts: Sequence[str], progress: Progress | None = None) -> Array:
        return self._model.scores(self._model.images(features), texts, shown_progress(progress))

    def divide(self, features: Sequence[Any], texts: Sequence[str]) -> tuple[list[slice], list[Array]]:
        return self._model.divide(features, texts)

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """n images and n texts → n scores; an image or a text that occurs again is encoded once."""
        keys = [image if isinstance(image, str | Path) else id(image) for image in images]
        row_of = {key: row for row, key in enumerate(dict.fromkeys(keys))}
        column_of = {text: column for column, text in enumerate(dict.fromkeys(texts))}
        scores = self.score_matrix(list(dict(zip(keys, images, strict=True)).values()), list(column_of))
        return scores[[row_of[key] for key in keys], [column_of[text] for text in texts]]


class _ByIds:
    """Images are found by their ids."""

    _model: TrainedModel

    def features_of(self, image_ids: Sequence[str]) -> list[tuple[Array, ...]]:
        if self._model.features is None:
            raise UsageError(
                f"the card of {self._model.name} does not say where features are: it was trained on arrays in memory",
                fix="name a folder that has them: path:MODEL?features=FOLDER",
            )
        return self._model.features.of(image_ids)


class FeatureEncoder(_ByIds, TrainedEncoder):
    """A trained model with one vector per image and caption, whose images are stored features."""


class FeatureScorer(_ByIds, TrainedScorer):
    """A trained model that scores pairs of stored features and captions."""


def _require_revision(encoder: Encoder, revision: str, folder: Path) -> None:
    """Raise for another version of an encoder than the model was trained with."""
    if revision and encoder.revision and not encoder.revision.startswith(revision):
        raise InputError(
            f"{encoder.name} is no longer what the model was trained with: its revision is {encoder.revision[:12]}, "
            f"not {revision[:12]}",
            file=folder / HEADER_FILE,
            fix="restore that version of the encoder, or train the model again",
        )
