"""The settings of the discriminability check: k, the band of η, the temperature."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crosslens.core import Options, UsageError, option


@dataclass(frozen=True)
class DiscriminabilityOptions(Options):
    """What decides dis(t) besides the model, and which values are kept."""

    k: int = option(20, "How many nearest images a description is compared with.", metavar="N", minimum=2)
    eta: float = option(0.8, "The share of entropies, 0 to ln k, that is kept; larger keeps more.", metavar="SHARE")
    temperature: float | None = option(None, "Of the softmax. [default: 1 / the encoder's logit scale]", metavar="T")

    def __post_init__(self) -> None:
        super().__post_init__()
        entropy_band(self.k, self.eta)
        if self.temperature is not None:
            check_temperature(self.temperature)


def entropy_band(k: int, eta: float) -> tuple[float, float]:
    """[(1−η)/2 · ln k, (1+η)/2 · ln k]: what is kept. A larger η keeps more."""
    if not 0 < eta <= 1:
        raise UsageError(
            f"eta = {eta}", fix="choose it above 0, up to 1: the share of ln k that the band covers", option="eta"
        )
    return (1 - eta) / 2 * math.log(k), (1 + eta) / 2 * math.log(k)


def check_temperature(temperature: float) -> None:
    """Raise unless it is a number above 0."""
    if not (temperature > 0 and math.isfinite(temperature)):
        problem = f"temperature = {temperature}"
        raise UsageError(problem, fix="choose a number above 0, such as 0.01 (CLIP's) or 1", option="temperature")
