"""Hard negatives by perturbation: a dataset's captions as right ones, their perturbations as wrong ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from crosslens.analyze.hard_negatives.cases import RIGHT, WRONG, HardNegatives
from crosslens.core import Dataset, InputError, Progress, UsageError
from crosslens.metrics import format_count
from crosslens.perturbations import chosen_perturbations, is_image_perturbation, perturb_all, perturbations_with


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

    Only a perturbation that changes the meaning makes a negative: a synonym or a typing error does not make a caption
    wrong, and a model should not prefer the original to it.
    """
    names = chosen_perturbations(perturbations)
    for name in filter(is_image_perturbation, names):
        raise UsageError(f"{name} perturbs images, not captions", fix="choose perturbations of captions")
    perturbed = perturb_all(names, dataset, seed=seed, progress=progress, **options)
    captions = list(_case_captions(dataset, names, perturbed, together))
    if not captions:
        reason = next((change.reason for change in perturbed[names[0]] if change.reason), "")
        raise InputError(
            f"{', '.join(names)} applies to none of {format_count(len(dataset.texts), 'caption')}"
            + (f" ({reason})" if reason else ""),
            expected="captions that can be changed",
            fix="choose other perturbations",
        )
    applied = {name: sum(change.applied for change in perturbed[name]) for name in names}
    groups = [name for row in range(len(dataset.texts)) for name in names if perturbed[name][row].applied]
    return HardNegatives.of(
        dataset.name,
        _images(dataset, {row[1] for row in captions}),
        captions,
        {} if together else {"perturbation": groups},
        averaged=None if together or len(names) == 1 else "perturbation",
        notes=_notes(applied, len(dataset.texts)),
        home=dataset.home,
    )


def _case_captions(
    dataset: Dataset, names: Sequence[str], perturbed: Mapping[str, Sequence[Any]], together: bool
) -> Iterator[tuple[str, str, str, str, bool]]:
    """The captions (id, image, text, case, right) of every case."""
    owners = dataset.captions["image"].to_list()
    for row, (caption, image, text) in enumerate(zip(dataset.caption_ids, owners, dataset.texts, strict=True)):
        wrong = {name: perturbed[name][row].text for name in names if perturbed[name][row].applied}
        if together and wrong:
            yield f"{caption}:{RIGHT}", image, text, caption, True
        for name, other in wrong.items():
            case = caption if together else f"{caption}/{name}"
            if not together:
                yield f"{case}:{RIGHT}", image, text, case, True
            yield f"{case}:{WRONG}-{name}" if together else f"{case}:{WRONG}", image, other, case, False


def _images(dataset: Dataset, used: set[str]) -> dict[str, list[Any]]:
    columns = [name for name in ("image", "file") if name in dataset.images.columns]
    return dataset.images.select(columns).filter(pl.col("image").is_in(list(used))).to_dict(as_series=False)


def _notes(applied: dict[str, int], captions: int) -> tuple[str, ...]:
    listed = ", ".join(f"{name} {number:,}" for name, number in applied.items())
    notes = [f"Changed, of {format_count(captions, 'caption')}: {listed}."]
    if preserving := [name for name in applied if name in perturbations_with("keeps_meaning")]:
        notes.append(f"No model need prefer the original to {', '.join(preserving)}: they leave a caption right.")
    return tuple(notes)
