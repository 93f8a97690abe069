"""The compiled WordNet: what nltk says about a sample of it, the worked example, mistakes of the caller."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import compile_wordnet
from crosslens.core import CrosslensError, FormatVersionError, InputError, UsageError
from crosslens.language import load_wordnet
from crosslens.language.wordnet import COMPILED, tables
from crosslens.language.wordnet.hierarchy import Hierarchy
from crosslens.language.wordnet.tables import NO_PATH, Links
from tests.language.golden_wordnet import FILE

GOLDEN: dict[str, list[Any]] = json.loads(FILE.read_text(encoding="utf-8"))
WN = load_wordnet()
FEW = tables.Tables(**{field.name: getattr(WN._tables, field.name)[:50] for field in fields(tables.Tables)})
"""Enough of the tables to write and read."""
SYNSETS = st.integers(0, len(WN) - 1)


def names(synsets: Any) -> list[str]:
    """Sorted, satellites numbered among the adjectives as in the golden file."""
    return sorted(WN.name(synset).replace(".s.", ".a.") for synset in synsets)


def same_tables(built: tables.Tables, stored: tables.Tables) -> bool:
    return all(
        np.array_equal(getattr(built, field.name), getattr(stored, field.name)) for field in fields(tables.Tables)
    )


# Against the golden file


def test_path_similarity() -> None:
    ones, others, rooted, unrooted = zip(*GOLDEN["path_similarity"], strict=True)
    assert WN.paired_path_similarities(ones, others).tolist() == list(rooted)
    without = WN.paired_path_similarities(ones, others, simulate_root=False).tolist()
    assert without == [0.0 if similarity is None else similarity for similarity in unrooted]
    assert None in unrooted


def test_the_matrix_holds_the_pairs() -> None:
    ones, others, rooted, _ = zip(*GOLDEN["path_similarity"][480:560], strict=True)
    matrix = WN.path_similarities(ones, others)
    assert matrix.shape == (80, 80)
    assert np.diag(matrix).tolist() == list(rooted)
    assert matrix[3, 70] == WN.path_similarity(ones[3], others[70])


def test_depths() -> None:
    synsets, least, most = zip(*GOLDEN["depth"], strict=True)
    assert WN.min_depth(synsets).tolist() == list(least)
    assert WN.max_depth(synsets).tolist() == list(most)


def test_lemmas_and_uses() -> None:
    assert [[name, WN.lemmas(name)] for name, _ in GOLDEN["lemmas"]] == GOLDEN["lemmas"]
    assert [[name, WN.uses(name)] for name, _ in GOLDEN["uses"]] == GOLDEN["uses"]
    assert any(count for _, counts in GOLDEN["uses"] for count in counts)


def test_relations() -> None:
    for name, up, similar, attributes, antonyms in GOLDEN["relations"]:
        assert names(WN.hypernyms(name)) == up
        assert names(WN.similar_to(name)) == similar
        assert names(WN.attributes(name)) == attributes
        assert names(WN.antonym_synsets(name)) == antonyms


def test_senses_in_order() -> None:
    for word, part, expected in GOLDEN["synsets"]:
        assert [WN.name(synset).replace(".s.", ".a.") for synset in WN.synsets(word, part)] == expected


def test_morphology() -> None:
    assert [[word, part, WN.morphy(word, part)] for word, part, _ in GOLDEN["morphy"]] == GOLDEN["morphy"]
    assert [[word, part, WN.lemmatise(word, part)] for word, part, _ in GOLDEN["lemmatise"]] == GOLDEN["lemmatise"]


# By hand


def test_worked_example_of_the_concept_metrics() -> None:
    ground_truth = [f"{word}.n.01" for word in ("trunk", "hill", "tree", "sky", "branch", "head", "leg", "leaf")]
    retrieved = ["grassland.n.01", "grass.n.01"]
    matrix = WN.path_similarities(ground_truth, retrieved)
    assert matrix.shape == (8, 2)
    assert matrix[1, 0] == 1 / 9  # hill, grassland
    assert matrix[2, 1] == 1 / 6  # tree, grass
    best = max(matrix[i, 0] + matrix[j, 1] for i in range(8) for j in range(8) if i != j)
    assert best / 2 == pytest.approx(0.13889, abs=5e-6)


def test_names_ids_and_offsets() -> None:
    dog = WN.synset("dog.n.01")
    assert WN.name(dog) == "dog.n.01"
    assert WN.synset("Domestic Dog.n.01") == WN.synset("canis_familiaris.n.01") == dog
    assert (WN.part(dog), WN.offset(dog), WN.synset_at("n", 2084071)) == ("n", 2084071, dog)
    assert WN.name(".22_caliber.a.01") == ".22_caliber.a.01"
    assert WN.name(WN.synset("tiny.a.01")) == "bantam.s.01"
    assert WN.synset("bantam.a.01") == WN.synset("bantam.s.01")
    assert (WN.part("bantam.s.01"), WN.part("small.a.01")) == ("s", "a")


def test_every_name_leads_back() -> None:
    for row in range(0, len(WN), 13):
        assert WN.synset(WN.name(row)) == row


def test_words_in_any_writing() -> None:
    assert WN.synsets("Fire Hydrants").tolist() == WN.synsets("fire_hydrant", "n").tolist() != []
    assert WN.synsets("xyzzy").size == WN.synsets("").size == 0
    assert WN.lemmas("persian_cat.n.01") == ["Persian_cat"]


def test_parts_of_speech() -> None:
    parts = {pos: [WN.part(synset) for synset in WN.synsets("light", pos)] for pos in (None, "vn", "a", "s")}
    assert [x for i, x in enumerate(parts[None]) if i == 0 or parts[None][i - 1] != x][:2] == ["n", "v"]
    assert parts["vn"][0] == "v"
    assert set(parts["a"]) == {"a", "s"}
    assert parts["s"] == [part for part in parts["a"] if part == "s"]


def test_synonyms() -> None:
    assert WN.synonyms("cars", "n")[:4] == ["auto", "automobile", "machine", "motorcar"]
    assert "car" not in WN.synonyms("cars")
    assert WN.synonyms("xyzzy") == []


def test_antonyms() -> None:
    assert WN.antonyms("hot") == ["cold"]
    assert WN.antonyms("tiny") == []
    assert WN.antonyms("tiny", indirect=True) == ["large", "big"]
    assert WN.antonyms("big", indirect=True)[0] == "little"
    assert WN.antonyms("table") == []


def test_above_and_below() -> None:
    closure = WN.hypernym_closure("dog.n.01")
    assert names(closure[:2]) == ["canine.n.02", "domestic_animal.n.01"]
    assert WN.name(closure[-1]) == "entity.n.01"
    assert WN.synset("dog.n.01") not in closure
    assert WN.synset("dog.n.01") in WN.hyponyms("canine.n.02")
    assert names(WN.hypernyms("paris.n.01")) == ["national_capital.n.01"]  # an instance, not a kind
    assert WN.hypernym_closure("entity.n.01").size == 0


def test_share_synset() -> None:
    words, others = ["dogs", "car", "xyzzy"], ["domestic dog", "automobile", "xyzzy", "frank", "man"]
    assert WN.share_synset(words, others).tolist() == [
        [True, False, False, True, False],
        [False, True, False, False, False],
        [False, False, False, False, False],
    ]
    assert WN.share_synset([], others).shape == (0, 5)


def test_synonym_pairs_are_those_of_the_matrix() -> None:
    words = [*WN._tables.words[::1500], "car", "auto", "automobile", "dog", "dogs", "xyzzy"]
    rows, columns = WN.synonym_pairs(words)
    sets = [set(WN.synsets(word).tolist()) for word in words]
    slow = [(i, j) for i, a in enumerate(sets) for j, b in enumerate(sets) if a & b]
    assert len(slow) > len(words)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == slow
    assert np.argwhere(WN.share_synset(words, words)).tolist() == [list(pair) for pair in slow]


# Properties


@given(st.lists(SYNSETS, min_size=1, max_size=5), st.lists(SYNSETS, min_size=1, max_size=5), st.booleans())
def test_similarity_is_symmetric_and_one_only_with_itself(ones: list[int], others: list[int], root: bool) -> None:
    matrix = WN.path_similarities(ones, others, simulate_root=root)
    assert np.array_equal(matrix, WN.path_similarities(others, ones, simulate_root=root).T)
    assert np.array_equal(matrix == 1, np.equal.outer(ones, others))
    assert ((matrix >= 0) & (matrix <= 1)).all()
    assert not root or (matrix > 0).all()


@st.composite
def hierarchies(draw: st.DrawFn) -> list[list[int]]:
    """Hypernyms per row; each leads to earlier rows only, so that there is no circle."""
    size = draw(st.integers(1, 9))
    return [draw(st.lists(st.integers(0, row - 1), max_size=3, unique=True)) if row else [] for row in range(size)]


@given(hierarchies())
def test_distances_and_depths_by_exhaustion(hypernyms: list[list[int]]) -> None:
    """Every way up, listed; nothing clever."""

    def ways(row: int) -> list[list[int]]:
        return [[row]] + [[row, *way] for above in hypernyms[row] for way in ways(above)]

    def to_tops(row: int) -> list[int]:
        return [len(way) - 1 for way in ways(row) if not hypernyms[way[-1]]]

    size = len(hypernyms)
    expected = np.full((size, size), NO_PATH)
    for a in range(size):
        for b in range(size):
            met = [len(p) + len(q) - 2 for p in ways(a) for q in ways(b) if p[-1] == q[-1]]
            expected[a, b] = min(met, default=NO_PATH)
    counts = np.array([len(synsets) for synsets in hypernyms])
    flat = np.array([x for synsets in hypernyms for x in synsets], dtype=np.int32)
    hierarchy = Hierarchy(Links.counted(counts, flat), np.ones(size, dtype=bool))
    rows = np.arange(size)
    assert np.array_equal(hierarchy.distances(rows, rows), expected)
    assert hierarchy.min_depths.tolist() == [min(to_tops(row)) for row in rows]
    assert hierarchy.max_depths.tolist() == [max(to_tops(row)) for row in rows]


# Mistakes


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("dog", "word.part.number"),
        ("dog.x.01", "word.part.number"),
        ("dog.n.one", "word.part.number"),
        ("dog.n.00", "7 senses"),
        ("dog.n.08", "dog.n.01"),
        ("dogg.n.01", "spelling"),
        ("small.s.01", "small.a.01"),
        (-1, "no synset has the id -1"),
        (117_659, "0 to 117658"),
    ],
)
def test_a_wrong_name_is_explained(name: str | int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        WN.synset(name)


def test_wrong_lists_are_explained() -> None:
    with pytest.raises(InputError, match="a list of names"):
        WN.path_similarities("dog.n.01", ["cat.n.01"])
    with pytest.raises(InputError, match="shape"):
        WN.min_depth(np.zeros((2, 2), dtype=int))
    with pytest.raises(InputError, match="id 999999"):
        WN.min_depth(np.array([1, 999_999]))
    with pytest.raises(InputError, match="2 synsets against 1"):
        WN.paired_path_similarities([1, 2], [3])
    with pytest.raises(InputError, match="offset 17"):
        WN.synset_at("n", 17)
    with pytest.raises(UsageError, match="part of speech 'noun'"):
        WN.synsets("dog", "noun")


def test_empty_lists_are_fine() -> None:
    assert WN.path_similarities([], ["dog.n.01"]).shape == (0, 1)
    assert WN.min_depth([]).size == WN.paired_path_similarities([], []).size == 0


def test_nothing_can_be_changed_by_mistake() -> None:
    with pytest.raises(ValueError, match="read-only"):
        WN.hypernyms("dog.n.01")[:] = 0
    with pytest.raises(ValueError, match="read-only"):
        WN.min_depth()[:] = 0


# The file


def test_file_is_small_and_carries_its_licence() -> None:
    assert COMPILED.stat().st_size < 4_000_000
    notice = COMPILED.with_name("LICENSE-WordNet.txt").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in notice
    assert "Title to copyright in this software, database" in notice


def test_the_same_tables_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.npz", "two.npz"):
        tables.write_tables(tmp_path / name, FEW)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert same_tables(tables.read_tables(tmp_path / "one.npz"), FEW)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + bytes(18), b"not a zip at all"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    damaged = tmp_path / "wordnet.npz"
    damaged.write_bytes(content)
    with pytest.raises(InputError, match=r"wordnet\.npz.*damaged"):
        tables.read_tables(damaged)


def test_a_newer_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = tmp_path / "wordnet.npz"
    monkeypatch.setattr(tables, "VERSION", 2)
    tables.write_tables(newer, FEW)
    monkeypatch.undo()
    with pytest.raises(FormatVersionError, match="version 2") as caught:
        tables.read_tables(newer)
    assert isinstance(caught.value, CrosslensError)


# The script that compiles it


def test_circles_are_refused() -> None:
    """As Princeton's own data.verb has one, of two verbs that are each other's hypernym."""
    entries = [compile_wordnet.Entry("v", "v", row, [word], []) for row, word in enumerate("abcd")]
    line = np.array([[0, 1, 0], [1, 2, 2]])
    compile_wordnet.refuse_circles(entries, line)
    with pytest.raises(InputError, match="circle: b, c\n"):
        compile_wordnet.refuse_circles(entries, np.append(line, [[2, 3], [1, 0]], axis=1))


def test_lines_are_read() -> None:
    line = "00001 00 s 02 galore(ip) 0 Big_Ben 1 003 & 00002 a 0000 ! 00003 s 0201 ;u 00004 n 0000 | a gloss; a | b"
    assert compile_wordnet.parse_data_line(line, "a") == compile_wordnet.Entry(
        "a", "s", 1, ["galore", "Big_Ben"], [("similar", "a", 2, 0, 0), ("antonyms", "a", 3, 2, 1)]
    )


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data\.noun"):
        compile_wordnet.compile_tables(tmp_path)
    (tmp_path / "data.noun").write_text("  1 WordNet 2.1 Copyright 2005\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"not WordNet 3\.0"):
        compile_wordnet.compile_tables(tmp_path)
