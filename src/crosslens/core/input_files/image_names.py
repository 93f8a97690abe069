"""Names of image files: those in a folder, the ids that they stand for, and which of them are known already."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from crosslens.core.errors import InputError
from crosslens.core.ids import Ids, has_image_ending, match_ids, without_image_ending

_Rule = Callable[[str], str]
_COCO_NUMBER = re.compile(r"(?:^|_)(\d{12})$")


class ImageName(NamedTuple):
    """An image: its id, its file, or both."""

    id: str | None
    file: str | None

    @staticmethod
    def of(name: str) -> ImageName:
        """A name with the ending of an image file, or with a folder, is a file; any other is an id."""
        name = name.replace("\\", "/")
        return ImageName(None, name) if has_image_ending(name) or "/" in name else ImageName(name, None)


def images_below(folder: Path) -> list[str]:
    """The image files in a folder and the folders in it, as paths from there, sorted."""
    if not folder.is_dir():
        problem = "not a folder" if folder.exists() else "no such folder"
        fix = "pass the names of the images, or load_dataset(…, extra_images=…) for a file that lists them"
        raise InputError(problem, file=folder, expected="a folder of images", fix=fix)
    files = (file for file in folder.rglob("*") if has_image_ending(file.name) and file.is_file())
    names = sorted(file.relative_to(folder).as_posix() for file in files)
    # macOS leaves a file ._name.jpg beside name.jpg on other file systems.
    names = [name for name in names if not PurePosixPath(name).name.startswith("._")]
    if not names:
        raise InputError("no images in the folder", file=folder, expected="image files such as .jpg and .png")
    return names


def unknown_images(names: Sequence[ImageName], ids: Ids, files: Sequence[str | None]) -> dict[str, str | None]:
    """The images that are not among those with these ``ids`` and ``files``: the id and the file of each.

    An image without an id is named as the known ones are: by its file's name or path, with or without the ending, or
    by the number in COCO's names.
    """
    written = [PurePosixPath(file or image).as_posix() for image, file in zip(ids, files, strict=True)]
    new = [name.file for name in names if name.file is not None]
    rule = _naming_rule(ids, written, [name.file for name in names if name.id is None and name.file is not None])
    known_paths, known_names = set(written), _telling_names(written, new)
    named = [rule(name.file or "") if name.id is None else name.id for name in names]
    known_ids = match_ids(named, ids) >= 0
    added: dict[str, str | None] = {}
    for image, file, is_known in zip(named, (name.file for name in names), known_ids, strict=True):
        if is_known or (file is not None and (file in known_paths or _base_name(file) in known_names)):
            continue
        if image in added:
            problem = f"the image {image!r} is named twice" + (f": {added[image]} and {file}" if file else "")
            raise InputError(problem, expected="each image once", fix="remove or rename one of the two")
        added[image] = file
    return added


def _naming_rule(ids: Ids, files: Sequence[str], new: Sequence[str]) -> _Rule:
    """How the ids follow from the files, if that tells the new files apart; the path itself where they do not."""
    if all(image.isdecimal() for image in ids) and new and all(_COCO_NUMBER.search(_base_stem(name)) for name in new):
        return _number
    rules: tuple[_Rule, ...] = (_base_name, str, _base_stem, without_image_ending, _number)
    agreeing = (rule for rule in rules if all(rule(file) == image for image, file in zip(ids, files, strict=True)))
    return next((rule for rule in (*agreeing, _base_name) if len(set(map(rule, new))) == len(set(new))), str)


def _telling_names(files: Sequence[str], new: Sequence[str]) -> set[str]:
    """The files' names without folders, where a name says which image it is: no two files share one."""
    names = set(map(_base_name, files))
    return names if len(names) == len(files) and len(set(map(_base_name, new))) == len(set(new)) else set()


def _base_name(file: str) -> str:
    return PurePosixPath(file).name


def _base_stem(file: str) -> str:
    return without_image_ending(_base_name(file))


def _number(file: str) -> str:
    """391895 for ``COCO_val2014_000000391895.jpg``."""
    number = _COCO_NUMBER.search(_base_stem(file))
    return str(int(number[1])) if number else file
