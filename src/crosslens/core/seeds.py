"""Random streams that depend on what they are for, never on order or thread count."""

from __future__ import annotations

import hashlib

import numpy as np


def derive_seed(seed: int, *keys: str | int) -> int:
    """A 64-bit seed for one purpose: the same run seed and keys give the same value everywhere."""
    text = "\x1f".join(str(key) for key in (seed, *keys))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def stream(seed: int, *keys: str | int) -> np.random.Generator:
    """A random generator of its own for the purpose named by ``keys``."""
    return np.random.Generator(np.random.Philox(derive_seed(seed, *keys)))
