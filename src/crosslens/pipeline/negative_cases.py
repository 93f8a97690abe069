"""Where hard negatives come from: published files, or our own perturbations of a dataset's captions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.progress import Progress
from crosslens.data.hard_negatives import RIGHT, WRONG, HardNegatives
from crosslens.data.hard_negatives_loading import load_hard_negatives
from crosslens.metrics.figures import count
from crosslens.perturb import chosen_perturbations, perturb_all
from crosslens.perturb.choice import is_image_perturbation

ORDER_PERTURBATIONS = (
    "shuffle_nouns_and_adj",
    "shuffle_allbut_nouns_and_adj",
    "shuffle_within_trigrams",
    "shuffle_trigrams",
)
"""What COCO-Order and Flickr30k-Order put beside each caption."""

HARMLESS = frozenset(
    "char_swap missing_char extra_char nearby_char synonym_noun synonym_adj rare_synonym "  # noqa: SIM905
    "distraction_true distraction_false".split()
)
"""Perturbations that leave a caption as right as it was."""


def load_cases(
    source: str | Path,
    form: str | None = None,
    *,
    crop: bool = True,
    by: Sequence[str] = (),
    seed: int = 0,
    progress: Progress | None = None,
) -> HardNegatives:
    """Hard negatives from files (see :func:`crosslens.data.hard_negatives_loading.load_hard_negatives`).

    The array of images and captions that COCO-Order and Flickr30k-Order start from becomes cases with four wrong
    captions each, made by our own shuffles under ``seed``.
    """
    found = load_hard_negatives(source, form, crop=crop, by=by)
    if isinstance(found, HardNegatives):
        return found
    if by:
        raise UsageError("images with lists of captions have no columns to group by", fix="leave out by= (--by)")
    return perturbed_negatives(found, ORDER_PERTURBATIONS, together=True, seed=seed, progress=progress)


def perturbed_negatives(
    dataset: Dataset,
    perturbations: str | Sequence[str],
    *,
    together: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> HardNegatives:
    """A dataset's captions as right ones, and what perturbations make of them as wrong ones.

    Each caption makes a case with each perturbation that applies to it, grouped by perturbation; with ``together`` one
    case with all of them. Where none applies there is no case. ``options`` go to the perturbations.

    Only a perturbation that changes what a caption says makes a negative: a synonym or a typing error does not make a
    caption wrong, and a model is right not to mind it.
    """
    names = chosen_perturbations(perturbations)
    for name in filter(is_image_perturbation, names):
        raise UsageError(f"{name} changes pictures, and makes no wrong caption", fix="choose perturbations of captions")
    found = perturb_all(names, dataset, seed=seed, progress=progress, **options)
    applied = {name: sum(one.applied for one in found[name]) for name in names}
    captions: list[tuple[str, str, str, str, bool]] = []
    groups: list[str] = []
    owners = dataset.captions["image"].to_list()
    for row, (caption, image, text) in enumerate(zip(dataset.caption_ids, owners, dataset.texts, strict=True)):
        wrong = {name: found[name][row].text for name in names if found[name][row].applied}
        if together and wrong:
            captions.append((f"{caption}:{RIGHT}", image, text, caption, True))
            captions += [(f"{caption}:{WRONG}-{name}", image, one, caption, False) for name, one in wrong.items()]
        elif not together:
            for name, one in wrong.items():
                case = f"{caption}/{name}"
                captions.append((f"{case}:{RIGHT}", image, text, case, True))
                captions.append((f"{case}:{WRONG}", image, one, case, False))
                groups.append(name)
    if not captions:
        reason = next((one.reason for one in found[names[0]] if one.reason), "")
        raise InputError(
            f"{', '.join(names)}: applies to none of {count(len(dataset.texts), 'caption')}"
            + (f" ({reason})" if reason else ""),
            expected="captions that can be changed",
            fix="choose other perturbations",
        )
    return HardNegatives.of(
        dataset.name,
        _images(dataset, {row[1] for row in captions}),
        captions,
        {} if together else {"perturbation": groups},
        averaged=None if together or len(names) == 1 else "perturbation",
        notes=_notes(applied, len(dataset.texts)),
        home=dataset.home,
    )


def _images(dataset: Dataset, used: set[str]) -> dict[str, list[Any]]:
    columns = [name for name in ("image", "file") if name in dataset.images.columns]
    found: dict[str, list[Any]] = (
        dataset.images.select(columns).filter(pl.col("image").is_in(list(used))).to_dict(as_series=False)
    )
    return found


def _notes(applied: dict[str, int], captions: int) -> tuple[str, ...]:
    told = ", ".join(f"{name} {number:,}" for name, number in applied.items())
    notes = [f"Changed, of {count(captions, 'caption')}: {told}."]
    if harmless := [name for name in applied if name in HARMLESS]:
        notes.append(f"No model need prefer the original to {', '.join(harmless)}: they leave a caption right.")
    return tuple(notes)


def one_source(
    source: str | Path | HardNegatives | None,
    dataset: Dataset | None,
    perturbations: str | Sequence[str] | None,
    *,
    form: str | None = None,
    by: Sequence[str] = (),
    crop: bool = True,
    together: bool = False,
) -> None:
    """Refuse what does not fit together, and what would have no effect."""
    if source is not None and perturbations:
        raise UsageError("hard negatives from files, and perturbations", fix="pass one or the other")
    if source is None and not (dataset is not None and perturbations):
        raise UsageError(
            "no hard negatives",
            fix="name their files, or pass a dataset and perturbations (--dataset captions.jsonl --perturb antonym)",
        )
    of_files = {"form": form is not None, "by": bool(by), "crop": not crop}
    beside, idle = ("perturbations", of_files) if source is None else ("cases", {"together": together})
    if isinstance(source, HardNegatives):
        beside, idle = "cases that are read already", {**of_files, **idle}
    for name in (one for one, given in idle.items() if given):
        raise UsageError(f"{name}= (--{name}) beside {beside}, where it has no effect", fix="leave it out")
