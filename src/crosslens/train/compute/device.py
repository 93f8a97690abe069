"""Where and how a training computes: device, threads, precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from crosslens.core import MissingExtraError


def require_torch() -> None:
    """Raise unless the packages of the extra ``train`` are there."""
    try:
        import safetensors.torch  # noqa: F401  # imports torch
    except ImportError as error:
        package = "safetensors" if str(error.name).startswith("safetensors") else "torch"
        raise MissingExtraError("training", package, "train") from error


@contextmanager
def thread_limit(count: int | None) -> Iterator[None]:
    """Compute with so many threads; None: as many as torch chooses."""
    import torch

    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seed_generators(seed: int, device: Any) -> None:
    """Seed what draws on this device, and on the CPU.

    ``torch.manual_seed`` also puts calls off for devices that are not in use, each with the whole stack as text: on a
    CPU that is a noticeable part of a small step, more of it the deeper the stack.
    """
    import torch

    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def precision_context(precision: str, device: Any) -> AbstractContextManager[Any]:
    """Inside, a model computes in this precision; its weights stay float32."""
    import torch

    if precision == "fp32":
        return nullcontext()
    autocast: AbstractContextManager[Any] = torch.autocast(device.type, torch.bfloat16)
    return autocast
