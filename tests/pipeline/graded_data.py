"""Scores and similarities at random, and what graded metrics make of them by hand."""

from __future__ import annotations

import numpy as np

from crosslens.metrics import parse_metric
from crosslens.values import Dataset, Run
from tests.metrics.graded_reference import Query, value

RANDOM = np.random.default_rng(0)


NOUNS, PLACES = ("dog", "cat", "bird", "horse"), ("in the park", "on a street", "near the water")


DATASET = Dataset.of(
    {
        f"i{n}": [f"a {NOUNS[n % 4]} {PLACES[n % 3]}", f"the {NOUNS[n % 4]} number {n}", f"{n} times a bird"][
            : 1 + n % 3
        ]
        for n in range(12)
    }
)


IMAGES, CAPTIONS = len(DATASET.image_ids), len(DATASET.caption_ids)


SCORES = (RANDOM.permutation(IMAGES * CAPTIONS).reshape(IMAGES, CAPTIONS) / 1000).astype(np.float32)


PHI = (RANDOM.permutation(IMAGES * CAPTIONS).reshape(IMAGES, CAPTIONS) / 100).astype(np.float32)


METRICS = "NCS[mine]@3 NCS[mine, non-gt]@3 SR[mine, m=4]@3 SRhit[mine, m=2]@2 DCGcm@3 nDCG[mine]@3 nDCG@3"


def expected(metric: str, direction: str, scores: np.ndarray, phi: np.ndarray, owner: np.ndarray) -> list[float]:
    truth = owner == np.arange(len(scores))[:, None]
    sides = [matrix if direction == "i2t" else matrix.T for matrix in (scores, phi, truth)]
    queries = [
        Query(row.tolist(), worth.tolist(), dict.fromkeys(np.flatnonzero(relevant).tolist(), 1.0))
        for row, worth, relevant in zip(*sides, strict=True)
    ]
    return [value(parse_metric(metric).spec, query) for query in queries]


def check(run: Run, scores: np.ndarray = SCORES, phi: np.ndarray = PHI) -> None:
    assert len(run) >= 7
    for name, values in run.values.items():
        direction, metric = name.split("/", 1)
        by_hand = expected(metric, direction, scores, phi, DATASET.caption_image)
        np.testing.assert_allclose(values.values, by_hand, rtol=1e-5, err_msg=name)
        assert values.low <= values.mean <= values.high
