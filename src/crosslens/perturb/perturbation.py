"""What a perturbation is, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from crosslens.core.registry import Registry
from crosslens.perturb.caption import Caption
from crosslens.perturb.edit import Edit

Edits = tuple[Edit, ...]
Perturbation = Callable[..., Edits]
"""A function of a :class:`Caption` and its :class:`Draws`, with options by keyword; returns the edits to make.

It raises :class:`CannotApply` where the caption offers nothing to change. It never returns edits that leave the text as
it was. What it returns depends on the caption, the draws and the options alone.
"""

Level = Literal["word", "sentence", "adversarial", "beyond"]

PERTURBATIONS: Registry[Perturbation] = Registry("perturbation", "perturbations")

CorpusOptions = Callable[[Sequence[Caption]], Mapping[str, Any]]
"""Options that follow from all captions together, such as the colours that occur in them."""


class CannotApply(Exception):
    """The caption offers nothing that this perturbation could change; the message says what is missing."""


def perturbation(
    name: str, *, level: Level, tags: bool = False, corpus: CorpusOptions | None = None
) -> Callable[[Perturbation], Perturbation]:
    """Enrol a perturbation.

    With ``tags`` its captions come parsed, so that it can ask for their ``tokens``. ``corpus`` is asked once for the
    options that depend on the whole set of captions; those that the caller gives are not asked for.
    """
    return PERTURBATIONS.register(name, level=level, tags=tags, corpus=corpus)
