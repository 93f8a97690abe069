"""Processes that train one model together: each encodes its share of a batch, and the loss is over all of it.

Every process knows the whole batch's scores and computes the same loss. Backwards, each follows its own share; the
gradients are added, and all take the same step. So the result is that of one process, up to rounding (dropout draws
other numbers, and normalisation over a batch sees a share of it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import CrosslensError
from crosslens.train.stored.trained_state import LOSS

Array = np.ndarray[Any, Any]


class PeerLostError(CrosslensError):
    """Another process of the group is gone."""


@dataclass(frozen=True)
class Group:
    """This process among ``size``."""

    rank: int = 0
    size: int = 1
    device: Any = None
    asked_to_stop: Callable[[], bool] = lambda: False

    @property
    def leads(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    def share(self, rows: Array) -> Array:
        """The rows that this process encodes."""
        return np.array_split(rows, self.size)[self.rank]

    def gather(self, encoding: Any, *, add_gradients: bool = False) -> Any:
        """The encodings of the whole batch, in its order; a tensor, or a tuple of such.

        Backwards, this process' share gets the gradient of this process' loss or, with ``add_gradients``, the sum of
        all processes' gradients.
        """
        if self.size == 1:
            return encoding
        if isinstance(encoding, tuple):
            return tuple(self.gather(part, add_gradients=add_gradients) for part in encoding)
        return self._gathered(encoding, add_gradients)

    def _gathered(self, own: Any, add_gradients: bool) -> Any:
        import torch
        from torch.nn.functional import pad

        shapes = [torch.zeros(own.ndim, dtype=torch.int64, device=self.device) for _ in range(self.size)]
        self._call("all_gather", shapes, torch.tensor(own.shape, dtype=torch.int64, device=self.device))
        sizes = torch.stack(shapes).cpu().numpy()
        largest = sizes.max(axis=0)
        # Another share of the captions may have longer ones; padding is 0, as in every encoding of words.
        widths = [width for axis in range(own.ndim - 1, 0, -1) for width in (0, int(largest[axis]) - own.shape[axis])]
        own = pad(own, widths) if any(widths) else own
        sent = own.detach().to(self.device)  # lengths may be on the CPU
        if len(own) < largest[0]:
            sent = torch.cat([sent, sent.new_zeros(int(largest[0]) - len(own), *own.shape[1:])])
        kind = sent.dtype
        if kind in (torch.bfloat16, torch.float16, torch.bool):  # not every backend sends these
            sent = sent.float()
        parts = [torch.empty_like(sent) for _ in range(self.size)]
        self._call("all_gather", parts, sent.contiguous())
        live = [part[: sizes[rank, 0]].to(own.device, kind) for rank, part in enumerate(parts)]
        live[self.rank] = own
        whole: Any = torch.cat(live)
        if add_gradients and whole.requires_grad:
            whole.register_hook(self._added)
        return whole

    def _added(self, gradient: Any) -> Any:
        gradient = gradient.contiguous().clone()
        self.add(gradient)
        return gradient

    def add(self, tensor: Any) -> None:
        """Replace a tensor by its sum over all processes."""
        if self.size > 1:
            self._call("all_reduce", tensor)

    def from_leader(self, number: float) -> float:
        """The first process' number, in all of them."""
        return float(self.add_array(np.array([number if self.leads else 0.0]))[0])

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """The first process runs the block before the others do: they find in caches what it has computed."""
        if not self.leads:
            self.from_leader(0)
        yield
        if self.leads:
            self.from_leader(0)

    def add_array(self, array: Array) -> Array:
        """The sum of an array over all processes."""
        import torch

        if self.size == 1:
            return array
        tensor = torch.from_numpy(array).to(self.device)
        self.add(tensor)
        total: Array = tensor.cpu().numpy()
        return total

    def add_gradients(self, model: Any) -> None:
        """Replace every gradient by its sum over all processes; those of the loss are complete in each."""
        import torch

        gradients = [
            parameter.grad
            for name, parameter in model.named_parameters()
            if parameter.grad is not None and not name.startswith(f"{LOSS}.")
        ]
        if self.size == 1 or not gradients:
            return
        flat: Any = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self.add(flat)
        for gradient, total in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(total.view_as(gradient))

    def is_stopped(self) -> bool:
        """Whether any process was asked to stop: the same answer in all."""
        import torch

        if self.size == 1:
            return self.asked_to_stop()
        total = torch.tensor([int(self.asked_to_stop())], device=self.device)
        self.add(total)
        return bool(total.item())

    def _call(self, name: str, *arguments: Any) -> None:
        import torch.distributed

        try:
            getattr(torch.distributed, name)(*arguments)
        except RuntimeError as error:
            raise PeerLostError(f"another process of the training is gone: {error}") from error
