"""One picture, changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosslens.core.errors import CrosslensError
from crosslens.core.seeds import stream
from crosslens.perturb.images.perturbation import ImagePerturbation, Pixels, parse_image_perturbation
from crosslens.perturb.images.planes import join, split

_OPAQUE = 255


def perturb_picture(
    name: str | ImagePerturbation, picture: Any, *, severity: int | None = None, seed: int = 0, key: str
) -> Any:
    """A picture changed by ``name`` (``blur@3``, or ``blur`` with ``severity``, by default 3).

    ``picture`` is a Pillow picture or a uint8 array; what comes back is of the same kind and size. ``key`` is the
    image's id: chance depends on it, on the seed and on the name of the perturbation, on nothing else. Pictures keep
    their mode, except that a palette, which has no place for new colours, becomes colours, one bit becomes grey, and
    modes that encoders do not take (CMYK, 16 bits) become RGB. Pixels are changed as they are stored; a note in the
    file which way up they are shown is kept.
    """
    wanted = name if isinstance(name, ImagePerturbation) else parse_image_perturbation(name, severity)
    colours, alpha = split(picture)
    changed = _change(wanted, colours, seed, key)
    if alpha is not None and wanted.entry.details["alpha"]:
        alpha = _change(wanted, alpha, seed, key, fill=_OPAQUE)
    return join(changed, alpha, picture)


def draws_of(wanted: ImagePerturbation, seed: int, key: str) -> np.random.Generator:
    """The chances of one image, the same for every severity."""
    return stream(seed, "image perturbation", wanted.name, key)


def _change(wanted: ImagePerturbation, pixels: Pixels, seed: int, key: str, **options: int) -> Pixels:
    changed = wanted.entry.value(pixels, wanted.amount, draws_of(wanted, seed, key), **options)
    if getattr(changed, "shape", None) != pixels.shape or changed.dtype != np.uint8:
        raise CrosslensError(
            f"image perturbation {wanted.name!r} made something else than a picture of the same size",
            fix="it must return uint8 pixels of the shape it was given",
        )
    return changed
