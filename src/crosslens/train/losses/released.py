"""The Semantic Adaptive Margin as its published code computes it, which differs from its equation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosslens.train.losses.protocol import LOSSES, BatchOutput, Loss, check_positive, check_sampling
from crosslens.train.losses.triplet import HARD, RANDOM, SOFT

if TYPE_CHECKING:
    from torch import Generator, Tensor

MIXED = "mixed"


@LOSSES.register("sam-released", phi=True)
def released_margin(*, sampling: str = RANDOM, tau: float = 3.0) -> Loss:
    """The Semantic Adaptive Margin as published in code (`ContrastiveLossMetric`), for comparison; `sam` is equation 7.

    From the scores s two matrices are made, D(i, j) = s(i, j) − s(i, i) and E(i, j) = s(i, j) − s(j, j). In every row i
    of each a column is chosen, d(i) and e(i). The loss is the sum over i of [D(i, d(i)) + u(d(i))]₊ +
    [E(i, e(i)) + v(e(i))]₊, where u(k) is (φ(G, c) − φ(G, c of e(k))) ÷ τ of the pair k, and v(k) the same with d(k),
    both at most 1. It differs from equation 7 in this:

    - Margins are vectors, added to matrices and so to their columns: a hinge has the margin of the pair that its
      negative belongs to, computed with that pair's negative.
    - Each of the two terms has the margins of the other's negatives.
    - The second term chooses by rows as well: not an image for each caption, but a caption for each image.
    - `hard` takes the second smallest of a row and `soft` the second largest: the reverse of what the paper says.
      Second because the pair itself, 0, is expected to be first; where it is second, it is taken, and its hinge has no
      gradient.
    - Other captions of the same image are negatives.

    sampling: `random`; `hard`, the second smallest difference of a row; `soft`, the second largest; `mixed`, for each
        batch `hard` or `random`, equally likely
    tau: the divisor τ
    """
    check_sampling(sampling, (RANDOM, HARD, SOFT, MIXED))
    check_positive("tau", tau)

    def loss(batch: BatchOutput) -> Tensor:
        import torch

        own = batch.scores.diagonal()
        rows = torch.arange(len(own), device=own.device)
        to_own_caption, to_own_image = batch.scores - own[:, None], batch.scores - own[None, :]
        chosen = sampling
        if sampling == MIXED:
            chosen = HARD if float(torch.rand((), generator=batch.generator)) < 0.5 else RANDOM
        first, second = (choose_column(part, chosen, batch.generator) for part in (to_own_caption, to_own_image))
        base = batch.phi(rows, rows)
        first_margin = ((base - batch.phi(rows, second)) / tau).clamp(max=1)
        second_margin = ((base - batch.phi(rows, first)) / tau).clamp(max=1)
        hinges = (to_own_caption[rows, first] + first_margin[first]).clamp(min=0) + (
            to_own_image[rows, second] + second_margin[second]
        ).clamp(min=0)
        return hinges.sum()

    return loss


def choose_column(differences: Tensor, sampling: str, generator: Generator) -> Tensor:
    """For each row: any column but its own, or that of its second smallest or second largest difference."""
    import torch

    if sampling == RANDOM:
        keys = torch.rand(differences.shape, generator=generator).fill_diagonal_(-1.0)
        return keys.argmax(dim=1).to(differences.device)
    return differences.detach().topk(2, dim=1, largest=sampling == SOFT).indices[:, 1]
