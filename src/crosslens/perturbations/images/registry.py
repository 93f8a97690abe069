"""What an image perturbation is: a name, five amounts and a function of pixels; and how it changes one picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import CrosslensError, Entry, Registry, UsageError, call_function, random_stream, wrong_code
from crosslens.perturbations.images.picture import Pixels, join, split

Change = Callable[..., Pixels]
"""``change(pixels, amount, draws)``: other pixels of the same shape; ``draws`` is a ``numpy`` generator."""

IMAGE_PERTURBATIONS: Registry[Change] = Registry(
    "image perturbation", "image_perturbations", ("crosslens.perturbations.images",)
)
SEVERITIES = (1, 2, 3, 4, 5)
DEFAULT_SEVERITY = 3
_OPAQUE = 255


@dataclass(frozen=True)
class ImagePerturbation:
    """One change at one severity; it prints as it parses: ``blur@3``."""

    name: str
    severity: int = DEFAULT_SEVERITY

    def __post_init__(self) -> None:
        assert self.entry.name == self.name
        if isinstance(self.severity, bool) or self.severity not in SEVERITIES:
            raise _unknown_severity(self.name, self.severity)

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
        raise _unknown_severity(known, number)
    if severity is not None and severity != int(number):
        raise UsageError(f"{text!r} and severity={severity} contradict each other", fix="give the severity once")
    return ImagePerturbation(known, int(number))


def _unknown_severity(name: str, severity: object) -> UsageError:
    return UsageError(
        f"severity {severity!r} of {name!r}",
        fix=f"use a whole number from {SEVERITIES[0]} (hardly visible) to {SEVERITIES[-1]}, as in {name}@3",
    )


def image_perturbation(
    name: str, amounts: tuple[float, ...], unit: str, *, alpha: bool = False, move: Any = None
) -> Callable[[Change], Change]:
    """Register ``change(pixels, amount, draws)`` under a name.

    ``amounts`` are those of severities 1 to 5, ``unit`` says in words what they are. Every severity of an image is
    called with the same draws: draw first, in an order that does not depend on the amount, and the severities nest. A
    change of where things are or what covers them (``alpha``) is also called with the transparency of pictures that
    have one, as a single channel, and takes ``fill``, the value of pixels that show nothing. ``move(size, amount,
    draws)`` is for changes that move things: it gives the ``Move`` of their boxes.
    """
    if len(amounts) != len(SEVERITIES):
        problem = f"image perturbation {name!r} has {len(amounts)} amounts"
        raise CrosslensError(problem, fix=f"give one for each of {SEVERITIES}")
    return IMAGE_PERTURBATIONS.register(name, amounts=amounts, unit=unit, alpha=alpha, move=move)


def perturb_picture(
    name: str | ImagePerturbation, picture: Any, *, severity: int | None = None, seed: int = 0, key: str
) -> Any:
    """A picture changed by ``name`` (``blur@3``, or ``blur`` with ``severity``, by default 3).

    ``picture`` is a Pillow picture or a uint8 array; what comes back is of the same kind and size. ``key`` is the
    image's id: chance depends on it, on the seed and on the name of the perturbation, on nothing else. Pictures keep
    their mode, except that a palette, which cannot hold new colours, becomes colours, one bit becomes grey, and
    modes that encoders do not take (CMYK, 16 bits) become RGB. Pixels are changed as they are stored; a note in the
    file which way up they are shown is kept.
    """
    change = name if isinstance(name, ImagePerturbation) else parse_image_perturbation(name, severity)
    colours, alpha = split(picture)
    changed = _changed_pixels(change, colours, seed, key)
    if alpha is not None and change.entry.details["alpha"]:
        alpha = _changed_pixels(change, alpha, seed, key, fill=_OPAQUE)
    return join(changed, alpha, picture)


def image_draws(change: ImagePerturbation, seed: int, key: str) -> np.random.Generator:
    """The random draws of one image, the same for every severity."""
    return random_stream(seed, "image perturbation", change.name, key)


def _changed_pixels(change: ImagePerturbation, pixels: Pixels, seed: int, key: str, **options: int) -> Pixels:
    changed = call_function(change.entry.value, pixels, change.amount, image_draws(change, seed, key), **options)
    if getattr(changed, "shape", None) != pixels.shape or changed.dtype != np.uint8:
        problem = f"image perturbation {change.name!r} did not return a picture of the same size"
        raise wrong_code(change.entry.value, problem, "it must return uint8 pixels of the shape it was given")
    return changed
