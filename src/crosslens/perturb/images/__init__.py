"""Pictures changed on purpose: blurred, covered, cropped, each in five severities.

``IMAGE_PERTURBATIONS``                                        what there is, by name
``parse_image_perturbation("blur@3")``                         → ``ImagePerturbation(name="blur", severity=3)``
``perturb_picture("blur@3", picture, seed=0, key="42")``       one Pillow picture or uint8 array → the same kind
``perturb_images(dataset, "blur@3", "blurred/", seed=0)``      a dataset folder with changed pictures
``severity_sheet(pictures, ["blur", "noise"])``                a picture to look at: severities 1 to 5 side by side
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Importing these registers what they hold.
import crosslens.perturb.images.colours
import crosslens.perturb.images.focus
import crosslens.perturb.images.frame
import crosslens.perturb.images.grain  # noqa: F401
from crosslens.perturb.images.perturbation import (
    DEFAULT_SEVERITY,
    IMAGE_PERTURBATIONS,
    SEVERITIES,
    ImagePerturbation,
    image_perturbation,
    parse_image_perturbation,
)

if TYPE_CHECKING:
    from crosslens.perturb.images.picture import perturb_picture
    from crosslens.perturb.images.sheet import severity_sheet
    from crosslens.perturb.images.writing import perturb_images

__all__ = [
    "DEFAULT_SEVERITY",
    "IMAGE_PERTURBATIONS",
    "SEVERITIES",
    "ImagePerturbation",
    "image_perturbation",
    "parse_image_perturbation",
    "perturb_images",
    "perturb_picture",
    "severity_sheet",
]

_HOMES = {"perturb_picture": "picture", "perturb_images": "writing", "severity_sheet": "sheet"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'crosslens.perturb.images' has no attribute {name!r}")
    value = getattr(import_module(f"crosslens.perturb.images.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
