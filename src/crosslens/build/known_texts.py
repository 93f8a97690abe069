"""The texts there are for each image: its own captions, a verification sheet's, and those written in this build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosslens.build.encoding import EncodedCandidates
from crosslens.build.verification import BAD, CORRECTION, SheetRow, VerificationSheet
from crosslens.core import UsageError, argument
from crosslens.encode import Array

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
        self._from_sheet = self._encode_sheet()

    def of(self, image: int) -> list[KnownText]:
        """All texts of an image: its own captions first."""
        return [*self._own(image), *self._others(image), *self._new.get(image, ())]

    def listed(self, image: int) -> list[KnownText]:
        """Those that the sheet lists, in its order."""
        known = {text.caption: text for text in (*self._own(image), *self._others(image))}
        return [known[row.caption] for row in self._rows(image) if row.caption in known]

    def unlisted(self, image: int) -> list[KnownText]:
        """The image's own captions that the sheet does not list."""
        return [text for text in self._own(image) if text.caption not in self._sheet.by_caption]

    def add(self, image: int, text: KnownText) -> None:
        """A text that was written in this build, and kept."""
        self._new.setdefault(image, []).append(text)

    def written(self, texts: Sequence[str], images: Sequence[str], origin: str) -> list[KnownText]:
        """New texts of these images, encoded, under ids that no other caption has."""
        if not texts:
            return []
        named = zip(images, texts, self._encode(texts), strict=True)
        return [KnownText(self._new_id(image), text, origin, vector) for image, text, vector in named]

    def _own(self, image: int) -> list[KnownText]:
        texts, rows = self._encoded.dataset.texts, self._captions[image]
        own = []
        for row in rows:
            caption = self._caption_ids[row]
            verdict = self._sheet.by_caption.get(caption)
            if caption in self._from_sheet:
                own.append(self._from_sheet[caption])
            elif verdict is None or verdict.verdict != BAD:
                own.append(KnownText(caption, texts[row], CANDIDATE, self._vectors[row]))
        return own

    def _others(self, image: int) -> list[KnownText]:
        """What the sheet has besides the image's own captions."""
        own = {self._caption_ids[row] for row in self._captions[image]}
        rows = [row for row in self._rows(image) if row.caption not in own]
        return [self._from_sheet[row.caption] for row in rows if row.caption in self._from_sheet]

    def _rows(self, image: int) -> Sequence[SheetRow]:
        return self._sheet.of_image(self._encoded.dataset.image_ids[image])

    def _encode_sheet(self) -> dict[str, KnownText]:
        """The sheet's texts that are no caption of the candidates: corrected, or written in an earlier build."""
        own = set(self._caption_ids)
        rows = [row for row in self._sheet.rows if row.verdict == CORRECTION or row.caption not in own]
        rows = [row for row in rows if row.verdict != BAD]
        if not rows:
            return {}
        return {
            row.caption: KnownText(row.caption, row.text, row.origin_of_text, vector)
            for row, vector in zip(rows, self._encode([row.text for row in rows]), strict=True)
        }

    def _encode(self, texts: Sequence[str]) -> Array:
        if self._encoded.encode_texts is None:
            raise UsageError(
                "the verification sheet has new texts, and nothing encodes them",
                fix=f"name the text encoder of the stored vectors' model: {argument('text_encoder')}",
            )
        return self._encoded.encode_texts(texts)

    def _new_id(self, image: str) -> str:
        number = 0
        while (name := f"{image}+{number}") in self._ids:
            number += 1
        self._ids.add(name)
        return name
