"""Pictures of datasets, made small: only from the folders of the dataset, and never as they are in the file.

What is sent was decoded and encoded again here, so that a file with a picture's name and another content is refused.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Literal

from crosslens.core import CrosslensError, InputError
from crosslens.data import PixelBudget, outer_file, read_image_bytes, readable_picture
from crosslens.storage import atomic_file, fingerprint, require_own
from crosslens.values import Dataset
from crosslens.web.library import RunLibrary

_SHRUNK_TO = 0.8
"""What is left of the limit once it was reached, so that not every new picture looks through the folder."""
_TOUCH_SECONDS = 3600.0
"""How old the note of the last use may become: a thumbnail is read far more often than that."""


class ThumbnailCache:
    """Files by key, together at most ``most_bytes``. Several processes may share the folder."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder, self._most = folder, most_bytes
        self._bytes: int | None = None
        self._lock = Lock()

    def get(self, key: str) -> bytes | None:
        file = self._file(key)
        try:
            content = file.read_bytes()
            if time.time() - file.stat().st_mtime > _TOUCH_SECONDS:
                os.utime(file)
        except OSError:
            return None
        return content

    def put(self, key: str, content: bytes) -> None:
        """Keep a content, whole or not at all; a full disk costs only the cache.

        Where there is too much, what was not used for longest is removed.
        """
        file = self._file(key)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            require_own(file)
            with atomic_file(file) as new:
                new.write_bytes(content)
        except (OSError, CrosslensError):  # or another request that writes the same
            return
        with self._lock:
            if self._bytes is not None and self._bytes + len(content) <= self._most:
                self._bytes += len(content)
                return
            files: list[tuple[float, int, Path]] = []
            for path in self._folder.glob("??/*.jpg"):
                with suppress(OSError):  # another process removed it
                    status = path.stat()
                    files.append((status.st_mtime, status.st_size, path))
            self._bytes = sum(size for _, size, _ in files)
            target = self._most if self._bytes <= self._most else self._most * _SHRUNK_TO
            for _, size, path in sorted(files):
                if self._bytes <= target:
                    break
                with suppress(OSError):
                    path.unlink()
                    self._bytes -= size

    def _file(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.jpg"


Size = Literal[96, 160, 256, 320, 640, 1280]
"""The longer side in pixels. A few sizes: every other one would be another file in the cache."""
_QUALITY = 82
_SECONDS = 1.0
"""How long the folders of a dataset are taken for granted: a page asks for each of its pictures."""
MOST_BYTES = 1 << 30
"""How much the thumbnails take on disk, where nobody says otherwise."""
IN_FLIGHT = PixelBudget()
"""All pictures that the application decodes, thumbnails and uploads alike, are let in here."""


class PictureStore:
    """Thumbnails of the pictures of datasets, kept in a folder of the cache.

    ``linked_folders``: folders that are links may lead out of those of a dataset. For a server that only this computer
    reaches: whoever made the link, its owner can look at the pictures anyway.
    """

    def __init__(
        self,
        library: RunLibrary,
        folders: Sequence[Path],
        cache: Path,
        most_bytes: int = MOST_BYTES,
        *,
        linked_folders: bool = False,
    ) -> None:
        self._library, self._folders, self._linked_folders = library, tuple(folders), linked_folders
        self._cache = ThumbnailCache(cache / "pictures", most_bytes)
        self._sources: dict[str, tuple[float, Dataset | None, list[Path]]] = {}

    def file(self, dataset: str, image: str) -> str:
        """The path of an image of a dataset, inside one of its folders; raises where there is none."""
        moment, dataset_read, roots = self._sources.get(dataset, (float("-inf"), None, []))
        if dataset_read is None or time.monotonic() - moment > _SECONDS:
            dataset_read = self._library.dataset(dataset)
            roots = [folder.resolve() for folder in (*self._folders, *self._library.image_folders(dataset))]
            self._sources[dataset] = time.monotonic(), dataset_read, roots
        return picture_file(dataset_read, image, roots, linked_folders=self._linked_folders)

    def thumbnail(self, dataset: str, image: str, size: int) -> bytes:
        """The picture as JPEG, its longer side at most ``size`` pixels."""
        path = self.file(dataset, image)
        status = outer_file(path).stat()
        key = fingerprint("thumbnail", {"file": [path, status.st_mtime_ns, status.st_size], "form": [size, _QUALITY]})
        content = self._cache.get(key)
        if content is None:
            content = small_jpeg(_bytes_of(path), size, _QUALITY)
            self._cache.put(key, content)
        return content

    def exists(self, dataset: str, image: str) -> bool:
        """Whether there is a file of the image that may be shown."""
        try:
            self.file(dataset, image)
        except CrosslensError:
            return False
        return True

    def size(self, dataset: str, image: str) -> tuple[float, float]:
        with readable_picture(_bytes_of(self.file(dataset, image))) as picture:
            return float(picture.width), float(picture.height)


def small_jpeg(content: bytes, size: int, quality: int) -> bytes:
    """The picture in an image file's bytes as JPEG, its longer side at most ``size`` pixels."""
    encoded = io.BytesIO()
    with readable_picture(content) as picture:
        picture.draft("RGB", (size, size))  # JPEG: decoded no larger than needed
        with IN_FLIGHT.decoded(picture) as small:
            small.thumbnail((size, size))
            small.save(encoded, "JPEG", quality=quality)
    return encoded.getvalue()


def _bytes_of(path: str) -> bytes:
    try:
        return read_image_bytes(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", fix="check the file") from error


def picture_file(dataset: Dataset, image: str, roots: Sequence[Path], *, linked_folders: bool = False) -> str:
    """The path of an image below the first root that holds it; roots are given without links in them.

    Raises for an image that the dataset does not have, and for a path that leaves the roots, by ``..`` or by a link.
    With ``linked_folders`` it may leave them by a folder that is a link, never by a file that is one.
    """
    if image not in dataset.image_rows:
        raise InputError(f"no image {image!r} in {dataset.name}", fix="check the id", code="unknown-id", subject=image)
    name = dataset.images["file"][dataset.image_rows[image]] if "file" in dataset.images.columns else None
    outside = False
    for root in roots:
        path = os.path.join(root, name or image)
        try:
            file = outer_file(path)
            resolved = file.resolve()
            if not resolved.is_file():
                continue
            below = file.is_relative_to(root) and ".." not in file.parts
            by_folders = linked_folders and below and resolved == file.parent.resolve() / file.name
        except (OSError, ValueError):  # a name that no file can have
            continue
        if by_folders or any(resolved.is_relative_to(allowed) for allowed in roots):
            return path
        outside = True
    if outside:
        fix = "name the folder that really holds the pictures when the server starts, as its data"
        raise InputError(f"the file of image {image!r} is outside the folders of its dataset", fix=fix, code="outside")
    raise InputError(
        f"the file of image {image!r} is not there",
        fix="name the folder of the pictures when the server starts, as its data",
        code="gone",
    )
