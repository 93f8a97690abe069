"""How well a description distinguishes its image from the others: dis(t), the entropy of a guess (ReCoS).

A model guesses which image a description t means, its own image left out: p = softmax(cos(t, S(t)) / T) over the k
most similar others S(t), and dis(t) = −Σ p ln p. Near 0 the model is sure of one image: the description is
over-detailed. Near ln k every image fits as well as any other: it says too little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.analyze.discriminability.options import check_temperature, entropy_band
from crosslens.analyze.neighbours import Neighbours, nearest_items
from crosslens.core import Embeddings, Figure, Histogram, Ids, UsageError, argument

Array = np.ndarray[Any, Any]

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
    own: Sequence[int] | Array,
    *,
    k: int = 20,
    temperature: float = 1.0,
    tile: int | None = None,
) -> Discriminability:
    """dis(t) of every caption over its ``k`` most similar images without its own.

    ``own`` is the row of each caption's image (-1: it is not among the images). The result is exact: it depends neither
    on the tile nor on the order of images or captions. The paper's temperature is 1, at which every value is near ln k;
    a model's own is the inverse of its logit scale.
    """
    check_temperature(temperature)
    neighbours = nearest_items(captions, images, k, without=own, tile=tile)
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
