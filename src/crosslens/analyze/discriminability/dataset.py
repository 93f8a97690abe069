"""The discriminability of a dataset's captions: dis(t) of each, the shares inside and outside the band of η."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.caption_features import (
    CaptionFeatures,
    FeatureChange,
    FeatureComparison,
    compare_features,
    distribution_lines,
)
from crosslens.analyze.discriminability.measure import (
    BINS,
    Discriminability,
    default_temperature,
    entropy_histogram,
    measure_discriminability,
)
from crosslens.analyze.discriminability.options import DiscriminabilityOptions, entropy_band
from crosslens.core import (
    Cards,
    Dataset,
    Embeddings,
    Figure,
    Histogram,
    InputError,
    Part,
    PictureCard,
    Progress,
    Section,
    UsageError,
    align_embeddings,
    argument,
    frozen,
    match_ids,
)
from crosslens.encode import (
    IMAGES,
    TEXTS,
    Cache,
    EncodeOptions,
    Encoder,
    encode_captions,
    encode_dataset,
    images_from_captions,
    load_encoder,
    require_modality,
)
from crosslens.statistics import Estimate

BAND_FEATURES = {"in_band": "in the band", "below_band": "below: too detailed", "above_band": "above: too vague"}
"""Shares of captions by where dis(t) lies."""


@dataclass(frozen=True, eq=False)
class DatasetDiscriminability(CaptionFeatures):
    """dis(t) of every caption of a dataset over its other images.

    Features: ``dis`` in nats, ``relative`` = dis / ln k, and 0 or 1 for ``in_band``, ``below_band``, ``above_band``.
    ``gallery`` are the images that the positions of ``check.neighbours`` count.
    """

    texts: tuple[str, ...]
    check: Discriminability
    gallery: tuple[str, ...]
    eta: float
    model: str
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def band(self) -> tuple[float, float]:
        return entropy_band(self.check.k, self.eta)

    @property
    def table(self) -> pl.DataFrame:
        """One row per caption: its text, its features, and the other image that fits it best with its cosine."""
        neighbours = self.check.neighbours
        nearest = [self.gallery[item] for item in neighbours.items[:, 0]]
        return super().table.with_columns(
            pl.Series("nearest", nearest, dtype=pl.String),
            pl.Series("cosine", neighbours.cosines[:, 0]),
            pl.Series("text", self.texts, dtype=pl.String),
        )

    def extremes(self, count: int, *, least: bool) -> pl.DataFrame:
        """The least discriminable captions (the highest dis first), or the most; equal ones in the dataset's order."""
        return self.table.sort("dis", descending=least, maintain_order=True).head(count)

    def histogram(self) -> Histogram:
        """How many captions have which dis(t), from 0 to ln k."""
        low, high = self.band
        facts = f"{len(self.gallery):,} images, temperature {self.check.temperature:.4g}"
        about = f"over the {self.check.k} most similar other images; shaded: kept at η = {self.eta:g}"
        title = f"{self.name}: {facts}, band {low:.2f} to {high:.2f} (·)"
        return entropy_histogram(self.of("dis"), self.check.k, self.eta, title=title, about=about)


@dataclass(frozen=True)
class DiscriminabilityComparison(FeatureComparison[DatasetDiscriminability]):
    """The discriminability of several datasets side by side.

    ``shown`` is how many of the least and of the most discriminable captions of each are listed.
    """

    shown: int = 10

    @property
    def title(self) -> str:
        """The heading of a page."""
        return "How well captions single out an image"

    def sections(self, **options: Any) -> Iterator[Section]:
        """How dis(t) is distributed, means and changes; of each dataset the histogram and the captions at both ends."""
        k, largest = self.sets[0].check.k, math.log(self.sets[0].check.k)
        charts: tuple[Part, ...] = ()
        if len(self.sets) > 1:
            samples = {captions.name: np.clip(captions.of("dis"), 0, largest) for captions in self.sets}
            band = *self.sets[0].band, f"kept at η = {self.sets[0].eta:g}"
            about = f"percent of captions; shaded: {band[2]}"
            edges, axis = np.linspace(0, largest, BINS + 1), f"dis(t) in nats; ln {k} = {largest:.2f}"
            charts = (distribution_lines("How dis(t) is distributed", axis, samples, edges, about=about, band=band),)
        labels = {"dis": "dis(t), nats", "relative": f"of ln {k} = {largest:.2f}", **BAND_FEATURES}
        yield Section("", (*charts, *self.feature_parts(labels, _mean, _change)))
        for captions in self.sets:
            ends = ((True, "least discriminable"), (False, "most discriminable")) if self.shown else ()
            cards = (
                Cards(f"{captions.name}, {title}", tuple(
                    PictureCard(f"{dis:.3f}  {caption}", (text,))
                    for dis, caption, text in captions.extremes(self.shown, least=least)
                    .select("dis", "caption", "text").iter_rows()
                ))
                for least, title in ends
            )  # fmt: skip
            yield Section("", (captions.histogram(), *cards))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, with the least and the most discriminable captions of each dataset."""
        content = super().as_dict()
        for entry, captions in zip(content["datasets"], self.sets, strict=True):
            check, (low, high) = captions.check, captions.band
            entry |= {
                "model": captions.model, "gallery": len(captions.gallery), "k": check.k, "eta": captions.eta,
                "temperature": check.temperature, "largest": math.log(check.k), "band": [low, high],
                "skipped": dict(captions.skipped),
                "least": captions.extremes(self.shown, least=True).to_dicts(),
                "most": captions.extremes(self.shown, least=False).to_dicts(),
            }  # fmt: skip
        return content


def dataset_discriminability(
    dataset: Dataset,
    model: str | Encoder | None = None,
    *,
    images: Any = None,
    captions: Any = None,
    image_text: str | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> DatasetDiscriminability:
    """dis(t) of every caption over the ``k`` most similar images without its own; prints as ``.table``.

    With a ``model`` of images and texts, or a model of texts and ``image_text`` (``mean`` or a summariser), which makes
    an image of its captions; or with ``images`` and ``captions``, embeddings in the dataset's order or with ids.
    ``options``: ``k``, ``eta``, ``temperature`` (default: the inverse of the model's logit scale) and those of
    :class:`crosslens.encode.EncodeOptions`.
    """
    settings = DiscriminabilityOptions.pick(options)
    encoding = EncodeOptions.of(options)
    if model is None:
        if images is None or captions is None or image_text is not None:
            fix = f"pass {argument('model')}, or both {argument('images')} and {argument('captions')}"
            raise UsageError("nothing to compare captions with images by", fix=fix)
        sources = _Sources(dataset, align_embeddings(images, dataset.image_ids, "image"),
                           align_embeddings(captions, dataset.caption_ids, "caption"), None, {})  # fmt: skip
    elif images is not None or captions is not None:
        raise UsageError("both a model and embeddings", fix="pass one or the other")
    else:
        sources = _encoded(dataset, load_encoder(model, encoding), image_text, encoding, progress)
    return _measured(sources, settings, name or dataset.name)


def _mean(feature: str, mean: Estimate) -> Figure:
    if feature == "dis":
        return Figure(mean.mean, mean.low, mean.high)
    return Figure.percent(mean.mean, mean.low, mean.high, unit=" %")


def _change(feature: str, change: FeatureChange) -> Figure:
    """In nats, or in points of percent."""
    if feature == "dis":
        return Figure(change.difference, change.low, change.high, signed=True)
    return Figure.percent(change.difference, change.low, change.high, signed=True, unit=" pp")


@dataclass(frozen=True, eq=False)
class _Sources:
    dataset: Dataset
    images: Embeddings
    captions: Embeddings
    logit_scale: float | None
    skipped: dict[str, str]


def _encoded(
    dataset: Dataset, encoder: Encoder, image_text: str | None, options: EncodeOptions, progress: Progress | None
) -> _Sources:
    require_modality(encoder, TEXTS)
    cache = None if options.cache is None else Cache.of(options.cache, options.notify)
    how: dict[str, Any] = {
        "cache": cache, "batch_size": options.batch_size, "precision": options.precision, "progress": progress,
    }  # fmt: skip
    if image_text is not None:
        captions = encode_captions(dataset, encoder, **how)
        gallery = images_from_captions(dataset, encoder, image_text, captions=captions, **how)
        return _Sources(dataset, gallery, captions, encoder.logit_scale, {})
    require_modality(encoder, IMAGES)
    encoded = encode_dataset(dataset, encoder, image_folder=options.image_folder, skip_bad=options.skip_bad, **how)
    _require_captions(encoded.dataset)
    assert encoded.images is not None
    assert encoded.captions is not None
    return _Sources(encoded.dataset, encoded.images, encoded.captions, encoder.logit_scale, encoded.skipped)


def _require_captions(dataset: Dataset) -> None:
    if not dataset.caption_ids:
        raise InputError(
            "no captions", expected="at least one caption", fix="check the file and the options of its reader"
        )


def _measured(sources: _Sources, settings: DiscriminabilityOptions, name: str) -> DatasetDiscriminability:
    dataset = sources.dataset
    _require_captions(dataset)
    # Where images are made of captions, an image without any is in no caption's gallery.
    own = match_ids(dataset.image_ids, sources.images.ids)[dataset.caption_image]
    measure = partial(measure_discriminability, sources.captions, sources.images, own, k=settings.k)
    temperature = settings.temperature
    if temperature is None:
        encoder = sources.captions.model or "a file of embeddings"
        temperature = default_temperature(sources.logit_scale, encoder, lambda value: measure(temperature=value))
    check = measure(temperature=temperature)
    low, high = entropy_band(settings.k, settings.eta)
    features = {
        "dis": check.values,
        "relative": check.values / math.log(settings.k),
        "in_band": (check.values >= low) & (check.values <= high),
        "below_band": check.values < low,
        "above_band": check.values > high,
    }
    return DatasetDiscriminability(
        name, dataset.caption_ids, dataset.image_ids, dataset.caption_image,
        {feature: frozen(np.asarray(values, np.float64)) for feature, values in features.items()},
        texts=dataset.texts, check=check, gallery=sources.images.ids, eta=settings.eta,
        model=sources.captions.model, skipped=tuple(sources.skipped.items()),
    )  # fmt: skip


def compare_discriminability(
    sets: Sequence[DatasetDiscriminability],
    *,
    resamples: int = 1000,
    permutations: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> DiscriminabilityComparison:
    """Every dataset's means with intervals, and how each differs from the first: see :func:`compare_features`."""
    settings = {(captions.check.k, captions.eta) for captions in sets}
    if len(settings) > 1:
        raise UsageError("the datasets differ in k or eta", fix="measure all of them with the same settings")
    return compare_features(
        DiscriminabilityComparison, sets, resamples=resamples, permutations=permutations, level=level, seed=seed
    )
