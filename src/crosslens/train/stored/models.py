"""A stored model on its device: what it makes of images and captions, with vectors or without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import HEADER_FILE, InputError, Progress, SilentProgress, UsageError, code_named_by, fingerprint
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
from crosslens.train.inputs.batches import CaptionSource
from crosslens.train.inputs.feature_sets import EMBEDDINGS, ImageFeatures
from crosslens.train.models.protocol import MODELS
from crosslens.train.scoring import divide, score_features
from crosslens.train.stored.features import FeatureFolder, input_shapes
from crosslens.train.stored.loading import load_model
from crosslens.train.stored.pixel_reader import PictureEncodings, PixelReader

Array = np.ndarray[Any, Any]


class TrainedModel:
    """A stored model on its device, with all that it needs to read images and captions."""

    def __init__(self, folder: Path, own: Mapping[str, str], options: EncodeOptions) -> None:
        self.name = name_of("path", str(folder))
        loaded = load_model(folder, encoder=own.get("encoder", ""))
        compute = Compute(options, "a trained model")
        self.device, self._type, self._torch = compute.device, compute.dtype, compute.torch
        self.model = loaded.model.to(self.device)
        self.shape, self.vocabulary, card = loaded.shape, loaded.vocabulary, loaded.card
        self.has_vectors = "with" not in own and bool(MODELS[card["identity"]["model"]].details.get("vectors"))
        self._pretrained = Pretrained(self.shape.encoder, options) if self.shape.encoder else None
        with code_named_by(folder / HEADER_FILE):
            self._sentences = None if self._pretrained else _text_encoder(card, folder, options)
            self.pixels = self._picture_reader(own, loaded.revision) or _pixel_encoder(card, folder, own, options)
        self.features = None if self.pixels is not None else _feature_folder(self, card, folder, own)
        others = {"text": self._sentences, "pixels": self.pixels}
        revisions = {name: encoder.revision for name, encoder in others.items() if encoder is not None}
        # Without one of them nobody knows whether vectors are still the same, and nothing is cached.
        known = all(revisions.values())
        self.revision = fingerprint("path", {"model": loaded.revision, **revisions}) if known else ""
        self._other = self._averaged_with(own, options)
        if self._other is not None:
            self.name = f"{self.name}?with={self._other.name.partition(':')[2]}"
            both = (self.revision, self._other.revision)
            self.revision = fingerprint("mean", dict(zip("ab", both, strict=True))) if all(both) else ""

    def _averaged_with(self, own: Mapping[str, str], options: EncodeOptions) -> TrainedModel | None:
        """The model that ``with`` names: the scores are the mean of both. It is given the same features of images."""
        if "with" not in own:
            return None
        rest = {name: value for name, value in own.items() if name != "with"}
        other = TrainedModel(Path(own["with"]).expanduser(), rest, options)
        inputs = [(input_shapes(part.shape), part.pixels and part.pixels.revision) for part in (self, other)]
        if inputs[0] != inputs[1] or not inputs[0][0]:
            raise UsageError(
                f"{self.name} and {other.name} do not read the same features",
                fix="average the scores of two models that were trained on the same features", option="model",
            )  # fmt: skip
        return other

    def _picture_reader(self, own: Mapping[str, str], revision: str) -> Encoder | None:
        if self._pretrained is None or not self.shape.pictures:
            return None
        if "features" in own:
            fix = f"leave ?features={own['features']} out, and name the folder of the pictures"
            raise UsageError(f"{self.name} reads pictures, not features", fix=fix)
        if self.has_vectors:
            return PixelReader(self._pretrained)
        return PictureEncodings(self._pretrained, self.model, self.name, revision, self.device)

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
        """Captions as the model reads them."""
        if self._pretrained is not None:
            return CaptionSource(None, None, None, self._pretrained.tokens(texts))
        if self._sentences is None:
            return CaptionSource.of_words(tuple(texts), self.vocabulary)
        return CaptionSource(None, None, self._sentences.encode_texts(list(texts)))

    def encode(self, method: str, batch: Any) -> Array:
        """The vectors of a batch."""
        with self._torch.inference_mode(), self._precision():
            vectors: Array = getattr(self.model, method)(batch).float().cpu().numpy()
        return vectors

    def scores(self, features: ImageFeatures, texts: Sequence[str], progress: Progress) -> Array:
        """All scores, in blocks."""
        model: Any = self.pixels.on_rows if isinstance(self.pixels, PictureEncodings) else self.model
        with self._precision():
            own = score_features(model, features, self.captions(texts), len(texts), self.device, progress)
        return own if self._other is None else (own + self._other.scores(features, texts, progress)) / 2

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


class TrainedEncoder:
    """A trained model with one vector per image and caption, whose images are pictures."""

    logit_scale: float | None = None
    dimension: int | None = None
    preprocessing = ""
    abilities = frozenset((IMAGES, TEXTS))

    def __init__(self, model: TrainedModel) -> None:
        self._model, self.device = model, model.device
        self.name, self.revision = model.name, model.revision

    def encode_images(self, images: Sequence[Any]) -> Array:
        """Pictures, or features, to vectors."""
        features = self._model.images(images)
        return self._model.encode("encode_images", features.batch(slice(None), self.device))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """Captions to vectors."""
        return self._model.encode(
            "encode_captions", self._model.captions(texts).batch(np.arange(len(texts)), self.device)
        )


class TrainedScorer:
    """A trained model as a scorer of pairs, one by one or all of them; the only form of those without vectors."""

    logit_scale: float | None = None
    dimension: int | None = None
    preprocessing = ""
    abilities: frozenset[str] = frozenset()

    def __init__(self, model: TrainedModel) -> None:
        self._model, self.device, self.pixels = model, model.device, model.pixels
        self.name, self.revision = model.name, model.revision

    def encode_images(self, images: Sequence[Any]) -> Array:
        """Not possible: there are no vectors."""
        require_modality(self, IMAGES)
        raise AssertionError

    encode_texts = encode_images

    def score_matrix(self, features: Sequence[Any], texts: Sequence[str], progress: Progress | None = None) -> Array:
        """Features of m images, and n texts → m×n scores."""
        return self._model.scores(self._model.images(features), texts, progress or SilentProgress())

    def divide(self, features: Sequence[Any], texts: Sequence[str]) -> tuple[list[slice], list[Array]]:
        """Rows of images and positions of texts that can be compared apart from the others."""
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
        """The stored features of these images."""
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


def _text_encoder(card: Mapping[str, Any], folder: Path, options: EncodeOptions) -> Encoder | None:
    """The frozen sentence encoder that the model was trained with."""
    name = card["identity"].get("text_model")
    if not name:
        return None
    encoder = load_encoder(name, options)
    require_modality(encoder, TEXTS)
    _require_revision(encoder, str(card.get("text_revision", "")), folder)
    return encoder


def _pixel_encoder(
    card: Mapping[str, Any], folder: Path, own: Mapping[str, str], options: EncodeOptions
) -> Encoder | None:
    """The encoder whose embeddings the model was trained on; None where features are looked up."""
    stored = card.get("features", {})
    if "encoder" in own:
        encoder = load_encoder(own["encoder"], options)
    elif "features" in own or stored.get("layout") != EMBEDDINGS:
        return None
    else:
        name = str(stored.get("options", {}).get("encoder") or str(stored.get("encoder", "")).partition("@")[0])
        if not name:
            raise InputError(
                "the card does not say which encoder made the features", file=folder / HEADER_FILE,
                fix="name it, path:MODEL?encoder=KIND:SOURCE, or name features: path:MODEL?features=FOLDER",
            )  # fmt: skip
        encoder = load_encoder(name, options)
    require_modality(encoder, IMAGES)
    _require_revision(encoder, str(stored.get("encoder", "")).partition("@")[2], folder)
    return encoder


def _require_revision(encoder: Encoder, revision: str, folder: Path) -> None:
    """Raise for another version of an encoder than the model was trained with."""
    if revision and encoder.revision and not encoder.revision.startswith(revision):
        raise InputError(
            f"{encoder.name} is no longer what the model was trained with: its revision is {encoder.revision[:12]}, "
            f"not {revision[:12]}",
            file=folder / HEADER_FILE, fix="restore that version of the encoder, or train the model again",
        )  # fmt: skip


def _feature_folder(
    model: TrainedModel, card: Mapping[str, Any], folder: Path, own: Mapping[str, str]
) -> FeatureFolder | None:
    """Where features are looked up: in the folder that is named, or where the model was trained."""
    stored = card.get("features", {})
    named = own.get("features")
    if named is None and not stored:
        return None
    path = Path(named).expanduser() if named is not None else folder / str(stored.get("folder", ""))
    return FeatureFolder(
        model.name, path.resolve(), str(stored.get("layout", "")), dict(stored.get("options", {})), model.shape,
        own.get("split", ""),
    )  # fmt: skip
