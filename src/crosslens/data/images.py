"""The images of a dataset: where they are, their bytes, and their pictures.

An image inside another file has an archive path, which is used like a file name:

``0001.tar::cats/7.jpg``       the member ``cats/7.jpg`` of an archive, compressed or not
``part-0.arrow::image/41``     row 41 of the column ``image`` of an Arrow file, as Hugging Face datasets keep theirs
``rows.parquet::image/41``     the same of a Parquet file
``7.jpg::box/10,20,300,200``   a part of an image: x, y, width and height in pixels

Nothing is unpacked to disk. Opened files stay open for the next image, so reading all images in order reads every file
once. Nobody vouches for the files: the size of a picture is checked before a pixel is decoded.
"""

from __future__ import annotations

import ctypes
import io
import math
import re
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import CrosslensError, InputError, argument, needs_extra, reading, where_option
from crosslens.data.files import TAR_ERRORS, copy_unpacked, open_tar, unpacking
from crosslens.storage import (
    ASPECT_RATIO,
    IMAGE_BYTES,
    IMAGE_PIXELS,
    MEMBER_BYTES,
    PIXELS_IN_FLIGHT,
    regular_bytes,
    require_regular,
)
from crosslens.values import Dataset

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "PPM", "TIFF", "JPEG2000", "AVIF")
"""Of others, Pillow decodes icons before their size can be checked, and hands EPS to another program."""
_TILE_SIDES = (322, 323)
_LARGE = 4_000_000
"""Pixels of a picture whose memory is worth giving back to the system."""


@contextmanager
def readable_picture(content: bytes) -> Iterator[Any]:
    """The picture in an image file's bytes, not decoded yet.

    Whatever is wrong with it, here or when it is decoded inside the block, raises an ``InputError``.
    """
    with needs_extra("reading images", "pillow", "encoders"):
        from PIL import Image
    if Image.MAX_IMAGE_PIXELS is not None and IMAGE_PIXELS.value > Image.MAX_IMAGE_PIXELS:
        Image.MAX_IMAGE_PIXELS = IMAGE_PIXELS.value  # Pillow's own limit warns, and refuses only twice as much
    warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)  # an error says it better
    try:
        Image.init()
        picture: Any = Image.open(io.BytesIO(content), formats=[name for name in _FORMATS if name in Image.OPEN])
        check_picture_size(*picture.size)
        if picture.format == "TIFF":  # decoded a tile at a time, which may be larger than the picture
            IMAGE_PIXELS.check(math.prod(picture.tag_v2.get(side, 1) for side in _TILE_SIDES), "a tile of the image")
        yield picture
    except CrosslensError:
        raise
    except Image.DecompressionBombError as error:
        raise IMAGE_PIXELS.error("the image has too many pixels") from error
    except Exception as error:  # decoders fail on damaged files in every way
        problem = "empty file" if not content else str(error).replace(repr(content), "").split(" <_io")[0]
        expected = "a picture: " + ", ".join(_FORMATS)
        raise InputError(f"not a readable image: {problem or type(error).__name__}", expected=expected) from error


def check_picture_size(width: float, height: float) -> None:
    """Raise for more pixels than the limit, and for a strip that models would scale to billions of pixels."""
    if width * height > IMAGE_PIXELS.value:
        raise IMAGE_PIXELS.error(f"an image of {width:,} × {height:,} pixels")
    if max(width, height) > ASPECT_RATIO.value * min(width, height):
        raise ASPECT_RATIO.error(f"an image of {width:,} × {height:,} pixels")


class PixelBudget:
    """How many pixels decoded pictures may have together while they wait for their use.

    Pictures are let in in order, and a single one always: so the next to be used is never among those that wait.
    """

    def __init__(self) -> None:
        self._used, self._turn, self._turns, self._closed = 0, 0, count(), False
        self._changed = threading.Condition()

    @contextmanager
    def decoded(self, picture: Any) -> Iterator[Any]:
        """The picture as RGB, once there is room for its pixels; those who ask are let in as they came."""
        pixels = picture.width * picture.height
        self.take(next(self._turns), pixels)
        decoded = picture
        try:
            picture.load()
            if picture.mode != "RGB":
                decoded = picture.convert("RGB")
                picture.close()
            yield decoded
        finally:
            decoded.close()
            self.give_back(pixels)
            if pixels > _LARGE:
                # Give memory that is free back to the system: Pillow's blocks are of a size that glibc keeps.
                with suppress(OSError, AttributeError):  # other systems give it back by themselves
                    ctypes.CDLL(None).malloc_trim(0)

    def take(self, turn: int, pixels: int) -> None:
        """Wait until all before ``turn`` (counted from 0) have taken theirs, and there is room for ``pixels`` more."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._closed
                    or (turn == self._turn and (not self._used or self._used + pixels <= PIXELS_IN_FLIGHT.value))
                )
            )
            self._used += pixels
            self._turn += 1
            self._changed.notify_all()

    def give_back(self, pixels: int) -> None:
        """Make room: the picture is in use."""
        with self._changed:
            self._used -= pixels
            self._changed.notify_all()

    def close(self) -> None:
        """Let everybody in: nothing is used any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


MEMBER_SEPARATOR = "::"
_BLOCK = 64  # rows of a Parquet file read at a time
_NUMBER = r"-?\d+(?:\.\d+)?"
_CROP = re.compile(rf"box/({_NUMBER}),({_NUMBER}),({_NUMBER}),({_NUMBER})")

_opening = threading.Lock()


def outer_file(path: str | Path) -> Path:
    """The file on disk that an archive path leads to; any other path as it is."""
    return Path(str(path).partition(MEMBER_SEPARATOR)[0])


def crop_path(file: str, box: tuple[float, float, float, float]) -> str:
    """The archive path of a part of an image."""
    return f"{file}{MEMBER_SEPARATOR}box/{','.join(f'{side:.10g}' for side in box)}"


def read_image_bytes(path: str | Path) -> bytes:
    """The bytes of an image, in a file of its own or under an archive path.

    A file that cannot be read raises an ``OSError``; one that is too large, or no file, an ``InputError``.
    """
    outer, separator, member = str(path).partition(MEMBER_SEPARATOR)
    if not separator:
        return regular_bytes(path, IMAGE_BYTES)
    if crop := _CROP.fullmatch(member):
        # The bytes of a lossless image file; black beyond the border of the image.
        x, y, width, height = map(float, crop.groups())
        with reading(outer):
            check_picture_size(width, height)
            content = io.BytesIO()
            with readable_picture(regular_bytes(outer, IMAGE_BYTES)) as image:
                part = image.convert("RGB").crop((round(x), round(y), round(x + width), round(y + height)))
                part.save(content, "BMP")  # far faster than PNG
        return content.getvalue()
    require_regular(outer)
    status = Path(outer).stat()
    with _opening:  # two threads must not unpack the same archive
        read = _opened(outer, status.st_mtime_ns, status.st_size)
    return read(member)


_Read = Callable[[str], bytes]
"""From the second half of an archive path to the bytes of what it names."""


@lru_cache(maxsize=8)  # files kept open; shards are read one after the other
def _opened(path: str, changed: int, size: int) -> _Read:
    kinds = {".arrow": _arrow, ".parquet": _parquet}
    try:
        return kinds.get(Path(path).suffix, _tar)(path)
    except TAR_ERRORS as error:
        raise OSError(f"{path}: {error}") from error


def _tar(path: str) -> _Read:
    """A tar file with an index of its members; a compressed one is unpacked into an unnamed temporary file first."""
    lock, file = threading.Lock(), open(path, "rb")  # noqa: SIM115  (closed with the last reference)
    packed, source = unpacking(file), file
    if packed is not None:
        source = tempfile.TemporaryFile()  # type: ignore[assignment]  # noqa: SIM115
        copy_unpacked(packed, source, path)
    with open_tar(source) as tar:
        spans = {member.name: (member.offset_data, member.size) for member in tar if member.isfile()}

    def read(member: str) -> bytes:
        if member not in spans:
            raise OSError(f"no file {member!r} in it")
        start, size = spans[member]
        MEMBER_BYTES.check(size, f"the member {member!r}", file=path)
        with lock:
            source.seek(start)
            return source.read(size)

    return read


def _arrow(path: str) -> _Read:
    """An Arrow file, memory-mapped: an image is copied when it is read."""
    table = arrow_table(path)

    def read(member: str) -> bytes:
        column, row = _cell(member)
        try:
            return _bytes_of(table[column][row].as_py(), member, Path(path).parent)
        except (KeyError, IndexError) as error:
            raise OSError(f"no {member!r} in it") from error

    return read


def _parquet(path: str) -> _Read:
    """A Parquet file; the rows around the last images are kept in memory."""
    lock = threading.Lock()

    @lru_cache(maxsize=2)  # two: threads that read ahead may cross a border of blocks
    def block(column: str, number: int) -> list[Any]:
        try:
            rows = pl.scan_parquet(path, glob=False).select(column).slice(number * _BLOCK, _BLOCK).collect()
        except pl.exceptions.PolarsError as error:
            raise OSError(f"{path}: {error}") from error
        return rows[column].to_list()

    def read(member: str) -> bytes:
        column, row = _cell(member)
        with lock:
            values = block(column, row // _BLOCK)
        if row % _BLOCK >= len(values):
            raise OSError(f"no {member!r} in it")
        return _bytes_of(values[row % _BLOCK], member, Path(path).parent)

    return read


def arrow_table(path: str | Path) -> Any:
    """The table in an Arrow file (stream or file form), mapped into memory."""
    with needs_extra("reading Arrow files", "pyarrow", "hf"):
        import pyarrow as pa
    try:
        return pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
    except pa.ArrowInvalid:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _cell(member: str) -> tuple[str, int]:
    column, _, row = member.rpartition("/")
    if not column or not row.isdecimal():
        raise OSError(f"{member!r} is not COLUMN/ROW of a table")
    return column, int(row)


def _bytes_of(value: Any, member: str, folder: Path) -> bytes:
    """The image in a cell: bytes, or the path of a file, or Hugging Face's pair of both."""
    content, path = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, value)
    if isinstance(content, bytes):
        IMAGE_BYTES.check(len(content), f"the image {member!r}")
        return content
    if isinstance(path, str) and path:
        return regular_bytes(folder / path, IMAGE_BYTES)
    raise OSError(f"{member!r} is empty")


REPAIR_IMAGE = "repair or remove the file" + where_option(
    "skip_bad", f", or pass {argument('skip_bad', True)} to leave such images out"
)
"""How an image that cannot be read is dealt with."""


def image_files(dataset: Dataset, folder: str | Path | None = None, *, skip_bad: bool = False) -> list[str]:
    """The path of every image: its ``file`` (or, without one, its id) below ``folder``.

    Without a folder, the dataset's own (``home``) and, unless all files exist there, the current one are tried; the one
    with the most files is taken. Files that are not there are looked for in the dataset's extra folders. A missing file
    raises at once, before anything is encoded; with ``skip_bad`` only if all are missing, as then the folder is wrong.
    """
    roots = [Path() if dataset.home is None else dataset.home, Path()]
    if folder is not None:
        roots = [Path(folder).expanduser()]
        if not roots[0].is_dir():
            expected = "the folder that holds the images"
            raise InputError("no such folder", file=roots[0], expected=expected, fix="check the path")
    has_files = "file" in dataset.images.columns
    files = dataset.images["file"].to_list() if has_files else dataset.image_ids
    names = [file or image for file, image in zip(files, dataset.image_ids, strict=True)]
    candidates = []
    for root in dict.fromkeys(roots):
        paths = [str(root / name) for name in names]
        exists = {file: file.is_file() for file in set(map(outer_file, paths))}  # one file may hold many images
        missing = [row for row, path in enumerate(paths) if not exists[outer_file(path)]]
        candidates.append((paths, missing))
        if not missing:
            return paths
    paths, missing = min(candidates, key=lambda candidate: len(candidate[1]))
    for extra in dataset.extra_folders:
        there = {row for row in missing if outer_file(extra / names[row]).is_file()}
        for row in there:
            paths[row] = str(extra / names[row])
        missing = [row for row in missing if row not in there]
    if not missing or (skip_bad and len(missing) < len(paths)):
        return paths
    if len(missing) < len(paths):
        fix = "add the missing files"
        fix += where_option("skip_bad", f"; {argument('skip_bad', True)} leaves such images out")
    elif not has_files:
        fix = "the dataset names no files: give its images a column 'file', or name the files like the image ids"
    elif folder is not None:
        fix = f"check {argument('image_folder')}: the dataset's file names start from there"
    else:
        fix = f"pass {argument('image_folder')}, the folder that the dataset's file names start from"
    few = len(missing) == 1
    problem = f"{len(missing):,} of {len(paths):,} image files {'is' if few else 'are'} not there, "
    problem += f"{'that' if few else 'such as that'} of image {dataset.image_ids[missing[0]]!r}"
    raise InputError(problem, file=paths[missing[0]], expected="an image file", fix=fix)
