"""Image files: where those of a dataset lie, their bytes, and the picture in them."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, MissingExtraError
from crosslens.data.inside import outer_file, read_address

T = TypeVar("T")
R = TypeVar("R")

_THREADS, _AHEAD = 4, 64


def image_files(dataset: Dataset, folder: str | Path | None = None, *, skip_bad: bool = False) -> list[str]:
    """The path of every image: its ``file`` (or, without one, its id) below ``folder``.

    Without a folder they are looked for in the dataset's own (``home``) and, unless all are there, in the current one;
    the one where most are found is taken. A picture inside another file has an address
    (:mod:`crosslens.data.inside`). A file that is not there raises at once, before anything is encoded; with
    ``skip_bad`` only if none is there, as then the folder is wrong and not a file.
    """
    if folder is not None:
        root = Path(folder).expanduser()
        if not root.is_dir():
            raise InputError(
                "no such folder", file=root, expected="the folder that holds the images", fix="check the path"
            )
        roots = [root]
    else:
        roots = [*([] if dataset.home is None else [dataset.home]), Path()]
    paths, missing = _best(roots, dataset)
    if missing and not (skip_bad and len(missing) < len(paths)):
        raise _not_there(dataset, paths, missing, given=folder is not None)
    return paths


def _best(roots: Sequence[Path], dataset: Dataset) -> tuple[list[str], list[int]]:
    """The paths below the root where most files are, the first of equals; and which of them are missing."""
    best: tuple[list[str], list[int]] | None = None
    for root in roots:
        paths = _below(root, dataset)
        missing = _missing(paths)
        if best is None or len(missing) < len(best[1]):
            best = paths, missing
        if not missing:
            break
    assert best is not None
    return best


def _below(root: Path, dataset: Dataset) -> list[str]:
    ids = dataset.image_ids
    names = dataset.images["file"].to_list() if "file" in dataset.images.columns else list(ids)
    return [str(root / (name or one)) for name, one in zip(names, ids, strict=True)]


def _missing(paths: Sequence[str]) -> list[int]:
    there: dict[Path, bool] = {}  # many pictures may lie in one file
    for path in map(outer_file, paths):
        if path not in there:
            there[path] = path.is_file()
    return [row for row, path in enumerate(paths) if not there[outer_file(path)]]


def _not_there(dataset: Dataset, paths: Sequence[str], missing: Sequence[int], given: bool) -> InputError:
    first = missing[0]
    if len(missing) < len(paths):
        fix = "put the missing files there; where a model encodes, --skip-bad leaves such images out"
    elif "file" not in dataset.images.columns:
        fix = "the dataset names no files: give its images a column 'file', or name the files like the image ids"
    elif given:
        fix = "check --image-folder: the dataset's file names start from there"
    else:
        fix = "pass --image-folder, the folder that the dataset's file names start from"
    example = "that" if len(missing) == 1 else "such as that"
    return InputError(
        f"{len(missing):,} of {len(paths):,} image files {'is' if len(missing) == 1 else 'are'} not there, "
        f"{example} of image {dataset.image_ids[first]!r}",
        file=paths[first],
        expected="an image file",
        fix=fix,
    )


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
        return decode_image(read_address(image))
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror or error}", file=image, fix="check the path") from error
    except InputError as error:
        error.file = str(image)
        raise


def as_pictures(images: Sequence[Any]) -> list[Any]:
    """Pictures from pictures or paths; a path that occurs again is read once."""
    read = {str(one): as_picture(one) for one in dict.fromkeys(one for one in images if isinstance(one, str | Path))}
    return [read[str(one)] if isinstance(one, str | Path) else as_picture(one) for one in images]


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
