"""A dataset: images, captions (any number per image), free columns, and the objects in the images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.errors import InputError
from crosslens.core.hashing import fingerprint
from crosslens.core.ids import Ids, as_ids, frozen, positions
from crosslens.core.storage import read_folder, write_folder

OBJECT_COLUMNS: Mapping[str, Any] = {
    **dict.fromkeys(("image", "object", "name", "synset"), pl.String),
    **dict.fromkeys(("x", "y", "w", "h"), pl.Float64),
    "attributes": pl.List(pl.String),
}
RELATION_COLUMNS: Mapping[str, Any] = dict.fromkeys(("image", "subject", "predicate", "object"), pl.String)


@dataclass(frozen=True)
class Card:
    """Where a dataset comes from and what may be done with it."""

    source: str = ""
    revision: str = ""
    licence: str = ""
    citation: str = ""
    notes: str = ""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and their captions.

    ``images``    one row per image: ``image`` (id), optionally ``file``, ``width``, ``height``, any free column
    ``captions``  one row per caption: ``caption`` (id), ``image`` (the image it belongs to), ``text``, any free column
    ``objects``   optional, one row per object: the columns of ``OBJECT_COLUMNS``; boxes in pixels, missing values null
    ``relations`` optional, one row per relation between two objects of one image: ``RELATION_COLUMNS``
    ``home``      optional, the folder that the images' ``file`` is relative to, where the reader knows it; neither
                  stored nor in the fingerprint
    """

    name: str
    images: pl.DataFrame
    captions: pl.DataFrame
    objects: pl.DataFrame | None = None
    relations: pl.DataFrame | None = None
    card: Card = field(default_factory=Card)
    home: Path | None = None

    def __post_init__(self) -> None:
        _require(self.images, "images", ("image",))
        _require(self.captions, "captions", ("caption", "image", "text"))
        object.__setattr__(self, "images", self.images.with_columns(pl.col("image").cast(pl.String)))
        captions = self.captions.with_columns(pl.col("caption", "image").cast(pl.String))
        object.__setattr__(self, "captions", captions)
        if not self.images.height:
            raise InputError("no images", expected="at least one image", fix="check the path and the split")
        _check_texts(self.captions)
        assert len(self.caption_image) == self.captions.height
        if self.objects is not None:
            object.__setattr__(self, "objects", _complete(self.objects, "objects", OBJECT_COLUMNS))
            _check_objects(self.objects, self.image_ids)
        if self.relations is not None:
            object.__setattr__(self, "relations", _complete(self.relations, "relations", RELATION_COLUMNS))

    @staticmethod
    def of(
        captions: Mapping[str, Sequence[str]], name: str = "captions", images: Mapping[str, Any] | None = None
    ) -> Dataset:
        """A dataset from ``{image id: [caption, …]}``; captions get the ids ``<image>#<n>``.

        ``images`` adds free columns, each a sequence aligned with the image ids.
        """
        for image, texts in captions.items():
            if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
                problem = f"the captions of image {str(image)!r} are not a list of texts"
                fix = "quote every caption, and put a single one into a list too"
                raise InputError(problem, expected="{image: [text, …]}", fix=fix)
        rows = [(f"{image}#{n}", str(image), text) for image, texts in captions.items() for n, text in enumerate(texts)]
        return Dataset(
            name,
            pl.DataFrame({"image": [str(image) for image in captions], **(images or {})}),
            pl.DataFrame(rows, schema=dict.fromkeys(("caption", "image", "text"), pl.String), orient="row"),
        )

    @cached_property
    def image_ids(self) -> Ids:
        return as_ids(self.images["image"], "image")

    @cached_property
    def caption_ids(self) -> Ids:
        return as_ids(self.captions["caption"], "caption")

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(self.captions["text"])

    @cached_property
    def caption_image(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """For each caption, the row of its image: g(c)."""
        return frozen(positions(self.captions["image"].to_list(), self.image_ids, "image"))

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("dataset", self._tables())

    def _tables(self) -> dict[str, pl.DataFrame | None]:
        return {name: getattr(self, name) for name in ("images", "captions", "objects", "relations")}

    def select(self, image_ids: Iterable[str]) -> Dataset:
        """The same dataset with these images only, in this order, and what belongs to them."""
        selected = as_ids(image_ids, "image")
        positions(selected, self.image_ids, "image")
        order = pl.DataFrame({"image": selected}, schema={"image": pl.String})
        tables: dict[str, Any] = {
            name: order.join(table, on="image", how="inner", maintain_order="left_right")
            for name, table in self._tables().items()
            if table is not None
        }
        return replace(self, **tables | {"captions": tables["captions"].select(self.captions.columns)})

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the dataset as a folder of Parquet tables."""
        header = {"name": self.name, "card": asdict(self.card), "fingerprint": self.fingerprint}
        return write_folder(path, "dataset", header=header, tables=self._tables(), overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> Dataset:
        """Read a folder that :meth:`save` wrote."""
        header, _, tables = read_folder(path, "dataset")
        return Dataset(
            header["name"],
            tables["images"],
            tables["captions"],
            tables.get("objects"),
            tables.get("relations"),
            Card(**header["card"]),
            home=Path(path),
        )

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.images.height} images, {self.captions.height} captions)"


def _require(table: pl.DataFrame, what: str, columns: tuple[str, ...]) -> None:
    for column in columns:
        if column not in table.columns:
            expected = f"the columns {', '.join(columns)}"
            fix = f"rename the column that holds it (found: {', '.join(table.columns) or 'none'})"
            raise InputError(f"the {what} table has no column {column!r}", expected=expected, fix=fix)


def _complete(table: pl.DataFrame, what: str, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Known columns first and of their type, missing ones null, free columns after them."""
    _require(table, what, ("image",))
    known = [
        (pl.col(name) if name in table.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in columns.items()
    ]
    return table.select(*known, pl.exclude(list(columns)))


def _check_texts(captions: pl.DataFrame) -> None:
    texts = captions["text"]
    if texts.dtype != pl.String:
        raise InputError(f"caption texts are {texts.dtype}", expected="strings", fix="quote every caption")
    bad = (texts.is_null() | (texts.str.strip_chars() == "")).arg_true()
    if len(bad):
        row = int(bad[0])
        raise InputError(
            f"empty caption {captions['caption'][row]!r}",
            row=row,
            expected="a non-empty text",
            fix="write the caption or remove the row",
            code="empty-caption",
            subject=captions["caption"][row],
        )


def _check_objects(objects: pl.DataFrame, image_ids: Ids) -> None:
    positions(objects["image"].to_list(), image_ids, "image")
    numbers = objects.select("x", "y", "w", "h")
    boxed = ~pl.all_horizontal(pl.all().is_null())
    bad = pl.any_horizontal(pl.all().is_null() | ~pl.all().is_finite()) | (pl.col("w") <= 0) | (pl.col("h") <= 0)
    rows = numbers.select((boxed & bad).alias("bad"))["bad"].arg_true()
    if len(rows):
        row = int(rows[0])
        raise InputError(
            f"bad box {list(numbers.row(row))} of object {objects['object'][row]!r} in image {objects['image'][row]!r}",
            row=row,
            expected="x, y, width, height in pixels, finite, width and height above 0",
            fix="correct the box, or leave all four empty for an object without one",
        )
