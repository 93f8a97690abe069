"""Hugging Face datasets, saved on disk or on the hub; images stay in their files until an encoder reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from crosslens.core import Dataset, InputError, MissingExtraError, UsageError, argument, reading
from crosslens.data.io.checks import by_row, check_ids, check_texts, check_unique, ids_or_numbers
from crosslens.data.io.image_paths import MEMBER_SEPARATOR, arrow_table
from crosslens.data.io.records import text_columns
from crosslens.data.io.tables import parquet_columns, parquet_schema
from crosslens.data.loading import READERS


@READERS.register("huggingface")
def read_huggingface(
    dataset: str,
    split: str | None = None,
    image_id: str | None = "image_id",
    caption: str = "caption",
    caption_id: str | None = None,
    config: str | None = None,
    revision: str | None = None,
    image: str | None = None,
) -> Dataset:
    """A Hugging Face dataset: a folder that ``save_to_disk`` wrote, an Arrow or Parquet file, or a name on the hub.

    dataset: the folder, the file, or the hub's name for it, such as ``owner/name``
    split: which split to read; needed where there are several
    image_id: the column that holds the image's id; None (or an empty text) numbers the rows: one image each
    caption: the column that holds the caption, or a list of captions
    caption_id: the column that holds the caption's id (or a list of them); by default captions are numbered
    config: the hub's name for a configuration of the dataset
    revision: the hub's name for a version of the dataset
    image: the column that holds the images; by default the first one that does

    Rows with the same image id are captions of one image, whose ``file`` is an archive path such as
    ``part-0.arrow::image/41``, which encoders read. Other columns of single values are kept: as columns of the
    images where a row holds a list of captions, otherwise as columns of the captions.
    """
    image_id = image_id or None
    needed = {"image_id": image_id, "caption": caption, "caption_id": caption_id, "image": image}
    frame, paths = _rows(dataset, split, config, revision, needed)
    name = Path(dataset).name if Path(dataset).exists() else dataset
    with reading(dataset):
        result = _assemble(frame, f"{name}/{split}" if split else name, image_id, caption, caption_id)
    return result if paths is None else _with_files(result, frame, image_id, paths)


def _with_files(dataset: Dataset, frame: pl.DataFrame, image_id: str | None, paths: _ImagePaths) -> Dataset:
    """The dataset with the path of every image; where rows share an image, that of the first."""
    owners = map(str, range(frame.height)) if image_id is None else frame[image_id].cast(pl.String).to_list()
    first: dict[str, str] = {}
    for owner, file in zip(owners, paths.files, strict=True):
        first.setdefault(owner, file)
    images = dataset.images.rename({"file": "file_"}, strict=False)
    files = text_columns(file=[first[image] for image in dataset.image_ids])["file"]
    return replace(dataset, images=images.insert_column(1, files), home=paths.home)


def _assemble(frame: pl.DataFrame, name: str, image_id: str | None, caption: str, caption_id: str | None) -> Dataset:
    rows = [str(row) for row in range(frame.height)]
    owners = rows if image_id is None else check_ids(frame[image_id].to_list(), image_id, by_row)
    free = frame.drop([name for name in (image_id, caption, caption_id) if name])
    free = free.rename({name: f"{name}_" for name in free.columns if name in ("image", "caption", "text")})
    listed = isinstance(frame[caption].dtype, pl.List)
    if listed:
        check_unique(owners, "image", by_row)
        groups = [group or [] for group in frame[caption].to_list()]
        images = pl.concat([pl.DataFrame(text_columns(image=owners)), free], how="horizontal")
        free = pl.DataFrame()
    else:
        groups = [[text] for text in frame[caption].to_list()]
        images = pl.DataFrame(text_columns(image=list(dict.fromkeys(owners))))
    source = [row for row, group in enumerate(groups) for _ in group]
    texts = check_texts([text for group in groups for text in group], source.__getitem__)
    image_of = [owners[row] for row in source]
    ids = ids_or_numbers(_caption_ids(frame, caption_id, listed, source), image_of, "caption id", source.__getitem__)
    check_unique(ids, "caption", source.__getitem__)
    captions = pl.DataFrame(text_columns(caption=ids, image=image_of, text=texts))
    return Dataset(name, images, captions if free.is_empty() else pl.concat([captions, free], how="horizontal"))


def _caption_ids(frame: pl.DataFrame, caption_id: str | None, listed: bool, source: list[int]) -> list[Any]:
    if caption_id is None:
        return [None] * len(source)
    ids = frame[caption_id].to_list()
    ids = [value for group in ids for value in group or []] if listed else ids
    if len(ids) != len(source):
        expected = "as many ids as captions in every row"
        fix = "correct caption_id=, or leave it out to number the captions"
        raise InputError(f"{len(ids)} caption ids for {len(source)} captions", expected=expected, fix=fix)
    return ids


def _rows(
    source: str, split: str | None, config: str | None, revision: str | None, needed: Mapping[str, str | None]
) -> tuple[pl.DataFrame, _ImagePaths | None]:
    """The columns of single values and the needed ones; and the paths of the images, which are not read."""
    image = needed["image"]
    read = [name for option, name in needed.items() if option != "image"]
    if source.endswith(".parquet"):
        schema = parquet_schema(source)
        _check_columns(list(schema), needed, source)
        bulky = {name for name, kind in schema.items() if kind.is_nested() or kind == pl.Binary}
        frame = parquet_columns(source, [name for name in schema if name in read or name not in bulky])
        return frame, _in_parquet(source, schema, frame.height, image)
    table = _open(source, split, config, revision)
    _check_columns(table.column_names, needed, source)
    kept = [name for name in table.column_names if name in read or _is_value(table.features[name])]
    arrow = table.select_columns(kept).with_format("arrow")[:]
    return pl.DataFrame(pl.from_arrow(arrow)), _in_arrow(table, image)


def _is_value(feature: Any) -> bool:
    """Whether a feature is a single number, text or truth value (and no image, list or label structure)."""
    return getattr(feature, "_type", "") in ("Value", "ClassLabel") and getattr(feature, "dtype", "") != "binary"


def _check_columns(columns: list[str], needed: Mapping[str, str | None], source: str) -> None:
    for option, name in needed.items():
        if name is not None and name not in columns:
            none = " (or None to number the rows)" if option == "image_id" else ""
            fix = f"pass {option}= one of: {', '.join(columns)}{none}"
            raise InputError(f"no column {name!r}", file=source, expected=f"the column that {option}= names", fix=fix)


def _open(source: str, split: str | None, config: str | None, revision: str | None) -> Any:
    path = Path(source)
    saved = (path / "state.json").exists() or (path / "dataset_dict.json").exists()
    if path.exists() and not saved and path.suffix != ".arrow":
        expected = "a folder written by save_to_disk, or an .arrow or .parquet file"
        raise InputError("not a saved dataset", file=source, expected=expected, fix="check the path")
    if not path.exists() and (path.is_absolute() or path.suffix == ".arrow"):
        raise InputError("no such file", file=source, expected="an existing file or folder", fix="check the path")
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("reading Hugging Face datasets", "datasets", "hf") from error
    try:
        if saved:
            table = datasets.load_from_disk(source)
        elif path.exists():
            table = datasets.Dataset.from_file(source)
        else:
            table = datasets.load_dataset(source, config, split=split, revision=revision)
    except Exception as error:  # the library raises dozens of kinds, from its own to the network's
        problem = f"cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        fix = "check the path or name, the split, and the connection"
        raise InputError(problem, file=source, expected="a saved dataset, or a name on the hub", fix=fix) from error
    return _only(table, split, source)


def _only(splits: Any, split: str | None, source: str) -> Any:
    if not isinstance(splits, dict):
        return splits
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    if split not in splits:
        problem = f"{source} has several splits" if split is None else f"{source} has no split {split!r}"
        raise UsageError(problem, fix=f"pass {argument('split')}, one of: {', '.join(splits)}")
    return splits[split]


class _ImagePaths(NamedTuple):
    """One archive path per row, starting from the folder ``home``."""

    home: Path
    files: list[str]


def _in_parquet(path: str, schema: Mapping[str, pl.DataType], rows: int, column: str | None) -> _ImagePaths | None:
    """The images of a Parquet file; None if it has none."""
    column = column or next((name for name, kind in schema.items() if _holds_images(kind)), None)
    return None if column is None else _ImagePaths(Path(path).parent, _cells(Path(path).name, column, rows))


def _in_arrow(table: Any, column: str | None) -> _ImagePaths | None:
    """The images of a dataset in Arrow files; None if it has none, or if its rows are not simply those of the files.

    That is so where a part of a split was loaded, or rows were chosen or shuffled without being saved.
    """
    column = column or next((name for name, kind in table.features.items() if _is_image(kind)), None)
    paths = [Path(file["filename"]) for file in table.cache_files]
    if column is None or not paths or getattr(table, "_indices", None) is not None:
        return None
    parts = [arrow_table(path) for path in paths]
    if sum(part.num_rows for part in parts) != len(table) or not _same_ends(table, parts, column):
        return None
    home = Path(os.path.commonpath([path.parent.absolute() for path in paths]))
    files = []
    for path, part in zip(paths, parts, strict=True):
        files += _cells(path.absolute().relative_to(home).as_posix(), column, part.num_rows)
    return _ImagePaths(home, files)


def _cells(file: str, column: str, rows: int) -> list[str]:
    return [f"{file}{MEMBER_SEPARATOR}{column}/{row}" for row in range(rows)]


def _same_ends(table: Any, parts: list[Any], column: str) -> bool:
    """Whether the first and the last image of the dataset are those of its files."""
    if not len(table):
        return True
    shown, last = table.select_columns([column]).with_format("arrow"), len(table) - 1
    filled = [part[column] for part in parts if part.num_rows]
    return bool(shown[:1][column][0] == filled[0][0] and shown[last : last + 1][column][0] == filled[-1][-1])


def _is_image(feature: Any) -> bool:
    return getattr(feature, "_type", "") == "Image" or getattr(feature, "dtype", "") in ("binary", "large_binary")


def _holds_images(kind: pl.DataType) -> bool:
    return kind == pl.Binary or (isinstance(kind, pl.Struct) and any(field.name == "bytes" for field in kind.fields))
