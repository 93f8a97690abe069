"""Descriptions that neither fit everything nor give their image away: checked, rewritten, or given up."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosslens.analyze import band
from crosslens.build.answers import Answers
from crosslens.build.candidates import Candidates
from crosslens.build.generators import CONFUSABLE, DESCRIBE, SHARPER, VAGUER, Request
from crosslens.build.generators.annotations import Annotations
from crosslens.build.log import DecisionLog
from crosslens.data.inside import MARK

KEPT, VAGUE, SHARP = "kept", "too vague", "too sharp"
REPEATED, NOT_NEEDED = "repeated", "not needed"
PURPOSE = {VAGUE: SHARPER, SHARP: VAGUER}
CANDIDATE = "candidate"
_RIVALS, _RIVAL_IMAGES = 5, 3


@dataclass(frozen=True)
class Description:
    """One description of the benchmark; ``origin`` is ``candidate``, or the generator that wrote it."""

    caption: str
    text: str
    dis: float
    origin: str


@dataclass
class _Sheet:
    """An image while its descriptions are being settled."""

    kept: list[Description] = field(default_factory=list)
    failed: dict[str, list[str]] = field(default_factory=lambda: {VAGUE: [], SHARP: []})
    rivals: list[str] = field(default_factory=list)


class Editor:
    """Settles the descriptions of images, one batch after the other; no text is given to two images."""

    def __init__(self, candidates: Candidates, answers: Answers | None, log: DecisionLog) -> None:
        self.candidates, self.answers, self.log = candidates, answers, log
        self._annotations = Annotations(candidates.views.dataset)
        self._owner: dict[str, int] = {}
        self._ids = set(candidates.views.dataset.caption_ids)

    def verdict(self, dis: float) -> str:
        """On which side of the band a value lies."""
        low, high = band(self.candidates.settings.k, self.candidates.settings.eta)
        return SHARP if dis < low else VAGUE if dis > high else KEPT

    def settle(self, images: Sequence[int]) -> dict[int, list[Description]]:
        """The descriptions of each image, as many as are wanted, or fewer where no more were to be had."""
        sheets = {image: self._first(image) for image in images}
        for attempt in range(self.candidates.settings.attempts if self._can_rewrite else 0):
            requests = [one for image, sheet in sheets.items() for one in self._requests(image, sheet, attempt)]
            if not requests:
                break
            self._rewrite(requests, sheets, attempt)
        return {image: sheet.kept for image, sheet in sheets.items()}

    def liken(self, pairs: Sequence[tuple[int, int, list[Description]]]) -> dict[int, list[Description]]:
        """Descriptions of confusable images, each made from those of its original by changing as little as possible.

        Where the generator has too few, the image's own descriptions fill up. They are not held to the band, which is
        about one image among all: a confusable's purpose is to be near one. Their dis is logged.
        """
        found: dict[int, list[Description]] = {image: [] for _, image, _ in pairs}
        for attempt in range(self.candidates.settings.attempts if self._can_rewrite else 0):
            asked = [
                (image, request)
                for original, image, texts in pairs
                if (request := self._likening(original, image, texts, len(found[image]), attempt)) is not None
            ]
            if not asked:
                break
            requests, images = [request for _, request in asked], [image for image, _ in asked]
            for image, one, _ in self._written(requests, images, attempt):
                self._log_new("likened", image, one, self._take(one, image, found[image]))
        for image, texts in found.items():
            for row in self.candidates.captions[image]:
                one = self._candidate(row)
                self._log_new("likened", image, one, self._take(one, image, texts))
        return found

    def _likening(
        self, original: int, image: int, texts: Sequence[Description], there: int, attempt: int
    ) -> Request | None:
        """What is still missing of a confusable image; None if nothing is."""
        missing = self.candidates.settings.descriptions - there
        if missing <= 0:
            return None
        return Request(
            image=self.candidates.ids[image],
            file=self._file(image),
            task=self.candidates.tasks[original],
            texts=tuple(one.text for one in texts),
            purpose=CONFUSABLE,
            wanted=missing,
            objects=self._annotations[self.candidates.ids[image]],
            rivals=tuple(one.text for one in texts),
            original_objects=self._annotations[self.candidates.ids[original]],
            attempt=attempt,
            seed=self.candidates.settings.seed,
        )

    @property
    def _can_rewrite(self) -> bool:
        return self.answers is not None and self.candidates.views.read is not None

    def _first(self, image: int) -> _Sheet:
        """What the candidates themselves offer."""
        sheet = _Sheet()
        for row in self.candidates.captions[image]:
            one = self._candidate(row)
            verdict = self.verdict(one.dis)
            if verdict in sheet.failed:
                sheet.failed[verdict].append(one.text)
                places = self.candidates.check.neighbours.items[row][:_RIVAL_IMAGES]
                self._add_rivals(sheet, [self.candidates.gallery_image(place) for place in places])
            elif (verdict := self._take(one, image, sheet.kept)) != KEPT:
                self._log_new("passed over", image, one, verdict)
        if not sheet.rivals:
            near = (other for other, _ in self.candidates.alike(image))
            self._add_rivals(sheet, [other for other, _ in zip(near, range(_RIVAL_IMAGES), strict=False)])
        return sheet

    def _requests(self, image: int, sheet: _Sheet, attempt: int) -> list[Request]:
        """What is still missing, by purpose: the vague ones sharper, the sharp ones vaguer, then new ones."""
        missing = self.candidates.settings.descriptions - len(sheet.kept)
        parts = []
        for verdict in (VAGUE, SHARP):
            wanted = min(missing, len(sheet.failed[verdict]))
            if wanted > 0:
                parts.append((PURPOSE[verdict], wanted, tuple(sheet.failed[verdict])))
                missing -= wanted
        if missing > 0:
            parts.append((DESCRIBE, missing, tuple(one.text for one in sheet.kept)))
        return [
            Request(
                image=self.candidates.ids[image],
                file=self._file(image),
                task=self.candidates.tasks[image],
                texts=texts,
                purpose=purpose,
                wanted=wanted,
                objects=self._annotations[self.candidates.ids[image]],
                rivals=tuple(sheet.rivals),
                attempt=attempt,
                seed=self.candidates.settings.seed,
            )
            for purpose, wanted, texts in parts
        ]

    def _rewrite(self, requests: list[Request], sheets: dict[int, _Sheet], attempt: int) -> None:
        row_of = {self.candidates.ids[image]: image for image in sheets}
        for image, one, verdict in self._written(requests, [row_of[one.image] for one in requests], attempt):
            if verdict == KEPT:
                verdict = self._take(one, image, sheets[image].kept)
            self._log_new("rewritten", image, one, verdict)

    def _written(self, requests: list[Request], images: list[int], attempt: int) -> list[tuple[int, Description, str]]:
        """The generator's texts with their dis and the verdict on it."""
        assert self.answers is not None
        assert self.candidates.views.read is not None
        label = "describing confusables" if requests[0].purpose == CONFUSABLE else f"rewriting, attempt {attempt + 1}"
        texts: list[str] = []
        owners: list[int] = []
        for request, image, (key, found) in zip(requests, images, self.answers(requests, label), strict=True):
            self.log("answer", request=key, image=request.image, purpose=request.purpose, attempt=attempt, texts=found)
            said = [text.strip() for text in found[: request.wanted] if text.strip()]
            texts += said
            owners += [image] * len(said)
        if not texts:
            return []
        values = self.candidates.dis(self.candidates.views.read(texts), owners).values
        origin = self.answers.generator.name
        return [
            (image, Description(self._new_id(image), text, float(dis), origin), self.verdict(float(dis)))
            for image, text, dis in zip(owners, texts, values, strict=True)
        ]

    def _candidate(self, row: int) -> Description:
        dataset = self.candidates.views.dataset
        return Description(
            dataset.caption_ids[row], dataset.texts[row], float(self.candidates.check.values[row]), CANDIDATE
        )

    def _take(self, one: Description, image: int, kept: list[Description]) -> str:
        """Make a text the image's own; not if there are enough, or the same words are already given away."""
        words = " ".join(one.text.casefold().split()).rstrip(".!")
        if words in self._owner:
            return REPEATED
        if len(kept) >= self.candidates.settings.descriptions:
            return NOT_NEEDED
        self._owner[words] = image
        kept.append(one)
        return KEPT

    def release(self, images: Collection[int]) -> None:
        """These images are given up: their texts are free again."""
        self._owner = {words: owner for words, owner in self._owner.items() if owner not in images}

    def _new_id(self, image: int) -> str:
        number = 0
        while (name := f"{self.candidates.ids[image]}+{number}") in self._ids:
            number += 1
        self._ids.add(name)
        return name

    def _log_new(self, step: str, image: int, one: Description, verdict: str) -> None:
        self.log(
            step,
            image=self.candidates.ids[image],
            caption=one.caption,
            text=one.text,
            dis=one.dis,
            origin=one.origin,
            verdict=verdict,
        )

    def _add_rivals(self, sheet: _Sheet, images: Sequence[int]) -> None:
        for image in images:
            for row in self.candidates.captions[image][:1]:
                text = self.candidates.views.dataset.texts[row]
                if text not in sheet.rivals and len(sheet.rivals) < _RIVALS:
                    sheet.rivals.append(text)

    def _file(self, image: int) -> Path | None:
        files = self.candidates.views.files
        return None if files is None or MARK in files[image] else Path(files[image])
