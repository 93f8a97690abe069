"""What a training changes of a model: all of its state but the weights of pretrained modules that are not trained.

A module that was loaded from a pretrained model says in ``by_reference`` which of its weights those are. Numbers that a
loss learns are in the state below ``loss``; a model without that loss has no use for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LOSS = "loss"
"""The part of a model's state that belongs to its loss."""


def trained_state(model: Any) -> dict[str, Any]:
    """The state of a model without the weights that are kept by reference."""
    left_out = _by_reference(model)
    return {name: tensor for name, tensor in model.state_dict().items() if name not in left_out}


def load_trained_state(model: Any, state: Mapping[str, Any]) -> None:
    """Put a state of :func:`trained_state` back; whatever does not fit raises a ``RuntimeError``, as torch does."""
    known = {name: tensor for name, tensor in state.items() if hasattr(model, LOSS) or not name.startswith(f"{LOSS}.")}
    missing, unexpected = model.load_state_dict(known, strict=False)
    wrong = {*missing, *unexpected} - _by_reference(model)
    if wrong:
        raise RuntimeError(f"{len(wrong)} weights are missing or unknown, such as {min(wrong)}")


def _by_reference(model: Any) -> set[str]:
    return {
        f"{prefix}.{name}" if prefix else name
        for prefix, module in model.named_modules()
        for name in getattr(module, "by_reference", ())
    }
