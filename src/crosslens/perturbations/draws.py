"""Random draws that depend on the seed and on what they are for, and are quick to begin.

A numpy generator takes longer to set up than most captions take to change; here a hash is the generator, so that the
same key gives the same draws on every machine and in every version of every library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from struct import unpack
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """A stream of random draws for one purpose, named by ``keys``."""

    __slots__ = ("_block", "_key", "_pool")

    def __init__(self, seed: int, *keys: str) -> None:
        self._key = "\x1f".join((str(seed), *keys)).encode("utf-8", "surrogatepass")
        self._block = 0
        self._pool: list[int] = []

    def below(self, count: int) -> int:
        """One of 0 … ``count`` − 1, each as likely (to within 2⁻⁶⁴)."""
        pool = self._pool or self._refilled()
        return (pool.pop() * count) >> 64

    def choice(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def favourite(self, options: Iterable[T]) -> T:
        """The option that comes first in an order of all that could be: another option changes it only by beating it.

        Unlike :meth:`choice` it uses up no draw: the same stream likes the same options (told apart by ``str``).
        """
        return min(options, key=lambda option: blake2b(self._key + f"\x1e{option}".encode(), digest_size=16).digest())

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in a random order."""
        order = list(values)
        pool = self._pool
        for last in range(len(order) - 1, 0, -1):
            pool = pool or self._refilled()
            other = (pool.pop() * (last + 1)) >> 64  # as below() draws, without the call
            order[last], order[other] = order[other], order[last]
        return order

    def fraction(self) -> float:
        """A number from 0 up to, but below, 1."""
        return self.below(1 << 53) / (1 << 53)

    def _refilled(self) -> list[int]:
        """The next eight words of the stream."""
        digest = blake2b(self._key, salt=self._block.to_bytes(8, "little")).digest()
        self._block += 1
        self._pool = list(unpack("<8Q", digest))
        return self._pool
