"""Hinge losses with one margin for all (VSE++), and with margins from similarity (SAM)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosslens.core import UsageError
from crosslens.train.losses.protocol import LOSSES, BatchOutput, Loss, check_positive, check_sampling

if TYPE_CHECKING:
    from torch import Generator, Tensor

SUM, HARDEST = "sum", "hardest"
RANDOM, HARD, SOFT, ALL = "random", "hard", "soft", "all"


@LOSSES.register("triplet")
def triplet(*, margin: float = 0.2, negatives: str = HARDEST) -> Loss:
    """The triplet loss of VSE++: [margin − s(i, c) + s(i, c⁻)]₊ + [margin − s(i, c) + s(i⁻, c)]₊.

    margin: by how much a matching pair should be above a mismatched one
    negatives: `hardest`, the closest of the batch; or `sum`, all of it
    """
    if negatives not in (SUM, HARDEST):
        raise UsageError(f"negatives is {negatives!r}", fix=f"choose {SUM} or {HARDEST}", option="negatives")

    def loss(batch: BatchOutput) -> Tensor:
        own = batch.scores.diagonal()
        to_captions = (margin - own[:, None] + batch.scores).clamp(min=0).masked_fill(batch.relevant, 0)
        to_images = (margin - own[None, :] + batch.scores).clamp(min=0).masked_fill(batch.relevant, 0)
        if negatives == HARDEST:
            return to_captions.amax(dim=1).sum() + to_images.amax(dim=0).sum()
        return to_captions.sum() + to_images.sum()

    return loss


@LOSSES.register("sam", phi=True)
def adaptive_margin(*, sampling: str = RANDOM, tau: float = 3.0, largest: float = 1.0) -> Loss:
    """The Semantic Adaptive Margin (FIVE, equation 7): the triplet loss with margin (φ(G, c) − φ(G, c⁻)) ÷ τ.

    G are the captions of the image, c is its caption in the batch, c⁻ the very caption used as negative, or the caption
    paired with the negative image. A negative that says what the image's captions say is pushed away by less.

    sampling: which negative: `random`, `hard` (the closest in the batch), `soft` (the furthest); or `all`, the sum over
        the whole batch
    tau: the divisor τ; the paper tries 3, 5 and 10
    largest: margins are at most this
    """
    check_sampling(sampling, (RANDOM, HARD, SOFT, ALL))
    check_positive("tau", tau)

    def all_negatives(batch: BatchOutput) -> Tensor:
        own, phi = batch.scores.diagonal(), batch.phi_matrix()
        margins = ((phi.diagonal()[:, None] - phi) / tau).clamp(max=largest)  # of image i against caption j
        to_captions = (margins - own[:, None] + batch.scores).clamp(min=0)
        to_images = (margins.T - own[None, :] + batch.scores).clamp(min=0)
        return (to_captions + to_images).masked_fill(batch.relevant, 0).sum()

    def loss(batch: BatchOutput) -> Tensor:
        import torch

        own = batch.scores.diagonal()
        rows = torch.arange(len(own), device=own.device)
        caption = choose(batch.scores, batch.relevant, sampling, batch.generator)
        image = choose(batch.scores.T, batch.relevant.T, sampling, batch.generator)
        base = batch.phi(rows, rows)
        to_captions = ((base - batch.phi(rows, caption)) / tau).clamp(max=largest)
        to_images = ((base - batch.phi(rows, image)) / tau).clamp(max=largest)
        hinges = (to_captions - own + batch.scores[rows, caption]).clamp(min=0) + (
            to_images - own + batch.scores[image, rows]
        ).clamp(min=0)
        return hinges.masked_fill(batch.relevant.all(dim=1), 0).sum()  # a pair without any negative has no loss

    return all_negatives if sampling == ALL else loss


def choose(scores: Tensor, matches: Tensor, sampling: str, generator: Generator) -> Tensor:
    """One negative per row of ``scores`` (images × captions, or the other way round), never a match."""
    import torch

    if sampling == RANDOM:
        keys = torch.rand(scores.shape, generator=generator).to(scores.device)
        return keys.masked_fill(matches, -1.0).argmax(dim=1)
    sign = 1.0 if sampling == HARD else -1.0
    return (sign * scores.detach()).masked_fill(matches, -torch.inf).argmax(dim=1)
