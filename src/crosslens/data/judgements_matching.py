"""Which image and caption of a dataset a judged row is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UnknownNameError
from crosslens.data.judgements_forms import JudgedRows


@dataclass(frozen=True)
class Matched:
    """Rows of the dataset for the rows of the file that are kept.

    A caption from the number of captions on is one of ``others``: a text that the dataset does not have.
    """

    kept: list[int]
    images: list[int]
    captions: list[int]
    others: tuple[str, ...]


def match(rows: JudgedRows, dataset: Dataset, *, skip_unknown: bool = False) -> Matched:
    """Find every judged pair in the dataset; an unknown image or caption raises, or is left out if asked."""
    images = _Names(image_names(dataset), "image", len(dataset.image_ids))
    found_images = [images.find(name) for name in rows.images]
    by_text = rows.by == "text" or (rows.by == "either" and not _any_id(rows.captions, dataset))
    captions = _Texts(dataset) if by_text else None
    ids = _Names({one: place for place, one in enumerate(dataset.caption_ids)}, "caption", len(dataset.caption_ids))
    kept: list[int] = []
    owners: list[int] = []
    places: list[int] = []
    for index, (image, name) in enumerate(zip(found_images, rows.captions, strict=True)):
        sure = rows.by == "text"
        place = ids.find(name) if captions is None else None if image is None else captions.find(name, image, sure)
        if image is not None and place is not None:
            kept.append(index)
            owners.append(image)
            places.append(place)
        elif not skip_unknown:
            names, strange = (images, rows.images[index]) if image is None else (ids, name)
            raise names.unknown(strange, rows.place(index))
    if not rows.images:
        raise InputError("no judged pairs", expected="a row per pair below the header", fix="check the file")
    if not kept:
        raise InputError(
            "none of the judged pairs is in the dataset",
            expected=f"images such as {dataset.image_ids[0]!r}; found {rows.images[0]!r}",
            fix="check that both are of the same collection and split",
        )
    others = () if captions is None else tuple(captions.others)
    return Matched(kept, owners, places, others)


class _Names:
    """Names → rows; names are tried in the spellings that collections use for the same thing."""

    def __init__(self, rows: dict[str, int], what: str, number: int) -> None:
        self._rows, self._what, self._number = rows, what, number

    def find(self, name: str) -> int | None:
        if name in self._rows:
            return self._rows[name]
        return next((self._rows[one] for one in _spellings(name) if one in self._rows), None)

    def unknown(self, name: str, place: int | str) -> InputError:
        near = UnknownNameError(self._what, name, list(self._rows)[:20_000]).suggestions
        elsewhere = "or leave out the rows of other images and captions (skip_unknown=True, --skip-unknown)"
        return InputError(
            f"unknown {self._what} {name!r:.80}",
            row=place,
            expected=f"one of the {self._number:,} {self._what}s of the dataset, by its id"
            + (" or its text" if self._what == "caption" else ""),
            fix=f"did you mean {near[0]!r}? {elsewhere}" if near else f"check that both are of one split, {elsewhere}",
        )


class _Texts:
    """Captions by what they say: the image's own caption where it says so, otherwise the first that does."""

    def __init__(self, dataset: Dataset) -> None:
        self._first: dict[str, int] = {}
        self._own: dict[tuple[int, str], int] = {}
        for place, (text, image) in enumerate(zip(dataset.texts, dataset.caption_image.tolist(), strict=True)):
            self._first.setdefault(normal(text), place)
            self._own.setdefault((image, normal(text)), place)
        self._next = len(dataset.texts)
        self.others: list[str] = []

    def find(self, text: str, image: int, sure: bool) -> int | None:
        """The caption's row; a text from elsewhere gets one too, if it is ``sure`` to be a text or looks like it."""
        key = normal(text)
        place = self._own.get((image, key), self._first.get(key))
        if place is None and (sure or " " in key):
            place = self._first[key] = self._next
            self._next += 1
            self.others.append(text)
        return place


def normal(text: str) -> str:
    """A text without the differences that nobody sees: white space at the ends, runs of it."""
    return " ".join(text.split())


def _any_id(captions: Sequence[str], dataset: Dataset) -> bool:
    known = set(dataset.caption_ids)
    return any(one in known for one in captions)


def image_names(dataset: Dataset) -> dict[str, int]:
    """Ids, and the names of files where they are not already ids."""
    files = dataset.images["file"].to_list() if "file" in dataset.images.columns else []
    names = {PurePosixPath(one).name: row for row, one in enumerate(files) if isinstance(one, str) and one}
    return {**names, **{one: row for row, one in enumerate(dataset.image_ids)}}


def _spellings(name: str) -> list[str]:
    """``COCO_val2014_000000391895.jpg`` is image 391895, ``COCO_val2014:sentid:770337`` caption 770337."""
    if not name.startswith("COCO_"):
        return []
    last = name.rpartition(":")[2] if ":" in name else PurePosixPath(name).stem.rpartition("_")[2]
    return [PurePosixPath(name).stem, last, last.lstrip("0")]
