"""Graded metrics worked by hand on one small table, both directions; and what must hold in theory."""

from __future__ import annotations

import gc
import weakref
from math import log2

import numpy as np
import pytest

from crosslens.core import InputError, UsageError
from crosslens.metrics import GainMatrix, compute, measure, parse_metric, parse_metrics
from tests.metrics.brute import rank
from tests.tables import each_row

# Two images with two captions each. φ of an image's own captions is not always the highest.
PHI = np.array(
    [
        [8.0, 6.0, 4.0, 2.0],
        [0.0, 5.0, 3.0, 9.0],
    ]
)
SCORES = np.array(
    [
        [0.9, 0.1, 0.8, 0.2],  # image 0 retrieves captions 0, 2, 3, 1
        [0.4, 0.3, 0.2, 0.7],  # image 1 retrieves captions 3, 0, 1, 2
    ]
)
IMAGE_OF = np.array([0, 0, 1, 1])
RANKINGS = {
    "i2t": rank(SCORES, [{0, 1}, {2, 3}]),
    "t2i": rank(SCORES.T, [{0}, {0}, {1}, {1}], "t2i"),  # captions retrieve images 0, 1, 0, 1 first
}
GAINS = {"cider": GainMatrix(PHI, image_of=IMAGE_OF)}


def by_hand(metric: str, direction: str, ties: str = "stable") -> list[float]:
    return compute(parse_metric(metric).spec, RANKINGS[direction], ties, GAINS).tolist()


@each_row(
    ("metric", "direction", "expected"),
    [
        # Retrieved 8 + 4 of at most 8 + 6; retrieved 9 + 0 of at most 9 + 5.
        ("NCS@2", "i2t", [12 / 14, 9 / 14]),
        ("NCS@1", "i2t", [1, 1]),
        # Captions 0 and 3 find their best image first, 1 and 2 do not (5 of 6; 4 of 4: image 0 is worth more to 2).
        ("NCS@1", "t2i", [1, 5 / 6, 1, 1]),
        ("NCS@2", "t2i", [1, 1, 1, 1]),
        # Only the two most similar count: captions {0, 1} for image 0, {3, 1} for image 1.
        ("NCS[eq5]@2", "i2t", [8 / 14, 9 / 14]),
        # The three most similar: {0, 1, 2}, {3, 1, 2}; the sum below the line is over all three.
        ("NCS[eq5, m=3]@2", "i2t", [12 / 18, 9 / 17]),
        # Without the ground truth: image 0 retrieves 2, 3 (4 + 2 of 4 + 2), image 1 retrieves 0, 1 (0 + 5 of 5 + 0).
        ("NCS[non-gt]@1", "i2t", [1, 0 / 5]),
        ("NCS[non-gt]@2", "i2t", [1, 1]),
        # A caption's only other image; for caption 0 it is worth 0, so there is nothing to compare with.
        ("NCS[non-gt]@1", "t2i", [float("nan"), 1, 1, 1]),
        # The two most similar captions {0, 1} and {3, 1}; of them 0, and 3, are among the first two.
        ("SR[m=2]@2", "i2t", [1 / 2, 1 / 2]),
        ("SR[m=3]@3", "i2t", [2 / 3, 2 / 3]),
        ("SR[m=1]@1", "t2i", [1, 0, 1, 1]),
        ("SR[m=2, non-gt]@1", "i2t", [1 / 2, 1 / 2]),
        ("NCS[non-gt, zero]@1", "t2i", [0, 1, 1, 1]),
        # The captions of image 0 vote 7 for image 0 and 2.5 for image 1; those of image 1 vote 3 and 6.
        ("SR[m=1, by-image]@2", "i2t", [1 / 2, 1 / 2]),
        ("SR[m=1, by-image]@1", "t2i", [1, 0, 0, 1]),
        ("SR[cider, 1, by-image, non-gt]@1", "i2t", [1 / 2, 1 / 2]),
        ("SR[1, by-image, non-gt]@1", "t2i", [1, 1, 1, 1]),
        ("SRhit[m=1]@1", "i2t", [1, 1]),
        ("SRhit[m=1, non-gt]@1", "i2t", [1, 0]),
        ("SRhit[m=2]@1", "t2i", [1, 1, 1, 1]),
        # 1 for a labelled item, the model's own score for another.
        ("DCGcm@2", "i2t", [1 + 0.8 / log2(3), 1 + 0.4 / log2(3)]),
        ("DCGcm@2", "t2i", [1 + 0.4 / log2(3), 0.3 + 1 / log2(3), 0.8 + 1 / log2(3), 1 + 0.2 / log2(3)]),
        # Grades are 1 here: the captions stand at 1 and 4; at 1 and 4.
        ("nDCG@4", "i2t", [(1 + 1 / log2(5)) / (1 + 1 / log2(3))] * 2),
        ("nDCG[cider]@2", "i2t", [(8 + 4 / log2(3)) / (8 + 6 / log2(3)), 9 / (9 + 5 / log2(3))]),
        ("nDCG[cider, exp]@1", "t2i", [1, 31 / 63, 1, 1]),
    ],
)
def test_by_hand(metric: str, direction: str, expected: list[float]) -> None:
    np.testing.assert_allclose(by_hand(metric, direction), expected, rtol=1e-6)


def test_nsum_is_the_sum_of_the_six() -> None:
    clusters = {"i2t": np.arange(2), "t2i": IMAGE_OF}
    results = measure(RANKINGS, clusters, "Nsum NCS@1 NCS@5 NCS@10", gains=GAINS, resamples=20)
    six = [metric.mean for name, metric in results.items() if "/" in name]
    assert len(six) == 6
    assert results["Nsum[cider]"].mean == pytest.approx(100 * sum(six))


def test_ties_by_hand() -> None:
    """All four captions tied: any two of them are retrieved, in any order."""
    ranking = rank(np.zeros((1, 4)), [{0, 1}])
    gains = {"cider": GainMatrix([[8.0, 6.0, 4.0, 2.0]])}

    def at(metric: str, ties: str) -> float:
        return float(compute(parse_metric(metric).spec, ranking, ties, gains)[0])

    assert [at("NCS@2", ties) for ties in ("stable", "optimistic", "pessimistic", "expected")] == [
        1.0, 1.0, pytest.approx(6 / 14), pytest.approx(10 / 14),
    ]  # fmt: skip
    assert at("SR[m=2]@2", "expected") == pytest.approx(1 / 2)
    assert at("SRhit[m=2]@2", "expected") == pytest.approx(5 / 6)  # five of the six pairs hold 0 or 1
    assert at("nDCG[cider]@1", "expected") == pytest.approx(5 / 8)


def test_equal_similarities_go_by_index() -> None:
    """Of captions that are equally similar, the lower index is among the m."""
    gains = {"cider": GainMatrix([[1.0, 3.0, 3.0, 3.0]])}
    for column, expected in ((1, 1.0), (2, 1.0), (3, 0.0)):
        scores = np.zeros((1, 4))
        scores[0, column] = 1
        assert compute(parse_metric("SRhit[m=2]@1").spec, rank(scores, [{0}]), "stable", gains)[0] == expected


def test_a_perfect_ranking_scores_1_and_the_worst_less_than_a_random_one() -> None:
    random = np.random.default_rng(0)
    phi = random.random((30, 60))
    truth = [{2 * image, 2 * image + 1} for image in range(30)]
    gains = {"cider": GainMatrix(phi, image_of=np.repeat(np.arange(30), 2))}
    for metric in ("NCS@5", "NCS[eq5]@5", "NCS[non-gt]@5", "nDCG[cider]@5", "SR[m=5]@5"):
        spec = parse_metric(metric).spec
        best, chance, worst = (
            compute(spec, rank(scores, truth), "stable", gains) for scores in (phi, random.random((30, 60)), -phi)
        )
        np.testing.assert_allclose(best, 1, rtol=1e-6, err_msg=metric)
        assert worst.mean() < chance.mean() < 1


def test_semantic_recall_grows_with_k_and_a_hit_with_m() -> None:
    random = np.random.default_rng(1)
    ranking = rank(random.random((20, 15)), [{0}] * 20)
    gains = {"cider": GainMatrix(random.random((20, 15)))}

    def at(metric: str) -> np.ndarray:
        return compute(parse_metric(metric).spec, ranking, "stable", gains)

    by_k = np.array([at(f"SR[m=4]@{k}") for k in range(1, 16)])
    by_m = np.array([at(f"SRhit[m={m}]@3") for m in range(1, 16)])
    assert (np.diff(by_k, axis=0) >= 0).all()
    assert (np.diff(by_m, axis=0) >= 0).all()
    assert (by_k[-1] == 1).all()
    assert (by_m[-1] == 1).all()


def test_the_number_of_captions_per_image_does_not_matter() -> None:
    """Every caption written down three times: t2i asks thrice as often, and means the same."""
    random = np.random.default_rng(2)
    phi, scores, image_of = random.random((6, 12)), random.random((6, 12)), np.repeat(np.arange(6), 2)
    truth = [{int(image)} for image in image_of]
    once = {"cider": GainMatrix(phi, image_of=image_of)}
    thrice = {"cider": GainMatrix(np.repeat(phi, 3, axis=1), image_of=np.repeat(image_of, 3))}
    for metric in ("NCS@3", "NCS[non-gt]@2", "SR[m=2]@2", "SR[m=2, by-image]@2", "SR[m=2, by-image, non-gt]@2",
                   "SRhit[m=1]@2", "nDCG[cider]@3"):  # fmt: skip
        spec = parse_metric(metric).spec
        few = compute(spec, rank(scores.T, truth, "t2i"), "stable", once)
        many = compute(spec, rank(np.repeat(scores.T, 3, axis=0), [items for items in truth for _ in range(3)], "t2i"),
                       "stable", thrice)  # fmt: skip
        np.testing.assert_allclose(many, np.repeat(few, 3), rtol=1e-12, err_msg=metric)
        assert many.mean() == pytest.approx(few.mean())


def test_folds_compare_within_the_fold() -> None:
    random = np.random.default_rng(3)
    phi, image_of = random.random((6, 12)), np.repeat(np.arange(6), 2)
    parts = [(np.arange(3), np.arange(6)), (np.arange(3, 6), np.arange(6, 12))]
    whole = GainMatrix(phi, image_of=image_of, parts=parts)
    for number, (images, captions) in enumerate(parts):
        alone = GainMatrix(phi[np.ix_(images, captions)], image_of=image_of[captions] - 3 * number)
        for direction, rows, items in (("i2t", images, captions), ("t2i", captions, images)):
            mine, theirs = whole.ideal(direction, 4), alone.ideal(direction, 4)
            depth = theirs.items.shape[1]
            np.testing.assert_array_equal(mine.items[rows, :depth], items[theirs.items])
            np.testing.assert_array_equal(mine.values[rows, :depth], theirs.values)
        actual, expected = whole.ideal_images("i2t", 2).items[images], alone.ideal_images("i2t", 2).items
        np.testing.assert_array_equal(actual, images[expected])


def test_negative_values_count_as_they_are() -> None:
    gains = {"cider": GainMatrix([[2.0, -1.0, 1.0]])}
    ranking = rank([[1, 3, 2]], [{0}])
    assert compute(parse_metric("NCS@1").spec, ranking, "stable", gains)[0] == pytest.approx(-1 / 2)
    assert compute(parse_metric("NCS@2").spec, ranking, "stable", gains)[0] == pytest.approx(0 / 3)
    only = {"cider": GainMatrix([[-2.0, -1.0, -1.0]])}
    assert np.isnan(compute(parse_metric("NCS@2").spec, ranking, "stable", only)[0])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, np.nan, 0.0]], "the value nan in column 1"),
        ([[1.0, 2.0, np.inf]], "the value inf in column 2"),
        ([1.0, 2.0], "values of shape .2,. and type float64"),
        ([["a", "b"]], "type <U1"),
    ],
)
def test_bad_matrices(matrix: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        GainMatrix(matrix)


def test_a_matrix_of_another_size() -> None:
    spec = parse_metric("NCS@1").spec
    with pytest.raises(InputError, match=r"values of shape 4 × 2, 2 images, 4 captions[\s\S]*fix: transpose it"):
        compute(spec, RANKINGS["i2t"], "stable", {"cider": GainMatrix(PHI.T)})
    with pytest.raises(InputError, match="of the same split"):
        compute(spec, RANKINGS["t2i"], "stable", {"cider": GainMatrix(PHI[:, :3])})
    with pytest.raises(UsageError, match="no gains are given for 'cider'"):
        compute(spec, RANKINGS["i2t"])
    with pytest.raises(UsageError, match="by-image needs to know the image of every caption"):
        compute(parse_metric("SR[by-image]@1").spec, RANKINGS["i2t"], "stable", {"cider": GainMatrix(PHI)})


def test_lists_without_scores_have_no_own_ones() -> None:
    from crosslens.rank import rank_lists
    from crosslens.values import RankedLists, Relevance

    truth = Relevance.of({"q": ["a"]})
    bare = rank_lists(RankedLists.of({"q": ["b", "a", "c"]}), truth, "i2t")
    with pytest.raises(InputError, match="the lists have no scores of their own"):
        compute(parse_metric("DCGcm@2").spec, bare)
    scored = rank_lists(RankedLists.of({"q": {"b": 0.5, "a": 0.25, "c": 0.0}}), truth, "i2t")
    assert compute(parse_metric("DCGcm@2").spec, scored)[0] == pytest.approx(0.5 + 1 / log2(3))


def test_scores_that_only_float32_makes_equal_are_no_tie() -> None:
    from crosslens.rank import rank_lists
    from crosslens.values import RankedLists, Relevance

    close = {"b": 0.5 + 2e-12, "a": 0.5 + 1e-12, "c": 0.1}
    ranking = rank_lists(RankedLists.of({"q": close}), Relevance.of({"q": ["a"]}), "i2t")
    assert compute(parse_metric("nDCG@1").spec, ranking, "expected")[0] == 0


@each_row(
    ("text", "name"),
    [
        ("NCS@10", "NCS[cider]@10"),
        ("NCS[eq5, spice]@5", "NCS[spice, eq5]@5"),
        ("SR[semantic,m=20]@5", "SR[semantic, m=20]@5"),
        ("SR@5", "SR[cider, m=20]@5"),
        ("SRhit[non-gt, m=3]@5", "SRhit[cider, m=3, non-gt]@5"),
        ("DCGcm@10", "DCGcm[scores_from=own]@10"),
        ("DCGcm[scores_from=clip:openai/clip-vit-base-patch32]@10",) * 2,
        ("Nsum", "Nsum[cider]"),
        ("nDCG@10", "nDCG@10"),
        ("nDCG[embed:org/model]@10", "nDCG[embed:org/model]@10"),
    ],
)
def test_names_say_what_was_compared_with(text: str, name: str) -> None:
    (request,) = parse_metrics(text)
    assert str(request.spec) == name
    assert str(parse_metric(name).spec) == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NCS[m=3]@5", "m requires eq5"),
        ("SR[m=0]@5", "m of .* is '0'\n  fix: write a whole number from 1"),
        ("SR[m=many]@5", "m of .* is 'many'"),
        ("SR[5, m=3]@5", "gives 'm' twice"),
        ("NCS[3]@5", "m requires eq5"),
        ("SR[0]@5", "m of .* is '0'"),
        ("NCS[cider, spice]@5", "gives 'φ' twice"),
        ("NCS", "NCS needs a cutoff"),
    ],
)
def test_wrong_names(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_metrics(text)


def test_what_is_kept_for_a_ranking_is_forgotten_with_it() -> None:
    ranking = rank(SCORES, [{0, 1}, {2, 3}])
    compute(parse_metric("SR[m=2, non-gt]@1").spec, ranking, "expected", GAINS)
    gone = weakref.ref(ranking)
    del ranking
    gc.collect(1)  # it is young; all objects would take a second
    assert gone() is None


def test_a_double_phi_keeps_its_precision() -> None:
    """0.1 + 0.2 is no float32: a perfect list has a value of 1, whatever other queries look like."""
    phi = np.array([[0.1 + 0.2, 0.2, 0.1], [0.7, 0.7 + 1e-12, 0.3], [1 / 3, 0.3, 0.9]])
    scores = phi.copy()
    ranking = rank(scores, [{0}, {1}, {2}])
    for text in ("NCS[cider]@1", "NCS[cider]@2", "nDCG[cider]@2"):
        values = compute(parse_metric(text).spec, ranking, gains={"cider": GainMatrix(phi)})
        assert values.tolist() == [1.0, 1.0, 1.0], text
