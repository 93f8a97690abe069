"""Human judgements of image–caption pairs, aligned with a dataset."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from crosslens.core import (
    Dataset,
    InputError,
    Relevance,
    UnknownNameError,
    UsageError,
    argument,
    frozen,
    reading,
    without_image_ending,
)
from crosslens.data.io.checks import by_row
from crosslens.data.io.files import format_stem
from crosslens.data.judgements.formats import JudgedRows, read_rows

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

_MOST_PERSONS = 16
"""With more judges, most of whom judged few pairs, a column per person would be nearly empty."""


@dataclass(frozen=True, eq=False)
class Judgements:
    """Each judged pair once, in the order of the file.

    ``images``    the row of the image in the dataset
    ``captions``  the row of the caption; from the dataset's number of captions on, one of ``others``
    ``scores``    the mean of the judges
    ``judges``    pairs × judges, NaN where a pair has fewer
    ``same_persons``  whether a column of ``judges`` is one person's throughout
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
    same_persons: bool = True

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
        numbers = [np.atleast_1d(np.asarray(score, np.float64)) for score in scores]
        for row, values in enumerate(numbers):
            if not values.size or not np.isfinite(values).all():
                raise InputError(f"the score is {scores[row]}", row=row, expected="finite numbers", fix="correct it")
        lists = [values.tolist() for values in numbers]
        rows = JudgedRows(list(map(str, images)), list(map(str, captions)), "either", lists, by_row)
        return _aligned(rows, dataset, source, skip_unknown=False)

    def __len__(self) -> int:
        return len(self.scores)

    def select(self, rows: np.ndarray[Any, Any]) -> Judgements:
        """Only these pairs, by row numbers or a boolean mask."""
        chosen = {name: getattr(self, name)[rows] for name in ("images", "captions", "scores", "judges")}
        return replace(self, **chosen)

    def check(self, dataset: Dataset) -> None:
        """Raise for another dataset than the one that the rows belong to."""
        if self.dataset != dataset.fingerprint:
            raise UsageError("the judgements were read for another dataset", fix="read them again with this dataset")

    def is_relevant(self, relevance: Relevance) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which pairs are relevant by ``relevance``, whose queries are the dataset's images and items its captions."""
        relevant = relevance.relevant()
        width = len(relevant.item_ids) + len(self.others)
        return np.isin(self.images * width + self.captions, relevant.rows * width + relevant.items)

    def among_references(self, dataset: Dataset) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which pairs have a caption whose text equals that of one of the image's own captions, spaces aside."""
        texts = [_normal_spaces(text) for text in (*dataset.texts, *self.others)]
        references = set(zip(dataset.caption_image.tolist(), texts, strict=False))
        pairs = zip(self.images.tolist(), self.captions.tolist(), strict=True)
        return np.array([(image, texts[caption]) in references for image, caption in pairs], np.bool_)

    def __repr__(self) -> str:
        return f"Judgements({self.source!r}, {len(self):,} pairs, {int(np.isfinite(self.judges).sum()):,} scores)"


def read_judgements(
    path: str | Path, dataset: Dataset, form: str | None = None, *, skip_unknown: bool = False
) -> Judgements:
    """Human scores of image–caption pairs.

    form: ``pairs`` (a table with the columns image, caption, score), ``cxc`` (Crisscrossed Captions),
        ``flickr8k-expert`` or ``flickr8k-cf``; by default guessed from the file
    skip_unknown: leave out rows of images and captions that the dataset does not have, and count them; otherwise the
        first one raises

    A pair may have several rows, one per judge: its score is the mean.
    """
    with reading(path):
        rows = read_rows(path, form)
        return _aligned(rows, dataset, format_stem(path), skip_unknown=skip_unknown)


def _aligned(rows: JudgedRows, dataset: Dataset, source: str, *, skip_unknown: bool) -> Judgements:
    pairs, others = _match(rows, dataset, skip_unknown=skip_unknown)
    if rows.judges is not None:
        _refuse_repeated_judges(rows, list(pairs.values()))
    judges, same_persons = _by_person(rows, list(pairs.values()))
    images, captions = np.array(list(pairs), np.int64).reshape(-1, 2).T
    skipped = len(rows.images) - sum(map(len, pairs.values()))
    means = np.nanmean(judges, axis=1)
    return Judgements(images, captions, means, judges, dataset.fingerprint, others, source, skipped, same_persons)


def _by_person(rows: JudgedRows, pairs: list[list[int]]) -> tuple[FloatArray, bool]:
    """The scores of every pair, and whether a column is one person's: by the judge's name, or as the file has them."""
    names = sorted(set(rows.judges or ()))
    if names and len(names) <= _MOST_PERSONS and all(len(scores) == 1 for scores in rows.scores):
        assert rows.judges is not None
        column = {name: number for number, name in enumerate(names)}
        cells = [[(column[rows.judges[row]], rows.scores[row][0]) for row in members] for members in pairs]
    elif rows.same_persons and not names and all(len(members) == 1 for members in pairs):
        cells = [list(enumerate(rows.scores[members[0]])) for members in pairs]
    else:
        lists = ((score for row in members for score in rows.scores[row] if not math.isnan(score)) for members in pairs)
        cells = [list(enumerate(scores)) for scores in lists]
        rows = replace(rows, same_persons=False)
    judges = np.full((len(cells), max(at + 1 for pair in cells for at, _ in pair)), np.nan)
    for pair, scores in enumerate(cells):
        for at, score in scores:
            judges[pair, at] = score
    return judges, rows.same_persons


def _refuse_repeated_judges(rows: JudgedRows, pairs: list[list[int]]) -> None:
    """A judge judges a pair once."""
    assert rows.judges is not None
    for members in pairs:
        seen: dict[str, int] = {}
        for row in members:
            judge = rows.judges[row]
            if judge in seen:
                raise InputError(
                    f"judge {judge!r} judged image {rows.images[row]!r} and caption {rows.captions[row]!r:.60} before "
                    f"(at {rows.row_name(seen[judge])})",
                    row=rows.row_name(row),
                    expected="each pair at most once per judge",
                    fix="keep one of the two rows",
                )
            seen[judge] = row


def _match(
    rows: JudgedRows, dataset: Dataset, *, skip_unknown: bool
) -> tuple[dict[tuple[int, int], list[int]], tuple[str, ...]]:
    """Judged pairs (image and caption, by their rows in the dataset) → their rows in the file; and the other texts.

    A caption from the number of captions on is one of the other texts, which the dataset does not have. An unknown
    image or caption raises or is skipped.
    """
    images = _Names(image_names(dataset), "image", len(dataset.image_ids))
    by_text = rows.by == "text" or (rows.by == "either" and not _any_id(rows.captions, dataset))
    captions = _Texts(dataset) if by_text else None
    ids = _Names({caption: row for row, caption in enumerate(dataset.caption_ids)}, "caption", len(dataset.caption_ids))
    pairs: dict[tuple[int, int], list[int]] = {}
    for index, (image_name, name) in enumerate(zip(rows.images, rows.captions, strict=True)):
        image = images.find(image_name)
        if captions is None:
            caption = ids.find(name)
        else:
            caption = None if image is None else captions.find(name, image, is_text=rows.by == "text")
        if image is not None and caption is not None:
            pairs.setdefault((image, caption), []).append(index)
        elif not skip_unknown:
            names, unknown = (images, image_name) if image is None else (ids, name)
            raise names.error(unknown, rows.row_name(index))
    if not rows.images:
        raise InputError("no judged pairs", expected="a row per pair below the header", fix="check the file")
    if not pairs:
        expected = f"images such as {dataset.image_ids[0]!r}; found {rows.images[0]!r}"
        fix = "check that both are of the same collection and split"
        raise InputError("none of the judged pairs is in the dataset", expected=expected, fix=fix)
    return pairs, () if captions is None else tuple(captions.others)


class _Names:
    """Names → rows; a name is tried in the spellings that datasets use for the same image or caption."""

    def __init__(self, rows: dict[str, int], what: str, number: int) -> None:
        self._rows, self._what, self._number = rows, what, number

    def find(self, name: str) -> int | None:
        if name in self._rows:
            return self._rows[name]
        return next((self._rows[spelling] for spelling in _spellings(name) if spelling in self._rows), None)

    def error(self, name: str, row_name: int | str) -> InputError:
        near = UnknownNameError(self._what, name, list(self._rows)[:20_000]).suggestions
        skip = f"or leave out rows of unknown images and captions: {argument('skip_unknown', True)}"
        return InputError(
            f"unknown {self._what} {name!r:.80}",
            row=row_name,
            expected=f"one of the {self._number:,} {self._what}s of the dataset, by its id"
            + (" or its text" if self._what == "caption" else ""),
            fix=f"did you mean {near[0]!r}? {skip}" if near else f"check that both are of one split, {skip}",
        )


class _Texts:
    """Captions by their text: the image's own caption of that text, otherwise the first of the dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self._first: dict[str, int] = {}
        self._own: dict[tuple[int, str], int] = {}
        for row, (text, image) in enumerate(zip(dataset.texts, dataset.caption_image.tolist(), strict=True)):
            self._first.setdefault(_normal_spaces(text), row)
            self._own.setdefault((image, _normal_spaces(text)), row)
        self._next = len(dataset.texts)
        self.others: list[str] = []

    def find(self, text: str, image: int, is_text: bool) -> int | None:
        """The caption's row; a text that the dataset lacks gets a new one if it is surely a text or has spaces."""
        key = _normal_spaces(text)
        row = self._own.get((image, key), self._first.get(key))
        if row is None and (is_text or " " in key):
            row = self._first[key] = self._next
            self._next += 1
            self.others.append(text)
        return row


def _normal_spaces(text: str) -> str:
    """A text without white space at its ends and without runs of it."""
    return " ".join(text.split())


def _any_id(captions: Sequence[str], dataset: Dataset) -> bool:
    known = set(dataset.caption_ids)
    return any(caption in known for caption in captions)


def image_names(dataset: Dataset) -> dict[str, int]:
    """Id or file name, with or without its ending → row of the image; ids come first where both occur.

    A name without ending that two images share is left out.
    """
    files = dataset.images["file"].to_list() if "file" in dataset.images.columns else []
    names = {PurePosixPath(file).name: row for row, file in enumerate(files) if isinstance(file, str) and file}
    names |= {image: row for row, image in enumerate(dataset.image_ids)}
    stems: dict[str, set[int]] = {}
    for name, row in names.items():
        stems.setdefault(without_image_ending(name), set()).add(row)
    return {**{stem: min(rows) for stem, rows in stems.items() if len(rows) == 1}, **names}


def _spellings(name: str) -> list[str]:
    """``COCO_val2014_000000391895.jpg`` is image 391895, ``COCO_val2014:sentid:770337`` caption 770337.

    Any other image may be called with the ending of its file.
    """
    if not name.startswith("COCO_"):
        return [without_image_ending(name)]
    last = name.rpartition(":")[2] if ":" in name else PurePosixPath(name).stem.rpartition("_")[2]
    return [PurePosixPath(name).stem, last, last.lstrip("0")]
