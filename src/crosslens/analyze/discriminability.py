"""How well a description distinguishes its image from the others: dis(t), the entropy of a guess (ReCoS).

A model guesses which image a description t means, its own image left out: p = softmax(cos(t, S(t)) / T) over the k
most similar others S(t), and dis(t) = −Σ p ln p. Near 0 the model is sure of one image: the description is
over-detailed. Near ln k every image fits as well as any other: it says too little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
import polars as pl

from crosslens.analyze.caption_features import CaptionFeatures, FeatureChange, FeatureComparison, distribution_lines
from crosslens.analyze.neighbours import Neighbours, nearest_items
from crosslens.analyze.options import DiscriminabilityOptions, check_temperature, entropy_band
from crosslens.core import (
    Cards,
    Figure,
    Histogram,
    InputError,
    Part,
    PictureCard,
    Section,
    UsageError,
    accepts_options,
    argument,
    refuse_other_keywords,
)
from crosslens.encode import (
    IMAGES,
    TEXTS,
    EncodeOptions,
    Encoder,
    encode_captions,
    encode_dataset,
    images_from_captions,
    load_encoder,
    require_modality,
    require_one_source,
)
from crosslens.engine import Progress
from crosslens.statistics import Estimate
from crosslens.storage import Array, frozen
from crosslens.values import Dataset, Embeddings, Ids, align_embeddings, match_ids

if TYPE_CHECKING:
    from crosslens.analyze.keywords import DiscriminabilityKeywords

BINS = 20
"""Of a histogram of dis(t)."""


@dataclass(frozen=True, eq=False)
class Discriminability:
    """dis(t) of each description, and the images it was computed over."""

    ids: Ids
    values: Array
    neighbours: Neighbours
    temperature: float

    @property
    def k(self) -> int:
        return int(self.neighbours.items.shape[1])

    def centring_temperature(self) -> float:
        """The temperature at which the median of dis is ln k / 2, the middle of every band.

        0 where no temperature does it: where half of the descriptions have equally near neighbours.
        """
        goal = math.log(self.k) / 2
        low, high = 1e-6, 1e6
        if self.k == 1 or float(np.median(entropy(self.neighbours.cosines, low))) > goal:
            return 0.0
        for _ in range(60):  # the entropy grows with the temperature
            middle = math.sqrt(low * high)
            low, high = (low, middle) if np.median(entropy(self.neighbours.cosines, middle)) > goal else (middle, high)
        return math.sqrt(low * high)


def measure_discriminability(
    captions: Embeddings,
    images: Embeddings,
    image_rows: Sequence[int] | Array,
    *,
    k: int = 20,
    temperature: float = 1.0,
    tile: int | None = None,
) -> Discriminability:
    """dis(t) of every caption over its ``k`` most similar images without its own.

    ``image_rows`` is the row of each caption's image (-1: it is not among the images). The result is exact: it depends
    neither on the tile nor on the order of images or captions. The paper's temperature is 1, at which every value is
    near ln k; a model's own is the inverse of its logit scale.
    """
    check_temperature(temperature)
    neighbours = nearest_items(captions, images, k, without=image_rows, tile=tile)
    return Discriminability(captions.ids, entropy(neighbours.cosines, temperature), neighbours, temperature)


def default_temperature(
    logit_scale: float | None, encoder: str, at: Callable[[float], Discriminability] | None
) -> float:
    """The inverse of the encoder's logit scale; without one it raises, with a value that suits these descriptions.

    ``at`` measures them at a temperature; None where there are none.
    """
    if logit_scale:
        return 1 / logit_scale
    centre = 0.0 if at is None else at(1.0).centring_temperature()
    middle = f"; {centre:.2g} puts the median of these descriptions in the middle of the band" if centre else ""
    raise UsageError(
        f"{encoder} has no logit scale to take the temperature from",
        fix=f"pass {argument('temperature')}: 1 is the paper's, 0.01 CLIP's{middle}",
    )


def entropy(cosines: Array, temperature: float) -> Array:
    """The entropy, in nats, of softmax(cosines / temperature) along the last axis: from 0 to ln k."""
    check_temperature(temperature)
    shifted = np.asarray(cosines, np.float64)
    shifted = (shifted - shifted.max(axis=-1, keepdims=True)) / temperature
    weights = np.exp(shifted)
    total = weights.sum(axis=-1)
    # −Σ p ln p with p = w / total; written so that a weight that underflows to 0 adds 0.
    values = np.log(total) - (weights * shifted).sum(axis=-1) / total
    return np.asarray(np.clip(values, 0.0, math.log(cosines.shape[-1])))


def entropy_histogram(
    values: Array, k: int, eta: float, *, title: str, about: str = "", noun: str = "captions", bins: int = BINS
) -> Histogram:
    """How many descriptions have which dis(t), from 0 to ln k; the band of ``eta`` is marked."""
    edges = np.linspace(0, math.log(k), bins + 1)
    counts = np.histogram(np.clip(values, 0, edges[-1]), edges)[0]
    return Histogram(
        title=title, about=about, edges=tuple(edges.tolist()), counts=tuple(counts.tolist()), axis="dis(t)",
        unit=Figure(None), noun=noun, band=(*entropy_band(k, eta), f"kept at η = {eta:g}"), printed=True,
    )  # fmt: skip


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

    shares: ClassVar = frozenset({"relative", *BAND_FEATURES})

    def alone(self) -> DiscriminabilityComparison:
        return DiscriminabilityComparison.of((self,))

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
        subtitle = f"over the {self.check.k} most similar other images; shaded: kept at η = {self.eta:g}"
        title = f"{self.name}: {facts}, band {low:.2f} to {high:.2f} (·)"
        return entropy_histogram(self.of("dis"), self.check.k, self.eta, title=title, about=subtitle)


@dataclass(frozen=True)
class DiscriminabilityComparison(FeatureComparison[DatasetDiscriminability]):
    """The discriminability of several datasets side by side.

    ``shown`` is how many of the least and of the most discriminable captions of each are listed.
    """

    shown: int = 10

    def __post_init__(self) -> None:
        if len({(captions.check.k, captions.eta) for captions in self.sets}) > 1:
            raise UsageError("the datasets differ in k or eta", fix="measure all of them with the same settings")

    title = "How well captions single out an image"

    def sections(self) -> Iterator[Section]:
        """How dis(t) is distributed, means and changes; of each dataset the histogram and the captions at both ends."""
        k, largest = self.sets[0].check.k, math.log(self.sets[0].check.k)
        charts: tuple[Part, ...] = ()
        if len(self.sets) > 1:
            samples = {captions.name: np.clip(captions.of("dis"), 0, largest) for captions in self.sets}
            band = *self.sets[0].band, f"kept at η = {self.sets[0].eta:g}"
            subtitle = f"percent of captions; shaded: {band[2]}"
            edges, axis = np.linspace(0, largest, BINS + 1), f"dis(t) in nats; ln {k} = {largest:.2f}"
            charts = (distribution_lines("How dis(t) is distributed", axis, samples, edges, about=subtitle, band=band),)
        labels = {"dis": "dis(t), nats", "relative": f"of ln {k} = {largest:.2f}", **BAND_FEATURES}

        def mean_of(feature: str, mean: Estimate) -> Figure:
            ends = mean.mean, mean.low, mean.high
            return Figure(*ends) if feature == "dis" else Figure.percent(*ends, unit=" %")

        def change_of(feature: str, change: FeatureChange) -> Figure:
            """In nats, or in points of percent."""
            ends = change.difference, change.low, change.high
            return Figure(*ends, signed=True) if feature == "dis" else Figure.percent(*ends, signed=True, unit=" pp")

        yield Section("", (*charts, *self.feature_parts(labels, mean_of, change_of)))
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


@accepts_options(DiscriminabilityOptions, EncodeOptions)
def dataset_discriminability(
    dataset: Dataset,
    model: str | Encoder | None = None,
    *,
    images: Any = None,
    captions: Any = None,
    image_text: str | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[DiscriminabilityKeywords],
) -> DatasetDiscriminability:
    """dis(t) of every caption over the ``k`` most similar images without its own; prints as ``.table``.

    Args:
        dataset: Images and their captions.
        model: A model of images and texts; or of texts, with ``image_text``. Instead of one, ``images`` and
            ``captions``.
        images: Vectors of the images, in the dataset's order or with ids.
        captions: Vectors of the captions, likewise.
        image_text: Makes an image of its captions: ``mean``, or a summariser.
        name: What the model is called.
        progress: Told how much is done.
    """
    refuse_other_keywords(options, dataset_discriminability)
    settings, encoding = DiscriminabilityOptions.pick(options), EncodeOptions.pick(options)
    fix = f"pass {argument('model')}, or both {argument('images')} and {argument('captions')}"
    gallery: Embeddings | None
    texts: Embeddings | None
    logit_scale: float | None = None
    skipped: dict[str, str] = {}
    title = name or dataset.name
    if require_one_source(fix, model=model, embeddings=(images, captions)) == "embeddings":
        if image_text is not None:
            raise UsageError(f"{argument('image_text')} requires {argument('model')}", fix=fix)
        gallery = align_embeddings(images, dataset.image_ids, "image")
        texts = align_embeddings(captions, dataset.caption_ids, "caption")
    else:
        encoder, keywords = load_encoder(model, encoding), encoding.stream(progress, unasked_cache=False)
        require_modality(encoder, TEXTS)
        logit_scale = encoder.logit_scale
        if image_text is not None:
            texts = encode_captions(dataset, encoder, **keywords)
            gallery = images_from_captions(dataset, encoder, image_text, captions=texts, **keywords)
        else:
            require_modality(encoder, IMAGES)
            sources: dict[str, Any] = {"image_folder": encoding.image_folder, "skip_bad": encoding.skip_bad}
            encoded = encode_dataset(dataset, encoder, **sources, **keywords)
            dataset, skipped = encoded.dataset, encoded.skipped
            gallery, texts = encoded.images, encoded.captions
    if not dataset.caption_ids:
        raise InputError(
            "no captions", expected="at least one caption", fix="check the file and the options of its reader"
        )
    assert gallery is not None
    assert texts is not None
    # Where images are made of captions, an image without any is in no caption's gallery.
    image_rows = match_ids(dataset.image_ids, gallery.ids)[dataset.caption_image]
    measure = partial(measure_discriminability, texts, gallery, image_rows, k=settings.k)
    temperature = settings.temperature
    if temperature is None:
        source = texts.model or "a file of embeddings"
        temperature = default_temperature(logit_scale, source, lambda value: measure(temperature=value))
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
        title, dataset.caption_ids, dataset.image_ids, dataset.caption_image,
        {feature: frozen(np.asarray(values, np.float64)) for feature, values in features.items()},
        texts=dataset.texts, check=check, gallery=gallery.ids, eta=settings.eta, model=texts.model,
        skipped=tuple(skipped.items()),
    )  # fmt: skip


compare_discriminability = DiscriminabilityComparison.of
