"""An encoder: a source and settings in, an object that encodes texts, images or both out."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crosslens.encode import ENCODERS, load_encoder


class Letters:
    """Texts as the counts of their letters: an example, not a model."""

    revision = "1"
    """Changes whenever the vectors do: what the cache keeps is found by it."""

    def encode_texts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        counts = [[text.lower().count(letter) for letter in string.ascii_lowercase] for text in texts]
        return np.asarray(counts, np.float32)


@ENCODERS.register("letters", needs_source=False, extra=None)
def load_letters(source: str, settings: Any) -> Any:
    """Texts only: how often each letter occurs."""
    return load_encoder(Letters())
