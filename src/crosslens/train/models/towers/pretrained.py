"""Pretrained modules inside trainable models: kept by reference, trained as a whole or through LoRA adapters.

LoRA (Hu et al. 2022): a linear map W gains (alpha ÷ rank)·B·A, where B begins as zero and only A and B are trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from crosslens.core import InputError, MissingExtraError, UsageError
from crosslens.encode import Pretrained
from crosslens.train.models.protocol import InputShape

_ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj", "query", "key", "value", "qkv", "q_lin", "k_lin", "v_lin")
"""What the projections of attention are called in the library's models."""


@dataclass(frozen=True)
class AdapterSettings:
    """LoRA adapters of a module; rank 0 means none."""

    rank: int
    alpha: float = 16.0
    dropout: float = 0.0
    targets: str = ""
    """The linear maps that get one, by the ends of their names, joined by commas; default: those of attention."""

    def __post_init__(self) -> None:
        if self.rank < 0:
            raise UsageError(f"lora_rank is {self.rank}", fix="lora_rank must be at least 0", option="lora_rank")
        if not self.alpha > 0:
            raise UsageError(f"lora_alpha is {self.alpha}", fix="lora_alpha must be above 0", option="lora_alpha")
        if not 0 <= self.dropout < 1:
            fix = "lora_dropout must be at least 0 and below 1"
            raise UsageError(f"lora_dropout is {self.dropout}", fix=fix, option="lora_dropout")


def referenced_model(shape: InputShape) -> Pretrained:
    """The pretrained model of a shape; raises unless its files are those that the shape was made with."""
    pretrained = Pretrained(shape.encoder)
    if pretrained.revision != shape.revision:
        raise InputError(
            f"{shape.encoder} has changed since this model was trained on it", file=pretrained.folder,
            expected=f"the model with the hash {shape.revision[:12]}, not {pretrained.revision[:12]}",
            fix="put the files of the earlier model back, or train again", code="changed-file",
        )  # fmt: skip
    return pretrained


def add_adapters(module: nn.Module, settings: AdapterSettings) -> None:
    """Freeze a pretrained module and give it adapters, which alone are trained; scores stay as they are at first."""
    module.requires_grad_(False)
    if not settings.rank:
        return
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise MissingExtraError("LoRA adapters", "peft", "train") from error
    make: Any = LoraConfig  # which declares alpha as a whole number, and takes any
    config = make(
        r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.dropout,
        target_modules=target_names(module, settings.targets),
    )  # fmt: skip
    inject_adapter_in_model(config, module)


def target_names(module: nn.Module, targets: str = "") -> list[str]:
    """The linear maps of a module that get an adapter, by their full names.

    Those inside torch's own attention are left out: it reads their weights past any adapter.
    """
    wanted = tuple(part.strip() for part in targets.split(",") if part.strip()) or _ATTENTION
    inside = [f"{name}." for name, part in module.named_modules() if isinstance(part, nn.MultiheadAttention)]
    linear = [name for name, part in module.named_modules() if isinstance(part, nn.Linear)]
    chosen = [
        name
        for name in linear
        if any(f".{name}".endswith(f".{end}") for end in wanted) and not name.startswith(tuple(inside))
    ]
    if not chosen:
        ends = sorted({name.rpartition(".")[2] for name in linear})
        raise UsageError(
            f"no linear map of the model is called {' or '.join(wanted[:4])}",
            fix=f"name some in lora_targets: {', '.join(ends[:12]) or 'there are none'}", option="lora_targets",
        )  # fmt: skip
    return chosen


def keep_by_reference(module: Any) -> None:
    """Note which weights of a pretrained module are not trained: they are not stored with the model (trained_state)."""
    names = (name for name, weight in module.named_parameters(remove_duplicate=False) if not weight.requires_grad)
    module.by_reference = frozenset(names)
