"""Pictures as they are sent to a model: decoded here, made small, encoded again."""

from __future__ import annotations

from pathlib import Path

from crosslens.core import Dataset, UnknownNameError, reading
from crosslens.data import image_files, read_image_bytes
from crosslens.web.judging.model_judges.prompts import Pictures
from crosslens.web.judging.tasks.content import ShownPicture
from crosslens.web.library import RunLibrary
from crosslens.web.pictures import PictureStore, small_jpeg

_QUALITY = 85


def library_pictures(store: PictureStore, pixels: int) -> Pictures:
    """The pictures of a served folder, their longer side at most so many pixels."""

    def picture(shown: ShownPicture) -> bytes:
        return picture_for_model(store.file(shown.dataset, shown.image), pixels)

    return picture


def folder_store(folder: Path, datasets: tuple[Dataset, ...], image_folders: tuple[Path, ...]) -> PictureStore:
    """The pictures of a folder that ``serve`` would offer; none of them is kept."""
    return PictureStore(RunLibrary(folder, datasets), image_folders, folder)


def dataset_pictures(dataset: Dataset, folder: Path | None, pixels: int) -> Pictures:
    """The pictures of one dataset, whatever it is called."""
    files = dict(zip(dataset.image_ids, image_files(dataset, folder), strict=True))

    def picture(shown: ShownPicture) -> bytes:
        if shown.image not in files:
            raise UnknownNameError("image", shown.image, files)
        return picture_for_model(str(files[shown.image]), pixels)

    return picture


def picture_for_model(file: str, pixels: int) -> bytes:
    """The picture in a file as JPEG, its longer side at most so many pixels."""
    with reading(file):
        return small_jpeg(read_image_bytes(file), pixels, _QUALITY)
