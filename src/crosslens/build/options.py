"""The keywords of a build besides its settings: typed for editors, with their defaults and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosslens.build.settings import CleaningSettings, SelectionSettings
from crosslens.core import Options, option

if TYPE_CHECKING:
    from crosslens.build.folder import DecisionLog
    from crosslens.build.generators.protocol import Generator
    from crosslens.build.grammar import GrammarCheck
    from crosslens.build.verification import VerificationSheet
    from crosslens.encode import Encoder
    from crosslens.engine import Progress
    from crosslens.values import Dataset, Embeddings


@dataclass(frozen=True)
class BuildOptions(Options):
    """What both kinds of builds take."""

    text_encoder: str | Encoder | None = option(None, "Encodes captions, where the encoder does not.")
    output: str | Path | None = option(None, "The folder of the benchmark; an interrupted build resumes.")
    copy_images: bool = option(False, "Copy the pictures into the folder.")
    overwrite: bool = option(False, "Replace another benchmark.")
    repeat: DecisionLog | None = option(None, "The log of an earlier build: every decision must come out the same.")
    origin: Mapping[str, Any] | None = option(None, "Where the data come from, for the log.")
    progress: Progress | None = option(None, "Called with what is being done.")


@dataclass(frozen=True)
class RecosOptions(BuildOptions):
    """What a RECOS build takes besides candidates, an encoder and settings."""

    generator: str | Generator | None = option(
        "rules", "Rewrites descriptions outside the band; None: they are dropped."
    )
    grammar: str | GrammarCheck | None = option(None, "Checks what the generator writes.")
    verified: str | Path | VerificationSheet | None = option(
        None, "The filled-in sheet of an earlier build of these candidates."
    )
    image_encoder: str | Encoder | None = option(None, "Compares images with images. [default: encoder]")
    image_text: str | None = option(None, "Captions in place of images: their mean, or a summariser's text.")


@dataclass(frozen=True)
class ImpOptions(BuildOptions):
    """What an IMP build takes besides images, a pool, an encoder and settings."""

    cleaning: CleaningSettings = option(None, "How captions are cleaned.")
    selection: SelectionSettings = option(None, "Which good captions are chosen.")
    image_embeddings: Embeddings | None = option(None, "Vectors in place of encoded images.")
    pool_embeddings: Embeddings | None = option(None, "Vectors in place of encoded images of the pool.")
    pool_images: str | Path | None = option(None, "The folder of the pool's image files.")
    titles: Dataset | None = option(None, "Captions that belong to the images themselves, as titles of web pages do.")
    annotations: Sequence[str | Path] = option((), "Filled-in sheets. [default: those in output]")
    corpora: Sequence[str | Path] = option((), "Searched for the benchmark's captions and pictures.")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "cleaning", self.cleaning or CleaningSettings())
        object.__setattr__(self, "selection", self.selection or SelectionSettings())
