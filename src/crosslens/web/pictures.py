"""Pictures of datasets, made small: only from the folders of the dataset, and never as they are in the file.

What is sent was decoded and encoded again here, so that a file with a picture's name and another content is refused.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from crosslens.core import CrosslensError, Dataset, InputError, fingerprint
from crosslens.data import PixelBudget, outer_file, read_image_bytes, readable_picture
from crosslens.web.library import RunLibrary
from crosslens.web.thumbnails import ThumbnailCache

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
        moment, known, roots = self._sources.get(dataset, (float("-inf"), None, []))
        if known is None or time.monotonic() - moment > _SECONDS:
            known = self._library.dataset(dataset)
            roots = [folder.resolve() for folder in (*self._folders, *self._library.image_folders(dataset))]
            self._sources[dataset] = time.monotonic(), known, roots
        return picture_file(known, image, roots, linked_folders=self._linked_folders)

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
        """Width and height of the picture in its file."""
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
    name = file_name(dataset, image)
    outside = False
    for root in roots:
        path = f"{root}{os.sep}{name}"
        try:
            file = outer_file(path)
            resolved = file.resolve()
            if not resolved.is_file():
                continue
            by_folders = linked_folders and ".." not in file.parts and resolved == file.parent.resolve() / file.name
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


def file_name(dataset: Dataset, image: str) -> str:
    """The file of an image as the dataset names it; its id where it names none."""
    if image not in dataset.image_rows:
        raise InputError(f"no image {image!r} in {dataset.name}", fix="check the id", code="unknown-id", subject=image)
    if "file" not in dataset.images.columns:
        return image
    return dataset.images["file"][dataset.image_rows[image]] or image
