"""The state of unfinished work in a folder: written in one step, read again only by the very same work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import HEADER_FILE, CrosslensError, Layout, atomic_folder, read_folder, write_parts

Array = np.ndarray[Any, Any]

_LAYOUT = Layout("a checkpoint", HEADER_FILE, ("*.npy",))


def store_state(folder: str | Path, key: str, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Replace what the folder holds; ``key`` changes when anything that the state depends on does."""
    with atomic_folder(folder, _LAYOUT) as new:
        write_parts(new, "checkpoint", header={**header, "key": key}, arrays=dict(arrays))


def stored_state(folder: str | Path, key: str) -> tuple[dict[str, Any], dict[str, Array]] | None:
    """Header and arrays; None without a readable state of this key."""
    if not Path(folder).exists():
        return None
    try:
        header, arrays, _ = read_folder(folder, "checkpoint")
    except CrosslensError:
        return None
    return (header, arrays) if header.get("key") == key else None
