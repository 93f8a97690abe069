"""Fit ``semantic`` to people's judgements of Flickr8k pairs, and measure it on images it was not fitted to.

    python training/semantic/fit.py --data data/ --output src/crosslens/similarity/semantic_fit.json
    python training/semantic/fit.py --data data/ --encoder sentence:path/to/model --output mine.json

``--data`` holds ``flickr8k/`` (``Flickr8k.token.txt``, ``ExpertAnnotations.txt``, ``CrowdFlowerAnnotations.txt``),
``sugar_crepe/`` and ``coco_val2017/captions.json.gz``. The fit sees only pairs whose image and whose caption's image
are both in the training part; only pairs with both in the other part are tested on. It is fitted to the experts; the
crowd's answers are another question put to other people, and are only tested on.

The weights of roles come from SugarCrepe's first half (``reproduce/semantic_roles.py``), from the altered captions with
the same content words as the true one: the true one should stand above the other, judged by the photo's other captions
(logistic loss). They have no part in the curve. The same data and encoders give the same file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import rankdata

import crosslens as cl
from crosslens.encode.similarity import BOTH, MINILM, PARAPHRASE, load_semantic
from crosslens.similarity import references_of
from crosslens.similarity.roles import ROLES, content_words
from crosslens.similarity.semantic import PreparedSemantic, Semantic, SemanticFit
from crosslens.storage.folders import write_text
from crosslens.storage.hashing import random_stream

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "reproduce"))
from semantic_roles import Case, first_half, read_cases

Array = np.ndarray[Any, Any]
TRAINING_SHARE, RESAMPLES, DIGITS = 0.6, 1_000, 4
ONE_SHARE, SHRINKAGE = 0.3, 0.001
"""How much each other caption alone counts beside all of them together, and the penalty on large weights."""


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
    folder = asked.data / "flickr8k"
    dataset = cl.load_dataset("flickr", captions=folder / "Flickr8k.token.txt")
    rows = {name: read(folder / f"{name}Annotations.txt") for name in ("Expert", "CrowdFlower")}
    cases = read_cases(asked.data)
    cases = [case for case, is_first in zip(cases, first_half(cases), strict=True) if is_first]
    dataset = dataset.select(sorted({row[0] for found in rows.values() for row in found}))
    training = random_stream(asked.seed, "semantic split").random(len(dataset.image_ids)) < TRAINING_SHARE
    experts = judged(dataset, rows["Expert"], training, lambda votes: (np.mean(votes) - 1) / 3)
    crowd = judged(dataset, rows["CrowdFlower"], training, lambda votes: votes[0])
    if asked.encoder:
        sources = {asked.encoder.partition(":")[2].rstrip("/").rpartition("/")[2]: f"{asked.encoder}"}
    else:
        sources = {BOTH: "", PARAPHRASE: f"sentence:{PARAPHRASE}", MINILM: f"sentence:{MINILM}"}
    fits, revisions = {}, {}
    for name, source in sources.items():
        similarity = evidence_only(source)
        prepared = similarity.prepare(references_of(dataset), dataset.texts)
        fit = fit_to(experts, evidence_of(prepared, experts))
        if name == BOTH:
            fits["without-roles"] = described(similarity, fit, dataset, experts, crowd, asked.seed)
        fit = replace(fit, **role_weights(similarity, cases))
        fits[name] = described(similarity, fit, dataset, experts, crowd, asked.seed)
        print(name, json.dumps(fits[name], indent=2), flush=True)
        if source:
            revisions[name] = similarity.encoders[0].revision
    about = {
        "made by": "training/semantic/fit.py",
        "data": "Flickr8k, ExpertAnnotations (mean of three experts, 1 to 4, scaled to 0 to 1); "
        "for the weights of roles, SugarCrepe's altered captions with the content words of the true one, first half",
        "split": f"by image and by the caption's image, {TRAINING_SHARE:.0%} of {len(training)} images for training",
        "seed": asked.seed,
        "training pairs": int(experts.training.sum()),
        "altered captions": len(with_same_content(cases)),
        "test pairs": {"expert": int(experts.test.sum()), "crowd": int(crowd.test.sum())},
        "intervals": f"95 %, {RESAMPLES} resamples of the test images",
    }
    write_text(asked.output, json.dumps({"about": about, "encoders": revisions, "fits": fits}, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", help="KIND:SOURCE; by default all fits of the package are made")
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


def evidence_only(source: str) -> Semantic:
    """The φ whose evidence is used; its own fit plays no part, but makes it compare roles."""
    loaded = load_semantic(source, fit="without-roles")
    assert isinstance(loaded, Semantic)
    return Semantic(loaded.encoders, SemanticFit(1, 1, 0, unigrams=1))


def with_same_content(cases: Sequence[Case]) -> list[Case]:
    """Those whose order roles decide."""
    return [case for case in cases if content_words(case.true) == content_words(case.altered)]


def role_weights(similarity: Semantic, cases: Sequence[Case]) -> dict[str, float]:
    """Weights in units of closeness: logistic regression of which caption is the true one, no weight below 0."""
    cases = with_same_content(cases)
    texts = [text for case in cases for text in (case.true, case.altered)]
    sets = [list(case.others) for case in cases] + [[text] for case in cases for text in case.others]
    own = np.repeat(np.arange(len(cases)), [len(case.others) for case in cases])
    case_of, rows = np.concatenate([np.arange(len(cases)), own]), np.arange(len(sets))
    prepared = similarity.prepare(sets, texts)
    closeness, against = (
        [part(rows, 2 * case_of + altered) for altered in (0, 1)]
        for part in (lambda *cells: prepared.evidence(*cells)[0], prepared.roles)
    )
    apart = np.column_stack([closeness[0] - closeness[1], against[1] - against[0]])
    weight = np.where(rows < len(cases), (1 - ONE_SHARE) / len(cases), ONE_SHARE / len(own))
    scale = apart.std(axis=0) + 1e-9

    def loss(numbers: Array) -> float:
        return float(weight @ np.logaddexp(0, -(apart / scale) @ numbers) + SHRINKAGE * numbers @ numbers)

    result = minimize(loss, np.ones(len(scale)), method="L-BFGS-B", bounds=[(0.01, None)] + [(0, None)] * len(ROLES))
    weights = result.x / scale
    return {name: round(float(weights[1 + kind] / weights[0]), DIGITS) for kind, name in enumerate(ROLES)}


def evidence_of(prepared: PreparedSemantic, pairs: Judged) -> tuple[Array, Array]:
    """Closeness and shared words of judged pairs."""
    return prepared.evidence(pairs.image, pairs.caption)


def described(
    similarity: Semantic, fit: SemanticFit, dataset: cl.Dataset, experts: Judged, crowd: Judged, seed: int
) -> dict[str, Any]:
    """A fit, and what it and its mirror image, fitted to the crowd, reach on test pairs."""
    prepared = Semantic(similarity.encoders, fit).prepare(references_of(dataset), dataset.texts)
    evidence = evidence_of(prepared, experts)
    mirror = fit_to(crowd, evidence_of(prepared, crowd))
    return asdict(fit) | {
        "test": {
            "expert": measured(experts, prepared.pairs(experts.image, experts.caption), seed),
            "crowd": measured(crowd, prepared.pairs(crowd.image, crowd.caption), seed),
            "expert, fitted to the crowd": measured(experts, mirror(*evidence), seed),
            "expert, closeness alone": measured(experts, evidence[0], seed),
            "expert, words alone": measured(experts, evidence[1], seed),
        }
    }


def fit_to(pairs: Judged, evidence: tuple[Array, Array]) -> SemanticFit:
    """Least squares. Most judged pairs are unrelated ones, so a score weighs less the more often it was given."""
    (closeness, words), score = (part[pairs.training] for part in evidence), pairs.score[pairs.training]
    _, level, count = np.unique(np.round(score, 2), return_inverse=True, return_counts=True)
    weight = 1 / np.sqrt(count[level])
    weight /= weight.sum()

    def loss(numbers: Array) -> float:
        return float(weight @ (SemanticFit(*numbers.tolist())(closeness, words) - score) ** 2)

    start, bounds = np.array([5.0, 1.0, -2.0]), [(0.01, 50), (0, 50), (-20, 20)]
    result = minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-11, "maxfun": 5_000})
    return SemanticFit(*(round(float(number), DIGITS) for number in result.x))


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
