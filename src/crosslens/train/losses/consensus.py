"""The losses of CVSE beside that of its fused vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from crosslens.core import CrosslensError
from crosslens.train.losses.protocol import LOSSES, BatchOutput, Loss
from crosslens.train.losses.triplet import HARDEST, triplet

if TYPE_CHECKING:
    from torch import Tensor


@LOSSES.register("consensus")
def consensus(
    *,
    margin: float = 0.2,
    negatives: str = HARDEST,
    instance: float = 5.0,
    concepts: float = 1.0,
    agreement: float = 2.0,
) -> Loss:
    """What CVSE adds to the triplet loss: the same of both levels, and Σ KL(concepts of caption i ‖ of image i).

    margin: as of the triplet loss
    negatives: as of the triplet loss
    instance: weight of the triplet loss of the items' own vectors
    concepts: weight of the triplet loss of the vectors made of concepts
    agreement: weight of the Kullback–Leibler divergence, summed over the batch
    """
    hinges = triplet(margin=margin, negatives=negatives)

    def loss(batch: BatchOutput) -> Tensor:
        if not (isinstance(batch.images, tuple) and len(batch.images) == 4):
            raise CrosslensError("the loss consensus requires the model cvse", fix='write kind = "cvse" in [model]')
        (_, own_image, concept_image, log_image), (_, own_caption, concept_caption, log_caption) = (
            batch.images, batch.captions,
        )  # fmt: skip
        divergence = (log_caption.exp() * (log_caption - log_image)).sum()
        total: Tensor = (
            instance * hinges(replace(batch, scores=own_image @ own_caption.T))
            + concepts * hinges(replace(batch, scores=concept_image @ concept_caption.T))
            + agreement * divergence
        )
        return total

    return loss
