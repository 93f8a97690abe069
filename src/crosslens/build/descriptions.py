"""Descriptions that neither fit everything nor identify their image too easily: checked, rewritten, or dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze import entropy_band
from crosslens.build.candidates import CandidatePool, EncodedCandidates
from crosslens.build.folder import DecisionLog
from crosslens.build.generators.contents import Annotations
from crosslens.build.generators.protocol import CONFUSABLE, DESCRIBE, SHARPER, VAGUER, AnswerSource, Request, folded
from crosslens.build.grammar import GrammarCheck
from crosslens.build.verification import BAD, CORRECTION, SheetRow, VerificationSheet
from crosslens.core import UsageError, argument
from crosslens.data import MEMBER_SEPARATOR
from crosslens.storage import Array
from crosslens.values import Embeddings

CANDIDATE = "candidate"


@dataclass(frozen=True, eq=False)
class KnownText:
    """A text with its vector; ``origin`` says who wrote it."""

    caption: str
    text: str
    origin: str
    vector: Array


class KnownTexts:
    """Texts by image; what the sheet calls bad is not among them, what it corrects is there as corrected."""

    def __init__(self, encoded: EncodedCandidates, captions: Sequence[Sequence[int]], sheet: VerificationSheet) -> None:
        self._encoded, self._captions, self._sheet = encoded, captions, sheet
        self._caption_ids = encoded.dataset.caption_ids
        self._ids = {*self._caption_ids, *(row.caption for row in sheet.rows)}
        self._vectors = np.asarray(encoded.captions.vectors)
        self._new: dict[int, list[KnownText]] = {}
        # The sheet's texts that are no caption of the candidates: corrected, or written in an earlier build.
        caption_ids = set(self._caption_ids)
        used = [row for row in sheet.rows if row.verdict != BAD]
        new = [row for row in used if row.verdict == CORRECTION or row.caption not in caption_ids]
        vectors: Any = self._encode([row.text for row in new]) if new else ()
        self._from_sheet = {
            row.caption: KnownText(
                row.caption, row.text, CORRECTION if row.verdict == CORRECTION else row.origin, vector
            )
            for row, vector in zip(new, vectors, strict=True)
        }

    def of(self, image: int) -> list[KnownText]:
        """All texts of an image: its own captions first."""
        return [*self._stored(image), *self._new.get(image, ())]

    def listed(self, image: int) -> list[KnownText]:
        """Those that the sheet lists, in its order."""
        by_caption = {text.caption: text for text in self._stored(image)}
        return [by_caption[row.caption] for row in self._rows(image) if row.caption in by_caption]

    def unlisted(self, image: int) -> list[KnownText]:
        """The image's own captions that the sheet does not list."""
        return [text for text in self._stored(image) if text.caption not in self._sheet.by_caption]

    def add(self, image: int, text: KnownText) -> None:
        """A text that was written in this build, and kept."""
        self._new.setdefault(image, []).append(text)

    def written(self, texts: Sequence[str], images: Sequence[str], origin: str) -> list[KnownText]:
        """New texts of these images, encoded, under ids that no other caption has."""
        written = []
        for image, text, vector in zip(images, texts, self._encode(texts) if texts else (), strict=True):
            name = next(new for number in count() if (new := f"{image}+{number}") not in self._ids)
            self._ids.add(name)
            written.append(KnownText(name, text, origin, vector))
        return written

    def _stored(self, image: int) -> list[KnownText]:
        """The image's own captions, then what else the sheet has."""
        stored: dict[str, KnownText] = {}
        for row in self._captions[image]:
            caption = self._caption_ids[row]
            verdict = self._sheet.by_caption.get(caption)
            if verdict is None or verdict.verdict != BAD:
                text = KnownText(caption, self._encoded.dataset.texts[row], CANDIDATE, self._vectors[row])
                stored[caption] = self._from_sheet.get(caption, text)
        listed = (row.caption for row in self._rows(image) if row.caption in self._from_sheet)
        return list((stored | {caption: self._from_sheet[caption] for caption in listed}).values())

    def _rows(self, image: int) -> Sequence[SheetRow]:
        return self._sheet.by_image.get(self._encoded.dataset.image_ids[image], ())

    def _encode(self, texts: Sequence[str]) -> Array:
        if self._encoded.encode_texts is None:
            raise UsageError(
                "the verification sheet has new texts, and nothing encodes them",
                fix=f"name the text encoder of the stored vectors' model: {argument('text_encoder')}",
            )
        return self._encoded.encode_texts(texts)


KEPT, VAGUE, SHARP = "kept", "too vague", "too sharp"
REPEATED, NOT_NEEDED, UNGRAMMATICAL, REJECTED = "repeated", "not needed", "ungrammatical", "rejected"
PURPOSE = {VAGUE: SHARPER, SHARP: VAGUER}
_RIVALS, _RIVAL_IMAGES = 5, 3


@dataclass(frozen=True)
class ImageDescription:
    """One description of the benchmark; ``origin`` is ``candidate``, ``correction``, or the generator that wrote it."""

    caption: str
    text: str
    dis: float
    origin: str


@dataclass
class _Draft:
    """The descriptions of an image while they are being chosen."""

    kept: list[ImageDescription] = field(default_factory=list)
    failed: dict[str, list[str]] = field(default_factory=lambda: {VAGUE: [], SHARP: []})
    rivals: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Checked:
    """A text of an image after its check; ``nearest`` are the images it fits best besides its own."""

    image: int
    known: KnownText
    description: ImageDescription
    nearest: Sequence[int]


class DescriptionEditor:
    """Chooses the descriptions of images, one batch after the other; no text goes to two images.

    ``gallery`` is what descriptions are checked against: all candidates, or the images described last.
    """

    def __init__(
        self,
        candidates: CandidatePool,
        answers: AnswerSource | None,
        log: DecisionLog,
        sheet: VerificationSheet | None = None,
        grammar: GrammarCheck | None = None,
    ) -> None:
        self.candidates, self.answers, self.log = candidates, answers, log
        self.gallery = candidates.whole
        self._sheet, self._grammar = sheet or VerificationSheet(), grammar
        self._texts = KnownTexts(candidates.encoded, candidates.captions, self._sheet)
        self._annotations = Annotations(candidates.encoded.dataset)
        self._row_of = {name: image for image, name in enumerate(candidates.ids)}
        self._attempts = range(candidates.settings.attempts if answers and candidates.encoded.encode_texts else 0)
        self._earlier: Counter[int] = Counter()
        self._owner: dict[str, int] = {}

    def verdict(self, dis: float) -> str:
        """On which side of the band a value lies."""
        low, high = entropy_band(self.candidates.settings.k, self.candidates.settings.eta)
        return SHARP if dis < low else VAGUE if dis > high else KEPT

    def describe(self, images: Sequence[int]) -> dict[int, list[ImageDescription]]:
        """The descriptions of each image, as many as the settings say, or fewer where there are no more.

        Images that were described before keep what was written for them, as far as it still passes.
        """
        if self.candidates.checks_selected:
            self.gallery = self.candidates.gallery_of(images)
            self.release(images)
        drafts = {image: _Draft() for image in images}
        for checked in self._check((image, text) for image in images for text in self._texts.of(image)):
            draft, verdict = drafts[checked.image], self._verdict_on(checked)
            if verdict in draft.failed:
                draft.failed[verdict].append(checked.description.text)
                self._add_rivals(draft, checked.nearest)
            elif (verdict := self._take(checked, draft.kept)) != KEPT:
                self._log_new("passed over", checked, verdict)
        for image, draft in drafts.items():
            if not draft.rivals:
                self._add_rivals(draft, [other for other, _ in islice(self.candidates.nearest(image), _RIVAL_IMAGES)])
        for attempt in self._attempts:
            requests = [request for image, draft in drafts.items() for request in self._requests(image, draft, attempt)]
            for checked, problems in self._written(requests, attempt):
                verdict = self._verdict_on(checked, problems)
                if verdict == KEPT and (verdict := self._take(checked, drafts[checked.image].kept)) == KEPT:
                    self._texts.add(checked.image, checked.known)
                self._log_new("rewritten", checked, verdict, problems)
        self._earlier.update(dict.fromkeys(images, len(self._attempts)))
        return {image: draft.kept for image, draft in drafts.items()}

    def describe_confusables(
        self, pairs: Sequence[tuple[int, int, Sequence[ImageDescription]]]
    ) -> dict[int, list[ImageDescription]]:
        """Descriptions of confusable images, each made from those of its original by changing as little as possible.

        Where the generator has too few, the image's own descriptions fill up. They are not held to the band, which is
        about one image among all: a confusable's purpose is to be near one. Their dis is logged.
        """
        descriptions: dict[int, list[ImageDescription]] = {image: [] for _, image, _ in pairs}
        self._take_known(descriptions, self._texts.listed)
        for attempt in self._attempts:
            requests = []
            for original, image, described in pairs:
                missing = self.candidates.settings.descriptions - len(descriptions[image])
                if missing > 0:
                    texts = [description.text for description in described]
                    requests.append(self._request(image, CONFUSABLE, missing, texts, texts, attempt, original))
            for checked, problems in self._written(requests, attempt):
                verdict = self._verdict_on(checked, problems, band=False)
                if verdict == KEPT:
                    verdict = self._take(checked, descriptions[checked.image])
                self._log_new("likened", checked, verdict, problems)
        self._take_known(descriptions, self._texts.unlisted)
        return descriptions

    def _take_known(
        self, descriptions: Mapping[int, list[ImageDescription]], texts_of: Callable[[int], list[KnownText]]
    ) -> None:
        for checked in self._check((image, text) for image in descriptions for text in texts_of(image)):
            self._log_new("likened", checked, self._take(checked, descriptions[checked.image]))

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
            attempt=self._earlier[image] + attempt,
            seed=self.candidates.settings.seed,
        )

    def _verdict_on(self, checked: _Checked, problems: Sequence[str] = (), *, band: bool = True) -> str:
        """Whether a text may be used. What people corrected is used wherever it lies."""
        if checked.description.origin == CORRECTION:
            return KEPT
        text = folded(checked.description.text)
        rows = self._sheet.by_image.get(self.candidates.ids[checked.image], ())
        if any(row.verdict == BAD and folded(row.description) == text for row in rows):
            return REJECTED
        return UNGRAMMATICAL if problems else self.verdict(checked.description.dis) if band else KEPT

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
            texts = [description.text for description in draft.kept]
            requests.append(self._request(image, DESCRIBE, missing, texts, draft.rivals, attempt))
        return requests

    def _written(self, requests: list[Request], attempt: int) -> list[tuple[_Checked, tuple[str, ...]]]:
        """The generator's texts, each with its image, its dis and what is wrong with its grammar."""
        if not requests:
            return []
        assert self.answers is not None
        label = "describing confusables" if requests[0].purpose == CONFUSABLE else f"rewriting, attempt {attempt + 1}"
        texts: list[str] = []
        owners: list[int] = []
        for request, (key, answer) in zip(requests, self.answers(requests, label), strict=True):
            facts = {"image": request.image, "purpose": request.purpose, "attempt": request.attempt}
            self.log("answer", request=key, **facts, texts=answer)
            written = [text.strip() for text in answer[: request.wanted] if text.strip()]
            texts += written
            owners += [self._row_of[request.image]] * len(written)
        new = self._texts.written(texts, [self.candidates.ids[image] for image in owners], self.answers.generator.name)
        problems = self._grammar.problems(texts) if self._grammar and texts else [()] * len(texts)
        return list(zip(self._check(zip(owners, new, strict=True)), problems, strict=True))

    def _check(self, texts: Iterable[tuple[int, KnownText]]) -> list[_Checked]:
        listed = list(texts)
        if not listed:
            return []
        model = self.candidates.encoded.captions.model
        vectors = Embeddings.of(np.stack([text.vector for _, text in listed]), model=model)
        check = self.gallery.measure(vectors, [image for image, _ in listed], self.candidates.temperature)
        return [
            _Checked(
                image,
                text,
                ImageDescription(text.caption, text.text, float(dis), text.origin),
                [self.gallery.images[int(position)] for position in near[:_RIVAL_IMAGES]],
            )
            for (image, text), dis, near in zip(listed, check.values, check.neighbours.items, strict=True)
        ]

    def _take(self, checked: _Checked, descriptions: list[ImageDescription]) -> str:
        """Assign a text to its image; not if it has enough, or the same words are assigned already."""
        words = " ".join(checked.description.text.casefold().split()).rstrip(".!")
        if words in self._owner:
            return REPEATED
        if len(descriptions) >= self.candidates.settings.descriptions:
            return NOT_NEEDED
        self._owner[words] = checked.image
        descriptions.append(checked.description)
        return KEPT

    def release(self, images: Collection[int]) -> None:
        """These images are dropped: their texts may be assigned again."""
        self._owner = {words: owner for words, owner in self._owner.items() if owner not in images}

    def _log_new(self, step: str, checked: _Checked, verdict: str, problems: Sequence[str] = ()) -> None:
        facts = {"problems": list(problems)} if problems else {}
        self.log(
            step, image=self.candidates.ids[checked.image], **asdict(checked.description), verdict=verdict, **facts
        )

    def _add_rivals(self, draft: _Draft, images: Sequence[int]) -> None:
        for image in images:
            for row in self.candidates.captions[image][:1]:
                text = self.candidates.encoded.dataset.texts[row]
                if text not in draft.rivals and len(draft.rivals) < _RIVALS:
                    draft.rivals.append(text)
