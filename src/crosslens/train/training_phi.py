"""φ of the training captions: what losses with adaptive margins ask of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.core import CrosslensError, Progress
from crosslens.similarity import prepare_dataset
from crosslens.train.inputs.feature_sets import Split
from crosslens.train.losses.protocol import Phi

Array = np.ndarray[Any, Any]


class TrainingPhi:
    """A φ prepared for the training split; with an empty name, asking for it raises."""

    def __init__(self, name: str, split: Split, *, threads: int | None, progress: Progress) -> None:
        self._prepared = prepare_dataset(split.dataset, name, threads=threads, progress=progress) if name else None

    def of_batch(self, image_rows: Array, caption_rows: Array, device: Any) -> Phi:
        """φ of pairs of a batch, whose images and captions are these rows of the split."""
        import torch

        def phi(images: Any, captions: Any) -> Any:
            if self._prepared is None:
                raise CrosslensError("a loss asks for φ without saying so", fix="register it with phi=True")
            values = self._prepared.pairs(image_rows[images.cpu().numpy()], caption_rows[captions.cpu().numpy()])
            return torch.from_numpy(np.asarray(values, np.float32)).to(device)

        return phi
