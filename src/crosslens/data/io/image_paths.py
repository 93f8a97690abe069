"""The files of a dataset's images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslens.core import Dataset, InputError, argument
from crosslens.data.io.archive_paths import outer_file


def image_files(dataset: Dataset, folder: str | Path | None = None, *, skip_bad: bool = False) -> list[str]:
    """The path of every image: its ``file`` (or, without one, its id) below ``folder``.

    Without a folder, the dataset's own (``home``) and, unless all files exist there, the current one are tried; the one
    with the most files is taken. An image inside another file has an archive path
    (:mod:`crosslens.data.io.archive_paths`). A missing file raises at once, before anything is encoded; with
    ``skip_bad`` only if all are missing, as then the folder is wrong.
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
    paths, missing = _most_complete(roots, dataset)
    if missing and not (skip_bad and len(missing) < len(paths)):
        raise _missing_files(dataset, paths, missing, has_folder=folder is not None)
    return paths


def _most_complete(roots: Sequence[Path], dataset: Dataset) -> tuple[list[str], list[int]]:
    """The paths below the root where most files exist, the first of equals; and the rows of those that do not."""
    names = dataset.images["file"].to_list() if "file" in dataset.images.columns else dataset.image_ids
    candidates = []
    for root in roots:
        paths = [str(root / (name or image)) for name, image in zip(names, dataset.image_ids, strict=True)]
        exists = {file: file.is_file() for file in set(map(outer_file, paths))}  # one file may hold many images
        missing = [row for row, path in enumerate(paths) if not exists[outer_file(path)]]
        candidates.append((paths, missing))
        if not missing:
            break
    return min(candidates, key=lambda candidate: len(candidate[1]))


def _missing_files(dataset: Dataset, paths: Sequence[str], missing: Sequence[int], has_folder: bool) -> InputError:
    first = missing[0]
    if len(missing) < len(paths):
        fix = f"add the missing files; where a model encodes, {argument('skip_bad', True)} leaves such images out"
    elif "file" not in dataset.images.columns:
        fix = "the dataset names no files: give its images a column 'file', or name the files like the image ids"
    elif has_folder:
        fix = f"check {argument('image_folder')}: the dataset's file names start from there"
    else:
        fix = f"pass {argument('image_folder')}, the folder that the dataset's file names start from"
    example = "that" if len(missing) == 1 else "such as that"
    return InputError(
        f"{len(missing):,} of {len(paths):,} image files {'is' if len(missing) == 1 else 'are'} not there, "
        f"{example} of image {dataset.image_ids[first]!r}",
        file=paths[first],
        expected="an image file",
        fix=fix,
    )
