"""Hard negatives: a picture, the caption that is right, and captions that are nearly so.

A case has one picture with one right caption and one or more wrong ones; or, as in Winoground, two pictures with a
caption each, where each caption is wrong for the other picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.engine import Progress
from crosslens.metrics import format_count
from crosslens.perturbations import chosen_perturbations, is_image_perturbation, perturb_all, perturbations_with
from crosslens.storage import BoolArray, FloatArray, IntArray, fingerprint
from crosslens.values import Dataset

RIGHT, WRONG = "right", "wrong"
ACCURACY = ("accuracy",)
BOTH_WAYS = ("text", "image", "group")
"""Winoground's scores: the right caption for either picture, the right picture for either caption, and both."""

_SHAPES = "one image with one right caption and at least one wrong one, or two images with one right caption each"


@dataclass(frozen=True, eq=False)
class HardNegatives:
    """Cases over a dataset whose captions have the columns ``case`` and ``right``.

    ``cases``      one row per case: ``case`` (its id), and a column per grouping (null: the case is in none of them)
    ``groupings``  the columns of ``cases`` that results are grouped by
    ``averaged``   the grouping whose categories count equally in the macro average; None: there is none
    ``fewest``     smaller categories of ``averaged`` are left out of that average, as some papers do
    ``notes``      what a reader of the results has to know about the cases

    A wrong caption belongs to the image that it is compared with. Images may have a column ``photo``, the picture that
    they are parts of: intervals resample photos.
    """

    dataset: Dataset
    cases: pl.DataFrame
    groupings: tuple[str, ...] = ()
    averaged: str | None = None
    fewest: int = 1
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        captions = self.dataset.captions
        _check_columns(captions)
        for grouping in self.groupings:
            if grouping not in self.cases.columns:
                columns = [column for column in self.cases.columns if column != "case"]
                raise UnknownNameError("grouping", grouping, columns)
        if captions["case"].null_count():
            row = int(captions["case"].is_null().arg_true()[0])
            expected = "a case id in every row"
            raise InputError("a caption has no case", row=row, expected=expected, fix="fill in its case")
        shapes = captions.group_by("case", maintain_order=True).agg(
            pl.col("image").n_unique().alias("images"),
            pl.col("image").filter(pl.col("right")).n_unique().alias("described"),
            pl.col("right").sum().alias("right"),
            pl.len().alias("captions"),
        )
        single = (pl.col("images") == 1) & (pl.col("right") == 1) & (pl.col("captions") > 1)
        double = pl.all_horizontal(pl.col("images", "described", "right", "captions") == 2)
        for bad in shapes.filter(~(single | double)).head(1).iter_rows(named=True):
            counts = f"images {bad['images']}, captions {bad['captions']}, right ones {bad['right']}"
            problem = f"case {bad['case']!r}: {counts}"
            raise InputError(problem, expected=_SHAPES, fix="fix or remove the case")
        if shapes["images"].n_unique() > 1:
            raise InputError(
                "some cases have one image, others two", expected="one kind of cases", fix="split them into two sets"
            )

    @staticmethod
    def of(
        name: str,
        images: Mapping[str, Sequence[Any]],
        captions: Sequence[tuple[str, str, str, str, bool]],
        groups: Mapping[str, Sequence[str | None]],
        *,
        groupings: Sequence[str] | None = None,
        averaged: str | None = None,
        fewest: int = 1,
        notes: tuple[str, ...] = (),
        home: Path | None = None,
    ) -> HardNegatives:
        """From columns: images (``image``, ``file``, …), captions (id, image, text, case, right), groups per case."""
        columns = {**dict.fromkeys(("caption", "image", "text", "case"), pl.String), "right": pl.Boolean}
        table = pl.DataFrame(captions, schema=columns, orient="row")
        unique = pl.DataFrame(images).unique("image", keep="first", maintain_order=True)
        cases = table.select("case").unique(maintain_order=True)
        cases = cases.with_columns(pl.Series(key, list(labels), dtype=pl.String) for key, labels in groups.items())
        group_names = tuple(groups if groupings is None else groupings)
        return HardNegatives(Dataset(name, unique, table, home=home), cases, group_names, averaged, fewest, notes)

    @property
    def name(self) -> str:
        return self.dataset.name

    def __len__(self) -> int:
        return self.cases.height

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """Every caption of a case with every image of it: rows of ``case``, ``caption``, ``image``; ``right``."""
        captions = self.dataset.captions.select(
            pl.col("case").replace_strict(self.cases["case"], range(len(self)), return_dtype=pl.Int64),
            pl.int_range(pl.len()).alias("caption"),
            pl.Series("own", self.dataset.caption_image),
            "right",
        )
        case_images = captions.select("case", pl.col("own").alias("image")).unique(maintain_order=True)
        joined = captions.join(case_images, on="case", maintain_order="left_right")
        right = pl.col("right") & (pl.col("own") == pl.col("image"))
        return joined.select("case", "caption", "image", right.alias("right"))

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """What is measured: ``accuracy``, or the three scores of cases with two pictures."""
        return BOTH_WAYS if int(self.dataset.captions["right"].sum()) > len(self) else ACCURACY

    @cached_property
    def clusters(self) -> IntArray:
        """For each case the number of its photo (of two, the first)."""
        images = self.dataset.images
        photos = images["photo" if "photo" in images.columns else "image"].to_list()
        numbers: dict[str, int] = {}
        first = self.pairs.unique("case", keep="first", maintain_order=True)["image"].to_list()
        return np.array([numbers.setdefault(photos[image], len(numbers)) for image in first], np.int64)

    @cached_property
    def chances(self) -> Mapping[str, FloatArray]:
        """What guessing reaches in each case, by measure."""
        if self.measures == BOTH_WAYS:  # of the 24 orders of four scores 6 and 6 are right; 4 are in both ways
            chances = zip(BOTH_WAYS, (1 / 4, 1 / 4, 1 / 6), strict=True)
            return {measure: np.full(len(self), chance) for measure, chance in chances}
        counts = np.bincount(self.pairs["case"].to_numpy(), minlength=len(self))
        return {ACCURACY[0]: 1.0 / counts}

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("hard-negatives", {"dataset": self.dataset.fingerprint, "cases": self.cases})

    def select(self, mask: BoolArray) -> HardNegatives:
        """Only these cases, a true or false for each, and the images that they show."""
        if not mask.any():
            raise InputError(
                "no case is left", expected="at least one case", fix="check what the cases are selected by"
            )
        cases = self.cases.filter(pl.Series(mask))
        captions = self.dataset.captions.join(cases.select("case"), on="case", how="semi", maintain_order="left")
        images = self.dataset.images.join(captions.select("image"), on="image", how="semi", maintain_order="left")
        return replace(self, dataset=replace(self.dataset, images=images, captions=captions), cases=cases)

    def without(self, categories: Sequence[str]) -> HardNegatives:
        """The cases that are in none of these categories."""
        labels = {label for grouping in self.groupings for label in self.cases[grouping].drop_nulls()}
        for category in categories:
            if category not in labels:
                raise UnknownNameError("category", category, labels)
        excluded = pl.any_horizontal(pl.col(self.groupings).is_in(list(categories)).fill_null(False))
        return self.select(self.cases.select(~excluded).to_series().to_numpy())

    def by(self, columns: Sequence[str]) -> HardNegatives:
        """These cases grouped by other columns."""
        averaged = self.averaged if self.averaged in columns else None
        return replace(self, groupings=tuple(columns), averaged=averaged)

    def as_dataset(self) -> Dataset:
        """The dataset that ``crosslens encode`` takes, each caption with the groups of its case."""
        captions = self.dataset.captions
        new = [column for column in self.cases.columns if column == "case" or column not in captions.columns]
        captions = captions.join(self.cases.select(new), on="case", how="left", maintain_order="left")
        return replace(self.dataset, captions=captions)

    def __repr__(self) -> str:
        return f"HardNegatives({self.name!r}, {len(self):,} cases, {self.dataset.images.height:,} images)"


def hard_negatives_of(dataset: Dataset, by: Sequence[str] = ()) -> HardNegatives:
    """Cases from a dataset whose captions have the columns ``case`` and ``right``.

    Results are grouped by the columns ``by`` of the captions, or by ``category`` where there is one.
    """
    captions = dataset.captions
    _check_columns(captions)
    spelled = {**dict.fromkeys(("true", "1", "yes", RIGHT), True), **dict.fromkeys(("false", "0", "no", WRONG), False)}
    keys = [str(value).strip().lower() for value in captions["right"]]
    for row, key in enumerate(keys):
        if key not in spelled:
            value = captions["right"][row]
            raise InputError(f"right is {value!r}", row=row, expected="true or false", fix="correct this row")
    right = [spelled[key] for key in keys]
    captions = captions.with_columns(pl.col("case").cast(pl.String), pl.Series("right", right, dtype=pl.Boolean))
    groupings = tuple(by) or tuple({"category"} & set(captions.columns))
    for grouping in groupings:
        if grouping not in captions.columns:
            raise UnknownNameError("column", grouping, captions.columns)
    labels = [pl.col(grouping).cast(pl.String).first() for grouping in groupings]
    cases = captions.group_by("case", maintain_order=True).agg(labels)
    averaged = groupings[0] if len(groupings) == 1 else None
    return HardNegatives(replace(dataset, captions=captions), cases, groupings, averaged)


def _check_columns(captions: pl.DataFrame) -> None:
    for column in ("case", "right"):
        if column not in captions.columns:
            raise InputError(
                f"the captions have no column {column!r}",
                expected="the columns image, text, case (an id) and right (true or false)",
                fix=f"add it (found: {', '.join(captions.columns)})",
            )


def perturbed_negatives(
    dataset: Dataset,
    perturbations: str | Sequence[str],
    *,
    together: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> HardNegatives:
    """A dataset's captions as right ones, and what perturbations make of them as wrong ones.

    Each caption makes a case with each perturbation that applies to it, grouped by perturbation; with ``together`` one
    case with all of them. Where none applies there is no case.

    Only a perturbation that changes the meaning makes a negative: a synonym or a typing error does not make a caption
    wrong, and a model should not prefer the original to it.
    """
    names = chosen_perturbations(perturbations)
    for name in filter(is_image_perturbation, names):
        raise UsageError(f"{name} perturbs images, not captions", fix="choose perturbations of captions")
    perturbed = perturb_all(names, dataset, seed=seed, progress=progress)
    captions: list[tuple[str, str, str, str, bool]] = []
    rows = zip(dataset.caption_ids, dataset.captions["image"], dataset.texts, strict=True)
    for row, (caption, image, text) in enumerate(rows):
        wrong = {name: perturbed[name][row].text for name in names if perturbed[name][row].applied}
        cases = [(caption, wrong)] if together else [(f"{caption}/{name}", {"": wrong[name]}) for name in wrong]
        for case, wrong_texts in cases if wrong else ():
            captions.append((f"{case}:{RIGHT}", image, text, case, True))
            for name, wrong_text in wrong_texts.items():
                captions.append((f"{case}:{WRONG}{f'-{name}' if name else ''}", image, wrong_text, case, False))
    if not captions:
        reason = next((change.reason for change in perturbed[names[0]] if change.reason), "")
        raise InputError(
            f"{', '.join(names)} applies to none of {format_count(len(dataset.texts), 'caption')}"
            + (f" ({reason})" if reason else ""),
            expected="captions that can be changed",
            fix="choose other perturbations",
        )
    applied = {name: sum(change.applied for change in perturbed[name]) for name in names}
    counts = ", ".join(f"{name} {number:,}" for name, number in applied.items())
    notes = [f"Changed, of {format_count(len(dataset.texts), 'caption')}: {counts}."]
    if preserving := [name for name in names if name in perturbations_with("keeps_meaning")]:
        notes.append(f"No model need prefer the original to {', '.join(preserving)}: they leave a caption right.")
    images = dataset.images.select(name for name in ("image", "file") if name in dataset.images.columns)
    groups = [name for row in range(len(dataset.texts)) for name in names if perturbed[name][row].applied]
    return HardNegatives.of(
        dataset.name,
        images.filter(pl.col("image").is_in(list({row[1] for row in captions}))).to_dict(as_series=False),
        captions,
        {} if together else {"perturbation": groups},
        averaged=None if together or len(names) == 1 else "perturbation",
        notes=tuple(notes),
        home=dataset.home,
    )
