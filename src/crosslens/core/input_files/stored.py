"""Stored values before they are used: entries of a header and arrays, of the type and range they must have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.errors import InputError
from crosslens.core.input_files.json_text import is_finite_number

_AGAIN = "write it again"
_NOUNS = {str: "a text", bool: "true or false", dict: "an object", list: "a list", float: "a finite number"}


def require_entries(content: Any, types: Mapping[str, type], file: str | Path, inside: str = "") -> None:
    """Raise unless ``content`` is a mapping whose entries, where it has them, are of these types."""
    if not isinstance(content, Mapping):
        problem = f"{inside or 'the content'} is {content!r:.60}"
        raise InputError(problem, file=file, expected="an object", fix=_AGAIN)
    for name, kind in types.items():
        value = content.get(name, kind())
        fits = is_finite_number(value) if kind is float else isinstance(value, kind)
        if not fits:
            where = f" of {inside}" if inside else ""
            problem = f"{name!r}{where} is {value!r:.60}"
            raise InputError(problem, file=file, expected=_NOUNS[kind], fix=_AGAIN)


def require_array(
    array: np.ndarray[Any, Any],
    shape: tuple[int, ...],
    file: str | Path,
    *,
    whole: bool = True,
    low: int | None = None,
    high: int | None = None,
) -> None:
    """Raise unless an array has this shape and, if ``whole``, whole numbers from ``low`` to ``high``."""
    if array.shape != shape or array.dtype.kind not in ("iu" if whole else "fiu"):
        numbers = "whole numbers" if whole else "numbers"
        problem = f"an array of shape {array.shape} and type {array.dtype}"
        raise InputError(problem, file=file, expected=f"{numbers} of shape {shape}", fix=_AGAIN)
    if low is None or not array.size:
        return
    least, most = int(array.min()), int(array.max())
    if least < low or (high is not None and most > high):
        problem = f"numbers from {least} to {most}"
        limits = f"numbers from {low} to {high}" if high is not None else f"numbers of at least {low}"
        raise InputError(problem, file=file, expected=limits, fix=_AGAIN)


def require_offsets(offsets: np.ndarray[Any, Any], groups: int, entries: int, file: str | Path) -> None:
    """Raise unless offsets cut ``entries`` entries into ``groups`` groups."""
    require_array(offsets, (groups + 1,), file, low=0, high=entries)
    if offsets[0] != 0 or offsets[-1] != entries or (np.diff(offsets) < 0).any():
        raise InputError("the offsets do not ascend from 0", file=file, expected=f"up to {entries}", fix=_AGAIN)
