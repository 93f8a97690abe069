"""What else was tried as evidence for ``semantic``: each is put beside the finished φ and may only help.

    python training/semantic/tried.py --data flickr8k/

For every kind of evidence a plane φ, evidence → score is fitted to training pairs and measured on test pairs (the split
of ``fit.py``), for the experts and for the crowd. Evidence is worth its while if it helps both by more than a hair.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from fit import TRAINING_SHARE, Judged, judged, read

import crosslens as cl
from crosslens.encode.similarity import load_semantic
from crosslens.similarity import relevance_pairs
from crosslens.storage.hashing import random_stream

Array = np.ndarray[Any, Any]
_COLOURS = "black white red blue green yellow orange pink purple brown gray grey tan golden silver"
COLOURS = frozenset(_COLOURS.split())
NUMBERS = {"one": 1, "single": 1, "two": 2, "couple": 2, "pair": 2, "three": 3, "four": 4, "five": 5, "six": 6}
NEGATIONS = frozenset(("no", "not", "without", "nobody", "nothing", "none", "never"))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    dataset = cl.load_dataset("flickr", captions=asked.data / "Flickr8k.token.txt")
    rows = {name: read(asked.data / f"{name}Annotations.txt") for name in ("Expert", "CrowdFlower")}
    dataset = dataset.select(sorted({row[0] for found in rows.values() for row in found}))
    training = random_stream(asked.seed, "semantic split").random(len(dataset.image_ids)) < TRAINING_SHARE
    experts = judged(dataset, rows["Expert"], training, lambda votes: (np.mean(votes) - 1) / 3)
    crowd = judged(dataset, rows["CrowdFlower"], training, lambda votes: votes[0])
    print(f"{'Pearson on test pairs, not ground truth':42}{'experts':>9}{'crowd':>9}")
    found = [candidates(dataset, pairs) for pairs in (experts, crowd)]
    for name in found[0]:
        values = [
            reached(pairs, one["semantic"], one[name]) for pairs, one in zip((experts, crowd), found, strict=True)
        ]
        print(f"{name if name == 'semantic' else f'  and {name}':42}" + "".join(f"{value:9.4f}" for value in values))
    values = [
        reached(pairs, one["CIDEr-D"], one["CIDEr-D"]) for pairs, one in zip((experts, crowd), found, strict=True)
    ]
    print(f"{'CIDEr-D alone':42}" + "".join(f"{value:9.4f}" for value in values))


def candidates(dataset: cl.Dataset, pairs: Judged) -> dict[str, Array]:
    """One value per pair for every kind of evidence."""
    texts = [re.findall(r"[a-z]+", text.lower()) for text in dataset.texts]
    sides: list[tuple[list[str], list[str]]] = []
    own: list[list[int]] = [[] for _ in dataset.image_ids]
    for caption, image in enumerate(dataset.caption_image.tolist()):
        own[image].append(caption)
    for image, caption in zip(pairs.image.tolist(), pairs.caption.tolist(), strict=True):
        sides.append((texts[caption], [word for one in own[image] for word in texts[one]]))
    return {
        "semantic": relevance_pairs(dataset, load_semantic(fit="without-roles"), pairs.image, pairs.caption),
        "CIDEr-D": relevance_pairs(dataset, "cider", pairs.image, pairs.caption),
        "another colour": disagree(sides, lambda words: COLOURS.intersection(words)),
        "another number": disagree(sides, lambda words: {NUMBERS[word] for word in words if word in NUMBERS}),
        "a negation": np.array([float(bool(NEGATIONS.intersection(caption))) for caption, _ in sides]),
        "number of words": np.array([float(len(caption)) for caption, _ in sides]),
    }


def disagree(sides: Iterable[tuple[list[str], list[str]]], pick: Any) -> Array:
    """1 where caption and references both have such words, and none in common."""
    picked = [(set(pick(caption)), set(pick(references))) for caption, references in sides]
    return np.array([float(bool(one) and bool(other) and not one & other) for one, other in picked])


def reached(pairs: Judged, phi: Array, extra: Array) -> float:
    """Pearson's r on test pairs outside the ground truth, after least squares on all training pairs."""
    columns = np.stack([np.ones_like(extra), phi, extra], axis=1).astype(np.float64)
    plane = np.linalg.lstsq(columns[pairs.training], pairs.score[pairs.training], rcond=None)[0]
    chosen = pairs.test & ~pairs.own
    return float(np.corrcoef(columns[chosen] @ plane, pairs.score[chosen])[0, 1])


if __name__ == "__main__":
    main()
