"""Captions and images, changed on purpose. The room can be called: ``crosslens.perturb("char_swap", captions)``."""

from __future__ import annotations

from crosslens.core.rooms import make_callable

# Importing a family's module registers its perturbations.
from crosslens.perturb import adversarial, distractions, number, shuffles, substitutions, typos, verbs  # noqa: F401
from crosslens.perturb.choice import GROUPS, THIRTEEN, chosen_perturbations
from crosslens.perturb.edit import Edit, Perturbed, apply_edits
from crosslens.perturb.perturbation import PERTURBATIONS, CannotApply, perturbation
from crosslens.perturb.perturbing import perturb, perturb_all

__all__ = [
    "GROUPS",
    "PERTURBATIONS",
    "THIRTEEN",
    "CannotApply",
    "Edit",
    "Perturbed",
    "apply_edits",
    "chosen_perturbations",
    "perturb",
    "perturb_all",
    "perturbation",
]

make_callable(__name__)
