# Written by scripts/generate_reference.py from what @accepts_options names: change that, run `make docs`.

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from crosslens.core import Notify
from crosslens.encode import Cache
from crosslens.values import Dataset

class DiscriminabilityKeywords(TypedDict, total=False):
    k: int
    eta: float
    temperature: float | None
    device: str | None
    precision: str
    batch_size: int | None
    cache: Cache | str | Path | bool | None
    offline: bool
    image_folder: str | Path | None
    skip_bad: bool
    notify: Notify

class HardNegativesKeywords(TypedDict, total=False):
    dataset: Dataset | None
    perturbations: str | Sequence[str] | None
    together: bool
    form: str | None
    crop: bool
    by: Sequence[str]
    skip_missing: bool
    tolerance: float
    resamples: int
    level: float
    seed: int
    device: str | None
    precision: str
    batch_size: int | None
    cache: Cache | str | Path | bool | None
    offline: bool
    image_folder: str | Path | None
    skip_bad: bool
    notify: Notify
