"""Small trained image–text models for the panel: two towers, InfoNCE, a minute each on one core.

The image tower reads an ImageNet network's features, of the whole photo or of the nine parts of a 3×3 grid. The text
tower maps a sentence encoder's vectors, or learns vectors of words from nothing. One caption of every photo of a batch
is drawn anew in every epoch. Weights are kept as plain arrays in a folder; a second call reads them.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Array = np.ndarray[Any, Any]

SEED = 14
HIDDEN, JOINT = 512, 256
BATCH, EPOCHS, RATE, DECAY, DROPOUT = 500, 20, 1e-3, 0.05, 0.3
RAREST = 3
"""A word that fewer captions have gets no vector: it would be learnt from one photo."""


@dataclass(frozen=True)
class Head:
    """A trained model: its towers as they were after the last epoch."""

    network: TwoTowers
    vocabulary: dict[str, int] | None

    def images(self, features: Array) -> Array:
        """One vector of length 1 per photo."""
        with torch.no_grad():
            return unit(self.network.image(as_tensor(features))).numpy()

    def captions(self, texts: Sequence[str], vectors: Array) -> Array:
        """One vector of length 1 per caption; from its words where the model learnt words."""
        inputs = as_tensor(vectors) if self.vocabulary is None else word_rows(texts, self.vocabulary)
        with torch.no_grad():
            return unit(self.network.text(inputs)).numpy()


class GridTower(nn.Module):
    """Nine vectors per photo: each through one layer, pooled by learnt weights, then a second layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, HIDDEN // 2)
        self.weight = nn.Linear(HIDDEN // 2, 1)
        self.second = nn.Linear(HIDDEN // 2, JOINT)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, parts: Tensor) -> Tensor:
        """Photos × parts × features → photos × joint space."""
        hidden = nn.functional.gelu(self.first(self.drop(parts)))
        pooled = (torch.softmax(self.weight(hidden), dim=1) * hidden).sum(dim=1)
        return self.second(self.drop(pooled))


class TwoTowers(nn.Module):
    """Standardised features and caption inputs into one space."""

    def __init__(self, features: tuple[int, ...], text: nn.Module) -> None:
        super().__init__()
        if len(features) == 2:
            tower: nn.Module = GridTower(features[-1])
        else:
            tower = nn.Sequential(nn.Dropout(DROPOUT), nn.Linear(features[0], HIDDEN), nn.GELU(), nn.Dropout(DROPOUT),
                                  nn.Linear(HIDDEN, JOINT))  # fmt: skip
        self.register_buffer("centre", torch.zeros(features))
        self.register_buffer("spread", torch.ones(features))
        self.tower = tower
        self.text = text
        self.sharpness = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def image(self, features: Tensor) -> Tensor:
        """Features as they are stored → joint space."""
        return self.tower((features - self.centre) / self.spread)

    def loss(self, features: Tensor, texts: Tensor) -> Tensor:
        """InfoNCE in both directions; the other photos and captions of the batch are the negatives."""
        scores = unit(self.image(features)) @ unit(self.text(texts)).T * self.sharpness.exp().clamp(max=100)
        right = torch.arange(len(scores))
        entropy = nn.functional.cross_entropy
        return (entropy(scores, right) + entropy(scores.T, right)) / 2


def unit(vectors: Tensor) -> Tensor:
    """Vectors of length 1."""
    return nn.functional.normalize(vectors, dim=-1)


def as_tensor(values: Array) -> Tensor:
    """The array in single precision."""
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


# Words


def words_of(text: str) -> list[str]:
    """Lower-case words."""
    return re.findall(r"[a-z']+", text.lower())


def learn_vocabulary(texts: Sequence[str]) -> dict[str, int]:
    """Word → number from 1, the most frequent first."""
    counts = Counter(word for text in texts for word in set(words_of(text)))
    frequent = sorted((-count, word) for word, count in counts.items() if count >= RAREST)
    return {word: number for number, (_, word) in enumerate(frequent, start=1)}


def word_rows(texts: Sequence[str], vocabulary: dict[str, int]) -> Tensor:
    """Captions × longest caption: the numbers of the known words, filled up with 0."""
    known = [[vocabulary[word] for word in words_of(text) if word in vocabulary] for text in texts]
    rows = torch.zeros((len(texts), max(map(len, known))), dtype=torch.long)
    for row, own in enumerate(known):
        rows[row, : len(own)] = torch.tensor(own, dtype=torch.long)
    return rows


# Training


def train(features: Array, texts: Sequence[str], vectors: Array | None, caption_image: Array, folder: Path) -> Head:
    """A head from photos and their captions; without ``vectors`` it learns the words of the captions."""
    vocabulary = learn_vocabulary(texts) if vectors is None else None
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # sums in another order give other weights
    if vocabulary is None:
        text: nn.Module = nn.Linear(vectors.shape[1], JOINT)
    else:
        text = nn.EmbeddingBag(len(vocabulary) + 1, JOINT, mode="mean", padding_idx=0)
        nn.init.normal_(text.weight, std=0.02)  # of the size that a few hundred steps can move
    network = TwoTowers(features.shape[1:], text)
    file = folder / f"head-{key_of(features, texts, vectors)}.npz"
    if file.exists():
        with np.load(file, allow_pickle=False) as stored:
            network.load_state_dict({name: torch.from_numpy(stored[name]) for name in stored.files})
    else:
        inputs = word_rows(texts, vocabulary) if vocabulary is not None else as_tensor(vectors)
        fit(network, as_tensor(features), inputs, captions_by_image(caption_image))
        folder.mkdir(parents=True, exist_ok=True)
        scratch = file.with_suffix(".part.npz")
        np.savez(scratch, **{name: value.numpy() for name, value in network.state_dict().items()})
        scratch.replace(file)
    return Head(network.eval(), vocabulary)


def fit(network: TwoTowers, features: Tensor, texts: Tensor, captions: list[Array]) -> None:
    """Train in place; the rate falls along a cosine."""
    network.centre.copy_(features.mean(dim=0))
    network.spread.copy_(features.std(dim=0) + 1e-6)
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    steps = EPOCHS * (len(features) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    draw = np.random.default_rng(SEED)
    for _ in range(EPOCHS):
        order = draw.permutation(len(features))
        drawn = np.array([draw.choice(own) for own in captions])
        for start in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            loss = network.loss(features[rows], texts[drawn[rows]])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()


def captions_by_image(caption_image: Array) -> list[Array]:
    """For each image the rows of its captions."""
    order = np.argsort(caption_image, kind="stable")
    return np.split(order, np.searchsorted(caption_image[order], np.arange(1, caption_image.max() + 1)))


def key_of(features: Array, texts: Sequence[str], vectors: Array | None) -> str:
    """Other inputs or another version of this file train anew."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    digest.update(np.ascontiguousarray(features))
    digest.update("\n".join(texts).encode())
    if vectors is not None:
        digest.update(np.ascontiguousarray(vectors))
    return digest.hexdigest()[:12]
