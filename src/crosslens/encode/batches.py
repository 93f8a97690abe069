"""How many items go through a model at once.

The size never depends on measured time or on what the machine is doing: the last bits of a vector depend on the batch
it was computed in, and equal inputs and settings have to give equal bits.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from crosslens.core import PIXELS_IN_FLIGHT, CrosslensError, UsageError, argument
from crosslens.encode.encoder import IMAGES, TEXTS, Array
from crosslens.encode.images import read_ahead

T = TypeVar("T")

PAIRS = "pairs"
_SIZES = {IMAGES: 32, TEXTS: 64, PAIRS: 16}
_ON_GPU = 8
"""A GPU is kept busy by batches so many times larger."""
_TOKENS = 16
"""Tokens of a usual text."""


class Batches:
    """Splits items into batches of one size, and a batch into parts where memory does not suffice for all of it."""

    def __init__(self, modality: str, model: Any, size: int | None = None) -> None:
        if size is not None and size < 1:
            raise UsageError(
                f"{argument('batch_size', size)}", fix="use 1 or more, or leave it out", option="batch_size"
            )
        self._modality, self._model, self._asked = modality, model, size
        self._fits: int | None = None

    @cached_property
    def size(self) -> int:
        """Asked for when there is an item: some models have a device only once they are loaded."""
        on_gpu = "cuda" in str(getattr(self._model, "device", ""))
        return self._asked or _SIZES[self._modality] * (_ON_GPU if on_gpu else 1)

    def of(self, items: Iterable[T], amount: Callable[[T], int] = lambda item: 0) -> Iterator[list[T]]:
        """Lists of as many items as the size says, or of fewer where their pictures are very large.

        ``amount``: the pixels of a picture, the tokens of a text, 0 where nobody counts them. Texts of a batch have the
        same number of tokens, so that none is padded, and are as many as have the tokens of usual texts together.
        """
        held, batch = 0, list[T]()
        for item in items:
            by_tokens = self._modality == TEXTS and amount(item) > 0
            most = self.size * _TOKENS if by_tokens else PIXELS_IN_FLIGHT.value
            full = len(batch) == self.size and (self._asked or not by_tokens)
            if batch and (full or held + amount(item) > most or (by_tokens and amount(item) != amount(batch[0]))):
                yield batch
                held, batch = 0, []
            batch.append(item)
            held += amount(item)
        if batch:
            yield batch

    def encoded(
        self, encode: Callable[[Sequence[Any]], Array], items: Iterable[T], content: Callable[[T], Any],
        amount: Callable[[T], int],
    ) -> Iterator[tuple[list[T], list[Array]]]:  # fmt: skip
        """Batches with their vectors, in order.

        ``at_once`` of a model is how many it encodes at once: small models use cores better with a batch on each.
        """

        def work(batch: list[T]) -> tuple[list[T], list[Array]]:
            return batch, self.run(encode, [content(item) for item in batch])

        batches = self.of(items, amount)
        for batch in batches:
            threads = getattr(self._model, "at_once", 1)  # asked now: some models are loaded for their first batch
            if threads == 1:
                yield work(batch)
            else:
                with _one_core_each():
                    yield from read_ahead(work, chain([batch], batches), threads, 2 * threads)

    def run(self, encode: Callable[[Sequence[Any]], Array], items: Sequence[Any]) -> list[Array]:
        """Encode one batch, in smaller and smaller parts if memory does not suffice; later batches start smaller."""
        size = min(self._fits or len(items), len(items))
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


@contextmanager
def _one_core_each() -> Iterator[None]:
    """Threads that begin meanwhile compute with one core each, as far as it is torch that computes."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    try:
        if torch:
            torch.set_num_threads(1)
        yield
    finally:
        if torch:
            torch.set_num_threads(before)


def _is_out_of_memory(error: Exception) -> bool:
    text = str(error).lower()  # torch and onnxruntime have no class of their own for it on every device
    return isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text


def _free_memory() -> None:
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
