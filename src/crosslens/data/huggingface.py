"""Hugging Face datasets, saved on disk or on the hub; pictures stay in their files until an encoder asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, MissingExtraError, UsageError, reading
from crosslens.data.checks import by_row, check_ids, check_texts, check_unique, ids_or_numbers
from crosslens.data.readers import READERS
from crosslens.data.table_pictures import Pictures, in_arrow, in_parquet
from crosslens.data.tables import parquet_columns, parquet_schema


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
    image: the column that holds the pictures; by default the first one that does

    Rows with the same image id are captions of one image, whose ``file`` says where its picture lies, such as
    ``part-0.arrow::image/41``; encoders read it there. Other columns of single values are kept: as columns of the
    images where a row holds a list of captions, otherwise as columns of the captions.
    """
    image_id = image_id or None
    needed = {"image_id": image_id, "caption": caption, "caption_id": caption_id, "image": image}
    frame, pictures = _rows(dataset, split, config, revision, needed)
    name = Path(dataset).name if Path(dataset).exists() else dataset
    with reading(dataset):
        found = _assemble(frame, f"{name}/{split}" if split else name, image_id, caption, caption_id)
    return found if pictures is None else _with_files(found, frame, image_id, pictures)


def _with_files(dataset: Dataset, frame: pl.DataFrame, image_id: str | None, pictures: Pictures) -> Dataset:
    """The dataset with the address of every image's picture; where rows share an image, the first one's."""
    owners = (
        [str(row) for row in range(frame.height)] if image_id is None else frame[image_id].cast(pl.String).to_list()
    )
    first: dict[str, str] = {}
    for owner, file in zip(owners, pictures.files, strict=True):
        first.setdefault(owner, file)
    images = dataset.images.rename({"file": "file_"}, strict=False)
    files = pl.Series("file", [first[image] for image in dataset.image_ids], dtype=pl.String)
    return replace(dataset, images=images.insert_column(1, files), home=pictures.home)


def _assemble(frame: pl.DataFrame, name: str, image_id: str | None, caption: str, caption_id: str | None) -> Dataset:
    rows = [str(row) for row in range(frame.height)]
    owners = rows if image_id is None else check_ids(frame[image_id].to_list(), image_id, by_row)
    free = frame.drop([one for one in (image_id, caption, caption_id) if one])
    free = free.rename({one: f"{one}_" for one in free.columns if one in ("image", "caption", "text")})
    listed = isinstance(frame[caption].dtype, pl.List)
    if listed:
        check_unique(owners, "image", by_row)
        groups = [group or [] for group in frame[caption].to_list()]
        images = pl.concat([pl.DataFrame({"image": pl.Series(owners, dtype=pl.String)}), free], how="horizontal")
        free = pl.DataFrame()
    else:
        groups = [[text] for text in frame[caption].to_list()]
        images = pl.DataFrame({"image": pl.Series(owners, dtype=pl.String).unique(maintain_order=True)})
    source = [row for row, group in enumerate(groups) for _ in group]
    texts = check_texts([text for group in groups for text in group], source.__getitem__)
    image_of = [owners[row] for row in source]
    ids = ids_or_numbers(_given(frame, caption_id, listed, source), image_of, "caption id", source.__getitem__)
    check_unique(ids, "caption", source.__getitem__)
    columns = {"caption": ids, "image": image_of, "text": texts}
    captions = pl.DataFrame({key: pl.Series(values, dtype=pl.String) for key, values in columns.items()})
    return Dataset(name, images, captions if free.is_empty() else pl.concat([captions, free], how="horizontal"))


def _given(frame: pl.DataFrame, caption_id: str | None, listed: bool, source: list[int]) -> list[Any]:
    if caption_id is None:
        return [None] * len(source)
    given = frame[caption_id].to_list()
    flat = [one for group in given for one in group or []] if listed else given
    if len(flat) != len(source):
        raise InputError(
            f"{len(flat)} caption ids for {len(source)} captions",
            expected="as many ids as captions in every row",
            fix="correct caption_id=, or leave it out to number the captions",
        )
    return flat


def _rows(
    source: str, split: str | None, config: str | None, revision: str | None, needed: Mapping[str, str | None]
) -> tuple[pl.DataFrame, Pictures | None]:
    """The columns of single values and the needed ones; and where the pictures are, which stay there."""
    image = needed["image"]
    wanted = [name for option, name in needed.items() if option != "image"]
    if source.endswith(".parquet"):
        schema = parquet_schema(source)
        _check_columns(list(schema), needed, source)
        frame = parquet_columns(
            source, [name for name, kind in schema.items() if name in wanted or not _is_bulky(kind)]
        )
        return frame, in_parquet(source, schema, frame.height, image)
    table = _open(source, split, config, revision)
    _check_columns(table.column_names, needed, source)
    kept = [name for name in table.column_names if name in wanted or _is_value(table.features[name])]
    arrow = table.select_columns(kept).with_format("arrow")[:]
    return pl.DataFrame(pl.from_arrow(arrow)), in_arrow(table, image)


def _is_bulky(kind: pl.DataType) -> bool:
    return kind.is_nested() or kind == pl.Binary


def _is_value(feature: Any) -> bool:
    """Whether a feature is a single number, text or truth value (and no picture, list or label structure)."""
    return getattr(feature, "_type", "") in ("Value", "ClassLabel") and getattr(feature, "dtype", "") != "binary"


def _check_columns(found: list[str], needed: Mapping[str, str | None], source: str) -> None:
    for option, name in needed.items():
        if name is not None and name not in found:
            none = " (or None to number the rows)" if option == "image_id" else ""
            raise InputError(
                f"no column {name!r}",
                file=source,
                expected=f"the column that {option}= names",
                fix=f"pass {option}= one of: {', '.join(found)}{none}",
            )


def _open(source: str, split: str | None, config: str | None, revision: str | None) -> Any:
    path = Path(source)
    saved = (path / "state.json").exists() or (path / "dataset_dict.json").exists()
    if path.exists() and not saved and path.suffix != ".arrow":
        raise InputError(
            "not a saved dataset",
            file=source,
            expected="a folder written by save_to_disk, or an .arrow or .parquet file",
            fix="check the path",
        )
    if not path.exists() and (path.is_absolute() or path.suffix == ".arrow"):
        raise InputError("no such file", file=source, expected="an existing file or folder", fix="check the path")
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("reading Hugging Face datasets", "datasets", "hf") from error
    try:
        if saved:
            found = datasets.load_from_disk(source)
        elif path.exists():
            found = datasets.Dataset.from_file(source)
        else:
            found = datasets.load_dataset(source, config, split=split, revision=revision)
    except Exception as error:  # the library raises dozens of kinds, from its own to the network's
        raise InputError(
            f"cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            file=source,
            expected="a saved dataset, or a name on the hub",
            fix="check the path or name, the split, and the connection",
        ) from error
    return _only(found, split, source)


def _only(found: Any, split: str | None, source: str) -> Any:
    if not isinstance(found, dict):
        return found
    known = ", ".join(found)
    if split is None and len(found) == 1:
        return next(iter(found.values()))
    if split not in found:
        raise UsageError(
            f"{source} has several splits" if split is None else f"{source} has no split {split!r}",
            fix=f"pass split= one of: {known}",
        )
    return found[split]
