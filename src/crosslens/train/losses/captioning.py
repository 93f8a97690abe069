"""The second loss of VSRN: the caption must be predictable, word by word, from the regions of its image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crosslens.core import CrosslensError, UsageError
from crosslens.train.losses.protocol import LOSSES, BatchOutput, LearningLoss, Loss

if TYPE_CHECKING:
    from torch import Tensor

ENDS = 0
"""The word id of padding: what a decoder is given before the first word, and predicts after the last."""


@LOSSES.register("captioning", sized=True)
def captioning(*, words: int, regions: int, dimension: int = 512, word_dimension: int = 300) -> Loss:
    """What VSRN adds to the triplet loss: −Σ log p(word | the words before, the regions), the mean over captions.

    The decoder is a GRU that attends to the regions before every word. It is trained with the model and kept beside its
    weights; retrieval does not need it, and a stored model is loaded without it.

    dimension: of the decoder's state
    word_dimension: of the decoder's word embeddings
    """
    for name, value in {"dimension": dimension, "word_dimension": word_dimension}.items():
        if value < 1:
            raise UsageError(f"{name} is {value}", fix=f"{name} must be at least 1", option=name)
    decoder = _decoder(words, regions, dimension, word_dimension)

    def loss(batch: BatchOutput) -> Tensor:
        encodings = batch.images, batch.captions
        shapes = [[part.ndim for part in parts] for parts in encodings if isinstance(parts, tuple)]
        if shapes != [[2, 3], [2, 2]]:
            raise CrosslensError(
                "the loss captioning requires the model vsrn with a text tower that reads words",
                fix='write kind = "vsrn" and text = "gru" or "transformer" in [model]',
            )
        value: Tensor = decoder(batch.images[1], batch.captions[1])
        return value

    return LearningLoss(loss, {name.replace(".", "_"): weight for name, weight in decoder.named_parameters()})


def _decoder(words: int, regions: int, dimension: int, word_dimension: int) -> Any:
    """The module; losses are declared without importing torch."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, pad

    class Decoder(nn.Module):
        """Regions (B×R×d) and word ids (B×T) → the loss."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(words, word_dimension)
            self.first = nn.Linear(regions, dimension)
            self.query = nn.Linear(dimension, dimension)
            self.key = nn.Linear(regions, dimension, bias=False)  # one bias for query and key
            self.weight = nn.Linear(dimension, 1, bias=False)
            self.cell = nn.GRUCell(word_dimension + regions, dimension)
            self.out = nn.Linear(dimension, words)

        def forward(self, seen: Any, targets: Any) -> Any:
            inputs = self.embedding(pad(targets, (1, 0), value=ENDS))
            keys, state, states = self.key(seen), self.first(seen.mean(dim=1)).tanh(), []
            for position in range(inputs.shape[1]):
                attention = self.weight((keys + self.query(state)[:, None]).tanh()).softmax(dim=1)
                attended = (attention * seen).sum(dim=1)
                state = self.cell(torch.cat([inputs[:, position], attended], dim=1), state)
                states.append(state)
            # The end is predicted once, after the last word; what follows is no part of the caption.
            counted = pad(targets != ENDS, (1, 0), value=True)
            logits = self.out(torch.stack(states, dim=1)[counted])
            return cross_entropy(logits, pad(targets, (0, 1), value=ENDS)[counted], reduction="sum") / len(targets)

    return Decoder()
