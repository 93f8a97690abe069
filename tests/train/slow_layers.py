"""Layers computed from their definitions, item by item, with the weights of torch modules in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def unit(vector: Array) -> Array:
    return vector / np.sqrt(sum(x * x for x in vector))


def cosine(left: Array, right: Array) -> float:
    return float(unit(left) @ unit(right))


def sigmoid(value: Array) -> Array:
    return 1 / (1 + np.exp(-value))


def softmax(values: list[float]) -> list[float]:
    powers = [np.exp(value - max(values)) for value in values]
    return [power / sum(powers) for power in powers]


def weight(module: Any, name: str) -> Array:
    return dict(module.named_parameters())[name].detach().numpy()


def linear(module: Any, vector: Array) -> Array:
    product = weight(module, "weight") @ vector
    return product if module.bias is None else product + weight(module, "bias")


def gru(module: Any, inputs: list[Array], suffix: str = "") -> list[Array]:
    """The states after every input, from the equations of the gated recurrent unit."""
    names = (f"{name}_l0{suffix}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    of_input, of_state, input_bias, state_bias = (weight(module, name) for name in names)
    size, states = module.hidden_size, [np.zeros(module.hidden_size)]
    for vector in inputs:
        from_input, from_state = of_input @ vector + input_bias, of_state @ states[-1] + state_bias
        reset, update = (
            sigmoid(from_input[part] + from_state[part]) for part in (slice(size), slice(size, 2 * size))
        )  # fmt: skip
        new = np.tanh(from_input[2 * size :] + reset * from_state[2 * size :])
        states.append((1 - update) * new + update * states[-1])
    return states[1:]


def word_states(module: Any, words: list[int]) -> list[Array]:
    """Of a caption's words, without padding; both directions averaged."""
    vectors = [weight(module, "embedding.weight")[word] for word in words]
    states = gru(module.gru, vectors)
    if not module.gru.bidirectional:
        return states
    backward = gru(module.gru, vectors[::-1], "_reverse")[::-1]
    return [(one_way + other_way) / 2 for one_way, other_way in zip(states, backward, strict=True)]


def region_states(module: Any, regions: Array, vector: Array | None) -> list[Array]:
    states = [linear(module.local, region) for region in regions]
    return states if vector is None else [*states, linear(module.whole, vector)]


def pooled(module: Any, parts: list[Array]) -> Array:
    """The unit vector of an item's parts by attention to their mean."""
    mean = sum(parts) / len(parts)
    gate = np.tanh(linear(module.mean[0], mean))
    weights = softmax([float(linear(module.weight, np.tanh(linear(module.part[0], part)) * gate)[0]) for part in parts])
    return unit(sum(share * part for share, part in zip(weights, parts, strict=True)))


def attended(queries: list[Array], contexts: list[Array], scale: float) -> list[Array]:
    """What every query attends to (SCAN): leaky ReLU of the cosines, length 1 over the queries, softmax."""
    clipped = [[(s if s > 0 else 0.1 * s) for s in (float(q @ c) for c in contexts)] for q in queries]
    lengths = [np.sqrt(sum(row[k] ** 2 for row in clipped)) for k in range(len(contexts))]
    result = []
    for row in clipped:
        weights = softmax([scale * value / length for value, length in zip(row, lengths, strict=True)])
        result.append(sum(share * context for share, context in zip(weights, contexts, strict=True)))
    return result
