"""What is changed: the variants of a dataset, each with the same ids and with other captions or other pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.ids import positions
from crosslens.core.progress import Progress
from crosslens.perturb import PERTURBATIONS, Edit, Perturbed, perturb_all
from crosslens.perturb.choice import is_image_perturbation
from crosslens.perturb.writing import read_perturbed

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

ORIGINAL = "original"
"""What the unchanged dataset is called among the variants."""
GIVEN = "given"
"""The level of a variant that came ready-made and is no perturbation we know."""
IMAGES = "images"


@dataclass(frozen=True, eq=False)
class Variant:
    """A changed dataset: ``captions`` says what happened to every caption; None where the pictures changed."""

    perturbation: str
    seed: int
    label: str
    level: str
    dataset: Dataset
    captions: tuple[Perturbed, ...] | None = None
    pictures: Dataset | None = None
    """Where the changed pictures lie, if they are there already."""

    @cached_property
    def applied(self) -> BoolArray:
        """Per caption, whether the question it asks changed: its text, or all the pictures."""
        if self.captions is None:
            return np.ones(len(self.dataset.caption_ids), np.bool_)
        return np.fromiter((one.applied for one in self.captions), np.bool_, len(self.captions))

    def table(self) -> pl.DataFrame:
        """Every caption before and after, with its edits; nothing where only pictures changed."""
        rows = [
            (self.perturbation, self.seed, id, one.original, one.text, one.applied, one.reason,
             [{"start": e.start, "end": e.end, "before": e.before, "after": e.after} for e in one.edits])
            for id, one in zip(self.dataset.caption_ids, self.captions or (), strict=False)
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=CAPTION_COLUMNS, orient="row")


CAPTION_COLUMNS: Mapping[str, Any] = {
    "perturbation": pl.String,
    "seed": pl.Int64,
    "caption": pl.String,
    "original": pl.String,
    "text": pl.String,
    "applied": pl.Boolean,
    "reason": pl.String,
    "edits": pl.List(pl.Struct({"start": pl.Int64, "end": pl.Int64, "before": pl.String, "after": pl.String})),
}


def make_variants(
    dataset: Dataset,
    names: Sequence[str],
    seeds: Sequence[int],
    *,
    corpus: Dataset | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Variant]:
    """Every perturbation of the dataset under every seed; captions are parsed once.

    ``corpus`` is the dataset that this one is a part of: what occurs in it decides what ``color_in`` chooses from.
    """
    texts = [name for name in names if not is_image_perturbation(name)]
    if options and not texts:
        raise UsageError(
            f"options ({', '.join(options)}), but no captions to perturb here", fix="leave the options out"
        )
    variants = []
    for seed in seeds:
        found = (
            perturb_all(texts, dataset, corpus=corpus, seed=seed, threads=threads, progress=progress, **(options or {}))
            if texts
            else {}
        )
        for name in names:
            label = name if seed == seeds[0] else f"{name}.seed{seed}"
            if name in found:
                level = PERTURBATIONS[name].details["level"]
                variants.append(Variant(name, seed, label, level, _with_texts(dataset, found[name]), found[name]))
            else:
                variants.append(Variant(name, seed, label, IMAGES, dataset))
    return variants


def given_variant(dataset: Dataset, name: str, changed: Dataset, seed: int = 0) -> Variant:
    """A variant that somebody wrote as a dataset, with the same ids: other captions, or (``blur@3``) other pictures."""
    if is_image_perturbation(name):
        return Variant(name, seed, name, IMAGES, dataset, pictures=changed)
    try:
        rows = positions(dataset.caption_ids, changed.caption_ids, "caption")
    except InputError as error:
        raise InputError(
            f"the variant {name!r} is not of the same captions: {error.problem}",
            expected="a caption of the same id for every caption of the dataset",
            fix="perturb the very dataset that is evaluated",
        ) from error
    known = (
        read_perturbed(changed) if {"original", "applied", "reason", "edits"} <= set(changed.captions.columns) else None
    )
    results = []
    for place, row in enumerate(rows):
        old, new = dataset.texts[place], changed.texts[row]
        if known is not None and known[row].original != old:
            raise InputError(
                f"the variant {name!r} was made from another text of caption {dataset.caption_ids[place]!r}",
                expected=repr(old),
                fix="perturb the very dataset that is evaluated",
            )
        results.append(Perturbed(old, new, old != new, edits=whole_edit(old, new)) if known is None else known[row])
    level = PERTURBATIONS[name].details["level"] if name in PERTURBATIONS else GIVEN
    return Variant(name, seed, name, level, _with_texts(dataset, results), tuple(results))


def whole_edit(old: str, new: str) -> tuple[Edit, ...]:
    """One edit from the first character that differs to the last; none where nothing does."""
    if old == new:
        return ()
    start = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    tail = 0
    while tail < min(len(old), len(new)) - start and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return (Edit(start, len(old) - tail, old[start : len(old) - tail], new[start : len(new) - tail]),)


def _with_texts(dataset: Dataset, results: Sequence[Perturbed]) -> Dataset:
    """The dataset with other texts; what was done stands beside them, for grouping."""
    columns = dataset.captions.with_columns(
        pl.Series("text", [one.text for one in results], dtype=pl.String),
        pl.Series("original", [one.original for one in results], dtype=pl.String),
        pl.Series("applied", [one.applied for one in results], dtype=pl.Boolean),
    )
    return replace(dataset, captions=columns)
