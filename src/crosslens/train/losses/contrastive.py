"""Losses over all pairs of a batch: InfoNCE and SigLIP's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crosslens.core import UsageError
from crosslens.train.losses.protocol import LOSSES, BatchOutput, LearningLoss, Loss, check_positive

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter


LARGEST_SCALE = 100.0
"""A learnt temperature falls to one over this at most, as CLIP's."""


@LOSSES.register("infonce")
def infonce(
    *, temperature: float = 0.05, learnt: bool = False, self_targets: float = 0.0, target_temperature: float = 0.1
) -> Loss:
    """InfoNCE, both directions: −log of the softmax of s(i, c) ÷ temperature over the batch, averaged.

    Other captions of the same image are left out of the denominators: they are no negatives. With `self_targets` the
    target is a mixture: that share of it is the softmax, over the batch, of how similar the model finds the captions
    and the images among themselves, (c·c′ + i·i′) ÷ 2 ÷ target_temperature; no gradient flows through it.

    temperature: scores are divided by it
    learnt: the temperature is trained, from that value on, down to 0.01 at most
    self_targets: the share of a target that follows the model's own similarities, from 0 to 1
    target_temperature: those similarities are divided by it
    """
    check_positive("temperature", temperature)
    check_positive("target_temperature", target_temperature)
    if not 0 <= self_targets <= 1:
        raise UsageError(
            f"self_targets is {self_targets}", fix="self_targets must be from 0 to 1", option="self_targets"
        )
    parameters = _zeros("temperature") if learnt else {}

    def loss(batch: BatchOutput) -> Tensor:
        import torch

        match = torch.eye(len(batch.scores), dtype=torch.bool, device=batch.scores.device)
        other = batch.relevant & ~match
        logits = (batch.scores * _scale(temperature, parameters)).masked_fill(other, -torch.inf)
        target = match.to(logits.dtype)
        if self_targets:
            similar = (own_similarity(batch) / target_temperature).masked_fill(other, -torch.inf)
            target = (1 - self_targets) * target + self_targets * similar.softmax(dim=1)
        both = (logits.log_softmax(dim=1), logits.T.log_softmax(dim=1))
        # 0 · −∞ is no number. The target is the same in both directions: similarities are symmetric.
        total: Tensor = -sum((target * logs.masked_fill(other, 0)).sum() for logs in both) / (2 * len(logits))
        return total

    return LearningLoss(loss, parameters)


def own_similarity(batch: BatchOutput) -> Tensor:
    """B×B: how similar a model finds pairs, the mean over their captions and over their images; without gradient."""
    images, captions = batch.images, batch.captions
    if not all(getattr(encoded, "ndim", 0) == 2 for encoded in (images, captions)):
        raise UsageError(
            "self_targets asks for one vector per image and per caption, and the model has others",
            fix="leave self_targets out, or train a model such as vse", option="self_targets",
        )  # fmt: skip
    images, captions = images.detach(), captions.detach()
    similar: Tensor = (images @ images.T + captions @ captions.T).to(batch.scores.dtype) / 2
    return similar


@LOSSES.register("siglip")
def siglip(*, temperature: float = 0.1, bias: float = -10.0, learnt: bool = False) -> Loss:
    """SigLIP's loss: every pair is its own yes-or-no question, −log σ(±(s ÷ temperature + bias)), summed per image.

    temperature: scores are divided by it
    bias: added to every pair; negative, since most pairs do not match
    learnt: temperature and bias are trained, from these values on
    """
    check_positive("temperature", temperature)
    parameters = _zeros("temperature", "bias") if learnt else {}

    def loss(batch: BatchOutput) -> Tensor:
        from torch.nn.functional import logsigmoid

        logits = batch.scores * _scale(temperature, parameters) + (bias + parameters.get("bias", 0.0))
        signed = logits.where(batch.relevant, -logits)
        return -logsigmoid(signed).sum() / len(logits)

    return LearningLoss(loss, parameters)


def _zeros(*names: str) -> dict[str, Parameter]:
    """Learnt numbers as differences from the values in the recipe: where nothing pulls, weight decay leads there."""
    import torch

    return {name: torch.nn.Parameter(torch.zeros(())) for name in names}


def _scale(temperature: float, parameters: Mapping[str, Parameter]) -> Any:
    """What scores are multiplied by; its logarithm is what is learnt."""
    if "temperature" not in parameters:
        return 1 / temperature
    return (parameters["temperature"].exp() / temperature).clamp(max=max(LARGEST_SCALE, 1 / temperature))
