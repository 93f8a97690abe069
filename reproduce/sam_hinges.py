"""Why SAM's samplings differ: which negatives each chooses, and how often its hinge is active.

    python reproduce/sam_hinges.py --write     # train on a tenth of Flickr8k (minutes), put the table into the page

VSE++ with SAM (random negatives) is looked at before training, on its way and at its end, over batches of training
pairs: which negative each sampling would choose. "Active" hinges are above 0: the others have no gradient. The data:
CROSSLENS_DATA, or ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crosslens.core.rendering import Grid
from crosslens.engine import SilentProgress
from crosslens.train import load_features, load_training_recipe
from crosslens.train.losses import choose
from crosslens.train.processes import Group
from crosslens.train.training import Training
from pages import markdown, real_data, update_page
from training import ADAPTIVE, PAGE, SAMPLINGS, STUDIED

STEPS = (0, 100, 400, 1150)
BATCHES, TAU = 20, 3.0


def look(training: Training, sampling: str) -> tuple[float, float, float, float]:
    """φ of the chosen negative and of the own caption, the margin, the share of active hinges; images as queries."""
    rows: list[Any] = []
    training.model.eval()
    for step in range(BATCHES):
        with torch.no_grad():
            batch = training._output(training.plan.rows(step), step)
            pairs = torch.arange(len(batch.scores))
            negative = choose(batch.scores, batch.relevant, sampling, batch.generator)
            own, other = batch.phi(pairs, pairs), batch.phi(pairs, negative)
            margin = ((own - other) / TAU).clamp(max=1.0)
            active = margin - batch.scores.diagonal() + batch.scores[pairs, negative] > 0
            rows.append([float(values.float().mean()) for values in (other, own, margin, active)])
    other_mean, own_mean, margin_mean, share = np.mean(rows, axis=0)
    return other_mean, own_mean, margin_mean, share


def table(data: Path) -> str:
    """A row per sampling and moment of training."""
    recipe = load_training_recipe(ADAPTIVE[0]).with_settings({"fraction": STUDIED, "seed": 0})
    features = load_features(recipe.layout, data, recipe.data, recipe.source)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        group = Group(device=torch.device("cpu"))
        training = Training(recipe, features, Path(folder) / "checkpoint", SilentProgress(), None, group)
        for steps in STEPS:
            while training.step < steps:
                training._take(training.step)
                training.step += 1
            for sampling in SAMPLINGS:
                other, own, margin, share = look(training, sampling)
                rows.append((f"{steps:,}", sampling, f"{other:.2f}", f"{own:.2f}", f"{margin:.2f}", f"{share:.0%}"))
    header = ("steps", "negatives", "φ(G, c⁻)", "φ(G, c)", "margin", "active hinges")
    return markdown(Grid(header, tuple(rows), "rlrrrr"))


def main() -> int:
    """Print the table, or put it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    asked = parser.parse_args()
    return update_page(PAGE, {"hinges": table(real_data("flickr8k") / "flickr8k")}, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
