"""Which images are in a benchmark (originals, confusables, similar ones), and the datasets v0, v1 and v2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl

from crosslens.analyze import DuplicateEvidence
from crosslens.build.candidates import CandidatePool
from crosslens.build.copied_images import absolute_file
from crosslens.build.descriptions import ImageDescription
from crosslens.build.log import DecisionLog
from crosslens.core import Card, Dataset

_SHOWN = 5  # how many images passed over are named in one entry
NOTES = {
    "v0": "originals, whose descriptions neither fit too many images nor give theirs away",
    "v1": "v0, and for {which} a confusable image with descriptions changed as little as possible, or its own",
    "v2": "v1, and similar images without descriptions; for text to image only",
}
_CAPTIONS = {"caption": pl.String, "image": pl.String, "text": pl.String, "origin": pl.String, "dis": pl.Float64}


@dataclass(frozen=True)
class BenchmarkImage:
    """An image of the benchmark: its role, and the original it was chosen for."""

    image: int
    role: str
    of: int | None
    task: str
    descriptions: tuple[ImageDescription, ...] = ()


def verdict_facts(descriptions: Sequence[ImageDescription], needed: int) -> dict[str, Any]:
    """Whether an image has enough descriptions, for the log."""
    enough = len(descriptions) >= needed
    return {
        "verdict": "kept" if enough else "dropped",
        "descriptions": [description.caption for description in descriptions],
        "why": "" if enough else f"{len(descriptions)} of {needed} descriptions",
    }


class ImageSelector:
    """Chooses images one after the other; none twice, no near duplicates."""

    def __init__(self, candidates: CandidatePool, log: DecisionLog) -> None:
        self.candidates, self.log = candidates, log
        self.chosen: dict[int, str] = {}

    def take(self, image: int, role: str) -> bool:
        """Choose an image, unless it is a near duplicate of a chosen one, which is logged."""
        twin = self.candidates.duplicates.among(image, self.chosen)
        if twin is not None:
            self.log("duplicate", image=self.candidates.ids[image], **self._named(*twin))
            return False
        self.chosen[image] = role
        return True

    def confusables(self, originals: Sequence[BenchmarkImage]) -> list[tuple[BenchmarkImage, int]]:
        """For each original the nearest image of its source that is neither chosen nor the same picture."""
        ids = self.candidates.ids
        confusables = []
        for original in originals:
            passed: list[dict[str, object]] = []
            taken: dict[str, object] = {"confusable": None, "cosine": None}
            for image, cosine in self.candidates.nearest(original.image):
                why = self._refuse(image)
                if not why:
                    self.chosen[image] = "confusable"
                    confusables.append((original, image))
                    taken = {"confusable": ids[image], "cosine": cosine}
                    break
                passed.append({"image": ids[image], "cosine": cosine, "why": why})
            facts = {**taken, "passed_over": passed[:_SHOWN], "passed_over_in_all": len(passed)}
            self.log("confusable", image=ids[original.image], **facts)
        return confusables

    def similar(self, around: Sequence[BenchmarkImage]) -> list[BenchmarkImage]:
        """The nearest images of the source of each, as many as the settings say; then merged, each picture once."""
        similar = []
        inside = dict(self.chosen)
        for centre in around:
            outside = (pair for pair in self.candidates.nearest(centre.image) if pair[0] not in inside)
            taken, refused = [], []
            for image, cosine in islice(outside, self.candidates.settings.similar):
                name = self.candidates.ids[image]
                if why := self._refuse(image):
                    refused.append({"image": name, "cosine": cosine, "why": why})
                else:
                    self.chosen[image] = "similar"
                    similar.append(BenchmarkImage(image, "similar", centre.image, centre.task))
                    taken.append({"image": name, "cosine": cosine})
            self.log("similar", image=self.candidates.ids[centre.image], taken=taken, passed_over=refused)
        return similar

    def _refuse(self, image: int) -> str:
        """Why an image cannot be chosen; empty if it can."""
        if image in self.chosen:
            return f"already there ({self.chosen[image]})"
        twin = self.candidates.duplicates.among(image, self.chosen)
        if twin is None:
            return ""
        named = self._named(*twin)
        return f"the same picture as {named['of']} (by {named['by']}: {named['number']:g})"

    def _named(self, other: int, why: DuplicateEvidence) -> dict[str, object]:
        return {"of": self.candidates.ids[other], "by": why.by, "number": round(why.number, 4)}


def version_dataset(name: str, candidates: CandidatePool, members: Sequence[BenchmarkImage], key: str) -> Dataset:
    """The dataset of these images, in this order, with their ``role``."""
    ids = candidates.ids
    chosen = candidates.encoded.dataset.select(ids[member.image] for member in members)
    columns: dict[str, list[str | None]] = {
        "task": [member.task for member in members],
        "source": [candidates.sources[member.image] for member in members],
        "role": [member.role for member in members],
        "original": [None if member.of is None else ids[member.of] for member in members],
    }
    files = candidates.encoded.files
    if files is not None:
        columns["file"] = [absolute_file(files[member.image]) for member in members]
    images = chosen.images.with_columns(pl.Series(name, rows, dtype=pl.String) for name, rows in columns.items())
    rows = [
        (text.caption, ids[member.image], text.text, text.origin, round(text.dis, 6))
        for member in members
        for text in member.descriptions
    ]
    captions = pl.DataFrame(rows, schema=_CAPTIONS, orient="row")
    # Candidates keep what else was known of them, such as a style; of a new description nothing is.
    free = chosen.captions.drop("text", "image", "origin", "dis", strict=False)
    captions = captions.join(free, on="caption", how="left", maintain_order="left")
    old = candidates.encoded.dataset
    card = Card(
        source=f"built by crosslens build recos from {old.name}" + (f" ({old.card.source})" if old.card.source else ""),
        revision=f"{name}, build {key[:12]}",
        licence=old.card.licence,
        citation=old.card.citation,
        notes=NOTES[name].format(which=_which(members)),
    )
    return Dataset(f"recos-{name}", images, captions, chosen.objects, chosen.relations, card)


def _which(members: Sequence[BenchmarkImage]) -> str:
    """For how many originals there is a confusable image."""
    roles = Counter(member.role for member in members)
    if roles["confusable"] == roles["original"]:
        return "each original"
    return f"{roles['confusable']:,} of {roles['original']:,} originals"
