"""Metrics against the size of the gallery: exact below the run's own, marked beyond, and runs that change places."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.pipeline import GalleryCurves, OrderChange, gallery_curve, parse_sizes
from crosslens.pipeline.curves import round_sizes
from crosslens.values import Run
from tests.tables import each_row

IMAGES, PER_IMAGE = 40, 2
CAPTIONS = {f"i{n}": [f"caption {n} {m}" for m in range(PER_IMAGE)] for n in range(IMAGES)}
OWNER = np.repeat(np.arange(IMAGES), PER_IMAGE)


def scores(noise: float, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    related = (np.arange(IMAGES)[:, None] == OWNER[None, :]).astype(np.float32)
    return (related + noise * random.standard_normal((IMAGES, len(OWNER)))).astype(np.float32)


def run_of(matrix: np.ndarray, name: str = "model", **options: object) -> Run:
    return cl.evaluate(cl.Dataset.of(CAPTIONS), scores=matrix, name=name, resamples=50, **options)


def figures(curves: GalleryCurves, metric: str, run: str = "model") -> dict[int, float]:
    return {point.size: point.mean for point in curves.points[run][metric]}


def simulated(matrix: np.ndarray, size: int, draws: int, seed: int) -> dict[str, float]:
    """Sub-galleries drawn one by one, each caption ranked among the images in it."""
    random = np.random.default_rng(seed)
    ranks = []
    for caption, image in enumerate(OWNER):
        others = np.flatnonzero(np.arange(IMAGES) != image)
        for _ in range(draws):
            drawn = random.choice(others, size - 1, replace=False)
            ranks.append(1 + int((matrix[drawn, caption] > matrix[image, caption]).sum()))
    drawn_ranks = np.array(ranks)
    shares = {f"t2i/Hit@{k}": float((drawn_ranks <= k).mean()) for k in (1, 5)}
    return {**shares, "t2i/MRR": float((1 / drawn_ranks).mean()), "t2i/MedR": float(np.median(drawn_ranks))}


def test_curves_agree_with_drawn_sub_galleries() -> None:
    matrix = scores(0.9)
    curves = gallery_curve([run_of(matrix)], "t2i/Hit@1 t2i/Hit@5 t2i/MRR t2i/MedR", sizes=[7, 20], resamples=0)
    for size in (7, 20):
        expected = simulated(matrix, size, 60, seed=size)
        for metric, value in expected.items():
            assert figures(curves, metric)[size] == pytest.approx(value, abs=0.025), metric


def test_the_whole_gallery_is_the_run_itself_with_its_intervals() -> None:
    run = run_of(scores(0.9), metrics="Hit@1 MRR MedR MedR[all] MeanR MeanR[all] Recall@5 Rsum", ties="expected")
    names = [name for name in run if "/" in name]
    curves = gallery_curve([run], names, resamples=50)
    for name in names:
        point = curves.points["model"][name][-1]
        assert point.size == (IMAGES if name.startswith("t2i") else len(OWNER))
        assert point.mean == pytest.approx(run[name].mean), name
        if "MedR" not in name:
            assert (point.low, point.high) == pytest.approx(run[name].interval), name
        else:
            assert point.low <= point.mean <= point.high


def test_default_sizes_stay_within_each_gallery() -> None:
    curves = gallery_curve([run_of(scores(0.9))], "Hit@1", resamples=0)
    assert curves.sizes == (2, 5, 10, 20, 40, 50, 80)
    assert [point.size for point in curves.points["model"]["t2i/Hit@1"]] == [2, 5, 10, 20, 40]
    assert not any(point.extrapolated for points in curves.points["model"].values() for point in points)
    values = list(figures(curves, "i2t/Hit@1").values())
    assert values == sorted(values, reverse=True)
    assert values[0] == 1, "nothing but relevant items"


def test_larger_galleries_are_extrapolated_and_marked() -> None:
    curves = gallery_curve([run_of(scores(0.9))], "t2i/Hit@1 t2i/MedR t2i/MeanR", sizes=[40, 400, 4000], resamples=40)
    for metric, better in (("t2i/Hit@1", 1), ("t2i/MedR", -1), ("t2i/MeanR", -1)):
        points = curves.points["model"][metric]
        assert [point.extrapolated for point in points] == [False, True, True]
        values = [better * point.mean for point in points]
        assert values == sorted(values, reverse=True)
        assert all(point.low <= point.mean <= point.high for point in points)
        assert points[2].high - points[2].low > 0
    assert "extrapolated from its ranks, not measured" in curves.notes[0]
    beyond = gallery_curve([run_of(scores(0.9))], "i2t/Hit@1", sizes=[200], resamples=0)
    assert "too high" in beyond.notes[1]


def test_an_extrapolation_finds_a_known_truth() -> None:
    """Scores drawn as the model assumes: fifty times the gallery, predicted and computed."""
    random = np.random.default_rng(4)
    count, gallery, larger = 2000, 100, 5000
    ease = random.normal(2.2, 0.9, count)
    from scipy.stats import binom, norm

    chance = norm.sf(ease)
    before = random.binomial(gallery - 1, chance)
    matrix = np.zeros((gallery, count), np.float32)
    owner = np.arange(count) % gallery
    for caption in range(count):
        others = np.flatnonzero(np.arange(gallery) != owner[caption])
        matrix[others[: before[caption]], caption] = 1
        matrix[others[before[caption] :], caption] = -1
    captions = {f"i{n}": [f"c{c}" for c in np.flatnonzero(owner == n)] for n in range(gallery)}
    order = np.argsort(owner, kind="stable")
    run = cl.evaluate(cl.Dataset.of(captions), scores=matrix[:, order], directions=["t2i"], resamples=0, name="model")
    curves = gallery_curve([run], "Hit@1 Hit@10 MRR MedR", sizes=[gallery, larger], resamples=30)
    for k in (1, 10):
        truth = binom.cdf(k - 1, larger - 1, chance).mean()
        point = curves.points["model"][f"t2i/Hit@{k}"][1]
        assert point.low <= truth <= point.high
        assert point.mean == pytest.approx(truth, abs=0.015)
    median = curves.points["model"]["t2i/MedR"][1]
    assert median.low <= 1 + (larger - 1) * norm.sf(2.2) <= median.high


# Runs that change places


def crossing_runs() -> list[Run]:
    """One model is right more often, but where it fails it fails badly; the other is never far off."""
    bold, steady = (np.zeros((IMAGES, len(OWNER)), np.float32) for _ in range(2))
    for caption, image in enumerate(OWNER):
        others = np.delete(np.arange(IMAGES), image)
        bold[others, caption] = 1 if caption % 2 else -1
        steady[others, caption] = -1
        steady[others[:2], caption] = 1
    return [run_of(bold, "bold"), run_of(steady, "steady")]


def test_runs_that_change_places_are_named() -> None:
    runs = crossing_runs()
    curves = gallery_curve(runs, "t2i/Hit@1", sizes=[2, 5, 10, 20, 40], resamples=0, permutations=500)
    (change,) = curves.order_changes
    assert change.runs == ("bold", "steady")
    assert [lead.leader for lead in change.leads] == ["steady", "bold"]
    first = next(
        size for size in range(2, IMAGES + 1)
        if np.prod([(IMAGES - 1 - 2 - n) / (IMAGES - 1 - n) for n in range(size - 1)]) + 1e-12 < 0.5
    )  # fmt: skip
    assert change.changes_at == (first,)
    assert change.significant()
    assert all(lead.p_value <= lead.adjusted_p <= 2 * lead.p_value for lead in change.leads)
    assert gallery_curve(runs, "t2i/Hit@1", sizes=[20, 40], resamples=0).order_changes == ()
    assert curves.as_dict()["order_changes"][0]["significant"] is True


def test_equal_runs_do_not_change_places() -> None:
    assert gallery_curve([run_of(scores(0.9)), run_of(scores(0.9), "same")], "Hit@1", resamples=0).order_changes == ()


def test_changes_of_a_median_are_not_tested() -> None:
    curves = gallery_curve(crossing_runs(), "t2i/MedR", sizes=[2, 5, 20, 40], resamples=0)
    change: OrderChange
    for change in curves.order_changes:
        assert not change.tested
        assert change.as_dict()["significant"] is None


def test_every_pair_of_runs_is_looked_at() -> None:
    runs = [run_of(scores(noise, seed), f"m{seed}") for seed, noise in enumerate((0.8, 0.8, 0.9))]
    curves = gallery_curve(runs, "t2i/Hit@1", resamples=0, permutations=50)
    for first, second in combinations(("m0", "m1", "m2"), 2):
        sizes = figures(curves, "t2i/Hit@1", first)
        sizes_of_second = figures(curves, "t2i/Hit@1", second)
        signs = {
            np.sign(sizes[size] - sizes_of_second[size])
            for size in sizes
            if abs(sizes[size] - sizes_of_second[size]) > 1e-12
        }
        order_changes = any(change.runs == (first, second) for change in curves.order_changes)
        assert order_changes == (len(signs) > 1)


# Sizes, and mistakes


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("10,50,150", (10, 50, 150)),
        ("2..5", (2, 3, 4, 5)),
        ("1e3, 20", (20, 1000)),
        ("1_000..1_002", (1000, 1001, 1002)),
    ],
)
def test_sizes_as_written(text: str, sizes: tuple[int, ...]) -> None:
    assert parse_sizes(text) == sizes


@each_row("text", ["", "0", "5..2", "a", "1.5", "-3", "1e30", "1..5000", "10;20", "9" * 5000, "１"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(UsageError, match="sizes"):
        parse_sizes(text)


def test_round_sizes() -> None:
    assert round_sizes(3, [12, 40]) == (5, 10, 12, 20, 40)


def test_mistakes_are_named() -> None:
    run = run_of(scores(0.9))
    with pytest.raises(InputError, match="a gallery of 1 cannot hold the 2 relevant items"):
        gallery_curve([run], "i2t/Hit@1", sizes=[1])
    with pytest.raises(UsageError, match="Rsum is over two galleries"):
        gallery_curve([run], "Rsum")
    with pytest.raises(UsageError, match="Recall@5 is not extrapolated beyond the gallery"):
        gallery_curve([run], "t2i/Recall@5", sizes=[100])
    with pytest.raises(UsageError, match="no closed form"):
        gallery_curve([run], "t2i/DCGcm@10")
    with pytest.raises(UsageError, match="within folds"):
        gallery_curve([run_of(scores(0.9), folds=2)], "t2i/Hit@1")
    with pytest.raises(UsageError, match="has no ranking of i2t"):
        gallery_curve([run_of(scores(0.9), directions=["t2i"])], "i2t/Hit@1")
    with pytest.raises(UsageError, match="no runs"):
        gallery_curve([])
    with pytest.raises(UsageError, match="no sizes"):
        gallery_curve([run], sizes=[])
