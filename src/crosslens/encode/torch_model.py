"""What every encoder that runs on torch shares: the device, the precision, and numpy at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from crosslens.core import MissingExtraError, UsageError, argument
from crosslens.encode.encoder import Array
from crosslens.encode.options import EncodeOptions


def torch_or_raise(purpose: str) -> Any:
    """The torch module."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(purpose, "torch", "encoders") from error
    return torch


class Compute:
    """A device and a precision to compute in."""

    def __init__(self, options: EncodeOptions, purpose: str) -> None:
        self.torch = torch = torch_or_raise(purpose)
        try:
            self.device = torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
            torch.zeros(1, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise UsageError(
                f"cannot use the device {options.device!r}: {str(error).splitlines()[0]}",
                fix=f"leave {argument('device')} out, or use 'cpu'",
            ) from error
        self.dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[options.precision]

    def moved(self, model: Any) -> Any:
        """The model there, in that precision, ready to infer."""
        return model.to(device=self.device, dtype=self.dtype).eval()

    def inputs(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Tensors there; numbers with a fraction in that precision, token ids and masks as they are."""
        return {
            name: value.to(self.device, self.dtype if value.is_floating_point() else value.dtype)
            for name, value in values.items()
        }

    def numpy(self, tensor: Any) -> Array:
        """A tensor as a float32 array."""
        array: Array = tensor.detach().float().cpu().numpy()
        return array


def weights_revision(model: Any) -> str:
    """A hash of a torch model's weights, for libraries that do not say where they took them from."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        digest.update(tensor.detach().float().cpu().contiguous().numpy().data)
    return digest.hexdigest()
