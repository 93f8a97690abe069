"""Losses over all pairs of a batch: InfoNCE and SigLIP's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosslens.core import UsageError
from crosslens.train.losses.protocol import LOSSES, BatchOutput, Loss

if TYPE_CHECKING:
    from torch import Tensor


@LOSSES.register("infonce")
def infonce(*, temperature: float = 0.05) -> Loss:
    """InfoNCE, both directions: −log of the softmax of s(i, c) ÷ temperature over the batch, averaged.

    Other captions of the same image are left out of the denominators: they are no negatives.

    temperature: scores are divided by it
    """
    _above_zero(temperature)

    def loss(batch: BatchOutput) -> Tensor:
        import torch
        from torch.nn.functional import cross_entropy

        other = batch.relevant & ~torch.eye(len(batch.scores), dtype=torch.bool, device=batch.scores.device)
        logits = (batch.scores / temperature).masked_fill(other, -torch.inf)
        target = torch.arange(len(logits), device=logits.device)
        return (cross_entropy(logits, target) + cross_entropy(logits.T, target)) / 2

    return loss


@LOSSES.register("siglip")
def siglip(*, temperature: float = 0.1, bias: float = -10.0) -> Loss:
    """SigLIP's loss: every pair is its own yes-or-no question, −log σ(±(s ÷ temperature + bias)), summed per image.

    temperature: scores are divided by it
    bias: added to every pair; negative, since most pairs do not match
    """
    _above_zero(temperature)

    def loss(batch: BatchOutput) -> Tensor:
        from torch.nn.functional import logsigmoid

        logits = batch.scores / temperature + bias
        signed = logits.where(batch.relevant, -logits)
        return -logsigmoid(signed).sum() / len(logits)

    return loss


def _above_zero(temperature: float) -> None:
    if not temperature > 0:
        raise UsageError(f"temperature is {temperature}", fix="temperature must be above 0", option="temperature")
