"""Every figure of docs/results/training-flickr8k.md: models trained on Flickr8k, and adaptive against fixed margins.

    python reproduce/training.py --work models --device cuda     # train what is missing; the same command resumes
    python reproduce/training.py --work models --part models     # one part: models, margins or tau
    python reproduce/training.py --work models --write           # the page, from finished models alone

A model is a folder below the work folder: recipe, share of the data, seed. One of other settings counts as missing. The
data: CROSSLENS_DATA, or ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from crosslens.core import HEADER_FILE, read_header
from crosslens.core.rendering import Grid
from crosslens.train import TrainingRecipe, load_features, load_training_recipe, recipe_names, train_model
from crosslens.train.stored.model_folder import KIND, MODEL_LAYOUT
from pages import markdown, real_data, update_page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "training-flickr8k.md"
EXTRA = "mAP@R MedR[all] Nsum Nsum[spice]"
MISSING = "–"

MODELS = (
    "flickr8k-vse-sum", "flickr8k-vse-triplet", "flickr8k-vse-infonce", "flickr8k-scan-t2i", "flickr8k-scan-i2t",
    "flickr8k-vsrn", "flickr8k-cvse", "flickr8k-sgr", "flickr8k-saf", "flickr8k-pvse-base", "flickr8k-pvse-k1",
    "flickr8k-pvse-k2", "flickr8k-pvse-k5", "flickr8k-pcme", "flickr8k-dive-k2", "flickr8k-dive", "flickr8k-dive-k5",
    "flickr8k-best",
)  # fmt: skip
MODEL_FIGURES = ("Rsum", "i2t/MedR", "t2i/MedR", "i2t/MedR[all]", "i2t/mAP@R", "t2i/mAP@R")
MODEL_SEEDS = range(3)

FIXED = "flickr8k-vse-triplet"
MARGINS = (
    "flickr8k-vse-sam-random", "flickr8k-vse-sam-hard", "flickr8k-vse-sam-soft", "flickr8k-vse-sam-all",
    "flickr8k-vse-released-random", "flickr8k-vse-released-hard", "flickr8k-vse-released-soft",
    "flickr8k-vse-released-mixed", "flickr8k-vse-infonce", "flickr8k-vse-graded-infonce",
)  # fmt: skip
MARGIN_FIGURES = ("Rsum", "Nsum", "Nsum[spice]")
FRACTIONS = (0.1, 0.25, 1.0)
SEEDS = range(5)

SAMPLINGS, TAUS, STUDIED = ("random", "hard", "soft"), (3.0, 5.0, 10.0), 0.1

SKELETON = """# Models trained on Flickr8k

`python reproduce/training.py --work models` trains what the tables below hold, `--write` puts the figures here. Every
model is a recipe that `crosslens train` runs by its name:
`crosslens train NAME --data flickr8k --fraction 0.1 --seed 0 -o …`. Figures are of the 1,000 test images with five
captions each, at the checkpoint that is best on validation: the mean over seeds ± the standard deviation. Rsum and Nsum
are in percent.

## All models

<!-- begin: models -->
<!-- end: models -->

## Adaptive against fixed margins

The same model and budget, five seeds. p is of the paired t test over seeds against the fixed margin, on Rsum. Nsum is
of NCS with CIDEr, Nsum[spice] with SPICE.

<!-- begin: margins -->
<!-- end: margins -->

## Sampling and τ

A tenth of the training images; with the triplet loss (T ✓) and without it (T ✗).

<!-- begin: tau -->
<!-- end: tau -->
"""


@dataclass(frozen=True)
class Cell:
    """One training: a recipe with its seed and share of the data, and its folder below the work folder."""

    recipe: TrainingRecipe
    folder: str

    def card(self, work: Path) -> Mapping[str, Any] | None:
        """Of the finished model; None where there is none with these settings."""
        folder = work / self.folder
        if not MODEL_LAYOUT.holds(folder):
            return None
        card = read_header(folder / HEADER_FILE, KIND)
        return card if card.get("identity") == json.loads(json.dumps(self.recipe.identity())) else None

    def train(self, work: Path, data: Path, device: str | None) -> None:
        """Train it, or continue."""
        settings = {"device": device, "test_metrics": EXTRA}
        recipe = self.recipe.with_settings(settings)
        features = _features(recipe.layout, data, json.dumps(dict(recipe.data)))
        train_model(recipe, features, work / self.folder, overwrite=True)


@cache
def _features(layout: str, folder: Path, options: str) -> Any:
    return load_features(layout, folder, json.loads(options))


def cells_of(recipe: TrainingRecipe, seeds: Iterable[int], fraction: float = 1.0) -> list[Cell]:
    """The trainings of a row."""
    chosen = [recipe.with_settings({"seed": seed, "fraction": fraction}) for seed in seeds]
    return [Cell(seeded, f"{recipe.name}/{fraction:g}/seed-{seeded.settings.seed}") for seeded in chosen]


def tau_recipe(sampling: str, tau: float, kept: bool) -> TrainingRecipe:
    """The fixed margin's recipe with adaptive margins added, or with them alone."""
    base = load_training_recipe(FIXED)
    losses = (*(base.losses if kept else ()), {"kind": "sam", "sampling": sampling, "tau": tau, "weight": 5.0})
    name = f"{FIXED.removesuffix('-triplet')}-sam-{sampling}"
    if tau != load_training_recipe(name).losses[-1]["tau"] or not kept:  # otherwise it is that recipe
        name += f"-tau{tau:g}" + ("" if kept else "-alone")
    return replace(base, name=name, losses=losses)


# Parts: the trainings of each, and its table


def model_cells() -> dict[str, list[Cell]]:
    """Of every model whose recipe there is."""
    names = recipe_names()
    return {name: cells_of(load_training_recipe(name), MODEL_SEEDS) if name in names else [] for name in MODELS}


def margin_cells() -> dict[tuple[str, float], list[Cell]]:
    """Of every loss and share of the data."""
    return {
        (name, fraction): cells_of(load_training_recipe(name), SEEDS, fraction)
        for fraction in FRACTIONS
        for name in (FIXED, *MARGINS)
    }


def tau_cells() -> dict[tuple[str, float, bool], list[Cell]]:
    """Of every sampling and τ."""
    return {
        (sampling, tau, kept): cells_of(tau_recipe(sampling, tau, kept), SEEDS, STUDIED)
        for sampling in SAMPLINGS
        for tau in TAUS
        for kept in (True, False)
    }


def model_table(work: Path) -> str:
    """A row per model."""
    rows = [
        (f"`{name}`", *(figure(values(work, cells, metric)) for metric in MODEL_FIGURES))
        for name, cells in model_cells().items()
    ]
    return markdown(Grid(("recipe", *MODEL_FIGURES), tuple(rows), "l" + "r" * len(MODEL_FIGURES)))


def margin_table(work: Path) -> str:
    """A row per share of the data and loss, with its difference from the fixed margin."""
    rows = []
    cells = margin_cells()
    for (name, fraction), own in cells.items():
        figures = [figure(values(work, own, metric)) for metric in MARGIN_FIGURES]
        fixed = values(work, cells[FIXED, fraction], "Rsum")
        rows.append((f"{fraction:.0%}", f"`{name}`", *figures, *difference(values(work, own, "Rsum"), fixed, name)))
    header = ("images", "recipe", *MARGIN_FIGURES, "Rsum − fixed", "p")
    return markdown(Grid(header, tuple(rows), "rl" + "r" * (len(header) - 2)))


def tau_table(work: Path) -> str:
    """A row per sampling, τ, and whether the triplet loss is kept."""
    rows = [
        (sampling, f"{tau:g}", "✓" if kept else "✗", *(figure(values(work, own, metric)) for metric in MARGIN_FIGURES))
        for (sampling, tau, kept), own in tau_cells().items()
    ]
    return markdown(Grid(("negatives", "τ", "T", *MARGIN_FIGURES), tuple(rows), "lrl" + "r" * len(MARGIN_FIGURES)))


def values(work: Path, cells: Sequence[Cell], metric: str) -> list[float] | None:
    """The metric of each seed; None unless all seeds are finished and have it."""
    cards = [cell.card(work) for cell in cells]
    tests = [card["test"] for card in cards if card is not None and metric in card["test"]]
    return [float(test[metric]) for test in tests] if tests and len(tests) == len(cells) else None


def figure(series: Sequence[float] | None) -> str:
    """The mean over seeds ± the standard deviation."""
    if series is None:
        return MISSING
    digits = 1 if np.mean(series) >= 10 else 3
    return f"{np.mean(series):.{digits}f} ± {np.std(series, ddof=1):.{digits}f}"


def difference(own: Sequence[float] | None, fixed: Sequence[float] | None, name: str) -> tuple[str, str]:
    """The mean difference over seeds, and the p-value of the paired t test."""
    if own is None or fixed is None or name == FIXED:
        return ("" if name == FIXED else MISSING,) * 2
    return f"{np.mean(own) - np.mean(fixed):+.1f}", f"{ttest_rel(own, fixed).pvalue:.2g}"


PARTS: dict[str, tuple[Callable[[], Mapping[Any, list[Cell]]], Callable[[Path], str]]] = {
    "models": (model_cells, model_table),
    "margins": (margin_cells, margin_table),
    "tau": (tau_cells, tau_table),
}


def unfinished(work: Path, parts: Iterable[str]) -> list[Cell]:
    """What is still to be trained: seed by seed, so that every row gets its first seed first."""
    cells = {cell.folder: cell for part in parts for row in PARTS[part][0]().values() for cell in row}
    return sorted(
        (cell for cell in cells.values() if cell.card(work) is None),
        key=lambda cell: (cell.recipe.settings.seed, cell.recipe.settings.fraction),
    )


def main() -> int:
    """Train what is missing, or write the page from what is finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="where the models are")
    parser.add_argument("--part", choices=PARTS, action="append", help="one part only; several times for several")
    parser.add_argument("--device", help="cpu, cuda, cuda:1")
    parser.add_argument("--write", action="store_true", help="train nothing: write the page from finished models")
    asked = parser.parse_args()
    parts = asked.part or list(PARTS)
    if not asked.write:
        data = real_data("flickr8k") / "flickr8k"
        waiting = unfinished(asked.work, parts)
        for number, cell in enumerate(waiting, 1):
            print(f"{number} of {len(waiting)}: {cell.folder}", flush=True)
            cell.train(asked.work, data, asked.device)
    elif not PAGE.exists():
        PAGE.write_text(SKELETON, encoding="utf-8")
    for cell in unfinished(asked.work, parts):
        print(f"missing: {cell.folder}", file=sys.stderr)
    for name in MODELS:
        if "models" in parts and name not in recipe_names():
            print(f"missing: there is no recipe {name}", file=sys.stderr)
    tables = {part: PARTS[part][1](asked.work) for part in parts}
    if not PAGE.exists():
        print("\n\n".join(tables.values()))
        return 0
    return update_page(PAGE, tables, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
