"""What a point of a map stands for, and which points a text occurs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from crosslens.core import Dataset, InputError
from crosslens.web.map.stored import EmbeddingMap

MOST_ROWS = 200
MOST_MATCHES = 20_000


class MapItem(NamedTuple):
    """A point: its row, whether it is an image, its id, the text of a caption, the image it belongs to."""

    row: int
    is_image: bool
    id: str
    text: str | None
    image: str | None


class ItemLookup:
    """The items of a map with what the dataset says of them."""

    def __init__(self, drawn: EmbeddingMap, dataset: Dataset | None) -> None:
        self.drawn = drawn
        captions = {} if dataset is None else {
            caption: (image, text)
            for caption, image, text in dataset.captions.select("caption", "image", "text").iter_rows()
        }  # fmt: skip
        known = [captions.get(caption, (None, None)) for caption in drawn.caption_ids]
        self._images = [image for image, _ in known]
        texts = pl.Series("text", [text for _, text in known], dtype=pl.String)
        names = pl.Series("id", drawn.ids, dtype=pl.String)
        self._searched = pl.concat([names.slice(0, len(drawn.image_ids)), texts.fill_null("")]).str.to_lowercase()
        self._names = names.str.to_lowercase()
        self._texts = texts

    def items(self, rows: Sequence[int]) -> list[MapItem]:
        """The items of these rows, in the order asked for."""
        if len(rows) > MOST_ROWS:
            raise InputError(f"{len(rows)} rows are asked for at once", expected=f"at most {MOST_ROWS}")
        return [self._item(row) for row in rows]

    def _item(self, row: int) -> MapItem:
        if not 0 <= row < len(self.drawn):
            raise InputError(f"no point {row}", expected=f"0 to {len(self.drawn) - 1}", code="unknown-id")
        images = len(self.drawn.image_ids)
        if row < images:
            return MapItem(row, True, self.drawn.image_ids[row], None, self.drawn.image_ids[row])
        caption = row - images
        return MapItem(row, False, self.drawn.caption_ids[caption], self._texts[caption], self._images[caption])

    def matching(self, text: str) -> list[int]:
        """The rows whose caption or id contains all the words of a text, whatever their case."""
        words = text.lower().split()
        if not words:
            return []
        fits = np.ones(len(self.drawn), bool)
        for word in words:
            fits &= (
                self._searched.str.contains(word, literal=True) | self._names.str.contains(word, literal=True)
            ).to_numpy()
        return [int(row) for row in np.flatnonzero(fits)[:MOST_MATCHES]]
