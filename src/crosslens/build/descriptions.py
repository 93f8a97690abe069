"""Descriptions that neither fit everything nor identify their image too easily: checked, rewritten, or dropped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from crosslens.analyze import entropy_band
from crosslens.build.candidates import CandidatePool
from crosslens.build.generators.annotations import Annotations
from crosslens.build.generators.protocol import CONFUSABLE, DESCRIBE, SHARPER, VAGUER, Request
from crosslens.build.generators.recorded import AnswerSource
from crosslens.build.log import DecisionLog
from crosslens.data import MEMBER_SEPARATOR

KEPT, VAGUE, SHARP = "kept", "too vague", "too sharp"
REPEATED, NOT_NEEDED = "repeated", "not needed"
PURPOSE = {VAGUE: SHARPER, SHARP: VAGUER}
CANDIDATE = "candidate"
_RIVALS, _RIVAL_IMAGES = 5, 3


@dataclass(frozen=True)
class ImageDescription:
    """One description of the benchmark; ``origin`` is ``candidate``, or the generator that wrote it."""

    caption: str
    text: str
    dis: float
    origin: str


@dataclass
class _Draft:
    """The descriptions of an image while they are being settled."""

    kept: list[ImageDescription] = field(default_factory=list)
    failed: dict[str, list[str]] = field(default_factory=lambda: {VAGUE: [], SHARP: []})
    rivals: list[str] = field(default_factory=list)


class DescriptionEditor:
    """Settles the descriptions of images, one batch after the other; no text goes to two images."""

    def __init__(self, candidates: CandidatePool, answers: AnswerSource | None, log: DecisionLog) -> None:
        self.candidates, self.answers, self.log = candidates, answers, log
        self._annotations = Annotations(candidates.encoded.dataset)
        self._row_of = {name: image for image, name in enumerate(candidates.ids)}
        self._attempts = range(candidates.settings.attempts if answers and candidates.encoded.encode_texts else 0)
        self._owner: dict[str, int] = {}
        self._ids = set(candidates.encoded.dataset.caption_ids)

    def verdict(self, dis: float) -> str:
        """On which side of the band a value lies."""
        low, high = entropy_band(self.candidates.settings.k, self.candidates.settings.eta)
        return SHARP if dis < low else VAGUE if dis > high else KEPT

    def settle(self, images: Sequence[int]) -> dict[int, list[ImageDescription]]:
        """The descriptions of each image, as many as the settings say, or fewer where there are no more."""
        drafts = {image: self._draft(image) for image in images}
        for attempt in self._attempts:
            requests = [request for image, draft in drafts.items() for request in self._requests(image, draft, attempt)]
            for image, description, verdict in self._written(requests, attempt):
                if verdict == KEPT:
                    verdict = self._take(description, image, drafts[image].kept)
                self._log_new("rewritten", image, description, verdict)
        return {image: draft.kept for image, draft in drafts.items()}

    def describe_confusables(
        self, pairs: Sequence[tuple[int, int, Sequence[ImageDescription]]]
    ) -> dict[int, list[ImageDescription]]:
        """Descriptions of confusable images, each made from those of its original by changing as little as possible.

        Where the generator has too few, the image's own descriptions fill up. They are not held to the band, which is
        about one image among all: a confusable's purpose is to be near one. Their dis is logged.
        """
        descriptions: dict[int, list[ImageDescription]] = {image: [] for _, image, _ in pairs}
        for attempt in self._attempts:
            requests = []
            for original, image, described in pairs:
                missing = self.candidates.settings.descriptions - len(descriptions[image])
                if missing > 0:
                    texts = [description.text for description in described]
                    requests.append(self._request(image, CONFUSABLE, missing, texts, texts, attempt, original))
            for image, description, _ in self._written(requests, attempt):
                self._log_new("likened", image, description, self._take(description, image, descriptions[image]))
        for image, taken in descriptions.items():
            for row in self.candidates.captions[image]:
                description = self._candidate(row)
                self._log_new("likened", image, description, self._take(description, image, taken))
        return descriptions

    def _request(
        self,
        image: int,
        purpose: str,
        wanted: int,
        texts: Sequence[str],
        rivals: Sequence[str],
        attempt: int,
        original: int | None = None,
    ) -> Request:
        ids, files = self.candidates.ids, self.candidates.encoded.files
        return Request(
            image=ids[image],
            file=None if files is None or MEMBER_SEPARATOR in files[image] else Path(files[image]),
            task=self.candidates.tasks[image if original is None else original],
            texts=tuple(texts),
            purpose=purpose,
            wanted=wanted,
            objects=self._annotations[ids[image]],
            rivals=tuple(rivals),
            original_objects=() if original is None else self._annotations[ids[original]],
            attempt=attempt,
            seed=self.candidates.settings.seed,
        )

    def _draft(self, image: int) -> _Draft:
        """The candidate's own descriptions, and its rivals."""
        draft = _Draft()
        for row in self.candidates.captions[image]:
            description = self._candidate(row)
            verdict = self.verdict(description.dis)
            if verdict in draft.failed:
                draft.failed[verdict].append(description.text)
                nearest = self.candidates.check.neighbours.items[row][:_RIVAL_IMAGES]
                self._add_rivals(draft, [self.candidates.image_at(position) for position in nearest])
            elif (verdict := self._take(description, image, draft.kept)) != KEPT:
                self._log_new("passed over", image, description, verdict)
        if not draft.rivals:
            self._add_rivals(draft, [other for other, _ in islice(self.candidates.nearest(image), _RIVAL_IMAGES)])
        return draft

    def _requests(self, image: int, draft: _Draft, attempt: int) -> list[Request]:
        """What is still missing, by purpose: the vague ones sharper, the sharp ones vaguer, then new ones."""
        missing = self.candidates.settings.descriptions - len(draft.kept)
        requests = []
        for verdict, failed in draft.failed.items():
            count = min(missing, len(failed))
            if count > 0:
                requests.append(self._request(image, PURPOSE[verdict], count, failed, draft.rivals, attempt))
                missing -= count
        if missing > 0:
            kept = [description.text for description in draft.kept]
            requests.append(self._request(image, DESCRIBE, missing, kept, draft.rivals, attempt))
        return requests

    def _written(self, requests: list[Request], attempt: int) -> list[tuple[int, ImageDescription, str]]:
        """The generator's texts, each with its image, its dis and the verdict on it."""
        if not requests:
            return []
        assert self.answers is not None
        assert self.candidates.encoded.encode_texts is not None
        label = "describing confusables" if requests[0].purpose == CONFUSABLE else f"rewriting, attempt {attempt + 1}"
        texts: list[str] = []
        owners: list[int] = []
        for request, (key, answer) in zip(requests, self.answers(requests, label), strict=True):
            self.log("answer", request=key, image=request.image, purpose=request.purpose, attempt=attempt, texts=answer)
            written = [text.strip() for text in answer[: request.wanted] if text.strip()]
            texts += written
            owners += [self._row_of[request.image]] * len(written)
        if not texts:
            return []
        values = self.candidates.dis(self.candidates.encoded.encode_texts(texts), owners).values
        origin = self.answers.generator.name
        return [
            (image, ImageDescription(self._new_id(image), text, float(dis), origin), self.verdict(float(dis)))
            for image, text, dis in zip(owners, texts, values, strict=True)
        ]

    def _candidate(self, row: int) -> ImageDescription:
        dataset = self.candidates.encoded.dataset
        return ImageDescription(
            dataset.caption_ids[row], dataset.texts[row], float(self.candidates.check.values[row]), CANDIDATE
        )

    def _take(self, description: ImageDescription, image: int, kept: list[ImageDescription]) -> str:
        """Assign a text to the image; not if it has enough, or the same words are assigned already."""
        words = " ".join(description.text.casefold().split()).rstrip(".!")
        if words in self._owner:
            return REPEATED
        if len(kept) >= self.candidates.settings.descriptions:
            return NOT_NEEDED
        self._owner[words] = image
        kept.append(description)
        return KEPT

    def release(self, images: Collection[int]) -> None:
        """These images are dropped: their texts may be assigned again."""
        self._owner = {words: owner for words, owner in self._owner.items() if owner not in images}

    def _new_id(self, image: int) -> str:
        number = 0
        while (name := f"{self.candidates.ids[image]}+{number}") in self._ids:
            number += 1
        self._ids.add(name)
        return name

    def _log_new(self, step: str, image: int, description: ImageDescription, verdict: str) -> None:
        self.log(step, image=self.candidates.ids[image], **asdict(description), verdict=verdict)

    def _add_rivals(self, draft: _Draft, images: Sequence[int]) -> None:
        for image in images:
            for row in self.candidates.captions[image][:1]:
                text = self.candidates.encoded.dataset.texts[row]
                if text not in draft.rivals and len(draft.rivals) < _RIVALS:
                    draft.rivals.append(text)
