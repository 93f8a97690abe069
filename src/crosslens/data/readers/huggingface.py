"""Hugging Face datasets, saved on disk or on the hub; images stay in their files until an encoder reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import InputError, UsageError, argument, needs_extra, reading
from crosslens.data.files import existing_file
from crosslens.data.images import MEMBER_SEPARATOR, arrow_table
from crosslens.data.loading import READERS
from crosslens.data.rows import (
    by_row,
    check_ids,
    check_texts,
    check_unique,
    ids_or_numbers,
    readable_parquet,
    text_table,
)
from crosslens.storage import read_parquet_file
from crosslens.values import Dataset

_IMAGE_ID_COLUMNS = ("image_id", "img_id", "imgid", "cocoid", "filename", "file_name", "image_name")
_CAPTION_COLUMNS = ("caption", "captions", "text", "texts", "sentence", "sentences", "description")


@READERS.register("huggingface", folder_files=("state.json", "dataset_dict.json"), prefix="hf:")
def read_huggingface(
    dataset: str,
    split: str | None = None,
    image_id: str | None = "auto",
    caption: str = "auto",
    caption_id: str | None = None,
    config: str | None = None,
    revision: str | None = None,
    image: str | None = None,
) -> Dataset:
    """A Hugging Face dataset: a folder that ``save_to_disk`` wrote, an Arrow or Parquet file, or a name on the hub.

    dataset: the folder, the file, or the hub's name for it, such as ``owner/name``
    split: which split to read; needed where there are several
    image_id: the column that holds the image's id; None (or an empty text) numbers the rows: one image each; auto: the
        column that is called image_id, img_id, imgid, cocoid, filename, file_name or image_name; rows with a list of
        captions are numbered where there is none
    caption: the column that holds the caption, or a list of captions; auto: the one that is called caption, captions,
        text, texts, sentence, sentences or description
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
    frame, home, files = _rows(dataset, split, config, revision, needed)
    image_id, caption = needed["image_id"], str(needed["caption"])
    name = Path(dataset).name if Path(dataset).exists() else dataset
    with reading(dataset):
        rows = [str(row) for row in range(frame.height)]
        owners = rows if image_id is None else check_ids(frame[image_id].to_list(), image_id, by_row)
        free = frame.drop([column for column in (image_id, caption, caption_id) if column])
        free = free.rename({column: f"{column}_" for column in free.columns if column in ("image", "caption", "text")})
        listed = isinstance(frame[caption].dtype, pl.List)
        if listed:
            check_unique(owners, "image", by_row)
            groups = [group or [] for group in frame[caption].to_list()]
            images = text_table(free.to_dict(), image=owners)
            free = pl.DataFrame()
        else:
            groups = [[text] for text in frame[caption].to_list()]
            images = text_table(image=dict.fromkeys(owners))
        source = [row for row, group in enumerate(groups) for _ in group]
        texts = check_texts([text for group in groups for text in group], source.__getitem__)
        image_of = [owners[row] for row in source]
        caption_ids: list[Any] = [None] * len(source) if caption_id is None else frame[caption_id].to_list()
        if listed and caption_id is not None:
            caption_ids = [value for group in caption_ids for value in group or []]
        if len(caption_ids) != len(source):
            expected = "as many ids as captions in every row"
            fix = "correct caption_id=, or leave it out to number the captions"
            raise InputError(f"{len(caption_ids)} caption ids for {len(source)} captions", expected=expected, fix=fix)
        ids = ids_or_numbers(caption_ids, image_of, "caption id", source.__getitem__)
        check_unique(ids, "caption", source.__getitem__)
        captions = text_table(free.to_dict(), caption=ids, image=image_of, text=texts)
        if files is not None:  # where rows share an image, the file of the first
            first = dict(zip(reversed(owners), reversed(files), strict=True))
            column = pl.Series("file", [first[image] for image in images["image"]], pl.String)
            images = images.rename({"file": "file_"}, strict=False).insert_column(1, column)
        return Dataset(f"{name}/{split}" if split else name, images, captions, home=home)


def _rows(
    source: str, split: str | None, config: str | None, revision: str | None, needed: dict[str, str | None]
) -> tuple[pl.DataFrame, Path | None, list[str] | None]:
    """The columns of single values and the needed ones; the images' folder and archive paths, where there are any.

    What is ``auto`` in ``needed`` becomes the name of a column.
    """
    schema = None
    if source.endswith(".parquet"):
        with readable_parquet(source):
            schema = dict(pl.scan_parquet(existing_file(source), glob=False).collect_schema())
    table: Any = None if schema is not None else _open(source, split, config, revision)
    columns = list(schema or table.column_names)
    if needed["caption"] == "auto":
        needed["caption"] = next((name for name in _CAPTION_COLUMNS if name in columns), "caption")
    if needed["image_id"] == "auto":
        texts = str(needed["caption"])
        kind = None if texts not in columns else schema[texts] if schema is not None else table.features[texts]
        listed = isinstance(kind, pl.List | list) or getattr(kind, "_type", "") in ("List", "LargeList", "Sequence")
        id_columns = (column for column in _IMAGE_ID_COLUMNS if column in columns)
        needed["image_id"] = next(id_columns, None if listed else "image_id")
    image, read = needed["image"], [name for option, name in needed.items() if option != "image"]
    for option, name in needed.items():
        if name is not None and name not in columns:
            none = " (or None to number the rows)" if option == "image_id" else ""
            fix = f"pass {option}= one of: {', '.join(columns)}{none}"
            raise InputError(f"no column {name!r}", file=source, expected=f"the column that {option}= names", fix=fix)
    if schema is not None:
        bulky = {name for name, kind in schema.items() if kind.is_nested() or kind == pl.Binary}
        with readable_parquet(source):
            frame = read_parquet_file(
                existing_file(source), [name for name in schema if name in read or name not in bulky]
            )
        for name, kind in schema.items():
            inner = [field.name for field in kind.fields] if isinstance(kind, pl.Struct) else []
            if image is None and (kind == pl.Binary or "bytes" in inner):
                image = name
        if image is None:
            return frame, None, None
        return frame, Path(source).parent, _cells(Path(source).name, image, frame.height)
    selected = [
        name
        for name, feature in table.features.items()  # single numbers, texts and truth values, and what is needed
        if name in read
        or (getattr(feature, "_type", "") in ("Value", "ClassLabel") and getattr(feature, "dtype", "") != "binary")
    ]
    arrow = table.select_columns(selected).with_format("arrow")[:]
    return pl.DataFrame(pl.from_arrow(arrow)), *_in_arrow(table, image)


def _cells(file: str, column: str, rows: int) -> list[str]:
    return [f"{file}{MEMBER_SEPARATOR}{column}/{row}" for row in range(rows)]


def _open(source: str, split: str | None, config: str | None, revision: str | None) -> Any:
    path = Path(source)
    if "://" in source or "::" in source:  # the library would open it through fsspec, whatever it names
        expected, fix = "a folder, a file, or a name on the hub", "copy it to this machine, and name the copy"
        raise InputError("is an address", file=source, expected=expected, fix=fix)
    saved = (path / "state.json").exists() or (path / "dataset_dict.json").exists()
    if path.exists() and not saved and path.suffix != ".arrow":
        expected = "a folder written by save_to_disk, or an .arrow or .parquet file"
        raise InputError("not a saved dataset", file=source, expected=expected, fix="check the path")
    if not path.exists() and (path.is_absolute() or path.suffix == ".arrow"):
        raise InputError("no such file", file=source, expected="an existing file or folder", fix="check the path")
    with needs_extra("reading Hugging Face datasets", "datasets", "hf"):
        import datasets
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
    if not isinstance(table, dict):
        return table
    if split is None and len(table) == 1:
        return next(iter(table.values()))
    if split not in table:
        problem = f"{source} has several splits" if split is None else f"{source} has no split {split!r}"
        raise UsageError(problem, fix=f"pass {argument('split')}, one of: {', '.join(table)}")
    return table[split]


def _in_arrow(table: Any, column: str | None) -> tuple[Path | None, list[str] | None]:
    """The images of a dataset in Arrow files; None if it has none, or if its rows are not simply those of the files.

    That is so where a part of a split was loaded, or rows were chosen or shuffled without being saved: then the first
    or the last image of the dataset is not that of its files.
    """
    for name, feature in table.features.items():
        is_bytes = getattr(feature, "dtype", "") in ("binary", "large_binary")
        if column is None and (is_bytes or getattr(feature, "_type", "") == "Image"):
            column = name
    paths = [Path(file["filename"]) for file in table.cache_files]
    if column is None or not paths or getattr(table, "_indices", None) is not None:
        return None, None
    parts = [arrow_table(path) for path in paths]
    if sum(part.num_rows for part in parts) != len(table):
        return None, None
    if len(table):
        values, last = table.select_columns([column]).with_format("arrow"), len(table) - 1
        filled = [part[column] for part in parts if part.num_rows]
        if values[:1][column][0] != filled[0][0] or values[last : last + 1][column][0] != filled[-1][-1]:
            return None, None
    home = Path(os.path.commonpath([path.parent.absolute() for path in paths]))
    files = []
    for path, part in zip(paths, parts, strict=True):
        files += _cells(path.absolute().relative_to(home).as_posix(), column, part.num_rows)
    return home, files
