"""A GRU over packed words for the CPU: what ``torch.nn.GRU`` computes, in less time.

A batch repeats words, so the input's part is computed once per distinct word; and the gradient of the recurrent weights
is one product over all words of the batch, where torch forms and adds one per time step.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear
from torch.nn.utils.rnn import PackedSequence


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
        """Gradients of inputs, weight and bias."""
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
        of_weight = inner[sizes[0] :].t() @ states[_rows_before(sizes)]
        return outer, of_weight, inner.sum(dim=0), None


def _rows_before(sizes: list[int]) -> Tensor:
    """For each row after the first step, the row of the same caption at the step before."""
    rows, start = [], 0
    for size, following in pairwise(sizes):
        rows.append(torch.arange(start, start + following))
        start += size
    return torch.cat(rows) if rows else torch.zeros(0, dtype=torch.int64)
