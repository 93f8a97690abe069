"""What every loss is: a batch's scores, encodings and similarities in, one number out; and losses by short names."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from crosslens.core import Registry, UnknownNameError, UsageError
from crosslens.train.settings import call_registered, check_settings, check_type

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from torch.nn import Parameter

Phi = Callable[["Tensor", "Tensor"], "Tensor"]
"""Rows of images and of captions in the batch, equally many → φ(the image's captions, the caption) of each pair."""
AS_IN_RECIPE = "recipe"
"""The name that leaves a recipe's own losses as they are."""

Losses = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class BatchOutput:
    """What the model makes of a batch of B matching pairs; image i and caption i match."""

    scores: Tensor
    """B×B: the similarity of image i and caption j."""
    relevant: Tensor
    """B×B, bool: caption j is a caption of image i. The diagonal is; two captions of one image may meet in a batch."""
    images: Any
    """The model's own encoding of the images: what its special losses need."""
    captions: Any
    phi: Phi
    """φ of pairs of the batch; asking for it raises where the recipe names no φ."""
    generator: Generator
    """For random choices, on the CPU: the same seed and step, the same choice."""

    def phi_matrix(self) -> Tensor:
        """φ of all pairs, B×B like the scores, asked for at once."""
        import torch

        count = len(self.scores)
        rows = torch.arange(count, device=self.scores.device)
        return self.phi(rows.repeat_interleave(count), rows.repeat(count)).reshape(count, count)


Loss = Callable[[BatchOutput], "Tensor"]


@dataclass(frozen=True)
class LearningLoss:
    """A loss with parameters of its own, such as a temperature: they are trained and kept with those of the model."""

    value: Loss
    learnt: Mapping[str, Parameter]

    def __call__(self, batch: BatchOutput) -> Tensor:
        return self.value(batch)


LOSSES: Registry[Callable[..., Loss]] = Registry("loss", "losses", ("crosslens.train.losses",))
"""Factories: settings by keyword → a loss. Declared with each: ``phi`` (True where it asks for φ),
``sized`` (True where it is made for so many ``words`` and for ``regions`` of so many dimensions)."""


def weighted_sum(losses: Sequence[tuple[float, Loss]]) -> LearningLoss:
    """The losses of a recipe as one; parameters are named by the number of their loss."""

    def total(batch: BatchOutput) -> Tensor:
        return sum((weight * loss(batch) for weight, loss in losses), start=batch.scores.new_zeros(()))

    return LearningLoss(total, {
        f"{number}_{name}": parameter
        for number, (_, loss) in enumerate(losses)
        for name, parameter in getattr(loss, "learnt", {}).items()
    })  # fmt: skip


def build_loss(
    entries: Sequence[Mapping[str, Any]], source: str = "recipe", *, words: int = 1, regions: int = 1
) -> tuple[Loss, bool]:
    """A recipe's ``[[loss]]`` entries as one loss, and whether it needs φ.

    How many ``words`` the vocabulary has and dimensions the model's ``regions``: what losses with weights of their own
    are made for; without them only the settings of such a loss are checked.
    """
    parts: list[tuple[float, Loss]] = []
    needs_phi = False
    for entry in entries:
        settings = dict(entry)
        registered = LOSSES[settings.pop("kind")]
        weight = settings.pop("weight", 1.0)
        check_type("weight of [[loss]]", weight, "float", source)
        needs_phi = needs_phi or bool(registered.details.get("phi"))
        if registered.details.get("sized"):
            check_settings(registered, settings, table="[[loss]]", source=source)
            settings |= {"words": words, "regions": regions}
        parts.append((weight, call_registered(registered, settings, table="[[loss]]", source=source)))
    return weighted_sum(parts), needs_phi


def check_positive(name: str, value: float) -> None:
    """Raise unless a number that something is divided by is above 0."""
    if not value > 0:
        raise UsageError(f"{name} is {value}", fix=f"{name} must be above 0", option=name)


def check_sampling(sampling: str, known: Sequence[str]) -> None:
    """Raise unless this way of choosing negatives is among the known ones."""
    if sampling not in known:
        fix = f"choose {', '.join(known[:-1])} or {known[-1]}"
        raise UsageError(f"sampling is {sampling!r}", fix=fix, option="sampling")


@cache
def named_losses() -> dict[str, Losses]:
    """Name → entries, as packaged."""
    content = tomllib.loads(files("crosslens.train.losses").joinpath("named.toml").read_text("utf-8"))
    return {name: tuple(entries) for name, entries in content.items()}


def losses_called(name: str) -> Losses:
    """What a name such as ``sam-random`` stands for; of any other loss kind, that loss with its default settings."""
    named = named_losses()
    if name in named:
        return named[name]
    if name not in LOSSES:
        raise UnknownNameError("loss", name, {*named, *LOSSES.names(), AS_IN_RECIPE})
    return ({"kind": name},)
