"""Checkpoints: weights, optimiser and history of a step, written whole or not at all, without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import InputError, atomic_file, parse_json, regular_bytes

STATE = "state"


@dataclass(frozen=True)
class Checkpoint:
    """Where a training stands: after ``step`` steps."""

    step: int
    weights: Mapping[str, Any]
    optimizer: Mapping[str, Any]
    history: list[dict[str, Any]]
    """A row per validation."""
    best: Mapping[str, Any]
    """The best weights so far."""


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """One file; a killed process leaves the last one whole."""
    from safetensors.torch import save

    tensors = {f"weights/{name}": tensor for name, tensor in checkpoint.weights.items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in checkpoint.optimizer.items()}
    tensors |= {f"best/{name}": tensor for name, tensor in checkpoint.best.items()}
    stored = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    state = json.dumps({"step": checkpoint.step, "history": checkpoint.history})
    with atomic_file(path) as partial:
        partial.write_bytes(save(stored, {STATE: state}))


def load_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint of a file; whatever is wrong with it raises."""
    from safetensors.torch import load

    content = regular_bytes(path)
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        state = parse_json(header["__metadata__"][STATE])
        tensors = load(content)
        parts: dict[str, dict[str, Any]] = {"weights": {}, "optimizer": {}, "best": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = tensor
        return Checkpoint(
            int(state["step"]), parts["weights"], parts["optimizer"], list(state["history"]), parts["best"]
        )
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError(
            f"not a checkpoint of a training: {error}", file=path, expected="a file that crosslens train wrote",
            fix="remove the file to train from the start",
        ) from error  # fmt: skip
    except Exception as error:  # safetensors has an exception of its own
        raise InputError(
            f"a damaged checkpoint: {error}", file=path, expected="a file that crosslens train wrote",
            fix="remove the file to train from the start",
        ) from error  # fmt: skip


def optimizer_tensors(optimizer: Any) -> dict[str, Any]:
    """The optimiser's state as named tensors: ``<parameter>/<entry>``."""
    return {
        f"{parameter}/{entry}": value
        for parameter, values in optimizer.state_dict()["state"].items()
        for entry, value in values.items()
    }


def restore_optimizer(optimizer: Any, tensors: Mapping[str, Any]) -> None:
    """Put stored tensors back."""
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        parameter, _, entry = name.partition("/")
        state.setdefault(int(parameter), {})[entry] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
