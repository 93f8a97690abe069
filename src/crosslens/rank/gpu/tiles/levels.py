"""Ways to make tiles of scores, from the fastest to the exact one, and how far each may be off.

Half precision: inputs rounded to float16, products summed in float32, the sum times a power of two rounded to float16.
That last rounding keeps the order, so it needs no bound of its own: a threshold rounded down never lies above the tile
value of a score that reaches it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import frexp
from typing import Any

import numpy as np

from crosslens.rank.gpu.rounded import Rounded, float32_slack, halves, largest_length, product_slack
from crosslens.rank.scorers import Scorer

Tensor = Any

_HALF_BITS, _SINGLE_BITS = 11, 24
_LARGEST = 15
"""Half-precision tiles stay below 2 to this power; float16 ends at 2¹⁶."""
_ALIGNED = 8
_DOUBLE_ROWS = 2_048
"""Rows of a tile that are made in float64 at a time."""


@dataclass(frozen=True, eq=False)
class Level:
    """Tiles of scores times ``unit``, a power of two, as numbers of ``bits`` significant bits.

    ``slack`` bounds the error before that rounding: for the scores of each row and of each column. At an ``exact``
    level nothing is off.
    """

    tile: Callable[[slice, slice], Tensor]
    slack: tuple[Tensor, Tensor]
    unit: float = 1.0
    bits: int = _SINGLE_BITS
    exact: bool = False

    def at_least(self, scores: Tensor, axis: int, queries: Tensor | slice = slice(None)) -> Tensor:
        """What the tile holds at least where exact scores of these rows (axis 0) or columns (1) reach ``scores``."""
        return _rounded_down((scores.double() - self.slack[axis][queries]) * self.unit, self.bits)

    def at_most(self, scores: Tensor, axis: int, queries: Tensor | slice = slice(None)) -> Tensor:
        """What the tile holds at most where exact scores of these rows or columns do not exceed ``scores``."""
        return -self.at_least(-scores, axis, queries)

    def surely(self, values: Tensor, axis: int, queries: Tensor | slice) -> Tensor:
        """What the exact score is at least where a row or column of the tile holds ``values``."""
        values = values.double()
        if self.bits < _SINGLE_BITS:
            values = values - values.abs() * 2.0 ** (1 - self.bits) - 2.0**-24
        return _rounded_down(values / self.unit - self.slack[axis][queries], _SINGLE_BITS)


def _rounded_down(values: Tensor, bits: int) -> Tensor:
    """The largest numbers of so many significant bits that are not above the float64 ``values``, as float32."""
    import torch

    kind = torch.float16 if bits == _HALF_BITS else torch.float32
    nearest = values.to(kind)
    _, exponents = torch.frexp(values)
    # Half of what the last bit is worth: an exact power of two, made of bits, since other ways may round it.
    exponents = torch.clamp(exponents.long() - bits - 1, min=-25 if bits == _HALF_BITS else -150)
    step = ((exponents + 1023) << 52).view(torch.float64)
    lower = torch.where(nearest.double() <= values, nearest, (values - step).to(kind))
    return lower.float()


def product_levels(left: Tensor, right: Tensor, *, half: bool) -> list[Level]:
    """Inner products of float32 vectors: in half precision, if asked for, in float32 and in float64."""
    import torch

    if half:
        first, second = halves(left, _ALIGNED, _ALIGNED), halves(right, _ALIGNED, _ALIGNED)
    else:
        first, second = (Rounded(vectors, 1.0, largest_length(vectors), 0.0) for vectors in (left, right))
    buffer = _Buffer(torch.float32, left.device)  # one for both: of a tile, only the last level is looked at
    levels = [_single_level(first, second, left, right, buffer), _double_level(left, right, buffer)]
    return [_half_level(first, second, left, right), *levels] if half else levels


def _half_level(first: Rounded, second: Rounded, left: Tensor, right: Tensor) -> Level:
    import torch

    longest = (first.length + first.error) * (second.length + second.error)
    unit = 2.0 ** (_LARGEST - frexp(longest)[1]) if longest > 0 else 1.0
    factor = unit / first.unit / second.unit
    buffer = _Buffer(torch.float16, left.device)

    def tile(rows: slice, columns: slice) -> Tensor:
        width = columns.stop - columns.start
        a = first.values[rows]
        b = second.values[columns.start : columns.start + -(-width // _ALIGNED) * _ALIGNED]
        scores = buffer.of(len(a), len(b))
        scores.addmm_(a, b.T, beta=0, alpha=factor)
        return scores[:, :width]

    return Level(tile, _uniform(product_slack(first, second, first.values.shape[1]), left, right), unit, _HALF_BITS)


def _single_level(first: Rounded, second: Rounded, left: Tensor, right: Tensor, buffer: _Buffer) -> Level:
    import torch

    def tile(rows: slice, columns: slice) -> Tensor:
        a, b = left[rows], right[columns]
        return torch.mm(a, b.T, out=buffer.of(len(a), len(b)))

    return Level(tile, _uniform(float32_slack(first, second, left.shape[1]), left, right))


def _double_level(left: Tensor, right: Tensor, buffer: _Buffer) -> Level:
    def tile(rows: slice, columns: slice) -> Tensor:
        a, b = left[rows], right[columns].double().T
        scores = buffer.of(len(a), b.shape[1])
        for start in range(0, len(a), _DOUBLE_ROWS):
            part = slice(start, start + _DOUBLE_ROWS)
            scores[part] = a[part].double() @ b
        return scores

    return Level(tile, _uniform(0.0, left, right), exact=True)


def scorer_levels(scorer: Scorer, where: Any) -> list[Level]:
    """Tiles that a scorer makes on the host, moved to a device; exact ones where those cannot decide."""
    import torch

    def tile(rows: slice, columns: slice) -> Tensor:
        return torch.from_numpy(scorer.tile(rows, columns)).to(where, copy=True)

    def exact(rows: slice, columns: slice) -> Tensor:
        height, width = rows.stop - rows.start, columns.stop - columns.start
        pairs = (
            np.repeat(np.arange(rows.start, rows.stop), width),
            np.tile(np.arange(columns.start, columns.stop), height),
        )
        return torch.from_numpy(scorer.exact(*pairs).reshape(height, width)).to(where)

    slack = tuple(
        torch.from_numpy(np.array(part, np.float64)).to(where) for part in (scorer.row_slack, scorer.column_slack)
    )
    none = (torch.zeros_like(slack[0]), torch.zeros_like(slack[1]))
    if scorer.precision is np.float32 and not (scorer.row_slack.any() or scorer.column_slack.any()):
        return [Level(tile, none, exact=True)]
    return [Level(tile, (slack[0], slack[1])), Level(exact, none, exact=True)]


def _uniform(slack: float, *sides: Tensor) -> tuple[Tensor, Tensor]:
    """The same for every row and column, in no memory."""
    import torch

    value = torch.full((1,), slack, dtype=torch.float64, device=sides[0].device)
    return value.expand(len(sides[0])), value.expand(len(sides[1]))


class _Buffer:
    """Memory for one tile, taken over by the next."""

    def __init__(self, kind: Any, device: Any) -> None:
        import torch

        self.values = torch.empty(0, dtype=kind, device=device)

    def of(self, height: int, width: int) -> Tensor:
        import torch

        if len(self.values) < height * width:
            self.values = torch.empty(height * width, dtype=self.values.dtype, device=self.values.device)
        return self.values[: height * width].view(height, width)


class _Precision:
    """The settings of products, which all threads of a process share: changed by the first, restored by the last."""

    names = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation")

    def __init__(self) -> None:
        self.lock, self.users = threading.Lock(), 0
        self.before: dict[str, Any] = {}

    def enter(self) -> None:
        import torch

        matmul = torch.backends.cuda.matmul
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.before = {name: getattr(matmul, name) for name in self.names if hasattr(matmul, name)}
                for name in self.before:
                    setattr(matmul, name, False)

    def leave(self) -> None:
        import torch

        with self.lock:
            self.users -= 1
            if self.users == 0:
                for name, value in self.before.items():
                    setattr(torch.backends.cuda.matmul, name, value)


_precision = _Precision()


@contextmanager
def full_precision() -> Iterator[None]:
    """Inside, products are summed in float32 and float32 inputs are not shortened: the bounds count on it."""
    _precision.enter()
    try:
        yield
    finally:
        _precision.leave()
