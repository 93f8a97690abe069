"""Where the pictures of a dataset lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError
from crosslens.data.inside import outer_file


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
