"""A small dataset with vectors whose captions are near their images."""

from __future__ import annotations

import numpy as np

import crosslens as cl


def world(images: int = 40, seed: int = 0, spread: float = 1.2):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 7, images)
    dataset = cl.Dataset.of(
        {f"im{i}": [f"caption {n} of image {i}" for n in range(counts[i])] for i in range(images)},
        images={"category": [["cat", "dog", "zebra"][i % 3] for i in range(images)]},
    )
    pictures = rng.standard_normal((images, 12)).astype(np.float32)
    texts = pictures[dataset.caption_image] + spread * rng.standard_normal((len(dataset.caption_ids), 12))
    return dataset, pictures, texts.astype(np.float32)
