"""How many items go through the model at once: found while encoding, not asked from the person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from crosslens.core.errors import CrosslensError, UsageError
from crosslens.encode.encoder import Array

T = TypeVar("T")

_START, _LARGEST = 16, 1_024
_WORTH = 1.05  # a batch twice as large must bring at least this much


class BatchSize:
    """A batch size that grows while that makes encoding faster, and halves where memory does not suffice."""

    def __init__(self, fixed: int | None = None, *, start: int = _START, largest: int = _LARGEST) -> None:
        if fixed is not None and fixed < 1:
            raise UsageError(f"batch size {fixed}", fix="use 1 or more, or leave it out")
        self.size = fixed or start
        self._largest = fixed or largest
        self._growing = fixed is None
        self._warm = False
        self._rate = 0.0

    def observe(self, items: int, work: float, seconds: float) -> None:
        """A batch of ``items`` is done; ``work`` is what it contained, in any unit that stays the same."""
        if not self._growing or items < self.size:
            return
        if not self._warm:  # the first batch pays for everything that happens once
            self._warm = True
            return
        rate = work / max(seconds, 1e-9)
        if rate < self._rate * _WORTH:
            self.size, self._growing = max(self.size // 2, 1), False
        elif self.size * 2 > self._largest:
            self._growing = False
        else:
            self.size, self._rate = self.size * 2, rate

    def too_large(self, items: int) -> None:
        """A batch of ``items`` did not fit into memory."""
        if items <= 1:
            raise CrosslensError(
                "not even one item fits into memory", fix="use --precision fp16, a smaller model, or --device cpu"
            )
        self.size, self._growing = max(items // 2, 1), False


def batches(items: Iterable[T], size: BatchSize) -> Iterator[list[T]]:
    """Lists of as many items as the size says at that moment."""
    stream = iter(items)
    while batch := list(islice(stream, size.size)):
        yield batch


def within_memory(encode: Callable[[Sequence[Any]], Array], items: Sequence[Any], size: BatchSize) -> list[Array]:
    """Encode items, in smaller and smaller parts if memory does not suffice for all at once."""
    try:
        return [encode(items)]
    except Exception as error:
        if not _is_memory(error):
            raise
    size.too_large(len(items))
    _free_memory()
    length = size.size
    parts = (items[start : start + length] for start in range(0, len(items), length))
    return [array for part in parts for array in within_memory(encode, part, size)]


def _is_memory(error: Exception) -> bool:
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text


def _free_memory() -> None:
    import gc
    import sys

    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
