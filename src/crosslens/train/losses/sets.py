"""Losses on the vectors themselves: MMD between images and captions, and diversity within an item (PVSE, DivE)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crosslens.core import UsageError
from crosslens.train.losses.protocol import LOSSES, BatchOutput, Loss
from crosslens.train.models.protocol import EmbeddingSet

if TYPE_CHECKING:
    from torch import Tensor

GRAM, GAUSSIAN = "gram", "gaussian"


@LOSSES.register("mmd")
def mmd(*, gamma: float = 0.0) -> Loss:
    """Maximum mean discrepancy of all image and all caption vectors of the batch: mean k(x, x′) − 2 k(x, y) + k(y, y′).

    The kernel is k(x, y) = exp(−γ ‖x − y‖), as in the published code of PVSE and DivE: the distance is not squared.

    gamma: γ; 0 is 1 ÷ dimension, as in PVSE; DivE has 0.5
    """
    if not gamma >= 0:
        raise UsageError(f"gamma is {gamma}", fix="gamma must be at least 0", option="gamma")

    def loss(batch: BatchOutput) -> Tensor:
        import torch

        images, captions = vectors_of(batch.images), vectors_of(batch.captions)
        factor = gamma or 1 / images.shape[-1]

        def kernel(first: Tensor, second: Tensor) -> Any:
            return torch.exp(-factor * torch.cdist(first, second)).mean()

        value: Tensor = kernel(images, images) - 2 * kernel(images, captions) + kernel(captions, captions)
        return value

    return loss


def vectors_of(encoding: Any) -> Tensor:
    """All vectors of a batch: n×d. Of a tuple the first entry holds them (vectors of a set, the mean of a Gaussian)."""
    tensor: Tensor = encoding[0] if isinstance(encoding, tuple) else encoding
    return tensor.flatten(0, -2)


@LOSSES.register("diversity")
def diversity(*, form: str = GRAM, t: float = 2.0) -> Loss:
    """How alike the K residuals r of an item are, averaged over the batch; images and captions are added.

    `gram` is PVSE's: ‖G‖ ÷ K² (Frobenius), where G holds the cosines of different residuals and 0 on its diagonal.
    `gaussian` is DivE's: the mean over pairs of exp(−t ‖r − r′‖²), residuals of length 1. With K = 1 both are 0.

    form: `gram` or `gaussian`
    t: of `gaussian`: how fast it falls with distance
    """
    if form not in (GRAM, GAUSSIAN):
        raise UsageError(f"form is {form!r}", fix=f"choose {GRAM} or {GAUSSIAN}", option="form")
    if not t > 0:
        raise UsageError(f"t is {t}", fix="t must be above 0", option="t")

    def loss(batch: BatchOutput) -> Tensor:
        return likeness(batch.images) + likeness(batch.captions)

    def likeness(encoding: Any) -> Tensor:
        from torch.nn.functional import normalize

        residuals = normalize(_set_of(encoding).residuals, dim=-1)
        k = residuals.shape[1]
        if k == 1:
            return residuals.new_zeros(())
        cosines = (residuals @ residuals.transpose(1, 2)).flatten(1)[:, _off_diagonal(k)]
        value: Tensor = (
            cosines.norm(dim=1).mean() / k**2
            if form == GRAM
            else (2 * t * (cosines - 1)).exp().mean()  # ‖r − r′‖² = 2 − 2 r·r′
        )
        return value

    return loss


def _set_of(encoding: Any) -> EmbeddingSet:
    """The encoding of a model with several vectors per item; told by its shapes: it may come as a plain tuple."""
    shapes = [part.shape for part in encoding] if isinstance(encoding, tuple) else []
    if len(shapes) != 2 or len(shapes[0]) != 3 or shapes[0] != shapes[1]:
        raise UsageError(
            "the loss diversity needs a model with several vectors per item", fix="use it with pvse or dive"
        )
    return EmbeddingSet(*encoding)


def _off_diagonal(k: int) -> list[int]:
    """The entries of a flattened k×k matrix that are not on its diagonal."""
    return [entry for entry in range(k * k) if entry % (k + 1)]
