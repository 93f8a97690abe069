"""An analysis as somebody adds it: how often each image is among the first items of a caption. One file, no list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.analyze import Planted, Subject, analysis
from crosslens.core import Effect, Figure, Histogram, Observation, Presented, Section, Table, finding_kind
from crosslens.storage import IntArray
from crosslens.values import TEXT_TO_IMAGE

DEPTH = 10
NOTICEABLE = 0.1


@dataclass(frozen=True)
class Occurrences(Presented):
    """In how many lists each image is."""

    images: tuple[str, ...]
    counts: IntArray

    @property
    def title(self) -> str:
        return f"How often each image is in the top {DEPTH}"

    @property
    def never(self) -> float:
        """The share of images that no caption retrieves."""
        return float(np.mean(self.counts == 0))

    def sections(self) -> Iterator[Section]:
        order = np.argsort(-self.counts, kind="stable")[:3]
        rows = [(self.images[row], int(self.counts[row])) for row in order]
        images = np.bincount(self.counts)
        chart = Histogram(
            edges=tuple(map(float, range(len(images) + 1))), counts=tuple(images.tolist()), axis="lists", noun="images",
            title="Images by their lists", whole=True, printed=True,
        )  # fmt: skip
        yield Section(self.title, (Table(("image", "lists"), rows, "lr"), chart))

    def as_dict(self) -> dict[str, Any]:
        return {"never": self.never, "lists": dict(zip(self.images, self.counts.tolist(), strict=True))}

    def findings(self) -> Iterator[Observation]:
        evidence = [{"item": self.images[row]} for row in np.flatnonzero(self.counts == 0)]
        yield Observation(
            "unretrieved", {"share": Figure.share(self.never), "depth": DEPTH},
            Effect(self.never, None, None, "share of images"), self.never,
            p=0.0 if self.never >= NOTICEABLE else 1.0, evidence=evidence,
        )  # fmt: skip


@analysis("occurrences", needs=("caption queries for images",), answers="failures")
def count_occurrences(subject: Subject) -> Occurrences:
    """How often each image is among the first items of a caption."""
    ranking = subject.rankings[TEXT_TO_IMAGE]
    listed = ranking.top_items[:, :DEPTH]
    return Occurrences(tuple(ranking.item_ids), np.bincount(listed[listed >= 0], minlength=len(ranking.item_ids)))


@finding_kind(
    "unretrieved", "{share} of the images are in no caption's top {depth}.",
    stage="occurrences", strengths=(0.2, 0.4), strength_words="{:.0%} of the images far from all captions",
)  # fmt: skip
def plant_unretrieved(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """All vectors moved in one direction, and these images in the opposite one: away from every caption."""
    if not subject.has_vectors or subject.images is None or subject.captions is None:
        return Planted(subject)
    images, captions = (side.vectors + 5 for side in (subject.images, subject.captions))
    rows = stream.permutation(len(images))[: round(strength * len(images))]
    images[rows] *= -1
    return Planted.at(subject.with_vectors(images, captions), images=rows)
