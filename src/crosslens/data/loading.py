"""One way to load a dataset: by a reader's name and its options, or by a path."""

from __future__ import annotations

import difflib
import inspect
from pathlib import Path
from typing import Any

from crosslens.core.bundle import HEADER
from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.registry import Entry
from crosslens.data.files import existing_file, format_suffix, read_lines
from crosslens.data.plain import PLAIN_SUFFIXES
from crosslens.data.readers import READERS


def load_dataset(source: str | Path, **options: Any) -> Dataset:
    """Load a dataset.

    ``source`` is the name of a reader, such as ``coco``, with the reader's options as keyword arguments; or the path of
    a folder that ``Dataset.save`` wrote, or of a plain .jsonl, .csv, .tsv or .parquet file.
    """
    if isinstance(source, str) and not _is_path(source):
        return _call(READERS[source], options)
    path = Path(source)
    if path.is_dir():
        return _load_folder(path, options)
    suffix = format_suffix(existing_file(path))
    if suffix not in PLAIN_SUFFIXES:
        likely = {".json": "coco", ".token": "flickr", ".tar": "webdataset", ".txt": "flickr"}.get(suffix, "coco")
        raise UsageError(
            f"{path}: the ending {suffix!r} does not tell the format",
            fix=f"name the reader, for example load_dataset({likely!r}, {_first_option(likely)}={path.name!r}); "
            f"readers: {', '.join(entry.name for entry in READERS)}",
        )
    reader = "csv" if suffix == ".csv" and "|" in read_lines(path)[0] else "plain"
    return _call(READERS[reader], {"captions": path, **options})


def _is_path(source: str) -> bool:
    if source in READERS:
        return False
    return "/" in source or "\\" in source or format_suffix(source) != "" or Path(source).exists()


def _load_folder(path: Path, options: dict[str, Any]) -> Dataset:
    if not (path / HEADER).exists():
        raise InputError(
            "not a saved dataset",
            file=path,
            expected=f"a folder with {HEADER}, as Dataset.save writes it",
            fix=f"name the reader: {', '.join(entry.name for entry in READERS)}",
        )
    if options:
        raise UsageError(f"a saved dataset has no options (given: {', '.join(options)})", fix="leave them out")
    return Dataset.load(path)


def _call(entry: Entry[Any], options: dict[str, Any]) -> Dataset:
    """Call a reader; an option it does not know, or misses, is named with those it has."""
    parameters = inspect.signature(entry.value).parameters
    known = ", ".join(name if one.default is one.empty else f"{name} (optional)" for name, one in parameters.items())
    for name in options:
        if name not in parameters:
            near = difflib.get_close_matches(name, parameters, n=1, cutoff=0.5)
            meant = f"did you mean {near[0]}? " if near else ""
            raise UsageError(f"the reader {entry.name!r} has no option {name!r}", fix=f"{meant}its options: {known}")
        if "Path" in str(parameters[name].annotation) and not isinstance(options[name], (str, Path, type(None))):
            raise UsageError(f"the option {name!r} is {options[name]!r:.60}", fix="give it one path, as a text")
    for name, one in parameters.items():
        if one.default is one.empty and options.get(name) is None:
            raise UsageError(f"the reader {entry.name!r} needs the option {name!r}", fix=f"its options: {known}")
    result = entry.value(**options)
    assert isinstance(result, Dataset)
    return result


def _first_option(reader: str) -> str:
    return next(iter(inspect.signature(READERS[reader].value).parameters))
