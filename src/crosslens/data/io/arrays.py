"""Arrays in files of other libraries: ``.npy``, ``.npz``, ``.safetensors``, PyTorch's ``.pt``, lists in ``.parquet``.

Never a pickle.
A file may hold several arrays. Which one is meant follows from what is asked for: the vectors of images are under a
name such as ``image``, ``images`` or ``image_features``, those of captions under ``text`` or ``caption_embeddings``,
their ids under ``ids`` or ``image_ids``.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from crosslens.core import (
    Ids,
    InputError,
    MissingExtraError,
    PackedArray,
    VectorBlocks,
    as_ids,
    content_kind,
    decode,
    open_array,
    open_npz,
    parse_json,
    reading,
    unpacked_size,
)
from crosslens.data.io.files import existing_file
from crosslens.data.io.packed_arrays import (
    TABLE_SUFFIXES,
    ListColumn,
    PackedBlocks,
    check_unpacked,
    read_list_columns,
    readable_array,
)

Array = np.ndarray[Any, Any]
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
    reader = _READERS.get(path.suffix.lower(), _read_npy)
    with readable_array(path):
        content = reader(path)
        name = _choose(path, content, side)
        value = content[name]
        if fits is not None:
            fits(tuple(value.shape))
        is_packed = isinstance(value, PackedArray | ListColumn)
        array = PackedBlocks(value, path, on_disk) if is_packed else _as_numbers(value)
        return array, _ids(path, content, name, side)


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
    named = ([name for name in possible if _words(name) & words] for words in (_SIDES[side], _GENERAL))
    for names in (*named, possible):
        if len(names) == 1:
            return names[0]
    listed = ", ".join(f"{name} ({'×'.join(map(str, arrays[name].shape))})" for name in list(arrays)[:_LISTED])
    listed += f" and {len(arrays) - _LISTED:,} more" if len(arrays) > _LISTED else ""
    wanted = "the array" if side is None else f"the {side} vectors"
    raise InputError(
        f"{wanted} cannot be told from the others: {listed}" if len(arrays) > 1 else f"holds {listed or 'no array'}",
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
    own = [key for key in lists if side is not None and _words(key) & _SIDES[side]]
    if not own and side is not None:
        own = [key for key in lists if not any(_words(key) & _SIDES[each] for each in ("image", "caption"))]
    if len(own) != 1:
        return None
    stored, rows = lists[own[0]], content[name].shape[:1]
    if tuple(rows) != (len(stored),):
        if _words(own[0]) & _SIDES[side]:
            problem = f"{len(stored):,} ids in {own[0]!r} for {rows[0] if rows else 0:,} vectors in {name!r}"
            raise InputError(problem, file=path, expected="one id per vector, in the same order")
        return None  # of another array
    values = [value.decode() if isinstance(value, bytes) else str(value) for value in _plain(stored)]
    return as_ids(values, side or "item")


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z0-9]+", name.lower()))


def _plain(values: Any) -> list[Any]:
    values = values.unpack() if isinstance(values, PackedArray) else values
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _as_numbers(value: Any) -> Array:
    """A numpy array; of torch's tensors those in bfloat16, which numpy lacks, as float32."""
    if hasattr(value, "detach"):
        kind = "meta" if value.is_meta else "quantized" if value.is_quantized else str(value.layout).partition(".")[2]
        if kind != "strided" or value.is_nested:
            raise ValueError(f"a {'nested' if value.is_nested else kind} tensor, which numpy has no array for")
        check_unpacked(value.numel() * value.element_size(), value.untyped_storage().nbytes())
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    array: Array = value
    return array


def _read_npy(path: Path) -> dict[str, Any]:
    return {"array": open_array(path)}


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
    for name, about in header.items():
        if name != "__metadata__":
            kind = _SAFETENSORS[about["dtype"]]
            start, end = about["data_offsets"]
            shape = tuple(about["shape"])
            count = math.prod(shape) if all(type(side) is int and side >= 0 for side in shape) else -1
            if not 0 <= start <= end <= size - 8 - length or end - start != count * np.dtype(kind).itemsize:
                raise ValueError(f"the array {name!r} is not where the header says")
            stored = np.memmap(path, kind, "r", 8 + length + start, (count,)) if count else np.empty(0, kind)
            if about["dtype"] == "BF16":  # the upper half of a float32
                stored = (np.asarray(stored, np.uint32) << 16).view(np.float32)
            arrays[name] = stored.reshape(shape)
    return arrays


def _read_torch(path: Path) -> dict[str, Any]:
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("a PyTorch file", "torch", "torch") from error
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
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".pt": _read_torch,
    ".pth": _read_torch,
    **dict.fromkeys(TABLE_SUFFIXES, read_list_columns),
}
ARRAY_SUFFIXES = tuple(_READERS)
"""Endings of the files that :func:`read_array` takes."""
