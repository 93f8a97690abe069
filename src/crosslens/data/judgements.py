"""What people said about pairs of an image and a caption, aligned with a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError, reading
from crosslens.core.ids import frozen
from crosslens.core.relevance import Relevance
from crosslens.data.files import format_stem
from crosslens.data.judgements_forms import JudgedRows, read_rows
from crosslens.data.judgements_matching import match, normal

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class Judgements:
    """Each judged pair once, in the order of the file.

    ``images``    the row of the image in the dataset
    ``captions``  the row of the caption; from the dataset's number of captions on, one of ``others``
    ``scores``    the mean of the judges
    ``judges``    pairs × judges, NaN where a pair has fewer
    ``others``    judged texts that the dataset does not have
    ``dataset``   the fingerprint of the dataset that the rows belong to
    ``skipped``   how many rows of the file were left out because the dataset does not have them
    """

    images: IntArray
    captions: IntArray
    scores: FloatArray
    judges: FloatArray
    dataset: str
    others: tuple[str, ...] = ()
    source: str = "judgements"
    skipped: int = 0

    def __post_init__(self) -> None:
        for name in ("images", "captions", "scores", "judges"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @staticmethod
    def of(
        dataset: Dataset, images: Sequence[str], captions: Sequence[str], scores: Sequence[Any], source: str = "own"
    ) -> Judgements:
        """From ids (captions may be named by their texts) and scores, each a number or one number per judge."""
        if not len(images) == len(captions) == len(scores):
            counts = f"{len(images)} images, {len(captions)} captions, {len(scores)} scores"
            raise InputError(counts, expected="equal lengths")
        numbers = [np.atleast_1d(np.asarray(one, np.float64)) for one in scores]
        for row, one in enumerate(numbers):
            if not one.size or not np.isfinite(one).all():
                raise InputError(f"the score is {scores[row]}", row=row, expected="finite numbers", fix="correct it")
        lists = [one.tolist() for one in numbers]
        rows = JudgedRows(
            [str(one) for one in images], [str(one) for one in captions], "either", lists, lambda row: row
        )
        return _aligned(rows, dataset, source, skip_unknown=False)

    def __len__(self) -> int:
        return len(self.scores)

    def select(self, rows: np.ndarray[Any, Any]) -> Judgements:
        """Only these pairs: their numbers, or a true or false for each."""
        chosen = {name: getattr(self, name)[rows] for name in ("images", "captions", "scores", "judges")}
        return replace(self, **chosen)

    def check(self, dataset: Dataset) -> None:
        """Refuse another dataset than the one that the rows belong to."""
        if self.dataset != dataset.fingerprint:
            raise UsageError(
                "the judgements were read for another dataset", fix="read them again, with the dataset at hand"
            )

    def is_relevant(self, relevance: Relevance) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which pairs are relevant by ``relevance``, whose queries are the dataset's images and items its captions."""
        relevant = relevance.relevant()
        width = len(relevant.item_ids) + len(self.others)
        return np.isin(self.images * width + self.captions, relevant.rows * width + relevant.items)

    def among_references(self, dataset: Dataset) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which pairs have a caption that says, letter for letter, what one of the image's own captions says."""
        texts = [normal(one) for one in (*dataset.texts, *self.others)]
        references = set(zip(dataset.caption_image.tolist(), texts, strict=False))
        pairs = zip(self.images.tolist(), self.captions.tolist(), strict=True)
        return np.array([(image, texts[caption]) in references for image, caption in pairs], np.bool_)

    def __repr__(self) -> str:
        return f"Judgements({self.source!r}, {len(self):,} pairs, {int(np.isfinite(self.judges).sum()):,} scores)"


def read_judgements(
    path: str | Path, dataset: Dataset, form: str | None = None, *, skip_unknown: bool = False
) -> Judgements:
    """Scores that people gave to pairs of an image and a caption.

    form: ``pairs`` (a table with the columns image, caption, score), ``cxc`` (Crisscrossed Captions),
        ``flickr8k-expert`` or ``flickr8k-cf``; by default what the file looks like
    skip_unknown: leave out rows of images and captions that the dataset does not have, and count them; otherwise the
        first one raises

    A pair may stand in several rows, one per judge: its score is the mean.
    """
    with reading(path):
        rows = read_rows(path, form)
        return _aligned(rows, dataset, format_stem(path), skip_unknown=skip_unknown)


def _aligned(rows: JudgedRows, dataset: Dataset, source: str, *, skip_unknown: bool) -> Judgements:
    found = match(rows, dataset, skip_unknown=skip_unknown)
    pairs: dict[tuple[int, int], list[int]] = {}
    for row, image, caption in zip(found.kept, found.images, found.captions, strict=True):
        pairs.setdefault((image, caption), []).append(row)
    if rows.judges is not None:
        _refuse_second_opinions(rows, list(pairs.values()))
    given = [[one for row in members for one in rows.scores[row] if one == one] for members in pairs.values()]
    judges = np.full((len(given), max(map(len, given))), np.nan)
    for place, scores in enumerate(given):
        judges[place, : len(scores)] = scores
    images, captions = np.array(list(pairs), np.int64).reshape(-1, 2).T
    return Judgements(
        images,
        captions,
        np.nanmean(judges, axis=1),
        judges,
        dataset.fingerprint,
        found.others,
        source,
        len(rows.images) - len(found.kept),
    )


def _refuse_second_opinions(rows: JudgedRows, pairs: list[list[int]]) -> None:
    """A judge judges a pair once."""
    assert rows.judges is not None
    for members in pairs:
        seen: dict[str, int] = {}
        for row in members:
            judge = rows.judges[row]
            if judge in seen:
                raise InputError(
                    f"judge {judge!r} judged image {rows.images[row]!r} and caption {rows.captions[row]!r:.60} before "
                    f"(at {rows.place(seen[judge])})",
                    row=rows.place(row),
                    expected="each pair at most once per judge",
                    fix="keep one of the two rows",
                )
            seen[judge] = row
