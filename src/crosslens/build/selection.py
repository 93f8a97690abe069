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
from crosslens.build.descriptions import CANDIDATE, DescriptionEditor, ImageDescription
from crosslens.build.folder import absolute_file
from crosslens.build.verification import CORRECTION
from crosslens.storage import random_stream
from crosslens.values import Card, Dataset

_NEIGHBOURS = 10
"""How many images are tried as the confusable of an original: a generator may be asked for texts of each."""
_SHOWN = 5  # how many images passed over are named in one entry
NOTES = {
    "v0": "originals, whose descriptions neither fit too many images nor give theirs away",
    "v1": "v0, and for {which} a confusable image{texts}",
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
    """Chooses images one after the other, in an order that the seed decides; none twice, no near duplicates.

    Every original reserves its confusable as soon as it is chosen, so that originals cannot use up their source:
    ``reserved`` has for each original the images of its source, nearest first, up to the one that is reserved.
    """

    def __init__(self, editor: DescriptionEditor) -> None:
        self.editor, self.candidates, self.log = editor, editor.candidates, editor.log
        self.chosen: dict[int, str] = {}
        self.reserved: dict[int, list[tuple[int, float]]] = {}
        self._original_of: dict[int, int] = {}
        self._wordless: set[int] = set()
        self._open = dict(self.candidates.quotas)
        queues: dict[str, list[int]] = {}
        for image, task in enumerate(self.candidates.tasks):
            queues.setdefault(task, []).append(image)
        seed = self.candidates.settings.seed
        self._queues = {
            task: [queue[index] for index in random_stream(seed, "recos", "originals", task).permutation(len(queue))]
            for task, queue in sorted(queues.items())
        }
        """The images of each task in the order in which they are tried."""
        self._kept: dict[int, Sequence[ImageDescription]] = {}

    def originals(self) -> list[BenchmarkImage]:
        """As many images as the quotas say. One that gets too few descriptions is dropped for the next of its task.

        Against all candidates an image is judged once. Against the selected images, each change of the selection can
        move each entropy, so all are judged again until a round drops none: then every description lies in the band of
        the gallery that v0 has in the end. A dropped image does not return, so the rounds come to an end.
        """
        against_selected, needed = self.candidates.checks_selected, self.candidates.settings.descriptions
        batch = self._draw()
        while batch:
            described = self.editor.describe(batch)
            dropped = {image for image in batch if len(described[image]) < needed}
            for image in batch:
                if image in dropped:
                    self._release(image)
                    del self.chosen[image]
                    self._open[self.candidates.tasks[image]] += 1
                    self._kept.pop(image, None)
                else:
                    self._kept[image] = described[image]
                if image in dropped or not against_selected:
                    self._log_original(image, described[image])
            self.editor.release(dropped)
            new_images = self._draw()
            batch = new_images if not against_selected else [*self._kept, *new_images] if dropped else []
        if against_selected:
            for image, descriptions in self._kept.items():
                self._log_original(image, descriptions)
        return [
            BenchmarkImage(image, "original", None, self.candidates.tasks[image], tuple(self._kept[image]))
            for image in sorted(self._kept)
        ]

    def _draw(self) -> list[int]:
        """The next images of every task below its quota.

        First those that are not reserved as confusables and have a confusable themselves; where these are too few,
        those whose original can have another confusable, and in the end those that have none.
        """
        batch = []
        for move, alone in ((False, False), (True, False), (False, True)):
            for task, queue in self._queues.items():
                waiting = []
                while self._open[task] and queue:
                    image = queue.pop(0)
                    assigned = self._take_original(image, move=move, alone=alone)
                    if assigned:
                        batch.append(image)
                        self._open[task] -= 1
                    elif assigned is None:
                        waiting.append(image)
                queue[:0] = waiting
        return batch

    def _log_original(self, image: int, descriptions: Sequence[ImageDescription]) -> None:
        facts = verdict_facts(descriptions, self.candidates.settings.descriptions)
        self.log("original", image=self.candidates.ids[image], task=self.candidates.tasks[image], **facts)

    def _take_original(self, image: int, *, move: bool, alone: bool) -> bool | None:
        """Choose an original; None: not now. False: it is the same picture as another original, which is logged.

        An image that is reserved is taken with ``move`` only, if both its original and itself find a confusable then;
        one without a confusable with ``alone`` only.
        """
        if image in self._original_of:
            if not move:
                return None
            former = self._original_of[image]
            reservation = self._release(former)
            self.chosen[image] = "original"
            if self._reserve(former) and self._reserve(image):
                return True
            self._release(former)
            self._assign(former, reservation)
            return None
        twin = self.candidates.duplicates.among(image, self.chosen)
        if twin is not None:
            if self.chosen[twin[0]] != "original":
                return None
            self.log("duplicate", image=self.candidates.ids[image], **self._named(*twin))
            return False
        self.chosen[image] = "original"
        if self._reserve(image) or alone:
            return True
        del self.chosen[image]
        return None

    def confusables(self, originals: Sequence[BenchmarkImage]) -> list[BenchmarkImage]:
        """The confusable image of each original: of the ``_NEIGHBOURS`` nearest the first with enough descriptions."""
        pairs = self._nearest_free(originals)
        by_original: dict[int, BenchmarkImage] = {}
        ids, needed = self.candidates.ids, self.candidates.settings.descriptions
        for tries_left in reversed(range(_NEIGHBOURS)):
            texts = self.editor.describe_confusables(
                [(original.image, image, original.descriptions) for original, image in pairs]
            )
            short = []
            for original, image in pairs:
                described = tuple(texts[image])
                facts = verdict_facts(described, needed)
                self.log("described", image=ids[image], of=ids[original.image], **facts)
                if len(described) >= needed:
                    role = "confusable"
                    by_original[original.image] = BenchmarkImage(image, role, original.image, original.task, described)
                else:
                    self.editor.release([image])
                    short.append(original)
            pairs = []
            for original in short:
                self._wordless.add(self._confusable(original))
                self._release(original.image)
                if tries_left and self._reserve(original.image):
                    pairs.append((original, self._confusable(original)))
                self._log_confusable(original.image)
        return [by_original[original.image] for original in originals if original.image in by_original]

    def _nearest_free(self, originals: Sequence[BenchmarkImage]) -> list[tuple[BenchmarkImage, int]]:
        """For each original the nearest image of its source that is neither chosen, reserved nor the same picture.

        Where a nearer one than the reserved became free, it takes its place, until no original has a nearer one.
        """
        changed = True
        while changed:
            changed = False
            for original in originals:
                image = original.image
                nearer = self.reserved[image][:-1] if image in self.reserved else []
                for at, (other, _) in enumerate(nearer, start=1):
                    if not self._refuse(other):
                        self._release(image)
                        self._assign(image, nearer[:at])
                        changed = True
                        break
        for original in originals:
            if original.image not in self.reserved:
                self._reserve(original.image)
            self._log_confusable(original.image)
        return [(original, self._confusable(original)) for original in originals if original.image in self.reserved]

    def _confusable(self, original: BenchmarkImage) -> int:
        return self.reserved[original.image][-1][0]

    def _reserve(self, original: int) -> bool:
        """Reserve the nearest image of the source that may be chosen; False where there is none."""
        neighbours = []
        for image, cosine in self.candidates.nearest(original):
            neighbours.append((image, cosine))
            if image not in self._wordless and not self._refuse(image):
                self._assign(original, neighbours)
                return True
        return False

    def _assign(self, original: int, neighbours: list[tuple[int, float]]) -> None:
        image = neighbours[-1][0]
        self.reserved[original], self._original_of[image], self.chosen[image] = neighbours, original, "confusable"

    def _release(self, original: int) -> list[tuple[int, float]]:
        """What was reserved for an original is free; returns it. Empty where nothing was."""
        neighbours = self.reserved.pop(original, [])
        for image, _ in neighbours[-1:]:
            del self._original_of[image], self.chosen[image]
        return neighbours

    def _log_confusable(self, original: int) -> None:
        ids, neighbours = self.candidates.ids, self.reserved.get(original)
        choice: dict[str, object] = {"confusable": None, "cosine": None}
        if neighbours is None:
            neighbours = list(self.candidates.nearest(original))
        else:
            image, cosine = neighbours[-1]
            choice, neighbours = {"confusable": ids[image], "cosine": cosine}, neighbours[:-1]
        passed = [
            {"image": ids[image], "cosine": cosine, "why": self._refuse(image) or "too few descriptions"}
            for image, cosine in neighbours[:_SHOWN]
        ]
        self.log("confusable", image=ids[original], **choice, passed_over=passed, passed_over_in_all=len(neighbours))

    def similar(self, around: Sequence[BenchmarkImage]) -> list[BenchmarkImage]:
        """The nearest images of the source of each, as many as the settings say; then merged, each picture once."""
        similar = []
        inside = dict(self.chosen)
        for centre in around:
            outside = (pair for pair in self.candidates.nearest(centre.image) if pair[0] not in inside)
            additions, refused = [], []
            for image, cosine in islice(outside, self.candidates.settings.similar):
                name = self.candidates.ids[image]
                if why := self._refuse(image):
                    refused.append({"image": name, "cosine": cosine, "why": why})
                else:
                    self.chosen[image] = "similar"
                    similar.append(BenchmarkImage(image, "similar", centre.image, centre.task))
                    additions.append({"image": name, "cosine": cosine})
            self.log("similar", image=self.candidates.ids[centre.image], taken=additions, passed_over=refused)
        return similar

    def _refuse(self, image: int) -> str:
        """Why an image cannot be chosen; empty if it can."""
        if image in self.chosen:
            return f"already there ({self.chosen[image]})"
        twin = self.candidates.duplicates.among(image, self.chosen)
        if twin is None:
            return ""
        facts = self._named(*twin)
        return f"the same picture as {facts['of']} (by {facts['by']}: {facts['number']:g})"

    def _named(self, other: int, why: DuplicateEvidence) -> dict[str, object]:
        return {"of": self.candidates.ids[other], "by": why.by, "number": round(why.number, 4)}


def version_dataset(name: str, candidates: CandidatePool, members: Sequence[BenchmarkImage], key: str) -> Dataset:
    """The dataset of these images, in this order, with their ``role``."""
    ids = candidates.ids
    selected = candidates.encoded.dataset.select(ids[member.image] for member in members)
    columns: dict[str, list[str | None]] = {
        "task": [member.task for member in members],
        "source": [candidates.sources[member.image] for member in members],
        "role": [member.role for member in members],
        "original": [None if member.of is None else ids[member.of] for member in members],
    }
    files = candidates.encoded.files
    if files is not None:
        columns["file"] = [absolute_file(files[member.image]) for member in members]
    images = selected.images.with_columns(pl.Series(name, rows, dtype=pl.String) for name, rows in columns.items())
    rows = [
        (text.caption, ids[member.image], text.text, text.origin, round(text.dis, 6))
        for member in members
        for text in member.descriptions
    ]
    captions = pl.DataFrame(rows, schema=_CAPTIONS, orient="row")
    # Candidates keep what else was known of them, such as a style; of a new description nothing is.
    free = selected.captions.drop("text", "image", "origin", "dis", strict=False)
    captions = captions.join(free, on="caption", how="left", maintain_order="left")
    # For how many originals there is a confusable image, and how many of its texts are the original's, rewritten.
    roles = Counter(member.role for member in members)
    every = roles["confusable"] == roles["original"]
    which = "each original" if every else f"{roles['confusable']:,} of {roles['original']:,} originals"
    texts = [text for member in members if member.role == "confusable" for text in member.descriptions]
    new_count = sum(text.origin not in (CANDIDATE, CORRECTION) for text in texts)
    share = f"{new_count:,} of the {len(texts):,} descriptions of confusables ({new_count / max(len(texts), 1):.1%})"
    rewritten = f"; {share} are rewritten from the original's, changed as little as possible, the others are its own"
    old = candidates.encoded.dataset
    card = Card(
        source=f"built by crosslens build recos from {old.name}" + (f" ({old.card.source})" if old.card.source else ""),
        revision=f"{name}, build {key[:12]}",
        licence=old.card.licence,
        citation=old.card.citation,
        notes=NOTES[name].format(which=which, texts=rewritten if texts else ""),
    )
    return Dataset(f"recos-{name}", images, captions, selected.objects, selected.relations, card)
