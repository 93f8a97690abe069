"""Vectors in numbered files of a folder, with the metadata beside them: the layout that clip-retrieval writes.

::

    img_emb/img_emb_0.npy    text_emb/text_emb_0.npy    metadata/metadata_0.parquet
    img_emb/img_emb_1.npy    text_emb/text_emb_1.npy    metadata/metadata_1.parquet

Row r of all files of one number is one image with its caption. Any folder of numbered array files will do, with or
without metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import Ids, InputError, ShardedBlocks, as_ids, read_parquet_file, reading
from crosslens.data.io.arrays import Side, StoredVectors, read_array_and_ids
from crosslens.data.io.checks import RowName, check_ids, check_unique, number_within
from crosslens.data.io.files import existing_file
from crosslens.data.io.packed_arrays import TABLE_SUFFIXES, PackedBlocks
from crosslens.data.io.tables import readable_parquet

SIDE_FOLDERS: dict[str, str] = {"image": "img_emb", "caption": "text_emb"}
METADATA = "metadata"
METADATA_IMAGES = ("image_path", "image", "image_id", "image_name", "file_name", "key", "url")
"""Columns that name an image, the first that is there counts; clip-retrieval writes ``image_path``."""

SHARD_SUFFIXES = (".npy", ".safetensors", *TABLE_SUFFIXES)
"""Files that can be mapped, or decoded into one that can: shards are not held in memory."""

_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>\d+)(?:-of-(?P<total>\d+))?")


def read_shards(folder: Path, side: Side, shown: str | None = None) -> StoredVectors:
    """The vectors of one side in the shards of a folder, and their ids where metadata or the shards have them.

    ``shown`` is what messages call the folder.
    """
    inside, metadata = shard_folders(folder, side)
    files = numbered_files(inside, SHARD_SUFFIXES)
    names = [
        str(file) if shown is None else f"{shown}/{file.relative_to(folder).as_posix()}" for file in files.values()
    ]
    paths = list(files.values())
    stored_ids: dict[int, Ids | None] = {}

    def open_shard(number: int) -> Any:
        with _shown_as(names[number]):
            array, ids = read_array_and_ids(paths[number], side, on_disk=True)
            stored_ids.setdefault(number, ids)
            return array.array if isinstance(array, PackedBlocks) else array

    vectors = ShardedBlocks(open_shard, names)
    if metadata is not None:
        return StoredVectors(vectors, _metadata_ids(files, metadata, vectors, side))
    known = [ids for _, ids in sorted(stored_ids.items()) if ids is not None]
    if len(known) < len(paths):
        return StoredVectors(vectors, None)
    return StoredVectors(vectors, as_ids(chain.from_iterable(known), side))


def shard_folders(folder: Path, side: Side) -> tuple[Path, Path | None]:
    """The folder that holds the shards of a side, and that of the metadata, if there is one."""
    inside = folder / SIDE_FOLDERS[side]
    if not inside.is_dir():
        other = next((name for name in SIDE_FOLDERS.values() if (folder / name).is_dir()), None)
        if other is not None:
            problem, fix = f"{other} is here, but no {inside.name}", f"copy or encode the {side}s' vectors"
            raise InputError(problem, file=folder, expected=f"a folder {inside.name}", fix=fix)
        metadata = folder.parent / METADATA if folder.name in SIDE_FOLDERS.values() else folder / METADATA
        return folder, metadata if metadata.is_dir() else None
    return inside, folder / METADATA if (folder / METADATA).is_dir() else None


def shard_files(folder: Path, side: Side) -> list[Path]:
    """All files that :func:`read_shards` reads, in order."""
    inside, metadata = shard_folders(folder, side)
    files = [*numbered_files(inside, SHARD_SUFFIXES).values()]
    return files + ([] if metadata is None else [*numbered_files(metadata, (".parquet",)).values()])


def numbered_files(folder: Path, suffixes: Sequence[str]) -> dict[int, Path]:
    """The files with these endings by their number, in that order; a number that is missing or there twice raises."""
    files = [file for file in sorted(folder.iterdir()) if file.suffix.lower() in suffixes and file.name[0] not in "._"]
    if not files:
        expected = f"numbered files such as {folder.name}_0{suffixes[0]}"
        fix = "check the path, or copy them there"
        raise InputError("no shards in this folder", file=folder, expected=expected, fix=fix)
    numbered: dict[int, Path] = {}
    totals = [0]
    for file in files:
        match = _NUMBERED.fullmatch(file.stem)
        if match is None and len(files) > 1:
            raise InputError("this file has no number", file=file, expected=f"only shards in {folder}", fix="move it")
        number = 0 if match is None else int(match["number"])
        if number in numbered:
            problem = f"shard {number} is there twice: {numbered[number].name} and {file.name}"
            raise InputError(problem, file=folder, expected="each number once", fix="move one of the two")
        numbered[number] = file
        totals.append(int(match["total"]) if match and match["total"] else 0)
    _refuse_gaps(folder, numbered, max(totals))
    return dict(sorted(numbered.items()))


def _refuse_gaps(folder: Path, numbered: Mapping[int, Path], total: int) -> None:
    """Raise unless the numbers are those from 0, or from 1, to the last; ``total`` is how many the names promise."""
    if len(numbered) == 1 and not total:
        return
    first = 1 if min(numbered) == 1 and max(numbered) >= total else 0
    last = max(*numbered, total - 1)
    missing = [number for number in range(first, last + 1) if number not in numbered]
    if missing:
        listed = ", ".join(map(str, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        problem = f"shard{'s' if len(missing) > 1 else ''} {listed} missing"
        expected = f"files {first} to {last}, as {numbered[max(numbered)].name} is there"
        raise InputError(problem, file=folder, expected=expected, fix="copy or encode what is missing")


def metadata_columns(files: Sequence[Path], columns: Sequence[str] | None = None) -> tuple[pl.DataFrame, RowName]:
    """The rows of all metadata files, and what each is called in a message."""
    frames = []
    for file in files:
        with readable_parquet(existing_file(file)):
            missing = [name for name in columns or () if name not in pl.read_parquet_schema(file)]
            if missing:
                problem = f"no column {missing[0]!r}, which {files[0].name} has"
                raise InputError(problem, file=file, expected="the same columns in all files", fix="write it again")
            frames.append(read_parquet_file(file, None if columns is None else list(columns)))
    starts = [0]
    for frame in frames:
        starts.append(starts[-1] + frame.height)

    def row_name(row: int) -> str:
        number = next(number for number, end in enumerate(starts[1:]) if row < end)
        return f"{files[number].name}, row {row - starts[number]}"

    return pl.concat(frames, how="diagonal_relaxed"), row_name


def metadata_ids(files: Sequence[Path], side: Side) -> Ids | None:
    """The ids of the rows; None where no column names the images."""
    with readable_parquet(existing_file(files[0])):
        schema = pl.read_parquet_schema(files[0])
    image_at = next((name for name in METADATA_IMAGES if name in schema), None)
    if side == "caption" and "caption_id" in schema:
        image_at = "caption_id"
    if image_at is None:
        return None
    frame, row_name = metadata_columns(files, [image_at])
    with reading(files[0].parent):
        names = check_ids(frame[image_at].to_list(), f"{side} id", row_name)
        if side == "caption" and image_at != "caption_id":
            names = number_within(names)
        check_unique(names, side, row_name)
    return tuple(names)


def _metadata_ids(files: dict[int, Path], metadata: Path, vectors: ShardedBlocks, side: Side) -> Ids | None:
    tables = numbered_files(metadata, (".parquet",))
    if set(tables) != set(files):
        number = min(set(tables) ^ set(files))
        has, lacks = ("metadata", "vectors") if number in tables else ("vectors", "metadata")
        problem = f"shard {number} has {has}, but no {lacks}"
        expected = "a metadata file for every shard of vectors, and the reverse"
        fix = f"copy or write its {lacks}, or move its {has} away"
        raise InputError(problem, file=metadata.parent, expected=expected, fix=fix)
    for shard, (rows, table) in enumerate(zip(vectors.shard_rows, tables.values(), strict=True)):
        with readable_parquet(existing_file(table)):
            count = int(pl.scan_parquet(table, glob=False).select(pl.len()).collect().item())
        if count != rows:
            problem = f"{count:,} rows of metadata for {rows:,} vectors in {list(files.values())[shard].name}"
            raise InputError(problem, file=table, expected="one row per vector", fix="write both again, together")
    return metadata_ids(list(tables.values()), side)


@contextmanager
def _shown_as(name: str) -> Iterator[None]:
    """Name in an error the shard as the user called it."""
    try:
        yield
    except InputError as error:
        error.file = name
        raise
