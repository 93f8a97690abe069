"""Ids: unique, non-empty strings, always carried beside the arrays they name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from crosslens.core import InputError, UnknownNameError, reading
from crosslens.storage import IntArray, is_encodable, require_columns, require_regular

if TYPE_CHECKING:  # rankings are made without it where it is not installed
    import polars as pl

Ids = tuple[str, ...]

_IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff")


def as_ids(values: Iterable[Any], what: str) -> Ids:
    """Turn numbers or strings into ids; a missing, empty or repeated one raises, and so does one with a NUL."""
    ids = tuple("" if value is None else str(value) for value in values)
    together = "".join(ids)
    if "\0" in together:
        row = next(row for row, name in enumerate(ids) if "\0" in name)
        fix = f"rename the {what}: many programs end a text there"
        raise InputError(f"the {what} id {ids[row]!r:.60} has a NUL", row=row, expected="ids without NUL", fix=fix)
    if not is_encodable(together):
        row = next(row for row, name in enumerate(ids) if not is_encodable(name))
        fix = f"rename the {what}: it holds half of a surrogate pair"
        raise InputError(f"the {what} id is {ids[row]!r:.60}", row=row, expected="text that UTF-8 can hold", fix=fix)
    if len(set(ids)) == len(ids) and "" not in ids:
        return ids
    seen: dict[str, int] = {}
    for row, name in enumerate(ids):
        if name == "":
            raise InputError(f"empty {what} id", row=row, fix=f"give every {what} an id")
        if name in seen:
            problem = f"duplicate {what} id {name!r} (first at row {seen[name]})"
            fix = "remove or rename one of the two"
            raise InputError(problem, row=row, expected=f"each {what} once", fix=fix, code="duplicate-id", subject=name)
        seen[name] = row
    return ids


def id_table(ids: Ids) -> pl.DataFrame:
    """Ids as a table of one column, ``id``."""
    import polars as pl

    return pl.DataFrame({"id": ids}, schema={"id": pl.String})


def stored_ids(table: pl.DataFrame, folder: str | Path, name: str) -> Ids:
    """The ids in a table that :func:`id_table` made."""
    import polars as pl

    file = Path(folder) / f"{name}.parquet"
    require_columns(table, {"id": pl.String}, file)
    with reading(file):
        return as_ids(table["id"], "stored")


_MARK = "%%"
_SEPARATING = r"\s\x00-\x20\x7f-\x9f\ufeff"
ESCAPED_IN_COLUMNS = re.compile(rf"^(?:[#{{\[]|{_MARK})|[{_SEPARATING}]")
"""Ids that cannot stand among columns separated by white space: those with any, and those that a line with something
else than an id begins with (a comment, JSON)."""
ESCAPED_ON_LINES = re.compile(rf"^(?:[\s\ufeff]|{_MARK})|[\t\n\r]|\s$")
"""Ids that cannot stand alone on a line, or before a tab."""


def escape_ids(ids: Iterable[str], where: re.Pattern[str] = ESCAPED_IN_COLUMNS) -> Ids:
    """The ids for a file in which white space separates: ``%%my%20photo.jpg`` for ``my photo.jpg``.

    White space, control characters and ``%`` of those that match ``where`` are written as in addresses, behind a mark;
    any other id is written as it is, so that the ids of a URL, say, do not change. Different ids stay different.
    """

    def escape(match: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in match[0].encode())

    return tuple(_MARK + re.sub(rf"[%{_SEPARATING}]", escape, name) if where.search(name) else name for name in ids)


def unescape_ids(names: Iterable[str]) -> Ids:
    """The ids that :func:`escape_ids` was given; a name with the mark that it would not have written stays as it is.

    So does one of an id with a NUL, which no dataset has.
    """

    def unescape(name: str) -> str:
        with suppress(UnicodeDecodeError):
            original = unquote(name.removeprefix(_MARK), errors="strict")
            if "\0" not in original and escape_ids([original]) == (name,):
                return original
        return name

    return tuple(unescape(name) if name.startswith(_MARK) else name for name in names)


def escape_note(ids: Sequence[str]) -> str | None:
    """What to tell about ids that are escaped in a file; None where there are none."""
    escaped_ids = [name for name in zip(ids, escape_ids(ids), strict=True) if name[0] != name[1]]
    if not escaped_ids:
        return None
    first, escaped = escaped_ids[0]
    count = f"{len(escaped_ids):,} ids hold" if len(escaped_ids) > 1 else "1 id holds"
    return f"{count} what separates columns, and {first!r} is written as {escaped}: crosslens reads it back"


def listed_id(cell: Any, ids: Container[str]) -> str | None:
    """The id in a cell that a person may have edited: white space around it counts only where a known id has it."""
    text = "" if cell is None else str(cell)
    return (text if text in ids else text.strip()) or None


def match_ids(names: Sequence[str], ids: Sequence[str], *, any_ending: bool = True) -> IntArray:
    """The row of each of ``names`` in ``ids``, −1 where there is none.

    Some files call an image ``beach.jpg``, others ``beach``: a name that is not among the ids matches the one that
    differs from it by the ending of an image file only, unless ``any_ending`` is off. Where several of the names or of
    the ids differ by nothing else, nothing is guessed.
    """
    row_of = {name: row for row, name in enumerate(ids)}
    if any_ending and not all(name in row_of for name in names):
        distinct = dict.fromkeys(names)
        sharing = Counter(map(without_image_ending, distinct))
        rows: dict[str, int] = {}
        for row, name in enumerate(ids):
            stem = without_image_ending(name)
            rows[stem] = -1 if stem in rows else row
        for name in distinct:
            stem = without_image_ending(name)
            if name not in row_of and sharing[stem] == 1:
                row_of[name] = rows.get(stem, -1)
    return np.fromiter((row_of.get(name, -1) for name in names), dtype=np.int64, count=len(names))


def has_image_ending(name: str) -> bool:
    """Whether a name ends as those of image files do."""
    return name.lower().endswith(_IMAGE_ENDINGS)


def without_image_ending(name: str) -> str:
    """``beach`` for ``beach.jpg``; any other id as it is."""
    if has_image_ending(name):
        return name.rpartition(".")[0] or name
    return name


def spelled_as(ids: Sequence[str], names: Sequence[str]) -> Ids:
    """``names``, each as the id in ``ids`` that it matches is written; one that matches none as it is."""
    return tuple(name if row < 0 else ids[row] for name, row in zip(names, match_ids(names, ids), strict=True))


def positions(names: Sequence[str], ids: Ids, what: str, *, any_ending: bool = False) -> IntArray:
    """The row of each of ``names`` in ``ids``; an unknown one raises, naming its row and near names.

    ``any_ending``: for ids from two sources, where images match as in :func:`match_ids`.
    """
    rows = match_ids(names, ids, any_ending=any_ending)
    if len(rows) and rows.min() < 0:
        row = int(np.argmax(rows < 0))
        near = UnknownNameError(what, names[row], ids[:100_000]).suggestions
        raise InputError(
            f"unknown {what} id {names[row]!r}",
            row=row,
            expected=f"one of the {len(ids)} {what} ids",
            fix=f"did you mean {near[0]!r}?" if near else f"add it to the {what}s, or remove this row",
            code="unknown-id",
            subject=names[row],
        )
    return rows


def distinct_names(names: Iterable[str]) -> list[str]:
    """The names, of which the second and further of the same get a number: ``coco``, ``coco (2)``."""
    distinct: list[str] = []
    for name in names:
        label, number = name, 1
        while label in distinct:
            number += 1
            label = f"{name} ({number})"
        distinct.append(label)
    return distinct


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
    files = [file for file in folder.rglob("*") if has_image_ending(file.name) and not file.is_dir()]
    for file in files:  # a pipe would be left out in silence
        require_regular(file)
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
    paths = [PurePosixPath(file or image).as_posix() for image, file in zip(ids, files, strict=True)]
    new = [name.file for name in names if name.file is not None]
    unnamed = [name.file for name in names if name.id is None and name.file is not None]
    # How the ids follow from the files, if that tells the new files apart; the path itself where they do not.
    rules: tuple[_Rule, ...] = (_base_name, str, _base_stem, without_image_ending, _number)
    agreeing = (rule for rule in rules if all(rule(file) == image for image, file in zip(ids, paths, strict=True)))
    telling = (rule for rule in chain(agreeing, (_base_name,)) if len(set(map(rule, unnamed))) == len(set(unnamed)))
    of_coco = unnamed and all(map(str.isdecimal, ids)) and all(_COCO_NUMBER.search(_base_stem(f)) for f in unnamed)
    rule = _number if of_coco else next(telling, str)
    known_paths, known_names = set(paths), set(map(_base_name, paths))
    if len(known_names) < len(paths) or len(set(map(_base_name, new))) < len(set(new)):
        known_names = set()  # two files share a name without folders: it does not say which image it is
    names_of_new = [rule(name.file or "") if name.id is None else name.id for name in names]
    known_ids = match_ids(names_of_new, ids) >= 0
    added: dict[str, str | None] = {}
    for image, file, is_known in zip(names_of_new, (name.file for name in names), known_ids, strict=True):
        if is_known or (file is not None and (file in known_paths or _base_name(file) in known_names)):
            continue
        if image in added:
            problem = f"the image {image!r} is named twice" + (f": {added[image]} and {file}" if file else "")
            raise InputError(problem, expected="each image once", fix="remove or rename one of the two")
        added[image] = file
    return added


def _base_name(file: str) -> str:
    return PurePosixPath(file).name


def _base_stem(file: str) -> str:
    return without_image_ending(_base_name(file))


def _number(file: str) -> str:
    """391895 for ``COCO_val2014_000000391895.jpg``."""
    number = _COCO_NUMBER.search(_base_stem(file))
    return str(int(number[1])) if number else file
