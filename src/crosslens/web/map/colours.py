"""What the points of a map can be coloured by: kind of item, cluster, columns of the dataset, metrics of the run.

A colouring is one byte per point. Of categories it is the number of the category; of a number it is one of 255 levels
between a low and a high value. 255 stands for no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from crosslens.core import InputError, UnknownNameError
from crosslens.explanations import first_relevant
from crosslens.report import LEVEL_COLOURS
from crosslens.storage import Array
from crosslens.values import IMAGE_TO_TEXT, UNRANKED, Dataset, Run, split_name
from crosslens.web.map.maps import EmbeddingMap

NO_VALUE = 255
LEVELS = 255
MOST_CATEGORIES = 12
"""With more, the rarest share one colour."""
MODALITY, CLUSTER, RANK = "modality", "cluster", "rank"
_IDS = ("image", "caption", "text", "file")
_NUMBERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64)
_BY_METRIC, _BY_COLUMN = "metric:", "column:"
_HIT = f"{_BY_METRIC}Hit@"


@dataclass(frozen=True, eq=False)
class Colouring:
    """``codes`` are the bytes; of categories ``labels`` and ``counts``, of numbers ``low``, ``high`` and ``scale``.

    ``colours`` are those of categories that have the same everywhere (levels of difficulty); the others' are empty.
    """

    name: str
    label: str
    kind: str
    codes: Array
    labels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    colours: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    scale: str = "linear"
    missing: int = 0


@dataclass(frozen=True, eq=False)
class Palette:
    """All colourings of a map; values are looked up when one is asked for."""

    drawn: EmbeddingMap
    run: Run
    dataset: Dataset | None = None

    def names(self) -> list[tuple[str, str]]:
        metrics = dict.fromkeys(split_name(name)[1] for name in self.run.values if split_name(name)[0])
        tables = () if self.dataset is None else (self.dataset.images, self.dataset.captions)
        columns = dict.fromkeys(
            column
            for table in tables
            for column, kind in table.schema.items()
            if column not in _IDS and kind in (*_NUMBERS, pl.String, pl.Boolean, pl.Categorical)
        )
        return [
            (MODALITY, "image or caption"),
            (CLUSTER, "region of the map"),
            *([(RANK, "rank of the first relevant item")] if self.run.rankings else []),
            *((f"{_BY_METRIC}{metric}", f"{metric} of the query") for metric in metrics),
            *((f"{_BY_COLUMN}{column}", f"{column} (dataset)") for column in columns),
        ]

    def colouring(self, name: str) -> Colouring:
        labels = dict(self.names())
        if name not in labels:
            raise UnknownNameError("colouring", name, labels)
        if name == MODALITY:
            kinds = np.repeat([0, 1], [len(self.drawn.image_ids), len(self.drawn.caption_ids)])
            return _of_codes(name, labels[name], kinds, ("image", "caption"))
        if name == CLUSTER:
            return _of_codes(name, labels[name], self.drawn.clusters, tuple(r.name for r in self.drawn.regions))
        if name == RANK or name.startswith(_BY_METRIC):
            scale = "logarithmic" if name == RANK else "linear"
            return of_numbers(name, labels[name], self._numbers(name), scale)
        return self._column(name, labels[name])

    def _numbers(self, name: str) -> Array:
        """The rank or the metric of the query of each point; NaN where none is known."""
        by_kind: dict[bool, tuple[Sequence[str], Array]] = {}  # ids and values of images (True) and captions (False)
        if name == RANK:
            for direction, ranking in self.run.rankings.items():
                _, first = first_relevant(ranking)
                ranks = np.where(first == UNRANKED, np.nan, first.astype(np.float64))
                by_kind[direction == IMAGE_TO_TEXT] = (ranking.query_ids, ranks)
        for metric, measured in self.run.values.items():
            direction, short = split_name(metric)
            if f"{_BY_METRIC}{short}" == name and direction:
                by_kind[direction == IMAGE_TO_TEXT] = (measured.query_ids, measured.values)
        numbers = np.full(len(self.drawn), np.nan)
        images = len(self.drawn.image_ids)
        for is_image, (ids, values) in by_kind.items():
            by_id = dict(zip(ids, values.tolist(), strict=True))
            part = slice(images) if is_image else slice(images, None)
            numbers[part] = [by_id.get(item, np.nan) for item in self.drawn.ids[part]]
        return numbers

    def _column(self, name: str, label: str) -> Colouring:
        """A column of the dataset; a caption without a value of its own has that of its image."""
        assert self.dataset is not None
        column, images, captions = name.removeprefix(_BY_COLUMN), self.dataset.images, self.dataset.captions
        if column not in captions.columns:
            captions = captions.join(images.select("image", column), on="image", how="left", maintain_order="left")
        if column not in images.columns:
            images = images.with_columns(pl.lit(None, captions[column].dtype).alias(column))
        parts = [
            pl.DataFrame({key: ids}, schema={key: pl.String})
            .join(table.select(key, column), on=key, how="left", maintain_order="left")
            .select(column)
            for key, ids, table in (
                ("image", self.drawn.image_ids, images),
                ("caption", self.drawn.caption_ids, captions),
            )
        ]
        values = pl.concat(parts, how="vertical_relaxed")[column]
        if values.dtype in _NUMBERS and values.drop_nulls().n_unique() > MOST_CATEGORIES:
            return of_numbers(name, label, values.cast(pl.Float64).fill_null(float("nan")).to_numpy())
        return of_categories(name, label, values.cast(pl.String).to_list())


def _of_codes(name: str, label: str, codes: Array, labels: tuple[str, ...]) -> Colouring:
    counts = np.bincount(codes, minlength=len(labels))
    return Colouring(name, label, "categories", codes.astype(np.uint8), labels, tuple(map(int, counts)))


def of_categories(name: str, label: str, values: Sequence[str | None]) -> Colouring:
    """Categories by their frequency, equal ones by name; the rarest beyond the most that have a colour share one."""
    series = pl.Series("value", values, dtype=pl.String)
    counted = series.drop_nulls().to_frame().group_by("value").agg(count=pl.len())
    counted = counted.sort(["count", "value"], descending=[True, False])
    names, counts = counted["value"].to_list(), counted["count"].to_list()
    numbers = {value: min(row, MOST_CATEGORIES - 1) for row, value in enumerate(names)}
    if len(names) > MOST_CATEGORIES:
        most = MOST_CATEGORIES - 1
        names, counts = [*names[:most], f"{len(names) - most:,} others"], [*counts[:most], sum(counts[most:])]
    codes = np.array([NO_VALUE if value is None else numbers[value] for value in values], np.uint8)
    missing = int(series.null_count())
    colours = tuple(LEVEL_COLOURS.get(value, "").lower() for value in names)
    return Colouring(name, label, "categories", codes, tuple(names), tuple(counts), colours, missing=missing)


def of_numbers(name: str, label: str, values: Array, scale: str = "linear") -> Colouring:
    """Numbers as levels; two values, such as hit and miss, are categories."""
    finite = np.isfinite(values)
    distinct = np.unique(values[finite])
    if name.startswith(_HIT) or distinct.tolist() == [0.0, 1.0]:
        codes = np.where(finite, np.where(finite, values, 0), NO_VALUE).astype(np.uint8)
        counts = tuple(int((codes == code).sum()) for code in (0, 1))
        labels = ("miss", "hit") if name.startswith(_HIT) else ("0", "1")
        return Colouring(name, label, "categories", codes, labels, counts, missing=int((~finite).sum()))
    low, high = (float(distinct[0]), float(distinct[-1])) if len(distinct) else (0.0, 0.0)
    codes = np.full(len(values), NO_VALUE, np.uint8)
    if len(distinct):
        ends, inner = np.array([low, high]), values[finite]
        if scale == "logarithmic":
            ends, inner = np.log(ends), np.log(inner)
        reach = float(ends[1] - ends[0]) or 1.0
        codes[finite] = np.round((inner - ends[0]) / reach * (LEVELS - 1)).astype(np.uint8)
    return Colouring(name, label, "numbers", codes, low=low, high=high, scale=scale, missing=int((~finite).sum()))


MOST_ROWS = 200
MOST_MATCHES = 20_000


@dataclass(frozen=True)
class MapItem:
    """A point: its row, its kind (image or caption), its id, the text of a caption, the image it belongs to."""

    row: int
    kind: str
    id: str
    text: str | None
    image: str | None


class ItemLookup:
    """The items of a map with what the dataset says of them."""

    def __init__(self, drawn: EmbeddingMap, dataset: Dataset | None) -> None:
        self.drawn = drawn
        table = pl.DataFrame(schema=dict.fromkeys(("caption", "image", "text"), pl.String))
        table = table if dataset is None else dataset.captions.select(table.columns)
        ids = pl.DataFrame({"caption": drawn.caption_ids}, schema={"caption": pl.String})
        captions = ids.join(table, on="caption", how="left", maintain_order="left")
        self._images, self._texts = captions["image"], captions["text"]
        names = pl.Series("id", drawn.ids, dtype=pl.String)
        self._searched = pl.concat([names.head(len(drawn.image_ids)), self._texts.fill_null("")]).str.to_lowercase()
        self._names = names.str.to_lowercase()

    def items(self, rows: Sequence[int]) -> list[MapItem]:
        """The items of these rows, in the order asked for."""
        if len(rows) > MOST_ROWS:
            raise InputError(f"{len(rows)} rows are asked for at once", expected=f"at most {MOST_ROWS}")
        items, images = [], self.drawn.image_ids
        for row in rows:
            if not 0 <= row < len(self.drawn):
                raise InputError(f"no point {row}", expected=f"0 to {len(self.drawn) - 1}", code="unknown-id")
            text, image = None, self.drawn.ids[row]
            if row >= len(images):
                text, image = self._texts[row - len(images)], self._images[row - len(images)]
            items.append(MapItem(row, "caption" if row >= len(images) else "image", self.drawn.ids[row], text, image))
        return items

    def matching(self, text: str) -> list[int]:
        """The rows whose caption or id contains all the words of a text, whatever their case."""
        words = text.lower().split()
        fits = np.full(len(self.drawn), bool(words))
        for word in words:
            in_text, in_name = (column.str.contains(word, literal=True) for column in (self._searched, self._names))
            fits &= (in_text | in_name).to_numpy()
        return list(map(int, np.flatnonzero(fits)[:MOST_MATCHES]))
