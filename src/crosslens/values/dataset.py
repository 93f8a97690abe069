"""A dataset: images, captions (any number per image), free columns, and the objects in the images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import FORMS, FactList, InputError, Section, Table, argument, reading
from crosslens.storage import (
    CAPTION_CHARACTERS,
    HEADER_FILE,
    IntArray,
    fingerprint,
    folder_layout,
    frozen,
    is_encodable,
    is_verifying,
    read_folder,
    read_manifest,
    require_entries,
    write_folder,
    write_parts,
)
from crosslens.values.ids import Ids, ImageName, as_ids, images_below, positions, unknown_images

OBJECT_COLUMNS: Mapping[str, Any] = {
    **dict.fromkeys(("image", "object", "name", "synset"), pl.String),
    **dict.fromkeys(("x", "y", "w", "h"), pl.Float64),
    "attributes": pl.List(pl.String),
}
RELATION_COLUMNS: Mapping[str, Any] = dict.fromkeys(("image", "subject", "predicate", "object"), pl.String)
_TABLES = ("images", "captions", "objects", "relations")
_FIRST = 5
"""Captions that a notebook shows."""
DATASET_LAYOUT = folder_layout("dataset", tables=_TABLES)


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
    ``extra_folders``  further folders for files that are not there, from :meth:`with_extra_images`; likewise
    ``corpus``    optional, of text-only retrieval: the texts that stand for the images, while captions are the queries;
                  with the columns of ``captions``, and likewise neither stored nor in the fingerprint
    """

    name: str
    images: pl.DataFrame
    captions: pl.DataFrame
    objects: pl.DataFrame | None = None
    relations: pl.DataFrame | None = None
    card: Card = field(default_factory=Card)
    home: Path | None = None
    extra_folders: tuple[Path, ...] = ()
    corpus: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        _require(self.images, "images", ("image",))
        _require(self.captions, "captions", ("caption", "image", "text"))
        object.__setattr__(self, "images", _with_ids(self.images, "images", "image"))
        object.__setattr__(self, "captions", _with_ids(self.captions, "captions", "caption", "image"))
        if not self.images.height:
            raise InputError("no images", expected="at least one image", fix="check the path and the split")
        texts = self.captions["text"]
        if texts.dtype != pl.String:
            raise InputError(f"caption texts are {texts.dtype}", expected="strings", fix="quote every caption")
        bad = (texts.is_null() | (texts.str.strip_chars() == "")).arg_true()
        if len(bad):
            row = int(bad[0])
            raise InputError(
                f"empty caption {self.captions['caption'][row]!r}",
                row=row,
                expected="a non-empty text",
                fix="write the caption or remove the row",
                code="empty-caption",
                subject=self.captions["caption"][row],
            )
        lengths = texts.str.len_chars()
        if texts.len():
            row = int(lengths.arg_max() or 0)
            CAPTION_CHARACTERS.check(int(lengths[row]), f"the caption {self.captions['caption'][row]!r}", row=row)
        assert len(self.caption_image) == self.captions.height
        if self.objects is not None:
            object.__setattr__(self, "objects", _complete(self.objects, "objects", OBJECT_COLUMNS))
            positions(self.objects["image"].to_list(), self.image_ids, "image")
            numbers = self.objects.select("x", "y", "w", "h")
            boxed = ~pl.all_horizontal(pl.all().is_null())
            partly = pl.any_horizontal(pl.all().is_null() | ~pl.all().is_finite())
            wrong = boxed & (partly | (pl.col("w") <= 0) | (pl.col("h") <= 0))
            rows = numbers.select(wrong.alias("wrong"))["wrong"].arg_true()
            if len(rows):
                row = int(rows[0])
                image, name = self.objects["image"][row], self.objects["object"][row]
                raise InputError(
                    f"bad box {list(numbers.row(row))} of object {name!r} in image {image!r}",
                    row=row,
                    expected="x, y, width, height in pixels, finite, width and height above 0",
                    fix="correct the box, or leave all four empty for an object without one",
                )
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
        unfit = next((text for key in captions for text in (str(key), *captions[key]) if not is_encodable(text)), None)
        if unfit is not None:
            raise InputError(f"{unfit!r:.60} holds half of a surrogate pair", expected="text that UTF-8 can hold")
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
    def image_rows(self) -> Mapping[str, int]:
        """The row of each image, by its id."""
        return {image: row for row, image in enumerate(self.image_ids)}

    @cached_property
    def caption_rows(self) -> Mapping[str, int]:
        """The row of each caption, by its id."""
        return {caption: row for row, caption in enumerate(self.caption_ids)}

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(self.captions["text"])

    @cached_property
    def caption_image(self) -> IntArray:
        """For each caption, the row of its image: g(c)."""
        return frozen(positions(self.captions["image"].to_list(), self.image_ids, "image"))

    @cached_property
    def described(self) -> Dataset:
        """The dataset with the texts that say what is in an image as captions: those of the corpus, if it has one."""
        return self if self.corpus is None else replace(self, captions=self.corpus, corpus=None)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("dataset", self._tables())

    def _tables(self) -> dict[str, pl.DataFrame | None]:
        return {name: getattr(self, name) for name in _TABLES}

    def select(self, image_ids: Iterable[str]) -> Dataset:
        """The dataset with these images only, in this order, and what belongs to them."""
        selected = as_ids(image_ids, "image")
        positions(selected, self.image_ids, "image")
        order = pl.DataFrame({"image": selected}, schema={"image": pl.String})
        tables: dict[str, Any] = {
            name: order.join(table, on="image", how="inner", maintain_order="left_right")
            for name, table in {**self._tables(), "corpus": self.corpus}.items()
            if table is not None
        }
        order_of = {name: getattr(self, name).columns for name in ("captions", "corpus") if name in tables}
        return replace(self, **tables | {name: tables[name].select(columns) for name, columns in order_of.items()})

    def with_extra_images(
        self, images: str | Path | Iterable[str | Path | ImageName], folder: str | Path | None = None
    ) -> Dataset:
        """The dataset with further images, which have no captions: they enlarge the gallery and are no queries.

        ``images`` is a folder of image files, or names the images by their ids or by their files, which start from
        ``folder``. They come behind the dataset's own images, in this order (those of a folder sorted by path). An
        image that the dataset has already, by its id or the name of its file, is not added again.
        """
        if isinstance(images, (str, Path)):
            folder = Path(images)
            images = images_below(folder)
        image_names = [image if isinstance(image, ImageName) else ImageName.of(str(image)) for image in images]
        files = self.images["file"].to_list() if "file" in self.images.columns else [None] * self.images.height
        added = unknown_images(image_names, self.image_ids, files)
        columns = {"image": list(added)} | ({"file": list(added.values())} if any(added.values()) else {})
        rows = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        return replace(
            self,
            images=pl.concat([self.images, rows], how="diagonal_relaxed"),
            extra_folders=self.extra_folders if folder is None else (*self.extra_folders, Path(folder)),
        )

    @cached_property
    def without_captions(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each image, whether it has no caption: it is in the gallery, and no query."""
        return frozen(np.bincount(self.caption_image, minlength=len(self.image_ids)) == 0)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the dataset as a folder of Parquet tables."""
        return write_folder(path, "dataset", header=self._header(), tables=self._tables(), overwrite=overwrite)

    def write_into(self, folder: Path) -> None:
        """Write the same files into a folder that is being prepared."""
        write_parts(folder, "dataset", header=self._header(), tables=self._tables())

    def _header(self) -> dict[str, Any]:
        return {"name": self.name, "card": asdict(self.card), "fingerprint": self.fingerprint}

    @staticmethod
    def load(path: str | Path, *, verify: bool = True) -> Dataset:
        """Read a folder that :meth:`save` wrote; ``verify`` refuses files that have changed since."""
        header, _, tables = read_folder(path, "dataset", verify=verify)
        file, card = Path(path) / HEADER_FILE, header["card"]
        require_entries(header, {"name": str, "card": dict}, file)
        require_entries(card, {entry.name: str for entry in fields(Card)}, file, inside="card")
        with reading(path):
            dataset = Dataset(
                header["name"],
                tables["images"],
                tables["captions"],
                tables.get("objects"),
                tables.get("relations"),
                Card(**{entry.name: card[entry.name] for entry in fields(Card) if entry.name in card}),
                home=Path(path),
            )
        if verify and is_verifying():
            # Raise where the tables of a folder without hashes do not have the fingerprint in its header.
            header, manifest = read_manifest(file, "dataset")
            if manifest.hashes is None and header.get("fingerprint", dataset.fingerprint) != dataset.fingerprint:
                problem = (
                    f"the tables have changed since they were written: their fingerprint is not the one in {file.name}"
                )
                fix = f"write the dataset again; {argument('verify', False)} reads it as it is"
                raise InputError(problem, file=file.parent, fix=fix, code="changed-file")
        return dataset

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.images.height} images, {self.captions.height} captions)"

    def _repr_html_(self) -> str:
        """For a notebook: what there is, and the first captions."""
        sizes = ((name, f"{table.height:,}") for name, table in self._tables().items() if table is not None)
        first = self.captions.select("image", "caption", "text").head(_FIRST)
        table = Table(("image", "caption", "text"), tuple(first.iter_rows()), "lll", title="The first captions")
        html: str = FORMS["html"].value([Section(self.name, (FactList(tuple(sizes)), table))])
        return html


def _require(table: pl.DataFrame, what: str, columns: tuple[str, ...]) -> None:
    for column in columns:
        if column not in table.columns:
            expected = f"the columns {', '.join(columns)}"
            fix = f"rename the column that holds it (found: {', '.join(table.columns) or 'none'})"
            raise InputError(f"the {what} table has no column {column!r}", expected=expected, fix=fix)


def _with_ids(table: pl.DataFrame, what: str, *columns: str) -> pl.DataFrame:
    """The table with these columns as text, none of it missing."""
    for name in columns:
        column = table[name]
        if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
            problem = f"the column {name!r} of the {what} table is of type {column.dtype}"
            raise InputError(problem, expected="texts or numbers", fix="write ids into it")
        if column.null_count():
            row = int(column.is_null().arg_max() or 0)
            raise InputError(f"empty {name} id", row=row, expected=f"an id of the {name}", fix="give every row one")
    return table.with_columns(pl.col(*columns).cast(pl.String))


def _complete(table: pl.DataFrame, what: str, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Known columns first and of their type, missing ones null, free columns after them."""
    _require(table, what, ("image",))
    typed_columns = [
        (pl.col(name) if name in table.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in columns.items()
    ]
    return table.select(*typed_columns, pl.exclude(list(columns)))
