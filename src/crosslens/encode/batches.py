"""How many items go through a model at once.

The size never depends on measured time or on what the machine is doing: the last bits of a vector depend on the batch
it was computed in, and equal inputs and settings have to give equal bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from crosslens.core import PIXELS_IN_FLIGHT, CrosslensError, UsageError, argument
from crosslens.encode.encoder import IMAGES, TEXTS, Array

T = TypeVar("T")

PAIRS = "pairs"
_SIZES = {IMAGES: 32, TEXTS: 64, PAIRS: 16}
_ON_GPU = 8
"""A GPU is kept busy by batches so many times larger."""


class Batches:
    """Splits items into batches of one size, and a batch into parts where memory does not suffice for all of it."""

    def __init__(self, modality: str, model: Any, size: int | None = None) -> None:
        if size is not None and size < 1:
            raise UsageError(
                f"{argument('batch_size', size)}", fix="use 1 or more, or leave it out", option="batch_size"
            )
        on_gpu = "cuda" in str(getattr(model, "device", ""))
        self.size = size or _SIZES[modality] * (_ON_GPU if on_gpu else 1)
        self._fits = self.size

    def of(self, items: Iterable[T], pixels: Callable[[T], int] = lambda item: 0) -> Iterator[list[T]]:
        """Lists of as many items as the size says, or of fewer where their pictures are very large."""
        most, held = PIXELS_IN_FLIGHT.value, 0
        batch: list[T] = []
        for item in items:
            if batch and (len(batch) == self.size or held + pixels(item) > most):
                yield batch
                batch, held = [], 0
            batch.append(item)
            held += pixels(item)
        if batch:
            yield batch

    def run(self, encode: Callable[[Sequence[Any]], Array], items: Sequence[Any]) -> list[Array]:
        """Encode one batch, in smaller and smaller parts if memory does not suffice; later batches start smaller."""
        size = min(self._fits, len(items))
        try:
            return [encode(items[start : start + size]) for start in range(0, len(items), size)]
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
        if size <= 1:
            raise CrosslensError(
                "one item alone does not fit into memory",
                fix=f"use {argument('precision', 'fp16')}, a smaller model, or {argument('device', 'cpu')}",
                code="out-of-memory",
            )
        self._fits = size // 2
        _free_memory()
        return self.run(encode, items)


def _is_out_of_memory(error: Exception) -> bool:
    text = str(error).lower()  # torch and onnxruntime have no class of their own for it on every device
    return isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text


def _free_memory() -> None:
    import gc
    import sys

    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
