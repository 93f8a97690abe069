"""The list of suspect labels to review, and the reviewed list read back as a cleaned dataset with judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.pair_scores import rows_of, write_table
from crosslens.core import (
    Cards,
    Dataset,
    FactList,
    Figure,
    InputError,
    Part,
    PictureCard,
    Presented,
    Relevance,
    Section,
    Table,
    Text,
    json_form,
    listed_id,
)
from crosslens.data import existing_file
from crosslens.metrics import format_count

_SHOWN, _ON_PAGES = 10, 60


WORDS, EMPTY, ANOTHER_IMAGE, FAR = "words", "says nothing", "another image", "far"
SAME_CAPTION, SAME_PICTURE = "same caption", "same picture"
REASONS: Mapping[str, str] = {
    WORDS: "few of the things that it names are named by anything else about the image",
    EMPTY: "it has hardly a word, or names no thing where the others agree on one",
    ANOTHER_IMAGE: "the same other image stands before its own in every run",
    FAR: "in every run its own image is far down",
    SAME_CAPTION: "another image has this caption too",
    SAME_PICTURE: "another id has this picture too",
}
"""Why a label is suspect, in the order in which reasons are listed."""
KEEP, REMOVE, ALSO_FITS, MOVE = "keep", "remove", "also-fits", "move"
VERDICTS = (KEEP, REMOVE, ALSO_FITS, MOVE)


ANNOTATED, SUSPECTED = 2, 1
"""Grades in the proposed judgements: pairs of the dataset, and pairs that are only suspected to match."""

RUN_COLUMNS: Mapping[str, Any] = {
    **dict.fromkeys(("run", "direction"), pl.String),
    **dict.fromkeys(("queries", "failures", "words", "same_caption", "same_picture", "annotation", "model"), pl.Int64),
}
"""Of each run: its failures, those that are annotation problems by each reason and by any, and the model's."""

REVIEW_ENDINGS = (".csv", ".parquet", ".jsonl")
_NEEDED = ("verdict", "image", "caption", "suggested_image")


@dataclass(frozen=True, eq=False)
class LabelQuality(Presented):
    """Labels to review, the most suspect first (``table``), and what remains of each run's failures (``runs``).

    The first ``suspects`` rows are those that words, copies or pictures speak against; the others are only missed by
    models: ranked far down in every run, or below an image that has all that the caption names. ``pictures`` are files
    of images; ``shown`` labels are in a terminal (None: 10) and in JSON (None: all).
    """

    dataset: Dataset
    table: pl.DataFrame = field()
    runs: pl.DataFrame
    settings: Mapping[str, float]
    notes: tuple[str, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)
    shown: int | None = None

    @property
    def title(self) -> str:
        return f"Labels to review: {self.dataset.name}"

    def sections(self) -> Iterator[Section]:
        """Whose the failures are, why labels are suspect, and the first of them."""
        parts: list[Part] = [Text.of(f"{self.dataset.name}: {format_count(self.suspects, 'suspect label')} to review")]
        if self.runs.height:
            counted = ("failures", "words", "same_caption", "same_picture", "annotation")
            rows = []
            for row in self.runs.iter_rows(named=True):
                share = f"({100 * row['model'] / row['failures']:.1f} %)" if row["failures"] else ""
                model = Figure(row["model"] if row["failures"] else None, digits=0, mark=share)
                rows.append((row["run"], *(row[name] for name in counted), model))
            header = ("run", *(name.replace("_", " ") for name in counted), "model")
            about = (
                f"words: less than {self.settings['threshold']:.3g} of what the query names is named elsewhere; same "
                "caption, same picture: the first place has it too; annotation: any of these; model: what remains."
            )
            parts.append(Table(header, tuple(rows), "l" + "r" * 6, notes=(about,)))
        if reasons := self.reasons:
            facts = ((f"{name}: {reasons[name]:,}", f"{words}.") for name, words in REASONS.items() if name in reasons)
            parts.append(FactList(tuple(facts)))
        shown = _SHOWN if self.shown is None else self.shown
        first = self.table.head(min(self.suspects, max(shown, _ON_PAGES)))
        if first.height:
            cards = []
            for row in first.iter_rows(named=True):
                caption, text = row["caption"], f"“{' '.join(row['text'].split())}”" if row["text"] else ""
                other = f" and image {row['suggested_image']}" if caption is None else f", caption {caption}"
                title = f"{row['place']}. image {row['image']}{other}: {row['reason']} → {row['proposal']}"
                said = tuple(line for line in (text, row["evidence"]) if line)
                cards.append(PictureCard(title, said, image=row["image"]))
            parts.append(Cards("The first:", tuple(cards), self.pictures, most=shown))
        if missed := len(self) - self.suspects:
            parts.append(
                Text.of(
                    f"Last in the list, and not suspect: {format_count(missed, 'caption')} that every run ranks far "
                    "down, or below an image that has all that the caption names."
                )
            )
        parts.append(Text.of(*(f"note: {note}" for note in self.notes), note=True))
        yield Section("", tuple(parts))

    def __len__(self) -> int:
        return self.table.height

    @property
    def suspects(self) -> int:
        """The number of suspect labels."""
        return int((self.table["signals"] > 0).sum())

    @property
    def reasons(self) -> dict[str, int]:
        """How often each reason applies to a suspect label."""
        every = self.table.head(self.suspects)["reason"].str.split(" + ").explode().value_counts(sort=True)
        return dict(every.iter_rows())

    def write(self, path: str | Path, limit: int | None = None) -> Path:
        """Write the list for a reviewer as .csv, .parquet or .jsonl (.gz too); an existing file is replaced."""
        return write_table(self._first(limit), path, endings=REVIEW_ENDINGS)

    def relevance(self, limit: int | None = None) -> Relevance:
        """A proposal, images × captions: the annotated pairs with grade 2, and suspected further ones with grade 1."""
        dataset = self.dataset
        pairs = set(zip(dataset.caption_image.tolist(), range(len(dataset.caption_ids)), strict=True))
        image, caption = dataset.image_rows, dataset.caption_rows
        extra = set()
        table = self._first(limit).filter(pl.col("proposal").is_in([ALSO_FITS, MOVE]))
        for image_id, caption_id, other in table.select("image", "caption", "suggested_image").iter_rows():
            if caption_id is not None:
                extra.add((image[other], caption[caption_id]))
            else:  # one picture under two ids
                extra |= {(image[other], row) for owner, row in pairs if owner == image[image_id]}
                extra |= {(image[image_id], row) for owner, row in pairs if owner == image[other]}
        listed = [*sorted(pairs), *sorted(extra - pairs)]
        rows, columns = np.array(listed, np.int64).reshape(-1, 2).T
        grades = [ANNOTATED] * len(pairs) + [SUSPECTED] * (len(listed) - len(pairs))
        return Relevance.from_indices(
            dataset.image_ids, dataset.caption_ids, rows, columns, np.array(grades, np.float32), "captions + suspected"
        )

    def left_out(self, limit: int | None = None) -> list[str]:
        """The captions that should not be queries: those that the list proposes to remove or to move."""
        chosen = pl.col("proposal").is_in([REMOVE, MOVE]) & pl.col("caption").is_not_null()
        return self._first(limit).filter(chosen)["caption"].to_list()

    def as_dict(self) -> dict[str, Any]:
        return json_form(
            {
                "dataset": self.dataset.name,
                "suspects": self.suspects,
                "missed": len(self) - self.suspects,
                "reasons": self.reasons,
                "runs": self.runs,
                "settings": self.settings,
                "notes": self.notes,
                "review": self._first(self.shown),
            }
        )

    def _first(self, limit: int | None) -> pl.DataFrame:
        return self.table if limit is None else self.table.head(limit)


@dataclass(frozen=True, eq=False)
class ReviewedLabels(Presented):
    """The dataset and its judgements (images × captions) after a review; ``counts`` of each verdict and of blanks."""

    dataset: Dataset
    relevance: Relevance
    counts: dict[str, int]

    @property
    def title(self) -> str:
        return f"Reviewed labels: {self.dataset.name}"

    def sections(self) -> Iterator[Section]:
        """What the review changed."""
        counts = [f"{self.counts[verdict]:,} {verdict}" for verdict in (*VERDICTS, "undecided") if self.counts[verdict]]
        dataset = self.dataset
        yield Section("", (Text.of(
            f"{', '.join(counts) or 'no verdicts'}: {format_count(len(dataset.image_ids), 'image')}, "
            f"{format_count(len(dataset.caption_ids), 'caption')}, "
            f"{format_count(len(self.relevance.items), 'relevant pair')}"
        ),))  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
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
    row: int | str


def apply_review(dataset: Dataset, path: str | Path) -> ReviewedLabels:
    """Apply the ``verdict`` column of a reviewed list (.csv, .tsv, .jsonl or .parquet).

    ``keep`` or nothing   leaves the row as it is
    ``remove``            removes the caption; in a row without a caption, the image with its captions
    ``also-fits``         the caption fits the suggested image too; without a caption, both images' captions fit both
    ``move``              the caption belongs to the suggested image instead
    """
    decisions = list(_decisions(path, dataset))
    removed = [decision for decision in decisions if decision.verdict == REMOVE]
    images = {decision.image for decision in removed if decision.caption is None}
    captions = {decision.caption for decision in removed if decision.caption is not None}
    new_owner = {decision.caption: decision.suggested for decision in decisions if decision.verdict == MOVE}
    for decision in decisions:
        if decision.verdict == MOVE and decision.suggested in images:
            problem = f"caption {decision.caption!r} moves to image {decision.suggested!r}, which is removed"
            raise InputError(problem, file=path, row=decision.row, fix="keep the image, or remove the caption")
    owners = [new_owner.get(caption) or image for caption, image in _owners(dataset)]
    table = dataset.captions.with_columns(pl.Series("image", owners, dtype=pl.String))
    table = table.filter(~pl.col("caption").is_in(list(captions)) & ~pl.col("image").is_in(list(images)))
    remaining = dataset.select(image for image in dataset.image_ids if image not in images)
    cleaned = replace(remaining, captions=table)
    counts = dict.fromkeys((*VERDICTS, "undecided"), 0)
    for decision in decisions:
        counts[decision.verdict or "undecided"] += 1
    return ReviewedLabels(cleaned, _relevance(cleaned, decisions), counts)


def _owners(dataset: Dataset) -> Iterator[tuple[str, str]]:
    yield from dataset.captions.select("caption", "image").iter_rows()


def _relevance(cleaned: Dataset, decisions: list[_Decision]) -> Relevance:
    owners = dict(_owners(cleaned))
    pairs = {(image, caption) for caption, image in owners.items()}
    extra = set()
    for decision in decisions:
        if decision.verdict == ALSO_FITS and decision.suggested is not None:
            both = {decision.image, decision.suggested}
            if decision.caption is None:
                fitting = [caption for caption, image in owners.items() if image in both]
                extra |= {(image, caption) for image in both for caption in fitting}
            elif decision.caption in owners:
                extra.add((decision.suggested, decision.caption))
    images = set(cleaned.image_ids)
    listed = sorted(pairs | {pair for pair in extra if pair[0] in images})
    return Relevance.from_pairs(
        [image for image, _ in listed],
        [caption for _, caption in listed],
        query_ids=cleaned.image_ids,
        item_ids=cleaned.caption_ids,
        source="captions + review",
    )


def _decisions(path: str | Path, dataset: Dataset) -> Iterator[_Decision]:
    fix = "review a list that crosslens analyze labels -o wrote"
    with rows_of(existing_file(path), _NEEDED, fix=fix) as (frame, row_name):
        images, owners = set(dataset.image_ids), dict(_owners(dataset))
        seen: dict[tuple[str, str], str] = {}
        for number, cells in enumerate(frame.select(_NEEDED).iter_rows()):
            written = None if cells[0] is None else str(cells[0]).strip() or None
            image, caption, suggested = map(listed_id, cells[1:], (images, owners, images))
            try:
                verdict = (written or "").lower().replace(" ", "-").replace("_", "-")
                if verdict and verdict not in VERDICTS:
                    expected = f"one of {', '.join(VERDICTS)}, or nothing"
                    raise InputError(f"the verdict {written!r}", expected=expected, fix="correct the verdict")
                for what, row_id, known in (
                    ("image", image, images),
                    ("caption", caption, owners),
                    ("image", suggested, images),
                ):
                    if row_id is not None and row_id not in known:
                        expected = f"{'an' if what == 'image' else 'a'} {what} of {dataset.name}"
                        problem = f"unknown {what} {row_id!r}"
                        raise InputError(problem, expected=expected, fix="review a list of this dataset")
                if image is None or (caption is not None and owners[caption] != image):
                    raise InputError(
                        f"image {image!r} of caption {caption!r}",
                        expected="the image that the caption belongs to",
                        fix="leave the columns image and caption as they were",
                    )
                if verdict in (ALSO_FITS, MOVE) and suggested is None:
                    raise InputError(f"{verdict} without a suggested_image", fix="name the image in suggested_image")
                if verdict == MOVE and caption is None:
                    raise InputError("move without a caption", fix="use remove or also-fits")
                if caption is not None and verdict not in ("", ALSO_FITS):  # a merged file may have a caption twice
                    before = seen.setdefault((image, caption), verdict)
                    if before != verdict:
                        problem = f"{verdict} for caption {caption!r}, but {before} in an earlier row"
                        raise InputError(problem, fix="keep one of the two")
            except InputError as error:
                error.file, error.row = str(path), row_name(number)
                raise
            yield _Decision(verdict, image, caption, suggested, row_name(number))
