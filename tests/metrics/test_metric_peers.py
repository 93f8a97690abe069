"""The same numbers as other packages, to 1e-9 on data without ties; and where another package differs, how."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from crosslens.metrics import compute, parse_metric
from crosslens.values import Ranking
from tests.metrics.brute import rank

QUERIES, ITEMS = 40, 60


def made_up(seed: int = 0) -> tuple[np.ndarray, list[set[int]]]:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(QUERIES, ITEMS)).astype(np.float32)
    assert (scores < 0).any()
    relevant = [set(random.choice(ITEMS, random.integers(1, 9), replace=False).tolist()) for _ in range(QUERIES)]
    for query in range(0, QUERIES, 2):  # something to find near the top
        scores[query, list(relevant[query])] += 2
    return scores, relevant


def values(metric: str, ranking: Ranking) -> np.ndarray:
    return compute(parse_metric(metric).spec, ranking)


RANX = {
    "Hit@1": "hit_rate@1",
    "Hit@5": "hit_rate@5",
    "Recall@5": "recall@5",
    "Recall@10": "recall@10",
    "MRR": "mrr",
    "MRR@10": "mrr@10",
    "RPrecision": "r-precision",
    "AP": "map",
    "AP@10": "map@10",
    "Precision@5": "precision@5",
}
RANX_PROGRAM = """
import json, sys, ranx
qrels, run, metrics = json.load(sys.stdin)
run = ranx.Run(run)
ranx.evaluate(ranx.Qrels(qrels), run, metrics)
print(json.dumps({name: {query: float(one) for query, one in found.items()} for name, found in run.scores.items()}))
"""


@pytest.fixture(scope="module")
def ranx_scores() -> dict[str, dict[str, float]]:
    """What ranx says, from a process of its own where its functions run uncompiled: compiling them takes a minute."""
    pytest.importorskip("ranx")
    scores, relevant = made_up()
    qrels = {f"q{q}": {f"d{d}": 1 for d in items} for q, items in enumerate(relevant)}
    run = {f"q{q}": {f"d{d}": float(score) for d, score in enumerate(row)} for q, row in enumerate(scores)}
    done = subprocess.run(
        [sys.executable, "-c", RANX_PROGRAM],
        input=json.dumps([qrels, run, list(RANX.values())]),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("metric", RANX)
def test_ranx(metric: str, ranx_scores: dict[str, dict[str, float]]) -> None:
    scores, relevant = made_up()
    by_query = [ranx_scores[RANX[metric]][f"q{q}"] for q in range(QUERIES)]
    np.testing.assert_allclose(values(metric, rank(scores, relevant)), by_query, atol=1e-9)


def lists(scores: np.ndarray) -> dict[int, list[int]]:
    return {query: np.argsort(-row, kind="stable").tolist() for query, row in enumerate(scores)}


def test_eccv_caption() -> None:
    peer = pytest.importorskip("eccv_caption._metrics")
    scores, relevant = made_up()
    truth = {query: sorted(items) for query, items in enumerate(relevant)}
    ranking = rank(scores, relevant)
    theirs = peer.compute_eccv_metrics(lists(scores), truth)
    assert values("mAP@R", ranking).mean() == pytest.approx(theirs["eccv_map_at_r"], abs=1e-9)
    assert values("RPrecision", ranking).mean() == pytest.approx(theirs["eccv_rprecision"], abs=1e-9)
    assert values("Hit@1", ranking).mean() == pytest.approx(theirs["eccv_r1"], abs=1e-9)
    for k in (1, 5, 10):
        assert values(f"Hit@{k}", ranking).mean() == pytest.approx(
            peer.compute_r_at_k(lists(scores), truth, K=k), abs=1e-9
        )


def test_eccv_caption_folds() -> None:
    """Their fold: the same lists with the other folds' items taken out; the figure is the mean over folds."""
    peer = pytest.importorskip("eccv_caption._metrics")
    scores, _ = made_up(1)
    image_of = np.arange(ITEMS) * QUERIES // ITEMS
    ours, theirs = [], []
    for fold in range(5):
        images = np.arange(QUERIES // 5) + fold * (QUERIES // 5)
        captions = np.flatnonzero(np.isin(image_of, images))
        truth = {int(image): np.flatnonzero(image_of == image).tolist() for image in images}
        theirs.append(peer.compute_coco1k_r_at_k(lists(scores), truth, set(captions.tolist()), K=5))
        relevant = [set(np.flatnonzero(image_of[captions] == image).tolist()) for image in images]
        ours.append(values("Hit@5", rank(scores[np.ix_(images, captions)], relevant)).mean())
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=1e-9)


def test_torchmetrics_ignores_relevant_items_with_a_negative_score() -> None:
    """torchmetrics treats scores as probabilities: a relevant item scored 0 or below counts as not relevant.

    Recall, precision, average precision and reciprocal rank do so; hit rate and R-precision do not. A negative cosine
    is a legal score here, and is ranked like any other: shifting all scores changes nothing.
    """
    torch = pytest.importorskip("torch")
    peer = pytest.importorskip("torchmetrics.functional.retrieval")
    scores = np.array([-0.1, -0.2, -0.3, -0.4], np.float32)
    target = torch.tensor([True, False, True, False])
    ranking = rank([scores], [{0, 2}])
    shifted = torch.from_numpy(scores + 1)
    for metric, theirs in (
        ("Recall@2", lambda preds: peer.retrieval_recall(preds, target, top_k=2)),
        ("AP", lambda preds: peer.retrieval_average_precision(preds, target)),
        ("MRR", lambda preds: peer.retrieval_reciprocal_rank(preds, target)),
    ):
        assert values(metric, ranking)[0] == pytest.approx(float(theirs(shifted)), abs=1e-6)
        assert values(metric, ranking)[0] > 0
        assert float(theirs(torch.from_numpy(scores))) == 0
    for metric, theirs in (
        ("Hit@1", lambda preds: peer.retrieval_hit_rate(preds, target, top_k=1)),
        ("RPrecision", lambda preds: peer.retrieval_r_precision(preds, target)),
    ):
        assert values(metric, ranking)[0] == pytest.approx(float(theirs(torch.from_numpy(scores))), abs=1e-6)
