"""What a change of pictures is: a name, five amounts, and a function from pixels to pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core.errors import CrosslensError, UsageError
from crosslens.core.registry import Entry, Registry

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
"""Height × width × channels; one channel for grey pictures, three for coloured ones."""

Change = Callable[..., Pixels]
"""``change(pixels, amount, draws)``: other pixels of the same shape; ``draws`` is a ``numpy`` generator."""

IMAGE_PERTURBATIONS: Registry[Change] = Registry("image perturbation", "image_perturbations")
SEVERITIES = (1, 2, 3, 4, 5)
DEFAULT_SEVERITY = 3


@dataclass(frozen=True)
class ImagePerturbation:
    """One change at one severity; it prints as it parses: ``blur@3``."""

    name: str
    severity: int = DEFAULT_SEVERITY

    def __post_init__(self) -> None:
        assert self.entry.name == self.name
        if isinstance(self.severity, bool) or self.severity not in SEVERITIES:
            raise UsageError(
                f"severity {self.severity!r} of {self.name!r}",
                fix=f"use a whole number from {SEVERITIES[0]} (hardly seen) to {SEVERITIES[-1]}, as in {self.name}@3",
            )

    @property
    def entry(self) -> Entry[Change]:
        return IMAGE_PERTURBATIONS[self.name]

    @property
    def amount(self) -> float:
        """What the severity means, in the unit of the perturbation."""
        return float(self.entry.details["amounts"][self.severity - 1])

    def __str__(self) -> str:
        return f"{self.name}@{self.severity}"


def parse_image_perturbation(text: str, severity: int | None = None) -> ImagePerturbation:
    """``blur@3`` or ``blur``; without a severity in the text, the one given, or 3."""
    name, mark, number = text.strip().partition("@")
    if not mark:
        return ImagePerturbation(name, DEFAULT_SEVERITY if severity is None else severity)
    known = IMAGE_PERTURBATIONS[name].name
    if not number.isdecimal() or int(number) not in SEVERITIES:
        raise UsageError(
            f"severity {number!r} of {known!r}",
            fix=f"use a whole number from {SEVERITIES[0]} (hardly seen) to {SEVERITIES[-1]}, as in {known}@3",
        )
    if severity is not None and severity != int(number):
        raise UsageError(f"{text!r} and severity={severity} contradict each other", fix="give the severity once")
    return ImagePerturbation(known, int(number))


def image_perturbation(
    name: str, amounts: tuple[float, ...], unit: str, *, alpha: bool = False, move: Any = None
) -> Callable[[Change], Change]:
    """Enrol ``change(pixels, amount, draws)`` under a name.

    ``amounts`` are those of severities 1 to 5, ``unit`` says in words what they are. Every severity of an image is
    called with the same draws: draw first, in an order that does not depend on the amount, and the severities nest. A
    change of where things are or what covers them (``alpha``) is also called with the transparency of pictures that
    have one, as a single channel, and takes ``fill``, the value of pixels that show nothing. ``move(size, amount,
    draws)`` is for changes that move things: it gives the :class:`~crosslens.perturb.images.frame.Move` of their boxes.
    """
    if len(amounts) != len(SEVERITIES):
        raise CrosslensError(
            f"image perturbation {name!r} has {len(amounts)} amounts", fix=f"give one for each of {SEVERITIES}"
        )
    return IMAGE_PERTURBATIONS.register(name, amounts=amounts, unit=unit, alpha=alpha, move=move)
