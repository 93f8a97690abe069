"""Each score function against its definition, written out for one pair at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from crosslens.core import InputError, Options, UnknownNameError, UsageError, declarations, option
from crosslens.rank import SCORES, InnerProduct, rank_both, score_function, scorer_of
from crosslens.values import Embeddings
from tests.rank.test_exactness import check, exact_matrix, random_relevance

RNG = np.random.default_rng(0)


def cosine(a, b):
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def slow(function, images, captions):
    return np.array([[function(a, b) for b in captions] for a in images])


def smooth_chamfer(a, b, alpha=16):
    pairs = [[alpha * cosine(x, y) for y in b] for x in a]
    forward = sum(math.log(sum(math.exp(c) for c in row)) for row in pairs) / (2 * alpha * len(a))
    columns = list(zip(*pairs, strict=True))
    return forward + sum(math.log(sum(math.exp(c) for c in col)) for col in columns) / (2 * alpha * len(b))


@pytest.mark.parametrize(("score", "function"), [
    ("max", lambda a, b: max(cosine(x, y) for x in a for y in b)),
    ("smooth-chamfer", smooth_chamfer),
    ("smooth-chamfer[alpha=3]", lambda a, b: smooth_chamfer(a, b, 3)),
])  # fmt: skip
def test_sets_of_vectors(score, function):
    images, captions = RNG.standard_normal((9, 3, 12)), RNG.standard_normal((21, 4, 12))
    scorer = scorer_of(Embeddings.of(images), Embeddings.of(captions), score)
    np.testing.assert_allclose(exact_matrix(scorer), slow(function, images, captions), atol=2e-7)
    off = np.abs(scorer.tile(slice(0, 9), slice(0, 21)) - exact_matrix(scorer))
    assert (off <= scorer.row_slack[:, None]).all()
    relevance = random_relevance(RNG, 9, 21, 0.2)
    check(exact_matrix(scorer), relevance, rank_both(scorer, relevance, depth=5, tile=4, threads=2))


def test_a_set_of_one_is_a_vector():
    images, captions = RNG.standard_normal((5, 8)), RNG.standard_normal((7, 8))
    single = exact_matrix(scorer_of(Embeddings.of(images), Embeddings.of(captions), "cosine"))
    many = exact_matrix(scorer_of(Embeddings.of(images), Embeddings.of(captions[:, None]), "max"))
    np.testing.assert_array_equal(single, many)


def distributions(n: int, ids: str) -> Embeddings:
    return Embeddings(tuple(f"{ids}{k}" for k in range(n)), RNG.standard_normal((n, 6)), RNG.random((n, 6)))


def test_expected_squared_distance_by_simulation():
    images, captions = distributions(3, "i"), distributions(4, "c")
    negative_distances = exact_matrix(scorer_of(images, captions, "csd"))
    draws = 200_000
    for i in range(3):
        left = images.vectors[i] + np.sqrt(images.variance[i]) * RNG.standard_normal((draws, 6))
        for c in range(4):
            right = captions.vectors[c] + np.sqrt(captions.variance[c]) * RNG.standard_normal((draws, 6))
            assert negative_distances[i, c] == pytest.approx(-((left - right) ** 2).sum(axis=1).mean(), rel=0.02)


def test_match_probability_of_certain_points_is_the_sigmoid():
    images = Embeddings(("a", "b"), RNG.standard_normal((2, 5)), np.zeros((2, 5)))
    captions = Embeddings(("c",), RNG.standard_normal((1, 5)), np.zeros((1, 5)))
    probabilities = exact_matrix(scorer_of(images, captions, "match[a=2, b=3]"))
    for i in range(2):
        distance = np.linalg.norm(images.vectors[i] - captions.vectors[0])
        assert probabilities[i, 0] == pytest.approx(1 / (1 + math.exp(2 * distance - 3)), rel=1e-6)


def test_match_probability_is_seeded_by_id_and_ranks_exactly():
    images, captions = distributions(6, "i"), distributions(15, "c")
    scorer = scorer_of(images, captions, "match[samples=3]")
    relevance = random_relevance(RNG, 6, 15, 0.2)
    check(exact_matrix(scorer), relevance, rank_both(scorer, relevance, depth=5, tile=4, threads=2))
    turned = Embeddings(captions.ids[::-1], captions.vectors[::-1], captions.variance[::-1])
    np.testing.assert_allclose(
        exact_matrix(scorer_of(images, turned, "match[samples=3]"))[:, ::-1], exact_matrix(scorer), rtol=1e-6
    )
    other_seed = exact_matrix(scorer_of(images, captions, "match[samples=3, seed=1]"))
    assert not np.allclose(other_seed, exact_matrix(scorer))


@pytest.mark.parametrize(("score", "error", "message"), [
    ("cosin", UnknownNameError, "did you mean cosine"),
    ("cosine[alpha=3]", UsageError, "no option 'alpha'"),
    ("smooth-chamfer[beta=3]", UsageError, "alpha=16"),
    ("smooth-chamfer[alpha=x]", UsageError, "name\\[option=number\\]"),
    ("smooth-chamfer[alpha=0]", UsageError, "above 0"),
    ("csd", InputError, "score='cosine'"),
])  # fmt: skip
def test_wrong_names(score, error, message):
    vectors = Embeddings.of(RNG.standard_normal((2, 3)))
    with pytest.raises(error, match=message):
        scorer_of(vectors, vectors, score)


def test_several_vectors_need_a_score_for_sets():
    sets = Embeddings.of(RNG.standard_normal((2, 4, 3)))
    with pytest.raises(InputError, match="score='max' or score='smooth-chamfer'"):
        scorer_of(sets, sets, "cosine")


def test_zero_vectors_have_no_cosine():
    vectors = RNG.standard_normal((5, 3))
    vectors[3] = 0
    with pytest.raises(InputError, match="row 3: a vector of zeros has no direction") as raised:
        scorer_of(Embeddings.of(vectors), Embeddings.of(vectors))
    assert (raised.value.code, raised.value.row) == ("zero-vector", 3)
    assert raised.value.fix == "encode that item again, or use score='dot'"


def test_what_is_known_about_score_functions():
    assert SCORES.names() == ("cosine", "csd", "dot", "match", "max", "smooth-chamfer")
    assert SCORES.group == "crosslens.scores"
    for entry in SCORES:
        assert entry.summary
        assert entry.details["kind"] in ("single", "multi", "probabilistic")
        assert all(declared.help for declared in declarations(entry.details["options"]).values())
    assert list(declarations(SCORES["match"].details["options"])) == ["samples", "a", "b", "seed"]


@dataclass(frozen=True)
class PowerOptions(Options):
    """Options of a made-up score."""

    scale: float = option(2.0, "What scores are multiplied by.", minimum=1)


def test_a_new_score_function_is_a_few_lines(monkeypatch):
    monkeypatch.setattr(SCORES, "_entries", dict(SCORES._entries))

    @score_function("scaled-dot", "single", PowerOptions)
    def scaled_dot(images: Embeddings, captions: Embeddings, scale: float) -> InnerProduct:
        """Inner product, scaled."""
        return InnerProduct(np.asarray(scale * images.vectors, np.float32), np.asarray(captions.vectors, np.float32))

    images, captions = (Embeddings.of(RNG.standard_normal((n, 4))) for n in (3, 5))
    plain = exact_matrix(scorer_of(images, captions, "dot"))
    np.testing.assert_allclose(exact_matrix(scorer_of(images, captions, "scaled-dot")), 2 * plain, rtol=1e-6)
    np.testing.assert_allclose(exact_matrix(scorer_of(images, captions, "scaled-dot[scale=3]")), 3 * plain, rtol=1e-6)
    with pytest.raises(UsageError, match="scale must be at least 1"):
        scorer_of(images, captions, "scaled-dot[scale=0.5]")
    with pytest.raises(UsageError, match="has no option 'power'\n  fix: its options: scale=2"):
        scorer_of(images, captions, "scaled-dot[power=3]")
