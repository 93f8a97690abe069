"""Concept metrics: the worked example, properties, plain values, bad input."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.explanations import concept_metrics, concept_table
from crosslens.explanations.concepts import METRICS, TALLIES, plain_objects
from tests.explanations.random_objects import COMMON, LISTED
from tests.explanations.slow_concepts import Object
from tests.tables import each_row


def zebras() -> tuple[list[Object], list[Object]]:
    """The worked example: the paper gives concepts, counts and differences; boxes are made up to have these."""

    def things(name: str, *areas: float | None) -> list[Object]:
        synset = {"synset": f"{name}.n.01"}
        return [synset if area is None else synset | {"box": [0, 0, area, 1]} for area in areas]

    alone = ("trunk", "hill", "tree", "sky", "branch", "head", "leg", "leaf")
    ground_truth = [item for name in alone for item in things(name, None)]
    ground_truth += things("field", 1000) + things("mane", 10) + things("zebra", 100, 200, 300, 400, None)
    retrieved = things("grassland", 900) + things("grass", 700) + things("field", 2369)
    retrieved += things("mane", 33, 34, 35, 36, 37) + things("zebra", 100, 210, 330, 450, 900, 950, 990)
    return ground_truth, retrieved


def test_worked_example() -> None:
    metrics = concept_metrics(*zebras())
    assert metrics["CA"] == 3 / 11
    assert metrics["common"] == ["field.n.01", "mane.n.01", "zebra.n.01"]
    assert (len(metrics["missing"]), len(metrics["extra"])) == (8, 2)
    assert sorted(metrics["concept_pairs"]) == [
        ("hill.n.01", "grassland.n.01", 1 / 9),
        ("tree.n.01", "grass.n.01", 1 / 6),
    ]
    assert metrics["NonCommonSimilarity"] == pytest.approx(0.13889, abs=5e-6)
    assert metrics["NonCommonSimilarity"] == pytest.approx((1 / 9 + 1 / 6) / 2, abs=1e-15)
    assert metrics["counts"] == {"zebra.n.01": (5, 7), "field.n.01": (1, 1), "mane.n.01": (1, 5)}
    assert metrics["CE"] == 6
    assert [pair[0] for pair in metrics["box_pairs"]] == ["field.n.01", "mane.n.01"] + ["zebra.n.01"] * 4
    assert [round(pair[5], 3) for pair in metrics["box_pairs"]] == [1.369, 2.3, 0, 0.05, 0.1, 0.125]
    assert metrics["SD[binary]"] == 2 / 6
    assert metrics["SD"] == pytest.approx(1.369 + 2.3 + 0.275 / 4)
    assert (metrics["object_hit"], metrics["object_miss"], metrics["object_extra"]) == (3, 8, 2)
    assert metrics["matched_synsets"] == 2 / 10
    assert metrics["wrong_count"] == 2 / 3


def test_worked_example_in_a_table() -> None:
    metrics = concept_metrics(*zebras())
    row = concept_table(plain_objects(*zebras()), [0], [1]).row(0, named=True)
    assert {name: row[name] for name in METRICS} == pytest.approx({name: metrics[name] for name in METRICS})
    assert (row["box_pairs"], row["box_pairs_over"], row["concept_pairs"], row["wrong_counts"]) == (6, 2, 2, 2)


def test_query_informed_worked_example() -> None:
    """A herd of zebras grazing in a lush green field: both are there."""
    informed = concept_metrics(*zebras(), mentioned=["zebra.n.01", "field.n.01"])
    assert (informed["CA"], informed["CE"], informed["NonCommonSimilarity"]) == (1, 2, None)
    assert informed["SD[binary]"] == 1 / 5
    assert informed["object_miss"] == 0


def test_areas_are_shares_of_the_picture_where_its_size_is_known() -> None:
    box = {"synset": "dog.n.01", "box": [0, 0, 10, 10]}
    assert concept_metrics([box], [box])["SD"] == 0
    metrics = concept_metrics([box], [box], sizes=((100, 100), (20, 10)))
    assert metrics["box_pairs"] == [("dog.n.01", 0, 0, 0.01, 0.5, 49)]
    assert concept_metrics([box], [box], sizes=((20, 10), (100, 100)))["SD"] == pytest.approx(0.98)
    assert concept_metrics([box], [box], sizes=((20, 10), (100, 100)), base="min")["SD"] == pytest.approx(49)


def test_any_word_of_a_synset_names_it() -> None:
    metrics = concept_metrics(
        [{"synset": "auto.n.01"}], [{"synset": "car.n.01"}, {"name": "Cars"}], mentioned=["auto.n.01"]
    )
    assert metrics["common"] == ["car.n.01"]
    assert metrics["counts"] == {"car.n.01": (1, 2)}


def test_objects_without_a_synset_count_by_name_for_hit_and_miss_only() -> None:
    metrics = concept_metrics(
        [{"name": "Gromzz"}, {"name": "gromzz"}, {"name": "qwx"}, {"name": "dog"}],
        [{"name": "gromzz"}, {"name": "vlork"}],
    )
    assert (metrics["object_hit"], metrics["object_miss"], metrics["object_extra"]) == (1, 2, 1)
    assert metrics["CA"] == 0
    assert metrics["missing"] == ["dog.n.01"]
    assert metrics["extra"] == []


def test_undefined_is_none_and_the_result_is_json() -> None:
    empty = concept_metrics([], [])
    assert {name for name in METRICS if empty[name] is None} == {
        "CA",
        "NonCommonSimilarity",
        "SD",
        "SD[binary]",
        "matched_synsets",
        "wrong_count",
        "attribute_agreement",
        "spatial_agreement",
    }
    assert empty["CE"] == 0
    for metrics in (empty, concept_metrics(*zebras())):
        json.dumps(metrics, allow_nan=False)
        assert all(metrics[name] is None or type(metrics[name]) is float for name in METRICS)
    table = concept_table(plain_objects([], []), [0], [1])
    assert [name for name in METRICS if table[name][0] is None] == [name for name in METRICS if empty[name] is None]
    assert concept_table(plain_objects([], []), [], []).columns == [*METRICS, *TALLIES]


def test_attributes_are_compared_by_family() -> None:
    dog = {"synset": "dog.n.01", "attributes": ["dark brown", "tiny", "happy"]}
    second_dog = {"synset": "dog.n.01", "attributes": ["brown", "white", "large"]}
    metrics = concept_metrics([dog], [second_dog])
    assert [(row["family"], row["values"], row["agreement"]) for row in metrics["attributes"]] == [
        ("colour", [["brown"], ["brown", "white"]], 0.5),
        ("size", [["small"], ["large"]], 0.0),
    ]
    assert metrics["attribute_agreement"] == 0.25
    assert concept_metrics([dog], [{"synset": "dog.n.01", "attributes": ["wooden"]}])["attribute_agreement"] is None


def test_objects_are_matched_so_that_attributes_agree_best() -> None:
    dogs = [{"synset": "dog.n.01", "attributes": [colour]} for colour in ("red", "green")]
    metrics = concept_metrics(dogs, [*dogs[::-1], {"synset": "dog.n.01"}])
    assert metrics["attribute_agreement"] == 1
    assert [(row["ground_truth"], row["retrieved"]) for row in metrics["attributes"]] == [(0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("dog", "there"),
    [
        ([0, 40, 20, 20], "left"),
        ([90, 40, 10, 10], "right"),
        ([40, 0, 20, 10], "above"),
        ([45, 90, 10, 9], "below"),
        ([42, 42, 5, 5], "inside"),
        ([0, 0, 100, 100], "around"),
        ([40, 40, 20, 20], "at"),
        ([20, 20, 20, 20], "left"),  # as far up as to the left
    ],
)
def test_relations(dog: list[float], there: str) -> None:
    cat = {"synset": "cat.n.01", "box": [40, 40, 20, 20]}
    image = [cat, {"synset": "dog.n.01", "box": dog}]
    opposite = {"left": "right", "above": "below", "inside": "around", "at": "at"}
    opposite |= {value: key for key, value in opposite.items()}
    (relation,) = concept_metrics(image, image)["relations"]
    assert relation["synsets"] == ("cat.n.01", "dog.n.01")
    assert relation["ground_truth"] == {opposite[there]: 1.0}
    assert relation["agreement"] == 1.0


def test_relations_of_several_objects_are_shares() -> None:
    cat = {"synset": "cat.n.01", "box": [40, 40, 20, 20]}
    left, right = ({"synset": "dog.n.01", "box": [x, 40, 20, 20]} for x in (0, 80))
    metrics = concept_metrics([cat, left], [cat, left, right, {"synset": "cat.n.01"}])
    assert metrics["relations"][0]["retrieved"] == {"left": 0.5, "right": 0.5}
    assert metrics["spatial_agreement"] == 0.5


OBJECT = st.builds(
    lambda synset, size, at, words: (
        {"synset": synset} | ({} if size is None else {"box": [*at, *size]}) | ({"attributes": words} if words else {})
    ),
    st.sampled_from(COMMON[:5]),
    st.none() | st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
    st.lists(st.sampled_from(LISTED), max_size=2),
)
PICTURE = st.lists(OBJECT, max_size=9)


def values(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: metrics[name] for name in METRICS}


@given(PICTURE, PICTURE, st.randoms(use_true_random=False), st.sampled_from(["ground_truth", "min"]))
def test_the_order_of_objects_changes_nothing(left: list[Object], right: list[Object], random: Any, base: str) -> None:
    """Small whole sizes tie often."""
    shuffled = [random.sample(side, len(side)) for side in (left, right)]
    options = {"base": base, "threshold": 0.5}
    assert values(concept_metrics(*shuffled, **options)) == pytest.approx(
        values(concept_metrics(left, right, **options))
    )
    tables = [concept_table(plain_objects(*pair), [0], [1], **options) for pair in ((left, right), shuffled)]
    assert tables[0].equals(tables[1])


@given(PICTURE, PICTURE)
def test_bounds(left: list[Object], right: list[Object]) -> None:
    metrics = concept_metrics(left, right)
    for name in METRICS:
        if metrics[name] is not None:
            assert metrics[name] >= 0
            if name not in ("CE", "SD", "object_hit", "object_miss", "object_extra"):
                assert metrics[name] <= 1
    back = concept_metrics(right, left)
    for name in ("NonCommonSimilarity", "CE", "matched_synsets", "wrong_count", "attribute_agreement"):
        assert back[name] == pytest.approx(metrics[name])
    assert back["spatial_agreement"] == pytest.approx(metrics["spatial_agreement"])
    assert back["object_miss"] == metrics["object_extra"]


@given(PICTURE)
def test_an_image_agrees_with_itself(image: list[Object]) -> None:
    metrics = concept_metrics(image, image)
    assert metrics["CA"] == (1 if image else None)
    assert metrics["CE"] == 0
    assert metrics["NonCommonSimilarity"] is None
    boxes = any("box" in item for item in image)
    assert (metrics["SD"], metrics["SD[binary]"]) == ((0, 0) if boxes else (None, None))
    assert metrics["spatial_agreement"] in (None, pytest.approx(1))
    assert metrics["attribute_agreement"] in (None, 1)


BOX = {"synset": "dog.n.01"}


@each_row(
    ("item", "part"),
    [
        ({}, "neither a synset nor a name"),
        ("dog", "is not an object"),
        ({"synset": "dog"}, "not the name of a synset"),
        ({"synset": "dgo.n.01"}, "no synset"),
        ({"synset": 3}, "synset 3"),
        ({"name": " "}, "name"),
        ({"synset": "dog.n.01", "bbox": [0, 0, 1, 1]}, "unknown key 'bbox'"),
        (BOX | {"box": [0, 0, 1]}, "box"),
        (BOX | {"box": [0, 0, 0, 1]}, "box"),
        (BOX | {"box": [0, 0, -1, -1]}, "box"),
        (BOX | {"box": [0, 0, math.nan, 1]}, "box"),
        (BOX | {"box": ["0", "0", "1", "1"]}, "box"),
        (BOX | {"box": "0 0 1 1"}, "box"),
        (BOX | {"attributes": "red"}, "attributes"),
        (BOX | {"attributes": [1]}, "attributes"),
    ],
)
def test_bad_objects_are_named(item: Any, part: str) -> None:
    with pytest.raises(InputError, match=r"retrieved\[1\].*" + part):
        concept_metrics([{"name": "cat"}], [{"name": "cat"}, item])


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"base": "retrieved"}, "base"),
        ({"threshold": 0}, "threshold"),
        ({"threshold": math.nan}, "threshold"),
        ({"sizes": (100, 100)}, "sizes"),
        ({"sizes": ((100, 100), (0, 5))}, "sizes"),
    ],
)
def test_bad_options(options: dict[str, Any], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        concept_metrics([], [], **options)


def test_bad_lists_and_mentions() -> None:
    with pytest.raises(InputError, match="ground_truth"):
        concept_metrics({"synset": "dog.n.01"}, [])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not the name of a synset"):
        concept_metrics([], [], mentioned=["dog"])


@pytest.mark.parametrize(
    ("rows", "options", "problem"),
    [
        (([0, 2], [1, 1]), {}, "row 1: no image has the row 2"),
        (([0], [-1]), {}, "row 0: no image has the row -1"),
        (([0], [0, 1]), {}, "1 ground_truth_rows, but 2 retrieved_rows"),
        (([0.5], [1]), {}, "ground_truth_rows are float64"),
        (([0], [1]), {"mentioned": []}, "1 ground_truth_rows, but 0 mentioned"),
    ],
)
def test_bad_rows(rows: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(CrosslensError, match=problem):
        concept_table(plain_objects([], []), *rows, **options)


def test_objects_may_come_from_any_iterable_once() -> None:
    some = [{"synset": "zebra.n.01", "box": [0, 0, 2, 2]}, {"synset": "tree.n.01"}]
    assert concept_metrics(iter(some), (item for item in some[:1])) == concept_metrics(some, some[:1])
    assert concept_metrics(np.array(some, dtype=object), some[:1]) == concept_metrics(some, some[:1])
    with pytest.raises(InputError, match="ground_truth is 3"):
        concept_metrics(3, some)  # type: ignore[arg-type]
