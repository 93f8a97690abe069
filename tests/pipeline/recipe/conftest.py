"""The folder that the tests of recipes work in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosslens.values import Dataset, Embeddings


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A folder with a dataset, embeddings and scores in every form."""
    dataset = Dataset.of(
        {f"im{n}": [f"caption {n} {m}" for m in range(2)] for n in range(6)}, images={"kind": list("aabbcc")}
    )
    dataset.save(tmp_path / "data")
    random = np.random.default_rng(0)
    images = random.standard_normal((6, 8)).astype(np.float32)
    captions = (np.repeat(images, 2, axis=0) + 0.5 * random.standard_normal((12, 8))).astype(np.float32)
    np.save(tmp_path / "img.npy", images)
    np.save(tmp_path / "cap.npy", captions)
    np.save(tmp_path / "scores.npy", images @ captions.T)
    (tmp_path / "image-ids.txt").write_text("\n".join(dataset.image_ids) + "\n")
    (tmp_path / "reversed.txt").write_text("\n".join(reversed(dataset.image_ids)) + "\n")
    np.save(tmp_path / "reversed.npy", images[::-1])
    Embeddings(dataset.image_ids, images, model="m").save(tmp_path / "img-folder")
    return tmp_path
