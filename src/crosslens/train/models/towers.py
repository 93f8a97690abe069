"""Parts that models are made of: what reads images and captions, and attention between words and regions.

The GRU over packed words computes on the CPU what ``torch.nn.GRU`` does, in less time: a batch repeats words, so the
input's part is computed once per distinct word; and the gradient of the recurrent weights is one product over all words
of the batch, where torch forms and adds one per time step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, leaky_relu, linear, normalize
from torch.nn.utils.rnn import PackedSequence

from crosslens.core import UsageError
from crosslens.train.models.pretrained import AdapterSettings, add_adapters, keep_by_reference, referenced_model
from crosslens.train.models.protocol import ENCODER, CaptionBatch, ImageBatch, InputShape, local_dimension
from crosslens.train.recipe import check_choice


def projection(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """A linear layer with the first weights of VSE++ and its successors: uniform, as wide as both sides allow."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    bound = math.sqrt(6.0 / (inputs + outputs))
    nn.init.uniform_(layer.weight, -bound, bound)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def run_gru(gru: Any, words: PackedSequence, vectors: Tensor) -> PackedSequence:
    """The states of an ``nn.GRU`` (one layer, one direction) after each of the packed word ids.

    ``vectors`` are those of all words, by id.
    """
    distinct, rows = torch.unique(words.data, return_inverse=True)
    projected = linear(embedding(distinct, vectors), gru.weight_ih_l0, gru.bias_ih_l0)
    recurrence: Any = Recurrence
    states = recurrence.apply(embedding(rows, projected), gru.weight_hh_l0, gru.bias_hh_l0, words.batch_sizes.tolist())
    return PackedSequence(states, words.batch_sizes, words.sorted_indices, words.unsorted_indices)


class Recurrence(torch.autograd.Function):
    """Inputs' parts of the gates (reset, update, new), packed by time step → states, packed alike."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, sizes: list[int]) -> Tensor:
        """``sizes``: how many captions have a word at each step, never more than at the step before."""
        width = weight.shape[1]
        states, gates = inputs.new_empty(len(inputs), width), inputs.new_empty(len(inputs), 4 * width)
        state, start = inputs.new_zeros(sizes[0], width), 0
        for size in sizes:
            rows = slice(start, start + size)
            before = state[:size]
            inner = torch.addmm(bias, before, weight.t())
            reset, update, new, hidden = gates[rows].chunk(4, dim=1)
            torch.add(inner[:, : 2 * width], inputs[rows, : 2 * width], out=gates[rows, : 2 * width]).sigmoid_()
            hidden.copy_(inner[:, 2 * width :])
            torch.addcmul(inputs[rows, 2 * width :], reset, hidden, out=new).tanh_()
            state = torch.lerp(new, before, update, out=states[rows])
            start += size
        ctx.sizes = sizes
        ctx.save_for_backward(weight, states, gates)
        return states

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        weight, states, gates = ctx.saved_tensors
        width, sizes = weight.shape[1], ctx.sizes
        outer, inner = torch.empty_like(gates[:, : 3 * width]), torch.empty_like(gates[:, : 3 * width])
        later, stop = gradient.new_zeros(0, width), len(states)
        for step in range(len(sizes) - 1, -1, -1):
            rows = slice(stop - sizes[step], stop)
            reset, update, new, hidden = gates[rows].chunk(4, dim=1)
            of_state = gradient[rows].clone()
            of_state[: len(later)] += later
            start = rows.start - sizes[step - 1]
            before = states[start : start + sizes[step]] if step else torch.zeros_like(new)
            of_new = of_state * (1 - update) * (1 - new * new)
            of_reset = of_new * hidden * reset * (1 - reset)
            of_update = of_state * (before - new) * update * (1 - update)
            torch.cat([of_reset, of_update, of_new], dim=1, out=outer[rows])
            torch.cat([of_reset, of_update, of_new * reset], dim=1, out=inner[rows])
            later = torch.addmm(of_state * update, inner[rows], weight)
            stop = rows.start
        # For each row after the first step, the row of the same caption at the step before.
        starts = np.cumsum([0, *sizes]).tolist()
        steps = [torch.arange(start, start + size) for start, size in zip(starts, sizes[1:], strict=False)]
        before_rows = torch.cat([*steps, torch.zeros(0, dtype=torch.int64)])
        of_weight = inner[sizes[0] :].t() @ states[before_rows]
        return outer, of_weight, inner.sum(dim=0), None


GRU, TRANSFORMER, SENTENCE = "gru", "transformer", "sentence"


class WordStates(nn.Module):
    """Word ids → a state per word (B×T×d), by a GRU over word embeddings; both directions are averaged."""

    def __init__(
        self, words: int, word_dimension: int, dimension: int, *, both: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.embedding = nn.Embedding(words, word_dimension, padding_idx=0)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.gru = nn.GRU(word_dimension, dimension, batch_first=True, bidirectional=both)

    def forward(self, captions: CaptionBatch) -> Tensor:
        """B×T×d; states of padding are 0."""
        assert captions.words is not None
        assert captions.lengths is not None
        quick = (
            captions.words.device.type == "cpu" and not self.gru.bidirectional and not torch.is_autocast_enabled("cpu")
            and not (self.training and self.dropout.p)
        )  # fmt: skip
        packed = nn.utils.rnn.pack_padded_sequence(
            captions.words if quick else self.dropout(self.embedding(captions.words)), captions.lengths.cpu(),
            batch_first=True, enforce_sorted=False,
        )  # fmt: skip
        states = run_gru(self.gru, packed, self.embedding.weight) if quick else self.gru(packed)[0]
        padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=captions.words.shape[1])
        if self.gru.bidirectional:
            padded = (padded[..., : self.gru.hidden_size] + padded[..., self.gru.hidden_size :]) / 2
        return padded


class GruText(nn.Module):
    """The state after the last word; of both directions the mean over words."""

    def __init__(self, shape: InputShape, dimension: int, word_dimension: int, both: bool) -> None:
        super().__init__()
        self.states = WordStates(shape.words, word_dimension, dimension, both=both)
        self.both = both

    def forward(self, captions: CaptionBatch) -> Tensor:
        return self.read(captions)[0]

    def read(self, captions: CaptionBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The caption's vector (B×d), its words' states (B×T×d), and which of them are padding (B×T)."""
        assert captions.words is not None
        assert captions.lengths is not None
        states: Tensor = self.states(captions)
        lengths = captions.lengths.to(states.device)
        if self.both:
            vector = states.sum(dim=1) / lengths[:, None]
        else:
            vector = states[torch.arange(len(states), device=states.device), lengths - 1]
        return vector, states, captions.words == 0


class TransformerText(nn.Module):
    """A small transformer over word embeddings; the mean of its states."""

    def __init__(
        self, shape: InputShape, dimension: int, word_dimension: int, layers: int = 2, longest: int = 128
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.words, word_dimension, padding_idx=0)
        self.position = nn.Parameter(torch.randn(longest, word_dimension) * 0.02)
        heads = next(count for count in range(max(1, word_dimension // 64), 0, -1) if word_dimension % count == 0)
        layer = nn.TransformerEncoderLayer(
            word_dimension, heads, 4 * word_dimension, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(word_dimension, dimension)

    def forward(self, captions: CaptionBatch) -> Tensor:
        states, padding = self._states(captions)
        return self._mean(states, padding)

    def read(self, captions: CaptionBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The caption's vector (B×d), its words' states (B×T×d), and which of them are padding (B×T)."""
        states, padding = self._states(captions)
        return self._mean(states, padding), self.out(states).masked_fill(padding[..., None], 0), padding

    def _states(self, captions: CaptionBatch) -> tuple[Tensor, Tensor]:
        assert captions.words is not None
        words = captions.words[:, : len(self.position)]
        padding = words == 0
        vectors = self.embedding(words) + self.position[: words.shape[1]]
        return self.layers(vectors, src_key_padding_mask=padding), padding

    def _mean(self, states: Tensor, padding: Tensor) -> Tensor:
        words = states.masked_fill(padding[..., None], 0)
        mean = words.sum(dim=1) / (~padding).sum(dim=1, keepdim=True)
        return self.out(mean)


class SentenceText(nn.Module):
    """Vectors of a frozen sentence encoder, carried on by a residual two-layer head."""

    def __init__(self, shape: InputShape, dimension: int, dropout: float) -> None:
        super().__init__()
        self.head = ResidualHead(shape.text[-1], dimension, dropout)

    def forward(self, captions: CaptionBatch) -> Tensor:
        assert captions.vectors is not None
        return self.head(captions.vectors)


class EncoderText(nn.Module):
    """A pretrained text encoder that is trained further; the mean over its tokens, carried on by a residual head."""

    def __init__(self, shape: InputShape, dimension: int, dropout: float, adapters: AdapterSettings) -> None:
        super().__init__()
        pretrained = referenced_model(shape)
        self.encoder = pretrained.module()
        if hasattr(self.encoder, "get_text_features"):
            raise UsageError(
                f"{shape.encoder} is a dual encoder, not a text encoder",
                fix="train it with kind = 'dual-encoder'",
                option="text",
            )
        if adapters.rank:
            add_adapters(self.encoder, adapters)
        if getattr(self.encoder, "pooler", None) is not None:
            self.encoder.pooler.requires_grad_(False)  # not used here
        keep_by_reference(self.encoder)
        self.head = ResidualHead(self.encoder.config.hidden_size, dimension, dropout)

    def forward(self, captions: CaptionBatch) -> Tensor:
        assert captions.tokens is not None
        mask = torch.ones_like(captions.tokens) if captions.mask is None else captions.mask
        states = self.encoder(input_ids=captions.tokens, attention_mask=mask).last_hidden_state
        mean = (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return self.head(mean)


class ResidualHead(nn.Module):
    """A linear map plus a two-layer network on the same input."""

    def __init__(self, inputs: int, dimension: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, dimension)
        self.network = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(inputs, dimension),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(dimension, dimension),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        return self.linear(vectors) + self.network(vectors)


def text_tower(
    shape: InputShape,
    kind: str,
    dimension: int,
    *,
    word_dimension: int = 300,
    both: bool = False,
    dropout: float = 0.0,
    adapters: AdapterSettings | None = None,
) -> Any:
    """A tower that turns a batch of captions into B×dimension."""
    check_choice("text", kind, (GRU, TRANSFORMER, SENTENCE, ENCODER))
    has_text_model = bool(shape.text or shape.encoder)
    if (kind in (SENTENCE, ENCODER)) != has_text_model:
        removal = f"remove it, or choose text = {SENTENCE!r} or {ENCODER!r}"
        fix = removal if has_text_model else 'name one: text_model = "KIND:SOURCE"'
        problem = f"text is {kind!r} and the recipe names {'a' if has_text_model else 'no'} text_model"
        raise UsageError(problem, fix=fix, option="text")
    if kind == GRU:
        return GruText(shape, dimension, word_dimension, both)
    if kind == TRANSFORMER:
        return TransformerText(shape, dimension, word_dimension)
    if kind == SENTENCE:
        return SentenceText(shape, dimension, dropout)
    return EncoderText(shape, dimension, dropout, adapters or AdapterSettings(0))


LINEAR, RESIDUAL, GRID = "linear", "residual", "grid"


class Standardisation(nn.Module):
    """Features with mean 0 and deviation 1 in every dimension, as measured over the training images."""

    def __init__(self, shape: InputShape) -> None:
        super().__init__()
        for name, size in (("vectors", shape.vector), ("regions", shape.regions[-1] if shape.regions else 0)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_deviation", torch.ones(size))

    def fit(self, features: Mapping[str, Any]) -> None:
        """Measure mean and deviation over all images (and regions)."""
        for name in ("vectors", "regions"):
            if name in features:
                rows = np.asarray(features[name]).reshape(-1, features[name].shape[-1])
                for part in ("mean", "std"):
                    measured = torch.from_numpy(getattr(rows, part)(axis=0, dtype=np.float64))
                    getattr(self, f"{name}_{'mean' if part == 'mean' else 'deviation'}").copy_(measured)

    def forward(self, images: ImageBatch) -> ImageBatch:
        """The features standardised; a dimension that never varied becomes 0."""
        return ImageBatch(self._scaled("vectors", images.vectors), self._scaled("regions", images.regions))

    def _scaled(self, name: str, features: Tensor | None) -> Tensor | None:
        if features is None:
            return None
        mean, deviation = getattr(self, f"{name}_mean"), getattr(self, f"{name}_deviation")
        return torch.where(deviation > 0, (features - mean) / deviation.clamp(min=1e-12), 0.0)


class GridImage(nn.Module):
    """Local features through one transformer layer, pooled by attention; beside them their mean and the global one."""

    def __init__(self, shape: InputShape, dimension: int, dropout: float, standardise: bool, width: int = 256) -> None:
        super().__init__()
        local = local_dimension(shape)
        self.scale = Standardisation(shape) if standardise else None
        self.dropout = nn.Dropout(dropout)
        self.cells = nn.Linear(local, width)
        self.position = nn.Parameter(torch.randn(shape.regions[0], width) * 0.02)
        self.layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.attention = nn.Linear(width, 1)
        self.head = ResidualHead(shape.vector + local + width, dimension, dropout)

    def forward(self, images: ImageBatch) -> Tensor:
        images = self.scale(images) if self.scale else images
        regions, vectors = images.regions, images.vectors
        assert regions is not None
        if self.scale is None:
            regions, vectors = normalize(regions, dim=-1), None if vectors is None else normalize(vectors, dim=-1)
        regions = self.dropout(regions)
        states = self.layer(self.cells(regions) + self.position)
        pooled = (self.attention(states).softmax(dim=1) * states).sum(dim=1)
        whole = [] if vectors is None else [self.dropout(vectors)]
        return self.head(torch.cat([*whole, regions.mean(dim=1), pooled], dim=-1))


class PooledImage(nn.Module):
    """One vector per image, projected; without a global feature the mean of the local ones."""

    def __init__(self, shape: InputShape, dimension: int, dropout: float, standardise: bool, residual: bool) -> None:
        super().__init__()
        inputs = shape.vector or local_dimension(shape)
        self.scale = Standardisation(shape) if standardise else None
        self.dropout = nn.Dropout(dropout)
        self.head = ResidualHead(inputs, dimension, dropout) if residual else projection(inputs, dimension)

    def forward(self, images: ImageBatch) -> Tensor:
        vectors = self.scale(images).pooled() if self.scale else normalize(images.pooled(), dim=-1)
        return self.head(self.dropout(vectors))


_SLOPE = 0.1
"""Of the leaky ReLU in front of the softmax."""


class RegionStates(nn.Module):
    """Local features → B×R×d by one linear layer; a global feature, where the data have one, is one more region."""

    def __init__(self, shape: InputShape, dimension: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.local = projection(local_dimension(shape), dimension)
        self.whole = projection(shape.vector, dimension) if shape.vector else None

    def forward(self, images: ImageBatch) -> Tensor:
        """B×R×d; the global feature is the last region."""
        assert images.regions is not None
        states: Tensor = self.local(self.dropout(images.regions))
        if self.whole is None:
            return states
        assert images.vectors is not None
        return torch.cat([states, self.whole(self.dropout(images.vectors))[:, None]], dim=1)


class AttentionPool(nn.Module):
    """The parts of an item → one unit vector: a part's weight follows from the part and the mean of all."""

    def __init__(self, dimension: int, dropout: float) -> None:
        super().__init__()
        self.part = nn.Sequential(projection(dimension, dimension), nn.Tanh(), nn.Dropout(dropout))
        self.mean = nn.Sequential(projection(dimension, dimension), nn.Tanh(), nn.Dropout(dropout))
        self.weight = projection(dimension, 1, bias=False)  # the same for all parts: a bias changes no weight

    def forward(self, parts: Tensor, lengths: Tensor | None = None) -> Tensor:
        """B×T×d → B×d; parts from ``lengths`` on are padding, and 0."""
        count = torch.full_like(parts[:, 0, 0], parts.shape[1]) if lengths is None else lengths
        mean = parts.sum(dim=1) / count[:, None]
        logits = self.weight(self.part(parts) * self.mean(mean)[:, None])[..., 0]
        if lengths is not None:
            positions = torch.arange(parts.shape[1], device=parts.device)
            logits = logits.masked_fill(positions >= lengths[:, None], -torch.inf)
        return normalize((logits.softmax(dim=1)[..., None] * parts).sum(dim=1), dim=-1)


def cross_attention(queries: Tensor, contexts: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Cosines and attention of every part of every query item to the parts of every context item (SCAN).

    ``queries`` (q×L×d) and ``contexts`` (c×R×d) have unit parts; both results are c×q×L×R. Cosines below 0 are shrunk,
    and those with one part of the context are divided by their length over the query's parts; the softmax over the
    context's parts of ``scale`` times that is the attention.
    """
    cosines = torch.einsum("crd,qld->cqlr", contexts, queries)
    scaled = normalize(leaky_relu(cosines, _SLOPE), dim=2)
    return cosines, (scale * scaled).softmax(dim=3)


def scores_by_length(lengths: Tensor, scores_of: Callable[[Tensor, int], Tensor]) -> Tensor:
    """m×n: ``scores_of(rows, length)`` of the captions of one length after the other, so padding takes no part."""
    counts = lengths.cpu()
    groups = [(length, (counts == length).nonzero()[:, 0]) for length in sorted(set(counts.tolist()))]
    parts = [scores_of(rows.to(lengths.device), length) for length, rows in groups]
    order = torch.cat([rows for _, rows in groups]).argsort().to(lengths.device)
    return torch.cat(parts, dim=1)[:, order]


def word_count(shape: InputShape) -> int:
    """Words in the vocabulary; raises where a sentence encoder reads the captions, which says nothing of words."""
    if shape.text:
        raise UsageError(
            "the recipe names a text_model, which gives vectors of whole captions; this model compares words",
            fix="remove text_model",
            option="text_model",
        )
    return shape.words
