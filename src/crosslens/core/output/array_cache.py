"""Arrays kept in the cache as ``.npy`` files. Whoever reads one says what it must be like.

A ``.json`` beside the array says what it is and holds a hash of the file: it is written last, and without it the array
does not count. An entry of another shape or type than expected, or of other content than was written, is removed with a
note, and its reader computes it again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.errors import InputError
from crosslens.core.hashing import file_fingerprint
from crosslens.core.input_files.arrays import open_array
from crosslens.core.input_files.json_text import read_json_file
from crosslens.core.output.workspace import atomic_file, write_text
from crosslens.core.safety.terminal import printable_line

Array = np.ndarray[Any, Any]
_DAMAGED = (OSError, InputError, ValueError, KeyError, TypeError, EOFError)


def read_cached_array(file: Path, shape: tuple[int | None, ...], kind: Any) -> Array | None:
    """The array, left on disk; None where there is none. A side of the ``shape`` that is None may have any length."""
    description = file.with_suffix(".json")
    try:
        content = read_json_file(description)["content"]
        array = open_array(file)
        fits = array.ndim == len(shape) and all(
            side in (None, own) for side, own in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype != kind:
            raise ValueError(f"an array of shape {array.shape} and type {array.dtype}")
        if file_fingerprint([file]) != content:
            raise ValueError("its content is not what was written")
        return array
    except FileNotFoundError:
        return None
    except _DAMAGED as error:
        reason = printable_line(f"{file} ({str(error).splitlines()[0] if str(error) else type(error).__name__})")
        print(f"note: a damaged cache file was removed, its content is computed again: {reason}", file=sys.stderr)
    for damaged in (description, file):
        with suppress(OSError):
            damaged.unlink(missing_ok=True)
    return None


def write_cached_array(file: Path, write: Callable[[Path], None], about: Mapping[str, Any] | None = None) -> None:
    """Keep the array that ``write`` puts into the file it is given."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file, wait=True) as partial:
        write(partial)
    facts = {**(about or {}), "content": file_fingerprint([file])}
    write_text(file.with_suffix(".json"), json.dumps(facts, indent=1, ensure_ascii=False) + "\n", wait=True)
