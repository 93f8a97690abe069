# Written by scripts/generate_reference.py from what @accepts_options names: change that, run `make docs`.

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from crosslens.build import CleaningSettings, DecisionLog, Generator, GrammarCheck, SelectionSettings, VerificationSheet
from crosslens.core import Notify
from crosslens.encode import Cache, Encoder
from crosslens.engine import Progress
from crosslens.values import Dataset, Embeddings

class ImpKeywords(TypedDict, total=False):
    text_encoder: str | Encoder | None
    output: str | Path | None
    copy_images: bool
    overwrite: bool
    repeat: DecisionLog | None
    origin: Mapping[str, Any] | None
    progress: Progress | None
    cleaning: CleaningSettings
    selection: SelectionSettings
    image_embeddings: Embeddings | None
    pool_embeddings: Embeddings | None
    pool_images: str | Path | None
    titles: Dataset | None
    annotations: Sequence[str | Path]
    corpora: Sequence[str | Path]
    device: str | None
    precision: str
    batch_size: int | None
    cache: Cache | str | Path | bool | None
    offline: bool
    image_folder: str | Path | None
    skip_bad: bool
    notify: Notify

class RecosKeywords(TypedDict, total=False):
    text_encoder: str | Encoder | None
    output: str | Path | None
    copy_images: bool
    overwrite: bool
    repeat: DecisionLog | None
    origin: Mapping[str, Any] | None
    progress: Progress | None
    generator: str | Generator | None
    grammar: str | GrammarCheck | None
    verified: str | Path | VerificationSheet | None
    image_encoder: str | Encoder | None
    image_text: str | None
    device: str | None
    precision: str
    batch_size: int | None
    cache: Cache | str | Path | bool | None
    offline: bool
    image_folder: str | Path | None
    skip_bad: bool
    notify: Notify
