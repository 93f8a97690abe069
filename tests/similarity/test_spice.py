"""SPICE: values worked by hand, the matrix against a slow reference, invariances, real captions."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UsageError
from crosslens.language import COLOURS, SIZES, SceneGraph, is_number
from crosslens.similarity import load_similarity
from crosslens.similarity.measures.spice import PARTS, Spice, prepare_graphs
from tests.language.pipelines import needs_a_pipeline
from tests.similarity.spice_reference import spice as slow_spice

COUNTS: dict[str, Callable[[tuple[object, ...]], bool]] = {
    "": lambda fact: True,
    "object": lambda fact: len(fact) == 1,
    "attribute": lambda fact: len(fact) == 2,
    "relation": lambda fact: len(fact) == 3,
    "colour": lambda fact: len(fact) == 2 and fact[1] in COLOURS,
    "cardinality": lambda fact: len(fact) == 2 and is_number(str(fact[1])),
    "size": lambda fact: len(fact) == 2 and fact[1] in SIZES,
}

# Couch and sofa share a synset, as do big and large; bike, bicycle, wheel and cycle; car and machine, but car and
# simple machine do not. Zorb is no word of WordNet.
OBJECTS = (
    "couch",
    "sofa",
    "lounge",
    "bike",
    "bicycle",
    "wheel",
    "rim",
    "car",
    "machine",
    "dog",
    "zorb",
    "man",
    "piece",
)
ATTRIBUTES = ("big", "large", "red", "two", "sit", "zorb", "bright", "brilliant")
RELATIONS = ("on", "ride", "sit", "near", "by")

graphs = st.builds(
    lambda attributes, relations, extra: SceneGraph(
        tuple(sorted({a for a, _ in attributes} | {w for r in relations for w in (r[0], r[2])} | extra)),
        tuple(sorted(attributes)),
        tuple(sorted(relations)),
    ),
    st.sets(st.tuples(st.sampled_from(OBJECTS), st.sampled_from(ATTRIBUTES)), max_size=4),
    st.sets(st.tuples(st.sampled_from(OBJECTS), st.sampled_from(RELATIONS), st.sampled_from(OBJECTS)), max_size=4),
    st.sets(st.sampled_from(OBJECTS), max_size=3),
)
collections = st.tuples(
    st.lists(st.lists(graphs, max_size=4), min_size=1, max_size=5), st.lists(graphs, min_size=1, max_size=6)
)


def spice_of(references: list[SceneGraph], caption: SceneGraph, part: str = "") -> float:
    return float(prepare_graphs([references], [caption], part=part).block(slice(0, 1))[0, 0])


def test_worked_by_hand() -> None:
    reference = SceneGraph(("man", "bike"), (("bike", "red"),), (("man", "ride", "bike"),))
    caption = SceneGraph(
        ("man", "bicycle", "street"), (("bicycle", "red"),), (("man", "ride", "bicycle"), ("man", "on", "street"))
    )
    # Said: 6 tuples, of which man, bicycle, (bicycle, red), (man, ride, bicycle) are true; true: 4 tuples.
    assert spice_of([reference], caption) == np.float32(2 * (4 / 6) * (4 / 4) / (4 / 6 + 4 / 4))
    assert spice_of([reference], caption, "object") == np.float32(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert spice_of([reference], caption, "relation") == np.float32(2 * (1 / 2) * 1 / (1 / 2 + 1))
    assert spice_of([reference], caption, "colour") == 1.0
    assert spice_of([reference], caption, "size") == 0.0


def test_synonymous_objects_of_the_references_are_one_node() -> None:
    references = [SceneGraph(("couch",), (("couch", "red"),)), SceneGraph(("sofa",), (("sofa", "red"),))]
    # One node and one attribute: the caption says both.
    assert spice_of(references, SceneGraph(("sofa",), (("sofa", "red"),))) == 1.0


def test_a_word_must_match_in_its_own_place() -> None:
    reference = SceneGraph(("dog", "man"), (), (("dog", "by", "man"),))
    turned = SceneGraph(("dog", "man"), (), (("man", "by", "dog"),))
    assert spice_of([reference], turned, "relation") == 0.0
    assert spice_of([reference], turned, "object") == 1.0


def test_saying_the_same_twice_is_no_more_than_all() -> None:
    assert spice_of([SceneGraph(("couch",))], SceneGraph(("couch", "sofa"))) == 1.0


def test_nothing_said_or_nothing_true_is_0() -> None:
    full, empty = SceneGraph(("dog",)), SceneGraph()
    matrix = prepare_graphs([[empty], [], [full]], [full, empty]).block(slice(None))
    np.testing.assert_array_equal(matrix, np.array([[0, 0], [0, 0], [1, 0]], np.float32))


@given(collections, st.sampled_from(sorted(PARTS)), st.integers(1, 3))
def test_the_matrix_is_the_slow_reference(
    collection: tuple[list[list[SceneGraph]], list[SceneGraph]], part: str, threads: int
) -> None:
    references, captions = collection
    prepared = prepare_graphs(references, captions, part=part, threads=threads)
    slow = np.array([[slow_spice(some, caption, COUNTS[part]) for caption in captions] for some in references])
    matrix = prepared.block(slice(None))
    np.testing.assert_array_equal(matrix, slow.astype(np.float32))
    assert matrix.dtype == np.float32
    assert matrix.min() >= 0
    assert matrix.max() <= 1
    rows, columns = np.indices(prepared.shape).reshape(2, -1)[:, ::-1]
    np.testing.assert_array_equal(prepared.pairs(rows, columns), matrix[rows, columns])
    np.testing.assert_array_equal(prepared.block(slice(1, 3)), matrix[1:3])


@given(collections)
def test_the_order_of_references_and_of_captions_does_not_matter(
    collection: tuple[list[list[SceneGraph]], list[SceneGraph]],
) -> None:
    references, captions = collection
    straight = prepare_graphs(references, captions).block(slice(None))
    turned = prepare_graphs([some[::-1] for some in references], captions[::-1]).block(slice(None))
    np.testing.assert_array_equal(turned[:, ::-1], straight)


@given(st.lists(graphs, min_size=1, max_size=4))
def test_a_reference_twice_is_a_reference_once(references: list[SceneGraph]) -> None:
    assert spice_of(references + references, references[0]) == spice_of(references, references[0])


def test_positions_outside_the_matrix_are_an_error() -> None:
    prepared = prepare_graphs([[SceneGraph(("dog",))]], [SceneGraph(("dog",))])
    with pytest.raises(InputError, match="caption 1"):
        prepared.pairs(np.array([0]), np.array([1]))


@pytest.mark.parametrize("part", sorted(PARTS))
def test_every_part_is_asked_for_by_name(part: str) -> None:
    similarity = load_similarity(f"spice-{part}" if part else "spice")
    assert similarity.name == (f"spice-{part}" if part else "spice")


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UsageError, match="no option 'parser'"):
        load_similarity("spice", parser="mine")


@needs_a_pipeline
def test_from_texts(tmp_path: Path) -> None:
    references = [["A red bicycle leans against a wall.", "A bike by a brick wall."], ["Two dogs sleep on a couch."]]
    captions = ["A red bike leans against the wall.", "Two dogs on a sofa.", "A bowl of soup."]
    matrix = Spice(cache=tmp_path).prepare(references, captions).block(slice(None))
    assert matrix.argmax(axis=1).tolist() == [0, 1]
    assert matrix[:, 2].tolist() == [0.0, 0.0]
    # Two dogs on a sofa: (dog) (sofa) (dog, two) (dog, on, sofa); the reference also says that they sleep.
    assert matrix[1, 1] == np.float32(2 * (4 / 4) * (4 / 5) / (4 / 4 + 4 / 5))


@needs_a_pipeline
def test_real_captions_agree_with_the_slow_reference(shared_data: Path, tmp_path: Path) -> None:
    from crosslens.language import parse_texts, scene_graph

    file = shared_data / "coco_karpathy_test" / "captions.tsv.gz"
    if not file.exists():
        pytest.skip(f"{file} is not here")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        texts = [line.rstrip("\n").split("\t")[2] for _, line in zip(range(101), lines, strict=False)][1:]
    result = [scene_graph(parse) for parse in parse_texts(texts, cache=tmp_path, threads=1)]
    references = [result[start : start + 5] for start in range(0, len(result), 5)]
    rng = np.random.default_rng(0)
    images, captions = rng.integers(0, len(references), 100), rng.integers(0, len(result), 100)
    images[:50] = captions[:50] // 5
    for part in PARTS:
        fast = prepare_graphs(references, result, part=part).pairs(images, captions)
        slow = [slow_spice(references[i], result[c], COUNTS[part]) for i, c in zip(images, captions, strict=True)]
        np.testing.assert_array_equal(fast, np.array(slow, np.float32))
        assert fast[:100].max() > 0
