"""A reviewed list read back: what a person decided becomes a cleaned dataset and judgements to evaluate with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.analyze.label_quality_signals import ALSO_FITS, MOVE, REMOVE, VERDICTS
from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError
from crosslens.core.relevance import Relevance
from crosslens.data.checks import Place, by_row
from crosslens.data.files import existing_file, format_suffix, read_bytes
from crosslens.data.tables import read_table

_NEEDED = ("verdict", "image", "caption", "suggested_image")


@dataclass(frozen=True, eq=False)
class Reviewed:
    """The dataset and its judgements (images × captions) after a review; ``counts`` of each verdict and of blanks."""

    dataset: Dataset
    relevance: Relevance
    counts: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """The numbers."""
        return {
            "verdicts": self.counts,
            "images": len(self.dataset.image_ids),
            "captions": len(self.dataset.caption_ids),
            "pairs": len(self.relevance.items),
        }


@dataclass(frozen=True)
class _Decision:
    verdict: str
    image: str
    caption: str | None
    suggested: str | None
    place: int | str


def apply_review(dataset: Dataset, path: str | Path) -> Reviewed:
    """Do what the ``verdict`` column of a reviewed list says (.csv, .tsv, .jsonl or .parquet).

    ``keep`` or nothing   leaves the row as it is
    ``remove``            takes the caption out; in a row without a caption, the image with its captions
    ``also-fits``         the caption fits the suggested image too; without a caption, both images' captions fit both
    ``move``              the caption belongs to the suggested image instead
    """
    decisions = list(_decisions(path, dataset))
    gone = {one.image for one in decisions if one.verdict == REMOVE and one.caption is None}
    dropped = {one.caption for one in decisions if one.verdict == REMOVE and one.caption is not None}
    moved = {one.caption: one.suggested for one in decisions if one.verdict == MOVE}
    _check_targets(decisions, gone, path)
    captions = dataset.captions.with_columns(
        pl.Series("image", [moved.get(caption) or image for caption, image in _owners(dataset)], dtype=pl.String)
    )
    captions = captions.filter(~pl.col("caption").is_in(list(dropped)) & ~pl.col("image").is_in(list(gone)))
    kept = dataset.select(one for one in dataset.image_ids if one not in gone)
    cleaned = replace(kept, captions=captions)
    return Reviewed(cleaned, _relevance(cleaned, decisions), _counts(decisions))


def _owners(dataset: Dataset) -> Iterator[tuple[str, str]]:
    yield from dataset.captions.select("caption", "image").iter_rows()


def _relevance(cleaned: Dataset, decisions: list[_Decision]) -> Relevance:
    owners = dict(_owners(cleaned))
    pairs = {(image, caption) for caption, image in owners.items()}
    extra = set()
    for one in decisions:
        if one.verdict == ALSO_FITS and one.suggested is not None:
            both = {one.image, one.suggested}
            if one.caption is None:
                fitting = [caption for caption, image in owners.items() if image in both]
                extra |= {(image, caption) for image in both for caption in fitting}
            elif one.caption in owners:
                extra.add((one.suggested, one.caption))
    images = set(cleaned.image_ids)
    listed = sorted(pairs | {pair for pair in extra if pair[0] in images})
    return Relevance.from_pairs(
        [image for image, _ in listed],
        [caption for _, caption in listed],
        query_ids=cleaned.image_ids,
        item_ids=cleaned.caption_ids,
        source="captions + review",
    )


def _counts(decisions: list[_Decision]) -> dict[str, int]:
    found = dict.fromkeys((*VERDICTS, "undecided"), 0)
    for one in decisions:
        found[one.verdict or "undecided"] += 1
    return found


def _decisions(path: str | Path, dataset: Dataset) -> Iterator[_Decision]:
    frame, place = _read(path)
    for name in _NEEDED:
        if name not in frame.columns:
            raise InputError(
                f"no column {name!r}",
                file=path,
                expected=f"the columns {', '.join(_NEEDED)}",
                fix="review a list that crosslens analyze labels -o wrote",
            )
    known = _Known(dataset)
    seen: dict[tuple[str, str | None], str] = {}
    for row, cells in enumerate(frame.select(_NEEDED).iter_rows()):
        written, image, caption, suggested = (None if cell is None else str(cell).strip() or None for cell in cells)
        with _at(path, place(row)):
            verdict = _verdict(written)
            owner = known.check(image, caption, suggested)
            _check_complete(verdict, caption, suggested)
            _refuse_contradiction(seen, verdict, owner, caption)
        yield _Decision(verdict, owner, caption, suggested, place(row))


@contextmanager
def _at(path: str | Path, row: int | str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        error.file, error.row = str(path), row
        raise


class _Known:
    """The ids of a dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self.name, self.images, self.captions = dataset.name, set(dataset.image_ids), dict(_owners(dataset))

    def check(self, image: str | None, caption: str | None, suggested: str | None) -> str:
        """The image of a row, if all that it names is known and belongs together."""
        for what, one, known in (
            ("image", image, self.images),
            ("caption", caption, self.captions),
            ("image", suggested, self.images),
        ):
            if one is not None and one not in known:
                expected = f"{'an' if what == 'image' else 'a'} {what} of {self.name}"
                raise InputError(f"unknown {what} {one!r}", expected=expected, fix="review a list of this dataset")
        if image is None or (caption is not None and self.captions[caption] != image):
            raise InputError(
                f"image {image!r} of caption {caption!r}",
                expected="the image that the caption belongs to",
                fix="leave the columns image and caption as they were",
            )
        return image


def _verdict(written: str | None) -> str:
    verdict = (written or "").lower().replace(" ", "-").replace("_", "-")
    if verdict and verdict not in VERDICTS:
        raise InputError(
            f"the verdict {written!r}", expected=f"one of {', '.join(VERDICTS)}, or nothing", fix="correct the verdict"
        )
    return verdict


def _check_complete(verdict: str, caption: str | None, suggested: str | None) -> None:
    if verdict in (ALSO_FITS, MOVE) and suggested is None:
        raise InputError(f"{verdict} without a suggested_image", fix="name the image in suggested_image")
    if verdict == MOVE and caption is None:
        raise InputError("move without a caption", fix="say remove, or also-fits")


def _refuse_contradiction(
    seen: dict[tuple[str, str | None], str], verdict: str, image: str, caption: str | None
) -> None:
    """The same caption twice, as a merged file may have it, must not be decided in two ways."""
    if caption is None or verdict in ("", ALSO_FITS):
        return
    before = seen.setdefault((image, caption), verdict)
    if before != verdict:
        raise InputError(f"{verdict} for caption {caption!r}, and {before} further up", fix="decide for one")


def _check_targets(decisions: list[_Decision], gone: set[str], path: str | Path) -> None:
    for one in decisions:
        if one.verdict == MOVE and one.suggested in gone:
            raise InputError(
                f"caption {one.caption!r} moves to image {one.suggested!r}, which is removed", file=path, row=one.place,
                fix="keep the image, or remove the caption",
            )  # fmt: skip


def _read(path: str | Path) -> tuple[pl.DataFrame, Place]:
    path = existing_file(path)
    if format_suffix(path) != ".jsonl":
        table = read_table(path)
        return table.frame, table.place
    try:
        return pl.read_ndjson(read_bytes(path), infer_schema_length=None), by_row
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"cannot be read: {str(error).splitlines()[0]}", file=path, expected="one JSON object per line",
            fix="check the file",
        ) from error  # fmt: skip
