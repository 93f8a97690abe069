"""Every figure of docs/results/training-flickr8k.md: models trained on Flickr8k, and adaptive against fixed margins.

    python reproduce/training.py --work models --device cuda --jobs 15   # what is missing; the same command resumes
    python reproduce/training.py --work models --part models             # one part: margins, five-table-2, …
    python reproduce/training.py --write                                 # the page, from the figures that are there

A model is a folder below the work folder: recipe, share of the data, seed. Its figures are kept in
training_figures.jsonl beside this script, from which the tables are made; a training of other settings than its line
counts as missing. The data: CROSSLENS_DATA, or ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from crosslens.core.rendering import Grid, decimal
from crosslens.train import TrainingRecipe, load_training_recipe as read_recipe
from pages import markdown, real_data, update_page
from training_cells import Cell, Figures, cells_of, train_cells

load_training_recipe = cache(read_recipe)
"""Read once: thousands of cells are of a few recipes."""

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "training-flickr8k.md"
FIGURES = Path(__file__).with_name("training_figures.jsonl")
MISSING = "–"

MODELS = (
    "flickr8k-vse-sum", "flickr8k-vse-triplet", "flickr8k-vse-infonce", "flickr8k-scan-t2i", "flickr8k-scan-i2t",
    "flickr8k-vsrn", "flickr8k-cvse", "flickr8k-sgr", "flickr8k-saf", "flickr8k-pvse-base", "flickr8k-pvse-k1",
    "flickr8k-pvse-k2", "flickr8k-pvse-k5", "flickr8k-pcme", "flickr8k-dive-k2", "flickr8k-dive", "flickr8k-dive-k5",
    "flickr8k-best",
)  # fmt: skip
MODEL_FIGURES = ("Rsum", "i2t/MedR", "t2i/MedR", "i2t/MedR[all]", "i2t/mAP@R", "t2i/mAP@R")

FIXED = "flickr8k-vse-triplet"
SAMPLINGS = ("random", "hard", "soft")
ADAPTIVE = tuple(f"flickr8k-vse-sam-{sampling}" for sampling in SAMPLINGS)
MARGINS: Mapping[float, tuple[str, ...]] = {
    0.1: (FIXED, *ADAPTIVE, "flickr8k-vse-sum", "flickr8k-vse-infonce"),
    0.25: (FIXED, *ADAPTIVE, "flickr8k-vse-infonce"),
    1.0: (FIXED, ADAPTIVE[0], "flickr8k-vse-sum", "flickr8k-vse-infonce"),
}
VARIANTS = (
    "flickr8k-vse-sam-all", "flickr8k-vse-released-random", "flickr8k-vse-released-hard", "flickr8k-vse-released-soft",
    "flickr8k-vse-released-mixed", "flickr8k-vse-graded-infonce",
)  # fmt: skip
"""Of a tenth of the data only, with three seeds."""
MARGIN_FIGURES = ("Rsum", "i2t/NCS[cider]@10", "t2i/NCS[cider]@10", "i2t/NCS[spice]@10", "t2i/NCS[spice]@10")
SEEDS, FEWER_SEEDS = range(5), range(3)

STUDIED = 0.1
"""The share of the training images in the studies of τ and of losses."""
TAUS = (3.0, 5.0, 10.0)
TAU_FIGURES = ("Rsum", "Nsum[cider]", "Nsum[spice]")

Losses = tuple[dict[str, Any], ...]


def sam(sampling: str = "random", tau: float = 3.0, weight: float = 1.0, **settings: Any) -> dict[str, Any]:
    """The entry of a loss with adaptive margins."""
    return {"kind": "sam", "sampling": sampling, "tau": tau, "weight": weight, **settings}


def triplet(negatives: str = "hardest", margin: float = 0.2) -> dict[str, Any]:
    """The entry of a loss with a fixed margin."""
    return {"kind": "triplet", "margin": margin, "negatives": negatives}


def infonce(**settings: Any) -> dict[str, Any]:
    """The entry of InfoNCE."""
    return {"kind": "infonce", "temperature": 0.05, **settings}


SEARCHED: Mapping[str, tuple[str, Losses]] = {
    "triplet, margin 0.1": ("cider", (triplet(margin=0.1),)),
    "triplet, margin 0.2": ("cider", (triplet(),)),
    "triplet, margin 0.3": ("cider", (triplet(margin=0.3),)),
    "triplet + 0.3 SAM random": ("cider", (triplet(), sam(weight=0.3))),
    "triplet + SAM random": ("cider", (triplet(), sam())),
    "triplet + 5 SAM random": ("cider", (triplet(), sam(weight=5.0))),
    "triplet + SAM random, ROUGE-L, τ 0.3": ("rouge-l", (triplet(), sam(tau=0.3))),
    "triplet + SAM random, ROUGE-L, τ 1": ("rouge-l", (triplet(), sam(tau=1.0))),
    "triplet (sum) + SAM random": ("cider", (triplet("sum"), sam())),
    "triplet + SAM random + SAM hard": ("cider", (triplet(), sam(), sam("hard"))),
    "InfoNCE": ("cider", (infonce(),)),
    "InfoNCE, learnt temperature": ("cider", (infonce(learnt=True),)),
    "128 InfoNCE + SAM random": ("cider", (infonce(weight=128.0), sam())),
    "128 InfoNCE + 0.3 SAM random": ("cider", (infonce(weight=128.0), sam(weight=0.3))),
    "graded InfoNCE, share 0.9": (
        "cider", ({"kind": "graded-infonce", "temperature": 0.05, "target_temperature": 0.2, "share": 0.9},),
    ),
    "SigLIP": ("cider", ({"kind": "siglip"},)),
}  # fmt: skip
SEARCH_SEEDS = range(2)
FRACTIONS = (0.1, 0.25)
"""The shares of FIVE's Table 2."""
PUBLISHED_TAU, PUBLISHED_WEIGHT = 6.0, 5.0
"""Of SAM on reduced data, with random negatives, in the published scripts."""
R_AT_K = tuple(f"{direction}/Hit@{k}" for direction in ("i2t", "t2i") for k in (1, 5, 10))
N_AT_K = tuple(f"{direction}/NCS[spice]@{k}" for direction in ("i2t", "t2i") for k in (1, 5, 10))
FIVE_SUMS = {"Nsum[spice]": "Nsum", "Nsum[spice, non-gt]": "Nsum(N)", "Rsum": "Rsum"}
SHORT = {"random": "RS", "hard": "HN", "soft": "SN"}
TEST_IMAGES, CAPTIONS = 1000, 5
"""Of Flickr8k's test split, and of Flickr30k's."""

BEST = "128 InfoNCE + SAM random"
"""The first of the search by validation; it is the recipe flickr8k-vse-infonce-sam."""


# Parts: the trainings of each, and its table


def model_cells() -> dict[str, list[Cell]]:
    """Of every model."""
    return {name: cells_of(load_training_recipe(name), FEWER_SEEDS) for name in MODELS}


def margin_cells() -> dict[tuple[str, float], list[Cell]]:
    """Of every loss and share of the data."""
    cells = {
        (name, fraction): cells_of(load_training_recipe(name), SEEDS, fraction)
        for fraction, names in MARGINS.items()
        for name in names
    }
    return cells | {(name, STUDIED): cells_of(load_training_recipe(name), FEWER_SEEDS, STUDIED) for name in VARIANTS}


def search_cells() -> dict[str, list[Cell]]:
    """Of every loss that is tried; folders are numbered, as the names are not those of files."""
    base = load_training_recipe(FIXED)
    return {
        label: cells_of(replace(base, name=f"search-{number}", losses=losses, phi=phi), SEARCH_SEEDS, STUDIED)
        for number, (label, (phi, losses)) in enumerate(SEARCHED.items())
    }


def tau_recipe(sampling: str, tau: float, kept: bool) -> TrainingRecipe:
    """The fixed margin's recipe with adaptive margins added, or with them alone."""
    base = load_training_recipe(FIXED)
    name = f"flickr8k-vse-sam-{sampling}"
    if tau != load_training_recipe(name).losses[-1]["tau"] or not kept:  # otherwise it is that recipe
        name += f"-tau{tau:g}" + ("" if kept else "-alone")
    return replace(base, name=name, losses=(*(base.losses if kept else ()), sam(sampling, tau)))


def tau_cells() -> dict[tuple[str, float, bool], list[Cell]]:
    """Of every sampling and τ."""
    return {
        (sampling, tau, kept): cells_of(tau_recipe(sampling, tau, kept), FEWER_SEEDS, STUDIED)
        for sampling in SAMPLINGS
        for tau in TAUS
        for kept in (True, False)
    }


def paper_models() -> dict[str, TrainingRecipe]:
    """FIVE's models on Flickr8k without SAM: their own losses, and InfoNCE where the hardest negatives do not train.

    InfoNCE is a mean over the batch of 128 and SAM a sum: the weight puts both on one scale, with SAM and without it.
    """
    cvse, sgr, vsrn = (load_training_recipe(f"flickr8k-{name}") for name in ("cvse", "sgr", "vsrn"))
    generated = {"kind": "captioning"}
    return {
        "CVSE": cvse,
        "SGR": replace(sgr, name="flickr8k-sgr-triplet-hardest", losses=(triplet(),)),
        "SGR, InfoNCE": replace(sgr, name="flickr8k-sgr-infonce", losses=(infonce(weight=128.0),)),
        "VSRN": replace(vsrn, name="flickr8k-vsrn-triplet-captioning", losses=(triplet(), generated)),
        "VSRN, InfoNCE": replace(
            vsrn, name="flickr8k-vsrn-infonce-captioning", losses=(infonce(weight=128.0), generated)
        ),
    }


def with_sam(recipe: TrainingRecipe, sampling: str, tau: float, weight: float, *, kept: bool = True) -> TrainingRecipe:
    """The same recipe with SAM; without its triplet loss unless that is kept."""
    name = f"{recipe.name}-sam-{sampling}-tau{tau:g}-weight{weight:g}" + ("" if kept else "-alone")
    others = [entry for entry in recipe.losses if kept or entry["kind"] != "triplet"]
    return replace(recipe, name=name, losses=(*others, sam(sampling, tau, weight)))


def table_2_cells() -> dict[tuple[str, str, float], list[Cell]]:
    """Of every model, loss and share of the data in FIVE's Table 2."""
    rows: dict[tuple[str, str], TrainingRecipe] = {}
    for model, recipe in paper_models().items():
        rows[model, ""] = recipe
        for tau, weight in ((PUBLISHED_TAU, PUBLISHED_WEIGHT), (3.0, 1.0)):
            rows[model, f" + SAM, τ {tau:g}, weight {weight:g}"] = with_sam(recipe, "random", tau, weight)
    return {
        (*row, fraction): cells_of(recipe, FEWER_SEEDS, fraction)
        for fraction in FRACTIONS
        for row, recipe in rows.items()
    }


def cvse_cells() -> dict[tuple[str, float, bool, float], list[Cell]]:
    """Of CVSE with every sampling and τ of FIVE's Tables 4 and 5."""
    return {
        (sampling, tau, kept, fraction): cells_of(
            with_sam(paper_models()["CVSE"], sampling, tau, PUBLISHED_WEIGHT, kept=kept), FEWER_SEEDS, fraction
        )
        for fraction in FRACTIONS
        for sampling in SAMPLINGS
        for tau in TAUS
        for kept in (True, False)
    }


def sampling_cells() -> dict[tuple[str, str], list[Cell]]:
    """Of every model and sampling on a tenth of the images."""
    recipes = {
        (model, sampling): with_sam(recipe, sampling, PUBLISHED_TAU, PUBLISHED_WEIGHT) if sampling else recipe
        for model, recipe in paper_models().items()
        for sampling in ("", *SAMPLINGS)
    }
    return {row: cells_of(recipe, FEWER_SEEDS, STUDIED) for row, recipe in recipes.items()}


def table_2(figures: Figures) -> str:
    """As FIVE's Table 2: recall and NCS at 1, 5 and 10, and their sums, beside the sums that the paper prints."""
    cells, rows = table_2_cells(), []
    for (model, losses, fraction), own in cells.items():
        base = cells[model, "", fraction]
        parts = ([plain_mean(figures.values(own, metric)) for metric in names] for names in (R_AT_K, N_AT_K))
        sums = (compared_text(figures, own, base, metric) for metric in ("Rsum", "Nsum[spice]"))
        columns = [text for part, total in zip(parts, sums, strict=True) for text in (*part, total)]
        printed = published_text(model, losses, fraction)
        rows.append((f"{fraction:.0%}", f"{model}{losses}", *columns, printed))
    recalls, scores = (
        [name.replace("Hit", "R").replace("NCS[spice]", "N") for name in names] for names in (R_AT_K, N_AT_K)
    )
    header = ("images", "model", *recalls, "Rsum", *scores, "Nsum", "FIVE: Rsum, Nsum")
    return markdown(Grid(header, tuple(rows), "rl" + "r" * (len(header) - 2)))


def published_text(model: str, losses: str, fraction: float) -> str:
    """What FIVE prints for this row, of Flickr30k; other losses than the paper's have none."""
    settings = {"": "triplet", f" + SAM, τ {PUBLISHED_TAU:g}, weight {PUBLISHED_WEIGHT:g}": "sam-random-tau6"}
    if model not in ("CVSE", "SGR") or losses not in settings:
        return MISSING
    recipe = load_training_recipe(f"f30k-{model.lower()}-{settings[losses]}")
    row = next(row for row in recipe.published if row.table == f"FIVE Table 2, F-{fraction:.0%}")
    return f"{row.figures['Rsum']:.1f}, {row.figures['Nsum']:.1f}"


def sampling_and_tau(samplings: Sequence[str]) -> Callable[[Figures], str]:
    """As FIVE's Table 4 (soft) or 5 (random and hard): a row per τ, sampling, and whether the triplet loss is kept."""

    def table(figures: Figures) -> str:
        cells, rows = cvse_cells(), []
        for sampling in samplings:
            for tau in TAUS:
                for kept in (True, False):
                    own = [
                        mean_text(figures.values(cells[sampling, tau, kept, fraction], metric))
                        for fraction in FRACTIONS
                        for metric in FIVE_SUMS
                    ]
                    rows.append((f"{tau:g}", SHORT[sampling], "✓" if kept else "✗", *own))
        sums = [f"{fraction:.0%}: {name}" for fraction in FRACTIONS for name in FIVE_SUMS.values()]
        header = ("τ", "S", "T", *sums)
        return markdown(Grid(header, tuple(rows), "rll" + "r" * (len(header) - 3)))

    return table


def sampling_table(figures: Figures) -> str:
    """A row per model, a column per sampling that Table 2 does not have: Rsum, and its difference without SAM."""
    cells, samplings = sampling_cells(), SAMPLINGS[1:]
    rows = [
        (model, *(compared_text(figures, cells[model, name], cells[model, ""], "Rsum") for name in samplings))
        for model in dict.fromkeys(model for model, _ in cells)
    ]
    return markdown(Grid(("model", *samplings), tuple(rows), "lrr"))


def chance_rsum() -> float:
    """Rsum of a random order of the test split."""
    texts = TEST_IMAGES * CAPTIONS
    missed = (comb(texts - CAPTIONS, k) / comb(texts, k) for k in (1, 5, 10))
    return sum(100 * (1 - share) for share in missed) + sum(100 * k / TEST_IMAGES for k in (1, 5, 10))


def plain_mean(series: Sequence[float]) -> str:
    """The mean over seeds alone, where a table has many columns."""
    return mean_text([float(np.mean(series))] if series else [])


def model_table(figures: Figures) -> str:
    """A row per model, of the seeds that are finished."""
    rows = []
    for name, cells in model_cells().items():
        columns = [figures.values(cells, metric) for metric in MODEL_FIGURES]
        rows.append((f"`{name}`", *map(mean_text, columns)))
    header = ("recipe", *MODEL_FIGURES)
    return markdown(Grid(header, tuple(rows), "l" + "r" * (len(header) - 1)))


def margin_table(figures: Figures) -> str:
    """A row per share of the data and loss, each figure with its difference from the fixed margin."""
    cells, rows = margin_cells(), []
    for (name, fraction), own in sorted(cells.items(), key=lambda row: row[0][1]):
        columns = (compared_text(figures, own, cells[FIXED, fraction], metric) for metric in MARGIN_FIGURES)
        rows.append((f"{fraction:.0%}", f"`{name}`", str(len(own)), *columns))
    header = ("images", "recipe", "seeds", *MARGIN_FIGURES)
    return markdown(Grid(header, tuple(rows), "rlr" + "r" * len(MARGIN_FIGURES)))


def compared_text(figures: Figures, own: Sequence[Cell], fixed: Sequence[Cell], metric: str) -> str:
    """The figure; of another loss than the fixed margin with the mean difference and p of the paired t test."""
    measured, compared = (figures.values(cells, metric) for cells in (own, fixed[: len(own)]))
    if own[0] == fixed[0] or len(measured) < len(own) or len(compared) < len(own):
        return mean_text(measured)
    change = percent(measured).mean() - percent(compared).mean()
    return f"{mean_text(measured)} ({decimal(change, 1, signed=True)}, p {ttest_rel(measured, compared).pvalue:.1g})"


def search_table(figures: Figures) -> str:
    """A row per loss, by its figure on the validation images, the best first."""
    rows = [(label, figures.values(cells, "Rsum", "validation")) for label, cells in search_cells().items()]
    rows.sort(key=lambda row: -np.mean(row[1]) if row[1] else np.inf)
    return markdown(Grid(("loss", "Rsum on validation"), tuple((label, mean_text(row)) for label, row in rows), "lr"))


def confirmed_cells() -> dict[str, list[Cell]]:
    """Of the loss that is best on validation, and of what explains it: five seeds each."""
    base = load_training_recipe(FIXED)
    # With a tiny τ every margin is the largest one: a fixed margin of the mean size of SAM's, with its sampling.
    unadapted = replace(base, name="random-margin", losses=(triplet(), sam(tau=1e-3, largest=0.84)))
    recipes = {
        "triplet + margin 0.84 against random negatives": unadapted,
        BEST: load_training_recipe("flickr8k-vse-infonce-sam"),
    }
    return {label: cells_of(recipe, SEEDS, STUDIED) for label, recipe in recipes.items()}


def confirmation(figures: Figures) -> str:
    """Those rows on the test images, each with its difference from the fixed margin."""
    cells = confirmed_cells()
    fixed = cells_of(load_training_recipe(FIXED), SEEDS, STUDIED)
    rows = [
        (label, *(compared_text(figures, own, fixed, metric) for metric in MARGIN_FIGURES))
        for label, own in cells.items()
    ]
    return markdown(Grid(("loss", *MARGIN_FIGURES), tuple(rows), "l" + "r" * len(MARGIN_FIGURES)))


def tau_table(figures: Figures) -> str:
    """A row per sampling, τ, and whether the triplet loss is kept."""
    rows = [
        (sampling, f"{tau:g}", "✓" if kept else "✗", *(mean_text(figures.values(own, name)) for name in TAU_FIGURES))
        for (sampling, tau, kept), own in tau_cells().items()
    ]
    return markdown(Grid(("negatives", "τ", "T", *TAU_FIGURES), tuple(rows), "lrl" + "r" * len(TAU_FIGURES)))


def mean_text(series: Sequence[float]) -> str:
    """The mean over seeds ± the standard deviation; shares in percent."""
    if not series:
        return MISSING
    spread = f" ± {percent(series).std(ddof=1):.1f}" if len(series) > 1 else ""
    return f"{percent(series).mean():.1f}{spread}"


def percent(series: Sequence[float]) -> np.ndarray[Any, Any]:
    """Shares as percent; ranks and sums, which are above 1, as they are."""
    return np.asarray(series) * (100.0 if max(series) <= 1 else 1.0)


PARTS: dict[str, tuple[Callable[[], Mapping[Any, list[Cell]]], Callable[[Figures], str]]] = {
    "margins": (margin_cells, margin_table),
    "search": (search_cells, search_table),
    "confirmed": (confirmed_cells, confirmation),
    "tau": (tau_cells, tau_table),
    "models": (model_cells, model_table),
    "five-table-2": (table_2_cells, table_2),
    "five-table-4": (cvse_cells, sampling_and_tau(("soft",))),
    "five-table-5": (cvse_cells, sampling_and_tau(("random", "hard"))),
    "five-sampling": (sampling_cells, sampling_table),
}


def unfinished(figures: Figures, parts: Iterable[str]) -> list[Cell]:
    """What is still to be trained: seed by seed, so that every row gets its first seed first; the longest first."""
    cells = {cell.name: cell for part in parts for row in PARTS[part][0]().values() for cell in row}
    waiting = (cell for cell in cells.values() if figures.of(cell) is None)
    return sorted(waiting, key=lambda cell: (cell.seed, -cell.recipe.settings.fraction))


def main() -> int:
    """Train what is missing, or write the page from what is finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="where models are trained")
    parser.add_argument("--part", choices=PARTS, action="append", help="one part only; several times for several")
    parser.add_argument("--device", help="cpu, cuda, cuda:1")
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    asked = parser.parse_args()
    parts, figures = asked.part or list(PARTS), Figures(FIGURES)
    if asked.work:
        data = real_data("flickr8k") / "flickr8k"
        train_cells(
            unfinished(figures, parts), figures, asked.work, data, device=asked.device, jobs=asked.jobs,
            say=lambda line: print(line, flush=True),
        )  # fmt: skip
    for cell in unfinished(figures, parts):
        print(f"missing: {cell.name}", file=sys.stderr)
    return update_page(PAGE, {part: PARTS[part][1](figures) for part in parts}, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
