"""What a dataset is like: how well its descriptions tell its images apart."""

from __future__ import annotations

from crosslens.analyze.discriminability import (
    Discriminability,
    band,
    discriminability,
    discriminability_of,
    entropy,
    histogram,
)
from crosslens.analyze.neighbours import Neighbours, nearest

__all__ = [
    "Discriminability",
    "Neighbours",
    "band",
    "discriminability",
    "discriminability_of",
    "entropy",
    "histogram",
    "nearest",
]
