"""Which options of a reader are paths: those start from a folder, and move with it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslens.data.readers import READERS


def reader_parameters(source: str) -> Mapping[str, inspect.Parameter]:
    """What the reader ``source`` takes; nothing if no reader has that name."""
    return inspect.signature(READERS[source].value).parameters if source in READERS else {}


def path_options(source: str | None, options: Mapping[str, Any], base: Path = Path()) -> set[str]:
    """Which entries of a dataset table are paths; ``source`` itself is one unless it names a reader."""
    if source is None:
        return set()
    itself = {"source"} if is_dataset_path(source, base) else set()
    parameters = reader_parameters("plain" if itself else source)
    return itself | {
        key
        for key, value in options.items()
        if isinstance(value, str) and key in parameters and "Path" in str(parameters[key].annotation)
    }


def is_dataset_path(source: str, base: Path) -> bool:
    """Whether a dataset's source is a path, and not the name of a reader."""
    # As load_dataset decides, except that it looks from the current folder: a bare word is a path if it is there.
    if reader_parameters(source):
        return False
    return "/" in source or "\\" in source or Path(source).suffix != "" or (base / source).exists()
