"""Vectors on a device, rounded and exact; and one direction of a pair of blocks: what was counted and collected."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Any

import numpy as np

from crosslens.core import available_cores
from crosslens.engine import SilentProgress, in_threads
from crosslens.rank.merged import Lists
from crosslens.rank.scorers import rounding_bound
from crosslens.storage import Array, VectorBlocks
from crosslens.values import UNRANKED, Relevance

Tensor = Any

_BLOCK = 1 << 16
_SUM = 2.0**-23
_COMPARE = 12 * 2.0**-24
"""Of the exact score, which is rounded to float32, and of the comparison itself."""
_COMPARE_ROUNDED = 4 * _COMPARE
"""Lengths of rounded vectors may be twice as long as they are counted here, and thresholds are added to products."""
_SMALLEST = 2.0**-126
"""Numbers below it lose digits in float32, or become 0."""
_TINY, _HUGE = 1e-15, 1e15
_EXPONENT = 10
"""Vectors are scaled to about 2 to this power."""


@dataclass(frozen=True)
class Rounded:
    """Vectors times ``units``, powers of two, rounded to float16 and padded with zeros.

    ``lengths`` are those of the vectors, ``errors`` those of what rounding took or gave: upper bounds, in float64, of
    every vector as it was.
    """

    values: Tensor
    units: Tensor
    lengths: Tensor
    errors: Tensor

    @property
    def shared(self) -> bool:
        """Whether all vectors were multiplied by the same power of two."""
        return len(self.units) == 0 or bool((self.units == self.units[0]).all())


def lengths_of(vectors: Tensor) -> Tensor:
    """Euclidean lengths, in float64: upper bounds that are off by rounding errors at most."""
    import torch

    lengths = torch.linalg.vector_norm(vectors, dim=1).double()
    if len(lengths) and not bool(((lengths > _TINY) & (lengths < _HUGE)).all()):  # squares may vanish or overflow
        for start in range(0, len(vectors), _BLOCK):
            part = vectors[start : start + _BLOCK].double()
            torch.linalg.vector_norm(part, dim=1, out=lengths[start : start + len(part)])
    return lengths * (1 + vectors.shape[1] * _SUM)


def halves(vectors: Tensor, rows: int, columns: int, *, each: bool, spare: int = 0) -> Rounded:
    """Vectors in float16, padded to a multiple of ``rows`` vectors, and ``spare`` more, and ``columns`` dimensions.

    Powers of two bring the lengths near 2¹⁰, the longest one's or ``each`` vector's: nothing overflows, and what is
    2²⁴ times smaller is still told from 0. Vectors of length 1 all have the same.
    """
    import torch

    count, dimension = vectors.shape
    shape = (-(-count // rows) * rows + spare, -(-dimension // columns) * columns)
    values = torch.zeros(shape, dtype=torch.float16, device=vectors.device)
    lengths, errors = lengths_of(vectors), torch.zeros(count, dtype=torch.float64, device=vectors.device)
    # Lengths of 1, give or take a rounding error, lie in the middle between two powers.
    exponents = torch.frexp(lengths * sqrt(0.5))[1].long()
    longest = int(torch.frexp(torch.tensor(_largest(lengths), dtype=torch.float64) * sqrt(0.5))[1])
    exponents = torch.where(lengths > 0, exponents, longest) if each else torch.full_like(exponents, longest)
    exponents = _EXPONENT - torch.clamp(exponents, min=-100)
    units = ((exponents + 1023) << 52).view(torch.float64)
    for start in range(0, count, _BLOCK):
        part = slice(start, min(start + _BLOCK, count))
        scaled = vectors[part] * units[part, None].float()
        rounded = values[part, :dimension]
        rounded.copy_(scaled)
        errors[part] = torch.linalg.vector_norm(scaled.sub_(rounded), dim=1)  # the difference is exact
    return Rounded(values, units, lengths, errors / units * (1 + dimension * _SUM))


def product_slack(queries: Rounded, gallery: Rounded, dimension: int) -> Tensor:
    """How far products of each rounded query may be from the exact scores, and comparisons may be off."""
    length, error = (_largest(part) for part in (gallery.lengths, gallery.errors))
    a, b = queries.lengths + queries.errors, length + error
    sums = (dimension + 64) * _SUM + _COMPARE_ROUNDED
    return (queries.errors * length + a * error + sums * a * b) * (1 + 1e-6) + (dimension + 4) * _SMALLEST


def float32_slack(queries: Tensor, gallery: Tensor, dimension: int) -> Tensor:
    """How far float32 sums, in any order, may be from the exact scores, from the lengths of vectors."""
    relative = (rounding_bound(dimension) + _COMPARE) * (1 + 1e-6)
    return relative * queries * _largest(gallery) + (dimension + 4) * _SMALLEST


def _largest(values: Tensor) -> float:
    return float(values.max()) if len(values) else 0.0


_AT_ONCE = 1 << 18
_PAIRS = 16
"""Pairs of a program."""


def exact_scores(left: Tensor, right: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """One score per (row, column) pair."""
    import torch

    out = torch.empty(len(rows), dtype=torch.float32, device=left.device)
    if len(rows) == 0:
        return out
    rows, columns = rows.contiguous(), columns.contiguous()  # kernels read them one after the other
    if fused(left.device.type):
        from crosslens.rank.gpu.fused_kernels import exact_products

        dimension = left.shape[1]
        grid = (-(-len(rows) // _PAIRS),)
        exact_products[grid](
            left, right, rows, columns, out, len(rows), dimension=dimension, padded=lanes(dimension), size=_PAIRS
        )
        return out
    for start in range(0, len(rows), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        products = left[rows[part].long()].double().mul_(right[columns[part].long()])
        out[part] = products.sum(dim=1).float()
    return out


def lanes(dimension: int) -> int:
    """How many dimensions a program reads at a time: a power of two."""
    return min(256, 1 << (dimension - 1).bit_length())


@cache
def fused(device: str) -> bool:
    """Whether kernels can be compiled for the device."""
    import os

    if device != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return False
    try:
        import triton.tools.tensor_descriptor  # noqa: F401 - older versions lack it
    except ImportError:
        return False
    return True


def orderable(scores: Tensor) -> Tensor:
    """Integers that sort as the float32 scores do."""
    import torch

    bits = scores.view(torch.int32)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


LAST = 0x7FFFFFFF


def keys_of(scores: Tensor, items: Tensor) -> Tensor:
    """Integers that sort as float32 scores do, and of equal ones the lower item last."""
    # -0 + 0 is 0: the two are equal, and must not differ in their keys.
    return (orderable(scores + 0.0).long() << 32) + (LAST - items.long())


def items_of(keys: Tensor) -> Tensor:
    """The items in keys."""
    return LAST - (keys & 0xFFFFFFFF)


def best_items(scores: Tensor, keep: int) -> Tensor:
    """The columns of the highest scores of every row, best first, equal ones in ascending order."""
    import torch

    keys = keys_of(scores, torch.arange(scores.shape[1], device=scores.device))
    return items_of(torch.topk(keys, min(keep, scores.shape[1]), dim=1).values)


_FULL = 1 << 26
"""Undecided pairs and candidates that are kept at most before they are decided."""
_QUERIES, _ITEMS = 512, 1 << 16
"""Whose exact scores are all made at a time."""


@dataclass
class DeviceDirection:
    """The queries of one direction of a pair of blocks, on a device: what they look for, what was counted for them.

    ``numbers`` are those of the gallery's items within their block, ascending; the block begins at item ``start``.
    ``items`` are the numbers of the relevant items, some of which are not in the gallery: ``places`` say where in it
    they are, and are outside of it for others. ``scores`` are the exact scores of the relevant pairs, ``targets`` the
    same as a table (most relevant items × queries, infinite where a query has fewer). An item whose exact score is
    below ``floor`` cannot be in the list.
    ``full`` says that it is the exact score of the last of a whole list of items that come before all later ones.
    ``coarse`` and ``above`` count what is above a relevant item: by the table's and by the pairs' order.
    """

    relevance: Relevance
    queries: Tensor
    gallery: Tensor
    start: int
    keep: int
    offsets: Tensor
    owners: Tensor
    numbers: Tensor
    items: Tensor
    places: Tensor
    scores: Tensor
    targets: Tensor
    floor: Tensor
    full: Tensor
    coarse: Tensor
    above: Tensor
    tied: Tensor
    before: Tensor
    candidates: list[tuple[Tensor, Tensor]]

    @staticmethod
    def of(
        relevance: Relevance,
        queries: Tensor,
        gallery: Tensor,
        depth: int,
        *,
        start: int = 0,
        scores: Tensor | None = None,
        listed: tuple[Array, Array] | None = None,
        numbers: Tensor | None = None,
    ) -> DeviceDirection:
        """Nothing counted yet.

        The gallery begins at item ``start``. ``scores`` are those of the relevant pairs, needed where some items are in
        other blocks; ``listed`` the best items of other blocks, and their scores. ``numbers`` are those of the items
        where some of the block are left out.
        """
        import torch

        where, count = queries.device, len(queries)
        items, offsets = (
            torch.from_numpy(part.astype(np.int32)).to(where) for part in (relevance.items - start, relevance.offsets)
        )
        places = items
        if numbers is None:
            numbers = torch.arange(len(gallery), dtype=torch.int32, device=where)
        else:
            places = torch.searchsorted(numbers, items, out_int32=True)
            matches = numbers[places.clamp(max=len(numbers) - 1).long()] == items
            places = torch.where(matches, places, -1)
        owners = torch.repeat_interleave(
            torch.arange(count, dtype=torch.int32, device=where), offsets.diff(), output_size=len(items)
        )
        scores = exact_scores(queries, gallery, owners, items) if scores is None else scores.to(where)
        widest = max(1, int(np.diff(relevance.offsets).max(initial=1)))
        targets = torch.full((widest, count), torch.inf, dtype=scores.dtype, device=where)
        nth = torch.arange(len(owners), device=where) - offsets[owners.long()]
        targets[nth, owners.long()] = scores
        above, tied, before = (torch.zeros(len(owners), dtype=torch.int64, device=where) for _ in range(3))
        floor = torch.full((count,), -torch.inf, device=where)
        full = torch.zeros(count, dtype=torch.bool, device=where)
        if listed is not None:
            whole = ~np.isnan(listed[1][:, -1])
            floor = torch.from_numpy(np.where(whole, listed[1][:, -1], np.float32(-np.inf))).to(where)
            full = torch.from_numpy(whole & (listed[0].max(axis=1) < start)).to(where)
        coarse = torch.zeros(targets.shape, dtype=torch.int32, device=where)
        return DeviceDirection(
            relevance, queries, gallery, start, min(depth, len(gallery)), offsets, owners, numbers, items, places,
            scores, targets, floor, full, coarse, above, tied, before, [],
        )  # fmt: skip

    def exact(self, queries: Tensor, places: Tensor) -> Tensor:
        """The exact scores of pairs."""
        return exact_scores(self.queries, self.gallery, queries, places)

    def widths(self, block: int) -> Tensor:
        """The greatest number of relevant items in each block of queries."""

        lengths = self.offsets.diff()
        padded = lengths.new_zeros(-(-len(lengths) // block) * block)
        padded[: len(lengths)] = lengths
        return padded.view(-1, block).amax(dim=1)

    def count_exactly(self, pairs: Tensor, items: Tensor) -> None:
        """Count items against relevant pairs by exact scores."""
        import torch

        for start in range(0, len(pairs), _FULL):
            pair, item = pairs[start : start + _FULL].long(), items[start : start + _FULL]
            exact = self.exact(self.owners[pair], item)
            target = self.scores[pair]
            number = self.numbers[item.long()]
            tie = (exact == target) & (number != self.items[pair])
            ones = torch.ones((), dtype=torch.int64, device=pair.device)
            for counts, decided in (
                (self.above, exact > target), (self.tied, tie), (self.before, tie & (number < self.items[pair])),
            ):  # fmt: skip
                indices = pair[decided]
                counts.index_add_(0, indices, ones.expand(len(indices)))

    def collect(self, queries: Tensor, items: Tensor) -> None:
        """Note candidates for top lists; many of them are cut back to those that can still be listed."""
        self.candidates.append((queries.int(), items.int()))
        if len(self.candidates) > 1 and sum(len(part) for part, _ in self.candidates) > max(
            _FULL, 4 * self.keep * len(self.queries)
        ):
            queries, items, _, rank = self._ordered()
            in_list = rank < self.keep
            self.candidates = [(queries[in_list].int(), items[in_list].int())]

    def collect_from_all(self, queries: Tensor) -> None:
        """Note the best items of some queries, by the exact scores of the whole gallery."""
        for part in queries.split(_QUERIES):
            vectors = self.queries[part].double()
            for start in range(0, len(self.gallery), _ITEMS):
                scores = (vectors @ self.gallery[start : start + _ITEMS].double().T).float()
                items = best_items(scores, self.keep) + start
                self.collect(part[:, None].expand_as(items).reshape(-1), items.reshape(-1))

    def _ordered(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All candidates by query, then exact score, then index: queries, items, scores, rank in the query's list."""
        import torch

        queries, items = (torch.cat(parts) for parts in zip(*self.candidates, strict=True))
        scores = self.exact(queries, items)
        order = torch.argsort(keys_of(scores, items), descending=True)
        order = order[torch.argsort(queries[order], stable=True)]
        queries, items, scores = queries[order].long(), items[order], scores[order]
        counts = torch.bincount(queries, minlength=len(self.queries))
        first = torch.cumsum(counts, 0) - counts
        return queries, items, scores, torch.arange(len(queries), device=queries.device) - first[queries]

    def best(self) -> tuple[Tensor, Tensor]:
        """The best candidates of every query, best first, and their scores."""
        import torch

        queries, items, scores, rank = self._ordered()
        rows, shape = torch.nonzero(rank < self.keep)[:, 0], (len(self.queries), self.keep)
        queries, items, scores, rank = (part.index_select(0, rows) for part in (queries, items, scores, rank))
        table = torch.full(shape, UNRANKED, dtype=torch.int32, device=items.device)
        exact = torch.full(shape, torch.nan, dtype=scores.dtype, device=items.device)
        table[queries, rank] = self.numbers.index_select(0, items)
        exact[queries, rank] = scores
        return table, exact

    def counts(self) -> Tensor:
        """How many items of the block are above each relevant pair, tied with it, and tied before it."""
        import torch

        owners = self.owners.long()
        nth = torch.arange(len(owners), device=owners.device) - self.offsets[owners]
        return torch.stack([self.above + self.coarse[nth, owners], self.tied, self.before])

    def lists(self) -> Lists:
        """What was counted and collected, in this machine's memory."""
        return Lists(*(part.cpu().numpy() for part in (*self.best(), self.counts())))


_BYTES_AT_ONCE = 1 << 26
"""Bytes of vectors of a part."""
_READERS = 4
"""Threads that gather vectors: each has a part of the rows and of the columns on the device."""


def inference_on(where: Any) -> AbstractContextManager[Any]:
    """Inside, this thread computes on a device, without gradients."""
    import torch

    stack = ExitStack()
    stack.enter_context(torch.inference_mode())
    if where.type == "cuda":
        stack.enter_context(torch.cuda.device(where))
    return stack


def relevant_scores(relevant: Sequence[Relevance], scores_of: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
    """The scores of the relevant pairs of both directions, in the order of each; ``scores_of`` (rows, columns)."""
    rows, columns = relevant
    scores = scores_of(rows.rows, rows.items)
    order = np.lexsort((columns.rows, columns.items))
    if np.array_equal(columns.items[order], rows.rows) and np.array_equal(columns.rows[order], rows.items):
        flipped = np.empty_like(scores)
        flipped[order] = scores
        return scores, flipped
    return scores, scores_of(columns.items, columns.rows)


def pair_scores(vectors: tuple[VectorBlocks, VectorBlocks], rows: Array, columns: Array, where: Any) -> Array:
    """One score per (row, column) pair."""
    import torch

    scores = np.empty(len(rows), np.float32)
    size = max(1, _BYTES_AT_ONCE // (4 * vectors[0].shape[1]))

    def work(starts: Iterator[int], worker: int, stop: threading.Event) -> None:
        with inference_on(where):
            for start in starts:
                part = slice(start, min(start + size, len(rows)))
                left, right = (
                    torch.from_numpy(np.require(stored.rows(numbers[part]), np.float32, ["C", "W"])).to(where)
                    for stored, numbers in zip(vectors, (rows, columns), strict=True)
                )
                both = torch.arange(len(left), dtype=torch.int32, device=where)
                scores[part] = exact_scores(left, right, both, both).cpu().numpy()

    in_threads(range(0, len(rows), size), min(_READERS, available_cores()), SilentProgress(), work)
    return scores
