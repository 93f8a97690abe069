"""What every φ is: sets of reference captions against single captions, whole rows or single cells."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.errors import UsageError
from crosslens.core.progress import Progress
from crosslens.core.registry import Registry

Array = np.ndarray[Any, Any]


@runtime_checkable
class Prepared(Protocol):
    """One φ made ready for one collection: images (by their reference captions) × captions.

    ``block`` and ``pairs`` give the same number for the same cell at any number of threads (embeddings: to 1e-6).
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Number of images, number of captions."""

    def block(self, rows: slice) -> Array:
        """Whole rows: float32, (rows, captions)."""

    def pairs(self, images: Array, captions: Array) -> Array:
        """Single cells: float32, one per pair of positions."""


@runtime_checkable
class Similarity(Protocol):
    """φ(G, c): how much a caption c says what the reference captions G say; larger is more alike.

    ``name`` is what it is asked for by. ``revision`` changes whenever its numbers may: with the name it identifies
    them in caches and reports.
    """

    @property
    def name(self) -> str:
        """What it is asked for by."""

    @property
    def revision(self) -> str:
        """Another revision, other numbers."""

    def prepare(
        self,
        references: Sequence[Sequence[str]],
        captions: Sequence[str],
        *,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> Prepared:
        """Make φ ready for these reference sets (one per image) and captions."""


SIMILARITIES: Registry[Callable[..., Similarity]] = Registry("similarity", "similarities")
"""Kinds of φ. One is asked for as ``kind`` or ``kind:source``; its factory is called with the source ('' without one)
and with the caller's options by keyword."""

Phi = str | Path | Array | Similarity | Callable[[Sequence[str], str], float]
"""Whatever a φ can be asked for by: a name, a file, a matrix, a Similarity, or a function φ(references, caption)."""


def load_similarity(phi: Phi, **options: Any) -> Similarity:
    """The φ that a name (``cider``, ``spice-object``, ``embed:sentence:all-MiniLM-L6-v2``) stands for.

    A path or a name that ends in .npy or .csv is a matrix on disk; an array is a matrix at hand (images × captions);
    a function is called with an image's reference captions and one caption. A similarity is taken as it is.
    ``options`` go to the named φ; see the reference page for what each takes.
    """
    from crosslens.similarity.own import OwnSimilarity
    from crosslens.similarity.precomputed import MATRIX_SUFFIXES, PrecomputedSimilarity

    if isinstance(phi, str):
        kind, _, source = phi.partition(":")
        if kind not in SIMILARITIES and Path(phi).suffix.lower() in MATRIX_SUFFIXES:
            phi = Path(phi)
        else:
            return _made(phi, SIMILARITIES[kind].value, source, options)
    if options:
        raise UsageError(
            f"{', '.join(sorted(options))}: a φ that is given and not named takes no options",
            fix="set them on the object itself, or ask for a φ by name",
        )
    if isinstance(phi, Path | np.ndarray):
        return PrecomputedSimilarity(phi)
    if isinstance(phi, Similarity):
        return phi
    if callable(phi):
        return OwnSimilarity(phi)
    raise UsageError(
        f"{phi!r:.60} is no φ", fix="give a name, a .npy or .csv file, an array, or a function φ(references, caption)"
    )


def prepare_dataset(
    dataset: Dataset, phi: Phi = "cider", *, progress: Progress | None = None, threads: int | None = None
) -> Prepared:
    """φ for the images × captions of a dataset; rows and columns stand in the order of its ids.

    The references of an image are its captions. A caption that is itself among them is compared with all of them,
    itself included. An image without captions has no references: its row is 0.
    """
    similarity = load_similarity(phi)
    if isinstance(similarity, KnowsIds):
        return similarity.prepare_ids(dataset)
    return similarity.prepare(references_of(dataset), dataset.texts, progress=progress, threads=threads)


@runtime_checkable
class KnowsIds(Protocol):
    """A φ whose numbers belong to ids and not to texts: a matrix that somebody computed before."""

    def prepare_ids(self, dataset: Dataset) -> Prepared:
        """The numbers of this dataset's images and captions."""


def references_of(dataset: Dataset) -> list[list[str]]:
    """For each image, in the order of the dataset, its captions."""
    references: list[list[str]] = [[] for _ in range(dataset.images.height)]
    for text, image in zip(dataset.texts, dataset.caption_image.tolist(), strict=True):
        references[image].append(text)
    return references


def _made(name: str, factory: Callable[..., Similarity], source: str, options: dict[str, Any]) -> Similarity:
    _, *known = inspect.signature(factory).parameters
    for option in options:
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise UsageError(f"{name} has no option {option!r}", fix=takes)
    return factory(source, **options)
