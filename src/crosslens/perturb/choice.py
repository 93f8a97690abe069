"""Which perturbations are meant by a list such as ``all,antonym``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crosslens.core.errors import UnknownNameError, UsageError
from crosslens.perturb.perturbation import PERTURBATIONS

THIRTEEN = (
    "char_swap",
    "missing_char",
    "extra_char",
    "nearby_char",
    "synonym_noun",
    "synonym_adj",
    "distraction_true",
    "distraction_false",
    "shuffle_nouns_and_adj",
    "shuffle_all_words",
    "shuffle_allbut_nouns_and_adj",
    "shuffle_within_trigrams",
    "shuffle_trigrams",
)
"""The perturbations of BRIT, in the order of the paper's table."""

ADVERSARIAL = ("antonym", "color_all", "color_in", "size")
BEYOND = ("verb_antonym", "number_change", "rare_synonym")

GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": THIRTEEN,
    "adversarial": ADVERSARIAL,
    "beyond": BEYOND,
    "everything": (*THIRTEEN, *ADVERSARIAL, *BEYOND),
}
"""Names that stand for several: ``all`` is the paper's thirteen."""

IMAGES = "images"
"""The group of all perturbations of images."""

GROUP_NAMES = (*GROUPS, IMAGES)


def chosen_perturbations(names: str | Iterable[str]) -> tuple[str, ...]:
    """The perturbations that a list of names and groups stands for, each once, in the order of the list.

    Perturbations of images are spelled ``blur@3``; without a severity, as in ``blur``, they get the usual one. The
    group ``images`` is all of them, ``images@5`` all of them at severity 5.
    """
    asked = names.split(",") if isinstance(names, str) else names
    found: dict[str, None] = {}
    for name in (one.strip() for one in asked):
        found.update(dict.fromkeys(_meant(name)))
    if not found:
        raise UsageError("no perturbation named", fix=f"name some, or a group: {', '.join(GROUP_NAMES)}")
    return tuple(found)


def is_image_perturbation(name: str) -> bool:
    """Whether a name stands for a change of pictures, not of captions."""
    from crosslens.perturb.images import IMAGE_PERTURBATIONS

    return name.partition("@")[0] in IMAGE_PERTURBATIONS


def _meant(name: str) -> Iterable[str]:
    from crosslens.perturb.images import IMAGE_PERTURBATIONS, parse_image_perturbation

    if name in GROUPS:
        return GROUPS[name]
    if name in PERTURBATIONS:
        return [name]
    stem, at, severity = name.partition("@")
    if stem == IMAGES:
        return [str(parse_image_perturbation(f"{one.name}{at}{severity}")) for one in IMAGE_PERTURBATIONS]
    if stem in IMAGE_PERTURBATIONS:
        return [str(parse_image_perturbation(name))]
    known = [*(one.name for one in PERTURBATIONS), *(one.name for one in IMAGE_PERTURBATIONS), *GROUP_NAMES]
    raise UnknownNameError("perturbation", name, known)
