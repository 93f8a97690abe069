"""Concept metrics against a slow reference: path similarity over hypernyms, networkx's matchings."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from crosslens.explanations import ImageObjects, concept_metrics, concept_table
from crosslens.explanations.concepts import METRICS, TALLIES, plain_objects
from crosslens.language import load_wordnet
from tests.explanations.random_objects import COMMON, random_objects, rare_nouns
from tests.explanations.slow_concepts import Object, path_similarity, slow_metrics
from tests.language.nltk_reader import missing, open_reader

similar = cache(path_similarity)


def tallies(comparison: dict[str, Any]) -> dict[str, int]:
    """The integer columns of one comparison."""
    common, missing, extra = (len(comparison[name]) for name in ("common", "missing", "extra"))
    return {
        "synsets_ground_truth": common + missing,
        "synsets_retrieved": common + extra,
        "common": common,
        "missing": missing,
        "extra": extra,
        "concept_pairs": len(comparison["concept_pairs"]),
        "wrong_counts": sum(count != count_there for count, count_there in comparison["counts"].values()),
        "box_pairs": len(comparison["box_pairs"]),
        "box_pairs_over": sum(pair[5] >= 1 for pair in comparison["box_pairs"]),
        "attribute_pairs": len(comparison["attributes"]),
        "relation_pairs": len(comparison["relations"]),
    }


@pytest.fixture(scope="module", params=[200, pytest.param(2_000, marks=pytest.mark.slow)])
def pictures(request: pytest.FixtureRequest) -> list[list[Object]]:
    """So many pairs; every third is of few, frequent concepts."""
    rng = np.random.default_rng(6)
    few, many = COMMON, COMMON + rare_nouns(60)
    return [random_objects(rng, few if number // 2 % 3 else many, 12) for number in range(2 * request.param)]


@pytest.fixture(scope="module")
def objects(pictures: list[list[Object]]) -> ImageObjects:
    """All of them as one set of images."""
    parts = [plain_objects(picture, []) for picture in pictures]
    return ImageObjects.of(
        tuple(map(str, range(len(parts)))),
        [len(part) for part in parts],
        [name for part in parts for name in part.names],
        [part.synset(index) for part in parts for index in range(len(part))],
        np.concatenate([part.boxes for part in parts]),
        np.concatenate([part.areas for part in parts]),
        [words for part in parts for words in part.attributes],
    )


def pair_rows(pictures: list[list[Object]]) -> tuple[range, range]:
    """The rows of the first picture of each pair, and of the second."""
    return range(0, len(pictures), 2), range(1, len(pictures), 2)


def mentions(number: int) -> set[str]:
    """What the query of a failure mentions."""
    return {str(name) for name in np.random.default_rng(number).choice(COMMON, 4)}


def same(ours: Any, theirs: dict[str, float | None], where: object) -> None:
    for name in METRICS:
        mine, expected = ours[name], theirs[name]
        equal = (
            mine is expected
            if expected is None or mine is None
            else math.isclose(mine, expected, rel_tol=1e-9, abs_tol=1e-9)
        )
        assert equal, (name, mine, expected, where)


@pytest.mark.parametrize(("options", "step"), [({}, 1), ({"base": "min", "threshold": 0.25}, 8)], ids=["usual", "min"])
def test_table_is_the_reference(
    pictures: list[list[Object]], objects: ImageObjects, options: dict[str, Any], step: int
) -> None:
    table = concept_table(objects, *pair_rows(pictures), **options)
    assert all(table[name].null_count() < 0.7 * table.height for name in METRICS)  # each is really compared
    for number in range(0, table.height, step):
        pair = pictures[2 * number : 2 * number + 2]
        same(table.row(number, named=True), slow_metrics(*pair, similarity=similar, **options), number)


def test_query_informed_table_is_the_reference(pictures: list[list[Object]], objects: ImageObjects) -> None:
    mentioned = [mentions(number) for number in range(len(pictures) // 2)]
    table = concept_table(objects, *pair_rows(pictures), mentioned=mentioned)
    assert 0 < table["CA"].null_count() < table.height
    for number, row in enumerate(table.iter_rows(named=True)):
        pair = pictures[2 * number : 2 * number + 2]
        same(row, slow_metrics(*pair, similarity=similar, mentioned=mentioned[number]), number)


def test_one_failure_says_what_the_table_says(pictures: list[list[Object]], objects: ImageObjects) -> None:
    table = concept_table(objects, *pair_rows(pictures))
    mentions_of = [mentions(number) for number in range(len(pictures) // 2)]
    informed = concept_table(objects, *pair_rows(pictures), mentioned=mentions_of)
    for number in range(0, table.height, 10):
        pair = pictures[2 * number : 2 * number + 2]
        for rows, mentioned in ((table, None), (informed, mentions_of[number])):
            metrics, row = concept_metrics(*pair, mentioned=mentioned), rows.row(number, named=True)
            same(metrics, row, number)
            assert tallies(metrics) == {name: row[name] for name in TALLIES}


def test_any_number_of_threads_gives_the_same(pictures: list[list[Object]], objects: ImageObjects) -> None:
    rows = pair_rows(pictures)
    alone = concept_table(objects, *rows, threads=1)
    for threads in (2, 5):
        assert concept_table(objects, *rows, threads=threads).equals(alone)


@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_nltk_gives_the_same_similarities(
    pictures: list[list[Object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    reader, wn = open_reader(tmp_path_factory.mktemp("dict")), load_wordnet()

    @cache
    def nltks(synset: str, second_synset: str) -> float:
        left, right = (reader.synset_from_pos_and_offset("n", wn.offset(name)) for name in (synset, second_synset))
        return float(left.path_similarity(right))

    for number in range(0, len(pictures), 80):
        pair = pictures[number : number + 2]
        same(concept_metrics(*pair), slow_metrics(*pair, similarity=nltks), number)


def tied_areas() -> list[tuple[tuple[int, int], tuple[int, int], float, int]]:
    """Areas whose two matchings weigh the same, a threshold that tells these apart, the fewest pairs over it."""
    solutions = []
    sides = list(combinations(range(1, 17), 2))
    for left in sides:
        for right in sides:
            ways = [
                sorted(Fraction(abs(area - second_area), area) for area, second_area in zip(left, some, strict=True))
                for some in (right, right[::-1])
            ]
            if sum(ways[0]) == sum(ways[1]) and ways[0] != ways[1]:
                threshold = sorted({*ways[0], *ways[1]})[1]  # between the least and the next: one way has both over it
                over = [sum(value >= threshold for value in way) for way in ways]
                solutions.append((left, right, float(threshold) - 1e-6, min(over)))
                assert over[0] != over[1]
    return solutions


def test_tied_matchings_of_boxes_give_the_fewest_over_the_threshold() -> None:
    ties = tied_areas()
    assert len(ties) > 20
    for left, right, threshold, over in ties:
        for ground_truth, retrieved in ((left, right), (left[::-1], right)):
            pair = boxed(ground_truth), boxed(retrieved)
            assert concept_metrics(*pair, threshold=threshold)["SD[binary]"] == over / 2
            table = concept_table(plain_objects(*pair), [0], [1], threshold=threshold, threads=1)
            assert table["SD[binary]"][0] == over / 2


def test_a_difference_of_just_the_threshold_is_over_it() -> None:
    pair = boxed((4,)), boxed((2,))
    for threshold, over in ((0.5, 1), (0.51, 0)):
        assert concept_metrics(*pair, threshold=threshold)["SD[binary]"] == over
        assert concept_table(plain_objects(*pair), [0], [1], threshold=threshold)["SD[binary]"][0] == over


def boxed(areas: tuple[int, ...]) -> list[Object]:
    return [{"synset": "zebra.n.01", "box": [0, 0, area, 1]} for area in areas]


def test_the_table_does_not_need_scipys_assignment_for_single_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One concept against several is a maximum, not an assignment."""
    import scipy.optimize

    def refuse(*_: object) -> None:
        raise AssertionError("asked to solve a matching of one row")

    monkeypatch.setattr(scipy.optimize, "linear_sum_assignment", refuse)
    objects = plain_objects([{"synset": "dog.n.01"}], [{"synset": "cat.n.01"}, {"synset": "car.n.01"}])
    assert concept_table(objects, [0], [1])["NonCommonSimilarity"][0] == 0.2
