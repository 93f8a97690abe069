"""Image files: where those of a dataset lie, their bytes, and the picture in them."""

from __future__ import annotations

import io
import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, MissingExtraError

T = TypeVar("T")
R = TypeVar("R")

_THREADS, _AHEAD = 4, 64
_IN_TAR = "::"


def image_files(dataset: Dataset, folder: str | Path | None = None) -> list[str]:
    """The path of every image: its ``file`` (or, without one, its id) below ``folder``.

    A file inside a tar archive is written ``shard.tar::member``. A file that is not there raises at once, before
    anything is encoded.
    """
    ids = dataset.image_ids
    names = dataset.images["file"].to_list() if "file" in dataset.images.columns else list(ids)
    root = Path(folder).expanduser() if folder is not None else Path()
    if folder is not None and not root.is_dir():
        raise InputError("no such folder", file=root, expected="the folder that holds the images", fix="check the path")
    paths = [str(root / (name or one)) for name, one in zip(names, ids, strict=True)]
    missing = [row for row, path in enumerate(paths) if not Path(path.partition(_IN_TAR)[0]).is_file()]
    if missing:
        first = missing[0]
        raise InputError(
            f"{len(missing)} of {len(paths)} image files are not there, such as that of image {ids[first]!r}",
            file=paths[first],
            expected="an image file",
            fix="pass --image-folder, the folder that the dataset's file names start from"
            if folder is None
            else "check --image-folder: the dataset's file names start from there",
        )
    return paths


def read_image_bytes(path: str | Path) -> bytes:
    """The bytes of an image file, or of a member of a tar archive."""
    archive, mark, member = str(path).partition(_IN_TAR)
    if not mark:
        return Path(path).read_bytes()
    with tarfile.open(archive) as tar:
        content = tar.extractfile(member)
        if content is None:
            raise OSError(f"no file {member!r} in it")
        return content.read()


def decode_image(content: bytes) -> Any:
    """The picture in an image file's bytes, as RGB; whatever is wrong with it raises an ``InputError``."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("reading images", "pillow", "encoders") from error
    try:
        with Image.open(io.BytesIO(content)) as picture:
            return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        problem = "empty file" if not content else str(error).replace(repr(content), "").split(" <_io")[0]
        raise InputError(f"not a readable image: {problem}", expected="a JPEG, PNG, WebP or other picture") from error


def as_picture(image: Any) -> Any:
    """A picture from a picture, or from the path of one."""
    if not isinstance(image, str | Path):
        return image if getattr(image, "mode", "RGB") == "RGB" else image.convert("RGB")
    try:
        return decode_image(read_image_bytes(image))
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror or error}", file=image, fix="check the path") from error
    except InputError as error:
        error.file = str(image)
        raise


def as_pictures(images: Sequence[Any]) -> list[Any]:
    """Pictures from pictures or paths."""
    return [as_picture(image) for image in images]


def read_ahead(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results of ``work`` in order, worked out by a few threads a little ahead of their use."""
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
