"""Which perturbations a list such as ``all,antonym`` stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crosslens.core import UnknownNameError, UsageError
from crosslens.perturbations.images.registry import IMAGE_PERTURBATIONS, parse_image_perturbation
from crosslens.perturbations.registry import PERTURBATIONS, ordered_perturbations, perturbations_with

BRIT_PERTURBATIONS = perturbations_with("brit")
"""The thirteen perturbations of BRIT, in the order of the paper's table."""


def _at_level(level: str) -> tuple[str, ...]:
    """Those of a level, without variants in brackets: a group has each change once."""
    entries = (entry for entry in ordered_perturbations() if entry.details["order"] and "[" not in entry.name)
    return tuple(entry.name for entry in entries if entry.details["level"] == level)


ADVERSARIAL = _at_level("adversarial")

GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": BRIT_PERTURBATIONS,
    "adversarial": ADVERSARIAL,
    "beyond": _at_level("beyond"),
    "everything": (*BRIT_PERTURBATIONS, *ADVERSARIAL, *_at_level("beyond")),
}
"""Names that stand for several: ``all`` is the paper's thirteen."""

IMAGES = "images"
"""The group of all perturbations of images."""

GROUP_NAMES = (*GROUPS, IMAGES)


def chosen_perturbations(names: str | Iterable[str]) -> tuple[str, ...]:
    """The perturbations that a list of names and groups stands for, each once, in the order of the list.

    Perturbations of images are spelled ``blur@3``; without a severity, as in ``blur``, they get the default one. The
    group ``images`` is all of them, ``images@5`` all of them at severity 5.
    """
    listed = names.split(",") if isinstance(names, str) else names
    chosen = dict.fromkeys(name for item in listed for name in _expand(item.strip()))
    if not chosen:
        raise UsageError("no perturbation is named", fix=f"name some, or a group: {', '.join(GROUP_NAMES)}")
    return tuple(chosen)


def is_image_perturbation(name: str) -> bool:
    """Whether a name stands for a change of images, not of captions."""
    return name.partition("@")[0] in IMAGE_PERTURBATIONS


def _expand(name: str) -> Iterable[str]:
    if name in GROUPS:
        return GROUPS[name]
    if name in PERTURBATIONS:
        return [name]
    stem, at, severity = name.partition("@")
    if stem == IMAGES:
        return [str(parse_image_perturbation(f"{entry.name}{at}{severity}")) for entry in IMAGE_PERTURBATIONS]
    if stem in IMAGE_PERTURBATIONS:
        return [str(parse_image_perturbation(name))]
    known = [entry.name for registry in (PERTURBATIONS, IMAGE_PERTURBATIONS) for entry in registry]
    raise UnknownNameError("perturbation", name, [*known, *GROUP_NAMES])
