"""Losses of distributions: PCME's soft contrastive loss, and the information bottleneck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crosslens.core import UsageError
from crosslens.train.losses.protocol import LOSSES, BatchOutput, Loss
from crosslens.train.models.protocol import Gaussian

if TYPE_CHECKING:
    from torch import Tensor


@LOSSES.register("pcme")
def soft_contrastive() -> Loss:
    """PCME's soft contrastive loss, summed over all pairs: −log p where they match, −log(1 − p) where they do not.

    p is the match probability of the pair, whose log-odds are the model's score.
    """

    def loss(batch: BatchOutput) -> Tensor:
        from torch.nn.functional import softplus

        _distribution("pcme", batch.images)
        signed = batch.scores.where(batch.relevant, -batch.scores)
        return softplus(-signed).sum()

    return loss


@LOSSES.register("vib")
def information_bottleneck() -> Loss:
    """The variational information bottleneck: KL(N(μ, σ²) ‖ N(0, 1)) = ½ Σ (μ² + σ² − 1 − log σ²), over all items.

    It keeps variances from vanishing; PCME gives it the weight 1e-5.
    """

    def loss(batch: BatchOutput) -> Tensor:
        return divergence(batch.images) + divergence(batch.captions)

    def divergence(encoding: Any) -> Tensor:
        item = _distribution("vib", encoding)
        return (item.mean.square() + item.log_variance.exp() - 1 - item.log_variance).sum() / 2

    return loss


def _distribution(loss: str, encoding: Any) -> Gaussian:
    """The encoding of a model with a variance per item; told by its shapes: it may come as a plain tuple."""
    shapes = [part.shape for part in encoding] if isinstance(encoding, tuple) else []
    if len(shapes) != 3 or len(shapes[0]) != 2 or shapes[0] != shapes[1]:
        raise UsageError(f"the loss {loss} needs a model with a variance per item", fix="use it with the model pcme")
    return Gaussian(*encoding)
