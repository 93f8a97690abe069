"""Vectors and matrices from wherever they lie: a file of arrays, a folder of shards, an address of a store.

Arrays are read from ``.npy``, ``.npz``, ``.safetensors``, PyTorch's ``.pt`` and lists in ``.parquet`` files; never a
pickle. A file may hold several. Which one is meant follows from what is asked for: the vectors of images are under a
name such as ``image``, ``images`` or ``image_features``, those of captions under ``text`` or ``caption_embeddings``,
their ids under ``ids`` or ``image_ids``.

The shape of a compressed array is known before it is unpacked, and has to fit what is asked for. It cannot be
memory-mapped: up to a size it is unpacked into memory, beyond it into a file of the cache, which then is mapped.

Shards are numbered files of a folder, with the metadata beside them: the layout that clip-retrieval writes. ::

    img_emb/img_emb_0.npy    text_emb/text_emb_0.npy    metadata/metadata_0.parquet
    img_emb/img_emb_1.npy    text_emb/text_emb_1.npy    metadata/metadata_1.parquet

Row r of all files of one number is one image with its caption. Any folder of numbered array files will do, with or
without metadata.
"""

from __future__ import annotations

import errno
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from crosslens.core import InputError, is_remote, needs_extra, reading
from crosslens.data.files import existing_file
from crosslens.data.rows import RowName, check_ids, check_unique, number_within, readable_parquet
from crosslens.storage import (
    HEADER_FILE,
    NPZ_ERRORS,
    UNPACKED_BYTES,
    Array,
    ArrayBlocks,
    PackedArray,
    ShardedBlocks,
    VectorBlocks,
    cache_folder,
    content_kind,
    decode,
    file_fingerprint,
    fingerprint,
    frozen,
    local_copy,
    mapped_array,
    open_array,
    open_npz,
    parse_json,
    read_cached_array,
    read_parquet_file,
    state_of,
    unpacked_size,
    write_cached_array,
)
from crosslens.values import Embeddings, Ids, as_ids

LIST_SUFFIXES = (".parquet", ".arrow", ".feather", ".ipc")
_SUFFIXES = (".npz", ".safetensors", ".pt", ".pth", *LIST_SUFFIXES)
_DAMAGED = (AttributeError, TypeError, SyntaxError, TokenError, *NPZ_ERRORS)
_IN_MEMORY = 1 << 28
_PART_BYTES = 1 << 26
_USUAL = 8
"""Vectors hardly compress: what unpacks to more than so many times its file is held to the limit."""
_VERIFIED: dict[tuple[Any, ...], tuple[Path, tuple[Any, ...]]] = {}
"""Unpacked copies that this process has looked at, by the file and the array: shards are opened again and again."""


@contextmanager
def readable_array(path: Path) -> Iterator[None]:
    """Whatever a damaged file raises, in words."""
    try:
        yield
    except _DAMAGED as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            raise  # of the copy in the cache
        text = str(error).strip()
        # A file that was copied or written in part was right before: it needs no other content.
        partial = text.startswith(("cut off", "the file is empty"))
        suffix = path.suffix.lower()
        raise InputError(
            f"cannot be read: {text.splitlines()[0] if text else type(error).__name__}",
            file=path,
            expected=f"a {suffix if suffix in _SUFFIXES else '.npy'} file of plain numbers",
            fix="copy or write it again" if partial else "write it with numpy.save(path, array.astype('float32'))",
        ) from error


class PackedBlocks(ArrayBlocks):
    """A compressed array as vectors in blocks: unpacked when the first of them is asked for."""

    def __init__(self, packed: PackedArray | ListColumn, file: Path, on_disk: bool = False) -> None:
        self._packed, self._path, self._on_disk, self._file = packed, file, on_disk, str(file)
        self.shape: tuple[int, ...] = packed.shape
        self.dtype = packed.dtype

    @cached_property
    def array(self) -> Array:  # type: ignore[override]
        """All of it: in memory, or in a file of the cache where it is large, or is to be on disk."""
        packed, file = self._packed, self._path

        def write(partial: Path) -> None:
            mapped = mapped_array(partial, packed.dtype, packed.stored_shape)
            packed.unpack_into(mapped)
            mapped.flush()

        with readable_array(file), reading(file):
            size, source = math.prod(packed.shape) * packed.dtype.itemsize, state_of(file)
            check_unpacked(size, file.stat().st_size)
            if not size or (size <= _IN_MEMORY and not self._on_disk):
                array = np.empty(packed.stored_shape, packed.dtype)
                packed.unpack_into(array)
            else:
                copy, state = _VERIFIED.get((*source, packed.member), (None, ()))
                if copy is None or state_of(copy) != state:
                    key = fingerprint("unpacked array", {"file": file_fingerprint([file]), "array": packed.member})
                    copy = cache_folder() / "vectors" / f"{key}.npy"
                    if read_cached_array(copy, packed.stored_shape, packed.dtype) is None:
                        write_cached_array(copy, write)
                    _VERIFIED[*source, packed.member] = copy, state_of(copy)
                array = open_array(copy)
            return frozen(array if packed.stored_shape == packed.shape else array.T)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.array, dtype)


def check_unpacked(size: int, packed: int) -> None:
    """Raise for an array of more bytes than the limit, unless its file is about as large."""
    if size > _USUAL * packed:
        UNPACKED_BYTES.check(size, "the array, unpacked,")


class ListColumn:
    """A column of lists of equal length: an array of rows × numbers that is decoded when it is asked for."""

    ndim = 2

    def __init__(self, file: Path, name: str, kind: Any, rows: int) -> None:
        self.file, self.member = file, name
        first = _scan(file).select(name).slice(0, 1).collect()[name]
        width = kind.size if isinstance(kind, pl.Array) else (len(first[0]) if rows and first[0] is not None else 0)
        self.shape = self.stored_shape = (rows, width)
        self.dtype = pl.Series([], dtype=kind.inner).to_numpy().dtype

    def __len__(self) -> int:
        return self.shape[0]

    def unpack_into(self, out: Array) -> None:
        """Decode all rows, a part at a time."""
        step = max(1, _PART_BYTES // max(1, self.shape[1] * self.dtype.itemsize))
        rows = _scan(self.file).select(self.member)
        for start in range(0, len(self), step):
            lists = rows.slice(start, step).collect()[self.member]
            lengths = (lists.arr.len() if isinstance(lists.dtype, pl.Array) else lists.list.len()).fill_null(0)
            wrong = (lengths != self.shape[1]) | lists.is_null()
            fix = "encode that item again, or drop it"
            if wrong.any():
                row = int(wrong.arg_max() or 0)
                problem = f"the list of the column {self.member!r} has {lengths[row]} numbers"
                raise InputError(problem, row=start + row, expected=f"{self.shape[1]}, as in the first row", fix=fix)
            numbers = lists.explode()
            if numbers.null_count():
                row = int(numbers.is_null().arg_max() or 0) // self.shape[1]
                problem = f"a missing number in the column {self.member!r}"
                raise InputError(problem, row=start + row, expected="a number", fix=fix)
            out[start : start + step] = numbers.to_numpy().reshape(len(lists), self.shape[1])


def read_list_columns(path: Path) -> dict[str, Any]:
    """The columns of lists of numbers, not decoded yet, and the columns of ids."""
    try:
        table = _scan(path)
        schema = table.collect_schema()
        rows = int(table.select(pl.len()).collect().item())
        columns: dict[str, Any] = {
            name: ListColumn(path, name, kind, rows)
            for name, kind in schema.items()
            if isinstance(kind, pl.List | pl.Array) and kind.inner.is_numeric()
        }
        ids = [name for name, kind in schema.items() if not kind.is_nested() and "id" in name.lower()]
        return columns | table.select(ids).collect().to_dict(as_series=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(str(error).splitlines()[0]) from error


def _scan(path: Path) -> pl.LazyFrame:
    return pl.scan_parquet(path, glob=False) if path.suffix.lower() == ".parquet" else pl.scan_ipc(path)


Side = Literal["image", "caption"]

_SIDES: Mapping[str | None, frozenset[str]] = {
    "image": frozenset(("image", "images", "img", "imgs", "ims", "visual", "vision")),
    "caption": frozenset(("caption", "captions", "cap", "caps", "text", "texts", "txt", "sentence", "sentences")),
    None: frozenset(("score", "scores", "similarity", "similarities", "matrix", "phi")),
}
_GENERAL = frozenset(("vectors", "vector", "embeddings", "embedding", "features", "feats", "array", "arr"))
_LISTED = 8
_ID_WORDS = frozenset(("id", "ids"))
_SAFETENSORS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1",
}  # fmt: skip


class StoredVectors(NamedTuple):
    """Vectors, and their ids where the file holds them."""

    vectors: Array | VectorBlocks
    ids: Ids | None


def read_array(
    path: str | Path, side: Side | None = None, fits: Callable[[tuple[int, ...]], None] | None = None
) -> Array:
    """The array in a file; of several, the one of that side. A ``.npy`` file is left on disk until it is used.

    ``fits`` raises for the shape of another array than is wanted, before anything is unpacked.
    """
    array, _ = read_array_and_ids(path, side, fits=fits)
    return array.array if isinstance(array, PackedBlocks) else array


def read_array_and_ids(
    path: str | Path, side: Side | None = None, *, on_disk: bool = False,
    fits: Callable[[tuple[int, ...]], None] | None = None,
) -> tuple[Array | PackedBlocks, Ids | None]:  # fmt: skip
    """The array in a file (a compressed one is not unpacked yet) and, where they are beside it, the ids of its rows.

    ``on_disk``: a compressed array is unpacked into a file of the cache, however small it is.
    """
    path = existing_file(path)
    reader = _READERS.get(path.suffix.lower(), _READERS[".npy"])
    with readable_array(path):
        content = reader(path)
        name = _choose(path, content, side)
        value = content[name]
        if fits is not None:
            fits(tuple(value.shape))
        if isinstance(value, PackedArray | ListColumn):
            value = PackedBlocks(value, path, on_disk)
        elif hasattr(value, "detach"):  # of torch's tensors those in bfloat16, which numpy lacks, become float32
            layout = str(value.layout).partition(".")[2]
            kind = "meta" if value.is_meta else "quantized" if value.is_quantized else layout
            if kind != "strided" or value.is_nested:
                raise ValueError(f"a {'nested' if value.is_nested else kind} tensor, which numpy has no array for")
            check_unpacked(value.numel() * value.element_size(), value.untyped_storage().nbytes())
            value = value.detach().cpu()
            value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
        return value, _ids(path, content, name, side)


def _choose(path: Path, content: Mapping[str, Any], side: Side | None) -> str:
    """The name of the array that is meant."""
    arrays = {
        name: value
        for name, value in content.items()
        if getattr(value, "ndim", 0) >= 2 or (len(content) == 1 and hasattr(value, "ndim"))
    }
    # An array of the other side is not what is asked for, even where it is the only one.
    other = {"image": "caption", "caption": "image"}.get(side or "")
    possible = [name for name in arrays if other is None or not _words(name) & _SIDES[other]]
    by_word = ([name for name in possible if _words(name) & words] for words in (_SIDES[side], _GENERAL))
    for names in (*by_word, possible):
        if len(names) == 1:
            return names[0]
    listed = ", ".join(f"{name} ({'×'.join(map(str, arrays[name].shape))})" for name in list(arrays)[:_LISTED])
    listed += f" and {len(arrays) - _LISTED:,} more" if len(arrays) > _LISTED else ""
    target = "the array" if side is None else f"the {side} vectors"
    raise InputError(
        f"{target} cannot be told from the others: {listed}" if len(arrays) > 1 else f"holds {listed or 'no array'}",
        file=path,
        expected="one array, or arrays under the names image and text",
        fix="save them in separate files, or rename them",
        code="ambiguous-array",
    )


def _ids(path: Path, content: Mapping[str, Any], name: str, side: Side | None) -> Ids | None:
    """The ids of the rows: those named after the side, or those beside the only array."""
    lists = {
        key: value
        for key, value in content.items()
        if key != name
        and _words(key) & _ID_WORDS
        and (isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1)
    }
    keys = [key for key in lists if side is not None and _words(key) & _SIDES[side]]
    if not keys and side is not None:
        keys = [key for key in lists if not any(_words(key) & _SIDES[each] for each in ("image", "caption"))]
    if len(keys) != 1:
        return None
    stored, rows = lists[keys[0]], content[name].shape[:1]
    if tuple(rows) != (len(stored),):
        if _words(keys[0]) & _SIDES[side]:
            problem = f"{len(stored):,} ids in {keys[0]!r} for {rows[0] if rows else 0:,} vectors in {name!r}"
            raise InputError(problem, file=path, expected="one id per vector, in the same order")
        return None  # of another array
    stored = stored.unpack() if isinstance(stored, PackedArray) else stored
    stored = stored.tolist() if hasattr(stored, "tolist") else stored
    return as_ids([value.decode() if isinstance(value, bytes) else str(value) for value in stored], side or "item")


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z0-9]+", name.lower()))


def _read_npz(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        if not (start := file.read(8)).startswith(b"PK"):
            raise ValueError(f"this is {content_kind(start) or 'no .npz archive'}" if start else "the file is empty")
    return dict(open_npz(path))


def _read_safetensors(path: Path) -> dict[str, Any]:
    """Its layout: the length of a JSON header, the header, the numbers. They stay on disk until they are used."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= size - 8:
            raise ValueError("this is no safetensors file")
        with reading(path):
            header = parse_json(decode(file.read(length)))
    arrays: dict[str, Any] = {}
    for name, entry in header.items():
        if name != "__metadata__":
            kind = _SAFETENSORS[entry["dtype"]]
            start, end = entry["data_offsets"]
            shape = tuple(entry["shape"])
            count = math.prod(shape) if all(type(side) is int and side >= 0 for side in shape) else -1
            if not 0 <= start <= end <= size - 8 - length or end - start != count * np.dtype(kind).itemsize:
                raise ValueError(f"the array {name!r} is not where the header says")
            stored = np.memmap(path, kind, "r", 8 + length + start, (count,)) if count else np.empty(0, kind)
            if entry["dtype"] == "BF16":  # the upper half of a float32
                stored = (np.asarray(stored, np.uint32) << 16).view(np.float32)
            arrays[name] = stored.reshape(shape)
    return arrays


def _read_torch(path: Path) -> dict[str, Any]:
    with needs_extra("a PyTorch file", "torch", "torch"):
        import torch
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            check_unpacked(unpacked_size(archive.infolist()), path.stat().st_size)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # its unpickler refuses everything but tensors and plain values
        raise ValueError(
            "it holds more than tensors and plain values, or is damaged; such a file is not opened"
        ) from error
    if isinstance(content, Mapping):
        return {str(name): value for name, value in content.items()}
    if not hasattr(content, "ndim"):
        raise ValueError(f"it holds a {type(content).__name__}, not a tensor")
    return {"array": content}


_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".npy": lambda path: {"array": open_array(path)},
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".pt": _read_torch,
    ".pth": _read_torch,
    **dict.fromkeys(LIST_SUFFIXES, read_list_columns),
}
ARRAY_SUFFIXES = tuple(_READERS)
"""Endings of the files that :func:`read_array` takes."""


SIDE_FOLDERS: dict[str, str] = {"image": "img_emb", "caption": "text_emb"}
METADATA = "metadata"
METADATA_IMAGES = ("image_path", "image", "image_id", "image_name", "file_name", "key", "url")
"""Columns that name an image, the first that is there counts; clip-retrieval writes ``image_path``."""

SHARD_SUFFIXES = (".npy", ".safetensors", *LIST_SUFFIXES)
"""Files that can be mapped, or decoded into one that can: shards are not held in memory."""

_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>\d+)(?:-of-(?P<total>\d+))?")


def read_shards(folder: Path, side: Side, label: str | None = None) -> StoredVectors:
    """The vectors of one side in the shards of a folder, and their ids where metadata or the shards have them.

    ``label`` is what messages call the folder.
    """
    inside, metadata = shard_folders(folder, side)
    files = numbered_files(inside, SHARD_SUFFIXES)
    paths = list(files.values())
    names = [str(file) if label is None else f"{label}/{file.relative_to(folder).as_posix()}" for file in paths]
    stored_ids: dict[int, Ids | None] = {}

    def open_shard(number: int) -> Any:
        try:
            array, ids = read_array_and_ids(paths[number], side, on_disk=True)
            stored_ids.setdefault(number, ids)
            return array.array if isinstance(array, PackedBlocks) else array
        except InputError as error:
            error.file = names[number]
            raise

    vectors = ShardedBlocks(open_shard, names)
    if metadata is not None:
        return StoredVectors(vectors, _metadata_ids(files, metadata, vectors, side))
    id_parts = [ids for _, ids in sorted(stored_ids.items()) if ids is not None]
    return StoredVectors(vectors, as_ids(chain.from_iterable(id_parts), side) if len(id_parts) == len(paths) else None)


def shard_folders(folder: Path, side: Side) -> tuple[Path, Path | None]:
    """The folder that holds the shards of a side, and that of the metadata, if there is one."""
    inside = folder / SIDE_FOLDERS[side]
    if not inside.is_dir():
        other = next((name for name in SIDE_FOLDERS.values() if (folder / name).is_dir()), None)
        if other is not None:
            problem, fix = f"{other} is here, but no {inside.name}", f"copy or encode the {side}s' vectors"
            raise InputError(problem, file=folder, expected=f"a folder {inside.name}", fix=fix)
        inside = folder
    metadata = (inside.parent if inside.name in SIDE_FOLDERS.values() else inside) / METADATA
    return inside, metadata if metadata.is_dir() else None


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
    total = max(totals)
    if len(numbered) > 1 or total:  # the numbers are those from 0, or from 1, to the last
        first = 1 if min(numbered) == 1 and max(numbered) >= total else 0
        last = max(*numbered, total - 1)
        missing = [number for number in range(first, last + 1) if number not in numbered]
        if missing:
            listed = ", ".join(map(str, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            problem = f"shard{'s' if len(missing) > 1 else ''} {listed} missing"
            expected = f"files {first} to {last}, as {numbered[max(numbered)].name} is there"
            raise InputError(problem, file=folder, expected=expected, fix="copy or encode what is missing")
    return dict(sorted(numbered.items()))


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


def _metadata_ids(files: dict[int, Path], metadata: Path, vectors: ShardedBlocks, side: Side) -> Ids | None:
    """The ids of the rows; None where no column names the images."""
    tables = numbered_files(metadata, (".parquet",))
    if set(tables) != set(files):
        number = min(set(tables) ^ set(files))
        has, lacks = ("metadata", "vectors") if number in tables else ("vectors", "metadata")
        problem = f"shard {number} has {has}, but no {lacks}"
        expected = "a metadata file for every shard of vectors, and the reverse"
        fix = f"copy or write its {lacks}, or move its {has} away"
        raise InputError(problem, file=metadata.parent, expected=expected, fix=fix)
    for shard, rows, table in zip(files.values(), vectors.shard_rows, tables.values(), strict=True):
        with readable_parquet(existing_file(table)):
            count = int(pl.scan_parquet(table, glob=False).select(pl.len()).collect().item())
        if count != rows:
            problem = f"{count:,} rows of metadata for {rows:,} vectors in {shard.name}"
            raise InputError(problem, file=table, expected="one row per vector", fix="write both again, together")
    first = next(iter(tables.values()))
    with readable_parquet(existing_file(first)):
        schema = pl.read_parquet_schema(first)
    has_caption_ids = side == "caption" and "caption_id" in schema
    column = "caption_id" if has_caption_ids else next((name for name in METADATA_IMAGES if name in schema), None)
    if column is None:
        return None
    frame, row_name = metadata_columns(list(tables.values()), [column])
    with reading(metadata):
        names = check_ids(frame[column].to_list(), f"{side} id", row_name)
        if side == "caption" and not has_caption_ids:
            names = number_within(names)
        check_unique(names, side, row_name)
    return tuple(names)


def read_vectors_and_ids(source: str | Path, side: Side) -> StoredVectors | Embeddings:
    """Vectors, left on disk as far as their format allows, and their ids where they are beside them.

    A folder that :meth:`Embeddings.save` wrote gives :class:`Embeddings`. What an address names is copied to the cache.
    """
    path = _local(source, side)
    if (path / HEADER_FILE).is_file():
        return Embeddings.load(path, mmap=True)
    if path.is_dir():
        return read_shards(path, side, str(source) if is_remote(source) else None)
    return StoredVectors(*read_array_and_ids(path, side))


def read_vectors(source: str | Path, side: Side) -> Embeddings | Array | VectorBlocks:
    """Vectors from a file, folder or address: :class:`Embeddings` where their ids are known, else bare vectors."""
    stored = read_vectors_and_ids(source, side)
    if isinstance(stored, Embeddings):
        return stored
    return stored.vectors if stored.ids is None else Embeddings(stored.ids, stored.vectors)


def vector_files(source: str | Path, side: Side) -> list[Path]:
    """All files that :func:`read_vectors_and_ids` reads, in order; of an address, its local copies."""
    path = _local(source, side)
    if not path.is_dir():
        return [existing_file(path)]
    if (path / HEADER_FILE).is_file():
        return sorted(file for file in path.iterdir() if file.is_file())
    inside, metadata = shard_folders(path, side)
    files = [*numbered_files(inside, SHARD_SUFFIXES).values()]
    return files + ([] if metadata is None else [*numbered_files(metadata, (".parquet",)).values()])


def _local(source: str | Path, side: Side) -> Path:
    return local_copy(str(source), (SIDE_FOLDERS[side], METADATA)) if is_remote(source) else Path(source)
