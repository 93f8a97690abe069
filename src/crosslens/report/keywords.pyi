# Written by scripts/generate_reference.py from what @accepts_options names: change that, run `make docs`.

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict

from crosslens.core import Notify
from crosslens.encode import Cache, EncodeOptions
from crosslens.engine import Progress
from crosslens.storage import TrustCode

class AuditKeywords(TypedDict, total=False):
    quick: bool
    only: str | Sequence[str] | None
    skip: str | Sequence[str] | None
    similarity: str | None
    perturbations: str | None
    hard_negatives: str | None
    seed: int
    resamples: int
    level: float
    threads: int | None
    device: str | None
    precision: str
    batch_size: int | None
    cache: Cache | str | Path | bool | None
    offline: bool
    image_folder: str | Path | None
    skip_bad: bool
    notify: Notify
    metrics: str | Sequence[str] | None
    directions: str | Sequence[str] | None
    score: str | None
    folds: int

class CalibrateKeywords(TypedDict, total=False):
    run: str | None
    only: Iterable[str]
    repeats: int
    seed: int
    encoding: EncodeOptions | None
    progress: Progress | None
    trust_code: TrustCode | None
    allow_hosts: Iterable[str]
