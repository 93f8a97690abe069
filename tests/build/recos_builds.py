"""Small builds, and what they wrote."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.build import Recos, RecosSettings, build_recos
from tests.build.toy_models import Words

pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")

SETTINGS = RecosSettings(k=10, originals=12, similar=3, descriptions=3, source_column="task")


def build(scenes: cl.Dataset, folder: Path, settings: RecosSettings = SETTINGS, **options: Any) -> Recos:
    return build_recos(scenes, options.pop("encoder", Words()), settings, image_folder=folder, **options)


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def toy(points: dict[str, tuple[float, float]], tmp_path: Path, **columns: Any) -> tuple[cl.Dataset, str]:
    """Images at points of a plane, two captions each at the same point; nothing but stored vectors."""
    dataset = cl.Dataset.of({image: [f"{image} one", f"{image} two"] for image in points}, images=columns)
    vectors = np.array(list(points.values()))
    cl.Embeddings(dataset.image_ids, vectors, model="toy").save(tmp_path / "vectors" / "images")
    cl.Embeddings(dataset.caption_ids, np.repeat(vectors, 2, axis=0), model="toy").save(
        tmp_path / "vectors" / "captions"
    )
    return dataset, f"file:{tmp_path / 'vectors'}"


def angle(degrees: float) -> tuple[float, float]:
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
