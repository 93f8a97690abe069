"""One-to-many heads against their single-vector base, by how hard captions are: a table of training-flickr8k.md.

    python reproduce/one_to_many.py --work models    # from the test runs of reproduce/training.py; keeps the figures
    python reproduce/one_to_many.py --write          # the page, from the kept figures

Captions are easy, medium or hard by the votes of the panel in reproduce/panel.py. The figures are kept in
one_to_many_figures.json beside this script.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import crosslens as cl
from crosslens.analyze import category_results
from crosslens.core.rendering import Grid, decimal
from pages import markdown, update_page
from panel import Data
from panel_levels import LEVELS, studies_of
from training import FEWER_SEEDS, PAGE, mean_text

FIGURES = Path(__file__).with_name("one_to_many_figures.json")
BASE = "flickr8k-pvse-base"
HEADS = (
    BASE, "flickr8k-pvse-k1", "flickr8k-pvse-k2", "flickr8k-pvse-k5", "flickr8k-pcme", "flickr8k-dive-k2",
    "flickr8k-dive", "flickr8k-dive-k5",
)  # fmt: skip
SHOWN = (("t2i", "Hit@5"), ("i2t", "Hit@5"))

Figures = dict[str, list[float]]
"""By "recipe level direction/metric": a value per seed."""


def measure(work: Path) -> Figures:
    """The metrics of every level, of all test runs."""
    runs = {
        f"{name} {seed}": cl.Run.load(work / name / "1" / f"seed-{seed}" / "test")
        for name in HEADS for seed in FEWER_SEEDS
    }  # fmt: skip
    study = next(study for study in studies_of(Data()) if study.key == "flickr8k")
    results = category_results(runs, study.difficulty, metrics=["Hit@5"], resamples=0)
    return {
        f"{name} {level} {direction}/{metric}": [
            results.value(f"{name} {seed}", metric, level, direction=direction, denominator="category")
            for seed in FEWER_SEEDS
        ]
        for name in HEADS for level in LEVELS for direction, metric in SHOWN
    }  # fmt: skip


def table(figures: Mapping[str, list[float]]) -> str:
    """A row per head: each level, with the difference from the base where it is another head."""
    columns = [(level, f"{direction}/{metric}") for direction, metric in SHOWN for level in LEVELS]

    def shown(name: str, level: str, metric: str) -> str:
        values, base = (np.asarray(figures[f"{recipe} {level} {metric}"]) for recipe in (name, BASE))
        change = "" if name == BASE else f" ({decimal(100 * (values - base).mean(), 1, signed=True)})"
        return mean_text(list(values)) + change

    rows: list[tuple[Any, ...]] = [(f"`{name}`", *(shown(name, *column) for column in columns)) for name in HEADS]
    header = ("recipe", *(f"{metric}, {level}" for level, metric in columns))
    return markdown(Grid(header, tuple(rows), "l" + "r" * len(columns)))


def main() -> int:
    """Measure the runs of a work folder, or make the table of what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="where reproduce/training.py trained the models")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    asked = parser.parse_args()
    if asked.work:
        figures = {name: [round(value, 6) for value in values] for name, values in measure(asked.work).items()}
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return update_page(PAGE, {"difficulty": table(json.loads(FIGURES.read_text(encoding="utf-8")))}, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
