"""Statistics of a dataset: how many captions, how long, how often repeated, and what looks wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from crosslens.core import FactList, Presented, Section, Text
from crosslens.language import count_words
from crosslens.storage import json_form
from crosslens.values import Dataset

_MOST_GROUPS = 100
_MOST_BINS = 12
_RESERVED = ("image", "caption", "text", "file", "width", "height", "x", "y")


@dataclass(frozen=True)
class Spread:
    """The smallest, mean, median and largest of some counts."""

    min: float
    mean: float
    median: float
    max: float

    def __str__(self) -> str:
        return f"mean {self.mean:.2f}, median {self.median:g}, from {self.min:g} to {self.max:g}"


@dataclass(frozen=True)
class DatasetDescription(Presented):
    """The figures of a dataset; ``problems`` are sentences, and ``notes`` what its reader had to say.

    ``captions_histogram`` maps a number of captions to how many images have it; the last key may be ``12+``.
    ``repeated_within`` counts captions that repeat an earlier caption of their image, ``repeated_across`` captions
    whose text also belongs to another image; both ignore case and spacing. ``groups`` names the columns that can
    group results (``images.category``; ``objects``: the names of objects) with their number of values.
    """

    name: str
    images: int
    captions: int
    images_without_captions: int
    captions_per_image: Spread
    captions_histogram: Mapping[str, int]
    words: Spread
    characters: Spread
    repeated_within: int
    repeated_across: int
    objects: int
    objects_without_box: int
    relations: int
    groups: Mapping[str, int]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.name

    def sections(self) -> Iterator[Section]:

        def aside(count: int, what: str) -> str:
            return f" ({count:,} {what})" if count else ""

        repeated = f"{self.repeated_within:,} within an image, {self.repeated_across:,} across images"
        rows = [
            ("images", f"{self.images:,}" + aside(self.images_without_captions, "without a caption")),
            ("captions", f"{self.captions:,}"),
            ("captions per image", str(self.captions_per_image)),
            ("  images by count", ", ".join(f"{count}: {n:,}" for count, n in self.captions_histogram.items())),
            ("words per caption", str(self.words)),
            ("characters per caption", str(self.characters)),
            ("repeated captions", repeated),
            ("objects", f"{self.objects:,}" + aside(self.objects_without_box, "without a box")),
            ("relations", f"{self.relations:,}"),
            ("columns to group by", ", ".join(f"{name} ({n})" for name, n in self.groups.items()) or "none"),
            *([] if self.problems else [("problems", "none")]),
        ]
        problems = ("problems", *(f"- {problem}" for problem in self.problems)) if self.problems else ()
        notes = Text(tuple(f"note: {note}" for note in self.notes), note=True)
        yield Section(self.name, (FactList(tuple(rows)), Text(problems), notes))

    def as_dict(self) -> dict[str, Any]:
        return json_form(self)


def describe(dataset: Dataset) -> DatasetDescription:
    """Statistics of a dataset, and the problems it seems to have.

    Args:
        dataset: Described as it is, with its columns and objects.
    """
    counts = dataset.captions.group_by("image").len("count")
    joined = dataset.images.select("image").join(counts, on="image", how="left", maintain_order="left")
    per_image = joined["count"].fill_null(0)
    texts = dataset.captions["text"]
    normal = dataset.captions.select(
        "image", text=pl.col("text").str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    )
    by_text = normal.group_by("text").agg(pl.col("image").n_unique().alias("images"), pl.len().alias("captions"))
    objects = dataset.objects
    bins = Counter(f"{_MOST_BINS}+" if count >= _MOST_BINS else str(count) for count in per_image.sort())
    names = 0 if objects is None else objects["name"].drop_nulls().n_unique()
    facts: dict[str, Any] = {
        "images": dataset.images.height,
        "captions": dataset.captions.height,
        "images_without_captions": int((per_image == 0).sum()),
        "captions_per_image": _spread(per_image),
        "captions_histogram": dict(bins),
        "words": _spread(count_words(texts)),
        "characters": _spread(texts.str.len_chars()),
        "repeated_within": normal.height - normal.unique().height,
        "repeated_across": int(by_text.filter(pl.col("images") > 1)["captions"].sum()),
        "objects": 0 if objects is None else objects.height,
        "objects_without_box": 0 if objects is None else objects["x"].null_count(),
        "relations": 0 if dataset.relations is None else dataset.relations.height,
        "groups": _groups("images", dataset.images)
        | _groups("captions", dataset.captions)
        | ({"objects": names} if names > 1 else {}),
    }
    notes = (dataset.card.notes,) if dataset.card.notes else ()
    return DatasetDescription(dataset.name, **facts, problems=tuple(_problems(dataset, facts)), notes=notes)


def _spread(values: pl.Series) -> Spread:
    if not len(values):
        return Spread(0.0, 0.0, 0.0, 0.0)
    figures = values.cast(pl.Float64)
    return Spread(*map(float, (figures.min(), figures.mean(), figures.median(), figures.max())))  # type: ignore[arg-type]


def _groups(table: str, frame: pl.DataFrame) -> dict[str, int]:
    """Columns with few enough values to show one line of results for each; a list counts by what is in it."""
    groups = {}
    for name in frame.columns:
        if name in _RESERVED:
            continue
        column = frame[name].explode() if isinstance(frame[name].dtype, pl.List) else frame[name]
        if column.dtype.is_nested() or column.dtype.is_float():
            continue
        values = column.n_unique()
        if 1 < values <= min(_MOST_GROUPS, max(2, frame.height // 2)):
            groups[f"{table}.{name}"] = values
    return groups


def _problems(dataset: Dataset, facts: Mapping[str, Any]) -> list[str]:
    texts, images, without = dataset.captions["text"], facts["images"], facts["images_without_captions"]
    outside = 0
    if dataset.objects is not None and {"width", "height"} <= set(dataset.images.columns):
        sized = dataset.objects.join(dataset.images.select("image", "width", "height"), on="image", how="left")
        slack = 1.0  # annotation tools round
        low = (pl.col("x") < -slack) | (pl.col("y") < -slack)
        right = pl.col("x") + pl.col("w") > pl.col("width") + slack
        bottom = pl.col("y") + pl.col("h") > pl.col("height") + slack
        outside = sized.filter(low | right | bottom).height
    counts: tuple[tuple[str, int], ...] = (
        (
            f"images without a caption: {{}} of {images}; as queries they are excluded, in the gallery they remain",
            without if facts["captions"] else 0,
        ),
        ("no captions: only the images can be used", not facts["captions"]),
        ("captions that repeat an earlier caption of their image: {}", facts["repeated_within"]),
        (
            "captions whose text another image has too: {}; retrieval cannot tell those images apart by them",
            facts["repeated_across"],
        ),
        ("captions of fewer than three words: {}", int((count_words(texts) < 3).sum())),
        ("captions with a line break or a tab: {}", int(texts.str.contains(r"[\n\r\t]").sum())),
        (
            "captions with the replacement character \ufffd: {}; their encoding was damaged earlier",
            int(texts.str.contains("\ufffd", literal=True).sum()),
        ),
        ("objects without a box: {}", facts["objects_without_box"]),
        ("boxes that reach beyond their image: {}", outside),
    )
    return [line.format(count) for line, count in counts if count]
