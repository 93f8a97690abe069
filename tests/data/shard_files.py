"""Folders of shards as clip-retrieval writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

Array = np.ndarray[Any, Any]


def write_shards(
    folder: Path, images: Array, captions: Array, parts: int = 8, *, metadata: bool = True, digits: int = 1
) -> Path:
    """The vectors and the metadata of as many images as captions, in ``parts`` shards."""
    texts = [f"caption number {row}" for row in range(len(images))]
    for name, values in (("img_emb", images), ("text_emb", captions)):
        (folder / name).mkdir(parents=True)
        for number, part in enumerate(np.array_split(values, parts)):
            np.save(folder / name / f"{name}_{number:0{digits}d}.npy", part)
    if metadata:
        (folder / "metadata").mkdir()
        for number, rows in enumerate(np.array_split(np.arange(len(images)), parts)):
            names = {"image_path": [f"photo{row}" for row in rows], "caption": [texts[row] for row in rows]}
            pl.DataFrame(names).write_parquet(folder / "metadata" / f"metadata_{number:0{digits}d}.parquet")
    return folder


def vectors(rows: int, width: int = 6, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float16)
