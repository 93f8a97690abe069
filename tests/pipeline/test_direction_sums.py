"""``t2i/Rsum`` and ``i2t/Rsum``: three terms of one direction, under one name with one meaning everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.cli import main
from crosslens.core import UsageError
from crosslens.metrics import bounds_of
from crosslens.statistics import estimate
from tests.pipeline.small_world import world

SUMS = "t2i/Rsum i2t/Rsum Rsum t2i/Rsum[capped] i2t/Rsum[capped] Rsum[capped]"
DATASET, IMAGES, CAPTIONS = world(30, spread=2.0)


def by_hand(direction: str, *, capped: bool) -> np.ndarray:
    """Per query, 100 × the sum over k = 1, 5, 10 of Hit@k or of CappedRecall@k, from sorted lists."""
    units = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (IMAGES, CAPTIONS)]
    scores = units[0] @ units[1].T
    owners = DATASET.caption_image
    values = []
    for query in range(len(IMAGES) if direction == "i2t" else len(CAPTIONS)):
        row = scores[query] if direction == "i2t" else scores[:, query]
        relevant = set(np.flatnonzero(owners == query)) if direction == "i2t" else {owners[query]}
        order = sorted(range(len(row)), key=lambda item: (-row[item], item))
        total = 0.0
        for k in (1, 5, 10):
            hits = sum(1 for item in order[:k] if item in relevant)
            total += hits / min(k, len(relevant)) if capped else float(hits > 0)
        values.append(100 * total)
    return np.array(values)


def evaluated(metrics: str = SUMS) -> cl.Run:
    return cl.evaluate(DATASET, images=IMAGES, captions=CAPTIONS, metrics=metrics, name="model")


@pytest.mark.parametrize("capped", [False, True])
def test_three_terms_of_one_direction(capped: bool) -> None:
    run, name = evaluated(), "Rsum[capped]" if capped else "Rsum"
    clusters = {"i2t": np.arange(len(IMAGES)), "t2i": DATASET.caption_image}
    for direction in ("i2t", "t2i"):
        values = by_hand(direction, capped=capped)
        figure = run[f"{direction}/{name}"]
        assert figure.values == pytest.approx(values)
        assert figure.mean == pytest.approx(values.mean())
        # Three shares in one number from 0 to 300: the interval of their mean, times 300.
        share = estimate(values / 300, clusters[direction], bounds=(0, 1))
        assert figure.interval == pytest.approx(tuple(300 * end for end in share.interval))
        assert figure.low < figure.mean < figure.high
    both = run[f"i2t/{name}"].mean + run[f"t2i/{name}"].mean
    assert run[name].mean == pytest.approx(both)


def test_a_perfect_ranking_has_an_interval_below_300() -> None:
    run = cl.evaluate(DATASET, scores=np.eye(30)[:, DATASET.caption_image], metrics="t2i/Rsum")
    figure = run["t2i/Rsum"]
    assert (figure.mean, figure.high) == (300, 300)
    assert 250 < figure.low < 300
    assert bounds_of("t2i/Rsum") == (0, 300)
    assert bounds_of("Rsum") == (0, 600)


def test_one_direction_alone() -> None:
    run = cl.evaluate(DATASET, images=IMAGES, captions=CAPTIONS, metrics="t2i/Rsum", directions="t2i")
    assert run["t2i/Rsum"].mean == pytest.approx(by_hand("t2i", capped=False).mean())
    with pytest.raises(UsageError, match="i2t is missing\n  fix: evaluate both directions, or write t2i/Rsum"):
        cl.evaluate(DATASET, images=IMAGES, captions=CAPTIONS, metrics="Rsum", directions="t2i")
    with pytest.raises(UsageError, match="i2t/Rsum needs a direction that was not ranked"):
        cl.evaluate(DATASET, images=IMAGES, captions=CAPTIONS, metrics="i2t/Rsum", directions="t2i")


def test_folds_average_the_sums_of_the_parts() -> None:
    run = cl.evaluate(DATASET, images=IMAGES, captions=CAPTIONS, metrics="t2i/Rsum t2i/Hit@1 t2i/Hit@5 t2i/Hit@10",
                      folds=3)  # fmt: skip
    assert run["t2i/Rsum"].mean == pytest.approx(100 * sum(run[f"t2i/Hit@{k}"].mean for k in (1, 5, 10)))


def test_graded_sums() -> None:
    run = evaluated("t2i/Nsum[cider] t2i/NCS[cider]@1 t2i/NCS[cider]@5 t2i/NCS[cider]@10")
    parts = sum(run[f"t2i/NCS[cider]@{k}"].mean for k in (1, 5, 10))
    assert run["t2i/Nsum[cider]"].mean == pytest.approx(100 * parts)


def test_robustness_prints_what_evaluate_computes() -> None:
    changed = CAPTIONS + np.random.default_rng(3).standard_normal(CAPTIONS.shape).astype(np.float32)
    study = cl.robustness(
        DATASET, images=IMAGES, captions=CAPTIONS, variants={"noise": changed}, metrics="t2i/Rsum i2t/Rsum Rsum",
        permutations=50, resamples=100,
    )  # fmt: skip
    rows = {row["metric"]: row for row in study.drops.to_dicts()}
    after = cl.evaluate(DATASET, images=IMAGES, captions=changed, metrics="t2i/Rsum i2t/Rsum Rsum", resamples=0)
    before = evaluated()
    for name in ("t2i/Rsum", "i2t/Rsum", "Rsum"):
        assert rows[name]["before"] == pytest.approx(before[name].mean)
        assert rows[name]["after"] == pytest.approx(after[name].mean)
        assert rows[name]["low"] <= rows[name]["drop"] <= rows[name]["high"]


class TestEverywhere:
    @pytest.fixture
    def runs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        DATASET.save("data")
        np.save("images.npy", IMAGES)
        np.save("captions.npy", CAPTIONS)
        command = "evaluate --dataset data --image-embeddings images.npy --caption-embeddings captions.npy -o"
        assert main([*command.split(), "first", "--metrics", SUMS]) == 0
        assert main([*command.split(), "second", "--metrics", SUMS, "--ties", "optimistic"]) == 0
        return tmp_path

    def test_show_compare_run_and_export(self, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
        stored = cl.Run.load("first")
        assert stored["t2i/Rsum"].values == pytest.approx(by_hand("t2i", capped=False))
        capsys.readouterr()
        assert main(["show", "first", "--metrics", "t2i/Rsum"]) == 0
        output = capsys.readouterr().out
        assert f"{stored['t2i/Rsum'].mean:.1f}" in output
        assert f"{stored['Rsum'].mean:.1f}" not in output
        assert main(["show", "first", "--metrics", "Rsum"]) == 0
        assert f"{stored['t2i/Rsum'].mean:.1f}" not in capsys.readouterr().out
        assert main(["compare", "first", "second", "--metrics", "t2i/Rsum", "--permutations", "50", "--json"]) == 0
        compared = json.loads(capsys.readouterr().out)["comparisons"]
        assert [row["metric"] for row in compared] == ["t2i/Rsum"]
        assert main(["run", "first", "-o", "again"]) == 0
        assert cl.Run.load("again").fingerprint == stored.fingerprint
        assert "t2i/Rsum" in Path("first/recipe.toml").read_text()
        capsys.readouterr()
        assert main(["export", "first", "second", "--to", "csv", "--metrics", "t2i/Rsum", "-o", "-"]) == 0
        assert f"first,t2i,Rsum,{stored['t2i/Rsum'].mean:.6f}" in capsys.readouterr().out
