# Written by scripts/generate_reference.py from what @accepts_options names: change that, run `make docs`.

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from crosslens.core import Notify
from crosslens.encode import Cache, Summariser

class CounterfactualKeywords(TypedDict, total=False):
    sample: int | None
    only: str | None
    perturbations: str | Sequence[str]
    budget: int
    image_text: str | Summariser | None
    query_caption: int
    score: str | None
    seed: int
    pipeline: str | None
    threads: int | None
    device: str | None
    precision: str
    batch_size: int | None
    cache: Cache | str | Path | bool | None
    offline: bool
    image_folder: str | Path | None
    skip_bad: bool
    notify: Notify
