"""Confusions: their pairs are those behind NonCommonSimilarity, and their counts follow."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import UsageError
from crosslens.explanations import ImageObjects, hypernym_path
from crosslens.explanations.concepts import compare_images
from crosslens.explanations.lexicon import ancestor_at
from crosslens.explanations.statistics import concept_pairs, count_confusions
from crosslens.language import load_wordnet

SYNSETS = ("dog.n.01", "cat.n.01", "car.n.01", "bus.n.01", "person.n.01", "pizza.n.01", "chair.n.01", "zebra.n.01")


def objects_from(images: list[list[str]]) -> ImageObjects:
    """Objects by their synsets alone."""
    flat = [synset for image in images for synset in image]
    return ImageObjects.of(
        tuple(f"i{n}" for n in range(len(images))), [len(image) for image in images], flat, flat,
        np.full((len(flat), 4), np.nan), np.full(len(flat), np.nan), [()] * len(flat),
    )  # fmt: skip


pictures = st.lists(st.lists(st.sampled_from(SYNSETS), max_size=6), min_size=2, max_size=6)
failed = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


def rows_of(images: list[list[str]], some: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [image % len(images) for image, _ in some], [wrong_image % len(images) for _, wrong_image in some]


@given(pictures, failed)
def test_pairs_are_those_of_each_failure(images: list[list[str]], some: list[tuple[int, int]]) -> None:
    objects = objects_from(images)
    right, wrong = rows_of(images, some)
    pairs = concept_pairs(objects, right, wrong)
    for failure, (image, wrong_image) in enumerate(zip(right, wrong, strict=True)):
        mine = [row[1:] for row in pairs.rows() if row[0] == failure]
        assert mine == compare_images(objects, image, wrong_image)["concept_pairs"]


@given(pictures, failed, st.sampled_from([None, 0, 3, 6, 8, 30]))
def test_counts_are_failures_with_the_pair(
    images: list[list[str]], some: list[tuple[int, int]], depth: int | None
) -> None:
    pairs = concept_pairs(objects_from(images), *rows_of(images, some))
    queries = [f"q{n}" for n in range(len(some))]
    confusions = count_confusions(pairs, queries, depth=depth)
    once = {
        (row, ancestor_at(concept, depth), ancestor_at(concept_there, depth))
        for row, concept, concept_there, _ in pairs.rows()
    }
    expected = Counter((concept, concept_there) for _, concept, concept_there in once)
    assert {
        (concept, concept_there): count
        for concept, concept_there, count in confusions.select("expected", "shown", "count").rows()
    } == expected
    if depth is None:
        assert confusions["count"].sum() == pairs.height
    of = {concept: len({row for row, first, _ in once if first == concept}) for concept in confusions["expected"]}
    for row in confusions.to_dicts():
        assert row["share"] == pytest.approx(row["count"] / len({failure for failure, _, _ in once}))
        assert row["share_of_expected"] == pytest.approx(row["count"] / of[row["expected"]])
        assert {(int(name[1:]), row["expected"], row["shown"]) for name in row["examples"]} <= once


@given(pictures, failed, st.data())
def test_query_informed_pairs_are_asked_for_and_shown_unasked(
    images: list[list[str]], some: list[tuple[int, int]], data: Any
) -> None:
    right, wrong = rows_of(images, some)
    asked = [data.draw(st.sets(st.sampled_from((*SYNSETS, "sky.n.01")))) for _ in some]
    for failure, expected, concept_there, _ in concept_pairs(
        objects_from(images), right, wrong, mentioned=asked
    ).rows():
        there, instead = set(images[right[failure]]), set(images[wrong[failure]])
        assert expected in asked[failure] & there - instead
        assert concept_there in instead - there - asked[failure]


def test_lift_compares_with_chance() -> None:
    # Dogs are taken for cats, cars for buses, never across: each pair twice as often as half and half would have it.
    images = [["dog.n.01"], ["cat.n.01"], ["car.n.01"], ["bus.n.01"]]
    confusions = count_confusions(concept_pairs(objects_from(images), [0, 0, 2, 2], [1, 1, 3, 3]), list("abcd"))
    assert confusions.select("expected", "shown", "count", "lift").rows() == [
        ("car.n.01", "bus.n.01", 2, 2.0),
        ("dog.n.01", "cat.n.01", 2, 2.0),
    ]
    assert confusions["examples"].to_list() == [["c", "d"], ["a", "b"]]


@pytest.mark.parametrize("synset", SYNSETS)
def test_the_way_up_is_the_longest(synset: str) -> None:
    chain = hypernym_path(synset)
    assert chain[0] == synset
    assert chain[-1] == "entity.n.01"
    assert len(chain) - 1 == load_wordnet().max_depth([synset])[0]
    for concept, above in itertools.pairwise(chain):
        assert load_wordnet().synset(above) in load_wordnet().hypernyms(concept)


def test_kinds() -> None:
    assert [ancestor_at(synset, 6) for synset in ("dog.n.01", "zebra.n.01", "person.n.01")] == ["animal.n.01"] * 2 + [
        "person.n.01"
    ]
    assert [ancestor_at(synset, 7) for synset in ("car.n.01", "truck.n.01")] == ["vehicle.n.01"] * 2
    assert ancestor_at("car.n.01", 0) == "entity.n.01"
    assert ancestor_at("car.n.01", 99) == "car.n.01"
    with pytest.raises(UsageError):
        ancestor_at("car.n.01", -1)
