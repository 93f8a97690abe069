"""How exactly a GPU multiplies matrices: settings of torch that the bounds of a pass count on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
