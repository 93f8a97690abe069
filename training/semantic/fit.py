"""Fit ``semantic`` to people's judgements of Flickr8k pairs, and measure it on images it was not fitted to.

    python training/semantic/fit.py --data flickr8k/ --output src/crosslens/similarity/semantic_fit.json
    python training/semantic/fit.py --data flickr8k/ --encoder sentence:path/to/model --output mine.json

``--data`` holds ``Flickr8k.token.txt``, ``ExpertAnnotations.txt`` and ``CrowdFlowerAnnotations.txt``. The fit sees only
pairs whose image and whose caption's image are both in the training part; only pairs with both in the other part are
tested on. It is fitted to the experts; the crowd's answers are another question put to other people, and are only
tested on. The same data and encoders give the same file.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import rankdata

import crosslens as cl
from crosslens.core.hashing import random_stream
from crosslens.core.storage import write_text
from crosslens.encode.similarity import BOTH, MINILM, PARAPHRASE, load_semantic
from crosslens.similarity.loading import prepare_dataset
from crosslens.similarity.semantic import PreparedSemantic, Semantic, SemanticFit

Array = np.ndarray[Any, Any]
TRAINING_SHARE, RESAMPLES, DIGITS = 0.6, 1_000, 4


@dataclass(frozen=True)
class Judged:
    """Judged pairs, by position in the dataset, with scores from 0 to 1."""

    image: Array
    caption: Array
    score: Array
    own: Array
    training: Array
    test: Array


def main() -> None:
    """Read, fit, measure, write."""
    asked = arguments()
    dataset = cl.load_dataset("flickr", captions=asked.data / "Flickr8k.token.txt")
    rows = {name: read(asked.data / f"{name}Annotations.txt") for name in ("Expert", "CrowdFlower")}
    dataset = dataset.select(sorted({row[0] for found in rows.values() for row in found}))
    training = random_stream(asked.seed, "semantic split").random(len(dataset.image_ids)) < TRAINING_SHARE
    experts = judged(dataset, rows["Expert"], training, lambda votes: (np.mean(votes) - 1) / 3)
    crowd = judged(dataset, rows["CrowdFlower"], training, lambda votes: votes[0])
    if asked.encoder:
        sources = {asked.encoder.partition(":")[2].rstrip("/").rpartition("/")[2]: f"{asked.encoder}"}
    else:
        sources = {MINILM: f"sentence:{MINILM}", PARAPHRASE: f"sentence:{PARAPHRASE}", BOTH: ""}
    fits, revisions = {}, {}
    for name, source in sources.items():
        similarity = load_semantic(source, fit=MINILM)  # its own fit plays no part: only the evidence is used
        assert isinstance(similarity, Semantic)
        prepared = prepare_dataset(dataset, similarity)
        assert isinstance(prepared, PreparedSemantic)
        fits[name] = fitted(prepared, experts, crowd, asked.seed)
        print(name, json.dumps(fits[name], indent=2), flush=True)
        if source:
            revisions[name] = similarity.encoders[0].revision
    about = {
        "made by": "training/semantic/fit.py",
        "data": "Flickr8k, ExpertAnnotations (mean of three experts, 1 to 4, scaled to 0 to 1)",
        "split": f"by image and by the caption's image, {TRAINING_SHARE:.0%} of {len(training)} images for training",
        "seed": asked.seed,
        "training pairs": int(experts.training.sum()),
        "test pairs": {"expert": int(experts.test.sum()), "crowd": int(crowd.test.sum())},
        "intervals": f"95 %, {RESAMPLES} resamples of the test images",
    }
    write_text(asked.output, json.dumps({"about": about, "encoders": revisions, "fits": fits}, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", help="KIND:SOURCE; by default all three fits of the package are made")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def read(path: Path) -> list[tuple[str, str, list[float]]]:
    """Image, caption and the three numbers of every judged pair."""
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [(row[0], row[1], [float(vote) for vote in row[2:5]]) for row in rows]


def judged(dataset: cl.Dataset, rows: list[tuple[str, str, list[float]]], training: Array, scale: Any) -> Judged:
    """The pairs as positions, each in the training part, in the test part, or across and in neither."""
    images = {name: place for place, name in enumerate(dataset.image_ids)}
    captions = {name: place for place, name in enumerate(dataset.caption_ids)}
    rows = [row for row in rows if row[1] in captions]
    image, caption = np.array([images[row[0]] for row in rows]), np.array([captions[row[1]] for row in rows])
    home = dataset.caption_image[caption]
    return Judged(
        image, caption, np.array([scale(row[2]) for row in rows]), home == image,
        training[image] & training[home], ~training[image] & ~training[home],
    )  # fmt: skip


def fitted(prepared: PreparedSemantic, experts: Judged, crowd: Judged, seed: int) -> dict[str, Any]:
    """The fit to the experts' training pairs, and what it and its mirror image reach on test pairs."""
    evidence = {name: prepared.evidence(one.image, one.caption) for name, one in (("e", experts), ("c", crowd))}
    fit, mirror = fit_to(experts, *evidence["e"]), fit_to(crowd, *evidence["c"])
    return asdict(fit) | {
        "test": {
            "expert": measured(experts, fit(*evidence["e"]), seed),
            "crowd": measured(crowd, fit(*evidence["c"]), seed),
            "expert, fitted to the crowd": measured(experts, mirror(*evidence["e"]), seed),
            "expert, closeness alone": measured(experts, evidence["e"][0], seed),
            "expert, words alone": measured(experts, evidence["e"][1], seed),
        }
    }


def fit_to(pairs: Judged, closeness: Array, words: Array) -> SemanticFit:
    """Least squares. Most judged pairs are unrelated ones, so a score weighs less the more often it was given."""
    closeness, words, score = closeness[pairs.training], words[pairs.training], pairs.score[pairs.training]
    _, level, count = np.unique(np.round(score, 2), return_inverse=True, return_counts=True)
    weight = 1 / np.sqrt(count[level])

    def loss(numbers: Array) -> float:
        return float(weight @ (SemanticFit(*numbers.tolist())(closeness, words) - score) ** 2)

    found = minimize(loss, np.array([4.0, 1.0, -2.0]), method="L-BFGS-B", bounds=[(0.01, 50), (0, 50), (-20, 20)])
    return SemanticFit(*(round(float(number), DIGITS) for number in found.x))


def measured(pairs: Judged, found: Array, seed: int) -> dict[str, Any]:
    """Correlations with people over the test pairs, with and without images' own captions."""
    out: dict[str, Any] = {}
    for name, chosen in (("all", pairs.test), ("not ground truth", pairs.test & ~pairs.own)):
        x, y, image = found[chosen], pairs.score[chosen], pairs.image[chosen]
        out[name] = {
            "pairs": int(chosen.sum()),
            "pearson": interval(x, y, image, seed),
            "spearman": interval(rankdata(x), rankdata(y), image, seed),
        }
    out["mean of ground truth"] = round(float(found[pairs.test & pairs.own].mean()), DIGITS)
    return out


def interval(x: Array, y: Array, image: Array, seed: int) -> list[float]:
    """Pearson's r with the ends of its interval; whole images are drawn again, for their pairs are not independent."""
    _, image = np.unique(image, return_inverse=True)
    sums = np.zeros((image.max() + 1, 6))
    np.add.at(sums, image, np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1))
    drawn = random_stream(seed, "semantic interval").multinomial(
        len(sums), np.full(len(sums), 1 / len(sums)), RESAMPLES
    )
    low, high = np.quantile(correlation(drawn @ sums), [0.025, 0.975])
    return [round(float(value), DIGITS) for value in (correlation(sums.sum(axis=0)), low, high)]


def correlation(sums: Array) -> Array:
    """Pearson's r from n, Σx, Σy, Σx², Σy², Σxy."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))


if __name__ == "__main__":
    main()
