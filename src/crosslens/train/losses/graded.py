"""InfoNCE with graded targets: a caption that says what the image's captions say is not wholly wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosslens.core import UsageError
from crosslens.train.losses.protocol import LOSSES, BatchOutput, Loss, check_positive

if TYPE_CHECKING:
    from torch import Tensor


@LOSSES.register("graded-infonce", phi=True)
def graded_infonce(*, temperature: float = 0.05, target_temperature: float = 1.0, share: float = 0.5) -> Loss:
    """InfoNCE whose targets know φ: −Σ t · log p, both directions, averaged.

    p is the softmax of s(i, c) ÷ temperature over the batch, as in `infonce`. Its target t is a mixture: (1 − share)
    for the match, and share times the softmax of φ(G, c) ÷ target_temperature over the batch, where G are the captions
    of the image. Other captions of the same image are left out, as in `infonce`, which this is where share is 0.

    temperature: scores are divided by it
    target_temperature: φ is divided by it; the smaller, the closer the targets come to the most similar pair alone
    share: how much of a target follows φ, from 0 to 1
    """
    check_positive("temperature", temperature)
    check_positive("target_temperature", target_temperature)
    if not 0 <= share <= 1:
        raise UsageError(f"share is {share}", fix="share must be from 0 to 1", option="share")

    def loss(batch: BatchOutput) -> Tensor:
        import torch

        match = torch.eye(len(batch.scores), dtype=torch.bool, device=batch.scores.device)
        other = batch.relevant & ~match
        logits = (batch.scores / temperature).masked_fill(other, -torch.inf)
        phi = (batch.phi_matrix().to(logits.dtype) / target_temperature).masked_fill(other, -torch.inf)

        def direction(axis: int) -> Tensor:
            target = (1 - share) * match + share * phi.softmax(axis)
            logs = logits.log_softmax(axis).masked_fill(other, 0)  # 0 · −∞ is no number
            return -(target * logs).sum() / len(logits)

        return (direction(1) + direction(0)) / 2

    return loss
