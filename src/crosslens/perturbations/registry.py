"""What a perturbation of captions is, the registry of them, and the facts declared with each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from crosslens.core import Entry, Registry
from crosslens.perturbations.caption import Caption, Edits

Perturbation = Callable[..., Edits]
"""A function of a :class:`Caption` and its :class:`Draws`, with options by keyword; returns the edits to make.

It raises :class:`CannotApply` where the caption offers nothing to change. It never returns edits that leave the text as
it was. What it returns depends on the caption, the draws and the options alone.
"""

Level = Literal["word", "sentence", "adversarial", "beyond"]

PERTURBATIONS: Registry[Perturbation] = Registry("perturbation", "perturbations", ("crosslens.perturbations.text",))

CorpusOptions = Callable[[Sequence[Caption]], Mapping[str, Any]]
"""Options that follow from all captions together, such as the colours that occur in them."""


class CannotApply(Exception):
    """The caption offers nothing that this perturbation could change; the message says what is missing."""


def perturbation(
    name: str,
    *,
    level: Level,
    tags: bool = False,
    corpus: CorpusOptions | None = None,
    order: int | None = None,
    brit: bool = False,
    aro: bool = False,
    typo: bool = False,
    keeps_meaning: bool = False,
) -> Callable[[Perturbation], Perturbation]:
    """Register a perturbation.

    With ``tags`` its captions come parsed, so that it can read their ``tokens``. ``corpus`` computes, once per run, the
    options that depend on the whole set of captions and that the caller did not pass. ``order`` is its rank in listings
    and groups; without one it is in no group and listed last. Facts that :func:`perturbations_with` looks up: ``brit``
    (one of BRIT's thirteen), ``aro`` (a wrong order of COCO-Order and Flickr30k-Order), ``typo``, and ``keeps_meaning``
    (the caption stays as true as it was).
    """
    facts = {"brit": brit, "aro": aro, "typo": typo, "keeps_meaning": keeps_meaning}
    return PERTURBATIONS.register(name, level=level, tags=tags, corpus=corpus, order=order, **facts)


def ordered_perturbations() -> list[Entry[Perturbation]]:
    """All perturbations of captions: those with a declared ``order`` by it, then those of plugins by name."""
    return sorted(PERTURBATIONS, key=lambda entry: (entry.details["order"] is None, entry.details["order"] or 0))


def perturbations_with(fact: Literal["brit", "aro", "typo", "keeps_meaning"]) -> tuple[str, ...]:
    """The names of the perturbations that were registered with a fact, in their order."""
    return tuple(entry.name for entry in ordered_perturbations() if entry.details[fact])
