"""Our WordNet against nltk's reader, on the dict files that it was compiled from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compile_wordnet import compile_tables, licence
from crosslens.language import load_wordnet
from crosslens.language.wordnet import COMPILED
from tests.language.golden_wordnet import FILE, golden
from tests.language.nltk_reader import FOLDER, missing, open_reader
from tests.language.test_wordnet import same_tables

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
WN = load_wordnet()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return open_reader(tmp_path_factory.mktemp("dict"))


def read(reader: Any, rows: Any) -> Iterator[Any]:
    """nltk's synsets for our ids."""
    for row in rows:
        yield reader.synset_from_pos_and_offset(WN.part(row), WN.offset(row))


def same_ids(ours: Any, theirs: Any) -> bool:
    return sorted(int(x) for x in ours) == sorted(WN.synset_at(x.pos(), x.offset()) for x in theirs)


def check_pairs(reader: Any, count: int) -> None:
    rng = np.random.default_rng(count)
    parts = np.array([WN.part(row) for row in range(len(WN))])
    pools = [np.flatnonzero(np.isin(parts, letters)) for letters in ("n", "v", ["a", "s"])]
    same_part = [
        rng.choice(pool, (share, 2)) for pool, share in zip(pools, (count // 2, count // 4, count // 20), strict=True)
    ]
    mixed = rng.integers(0, len(WN), (count - sum(len(pairs_of_part) for pairs_of_part in same_part), 2))
    pairs = np.concatenate([*same_part, mixed])
    theirs = [a.path_similarity(b) for a, b in zip(read(reader, pairs[:, 0]), read(reader, pairs[:, 1]), strict=True)]
    ours = WN.paired_path_similarities(pairs[:, 0], pairs[:, 1])
    assert len(theirs) == count
    assert ours.tolist() == theirs


@pytest.mark.slow
def test_path_similarity_of_2_000_pairs(reader: Any) -> None:
    check_pairs(reader, 2_000)


@pytest.mark.slow
def test_path_similarity_of_100_000_pairs(reader: Any) -> None:
    check_pairs(reader, 100_000)


@pytest.mark.slow
def test_words_of_every_entry(reader: Any) -> None:
    """Every word, every part of speech: the same senses in the same order."""
    words = list(reader._lemma_pos_offset_map)
    assert set(words) == set(WN._tables.words)
    for word in words[::29]:
        for part in "nvar":
            theirs = reader._lemma_pos_offset_map[word].get(part, [])
            written = WN._lexicon.sense_members_as_written(word, part)
            assert [WN.offset(x) for x in WN._lexicon.member_synsets[written]] == theirs


def check_synsets(reader: Any, rows: range) -> None:
    for row, theirs in zip(rows, read(reader, rows), strict=True):
        assert WN.lemmas(row) == theirs.lemma_names()
        assert same_ids(WN.hypernyms(row), theirs.hypernyms() + theirs.instance_hypernyms())
        assert same_ids(WN.hyponyms(row), theirs.hyponyms() + theirs.instance_hyponyms())
        assert same_ids(WN.similar_to(row), theirs.similar_tos())
        assert same_ids(WN.attributes(row), theirs.attributes())
        opposites = {antonym.synset() for lemma in theirs.lemmas() for antonym in lemma.antonyms()}
        assert same_ids(WN.antonym_synsets(row), opposites)
        # nltk since 3.10 numbers satellites among themselves; the names in use number them among all adjectives.
        if WN.part(row) != "s":
            assert WN.name(row) == theirs.name()


def test_synsets(reader: Any) -> None:
    check_synsets(reader, range(0, len(WN), 401))


@pytest.mark.slow
def test_all_synsets(reader: Any) -> None:
    check_synsets(reader, range(len(WN)))


def check_depths(reader: Any, rows: range) -> None:
    theirs = list(read(reader, rows))
    assert WN.min_depth()[rows].tolist() == [synset.min_depth() for synset in theirs]
    assert WN.max_depth()[rows].tolist() == [synset.max_depth() for synset in theirs]


def test_depths(reader: Any) -> None:
    check_depths(reader, range(0, len(WN), 397))


@pytest.mark.slow
def test_depths_of_all_synsets(reader: Any) -> None:
    check_depths(reader, range(len(WN)))


def test_closure(reader: Any) -> None:
    rows = range(0, len(WN), 331)
    for row, theirs in zip(rows, read(reader, rows), strict=True):
        above = {x for way in theirs.hypernym_paths() for x in way} - {theirs}
        assert same_ids(WN.hypernym_closure(row), above)


@pytest.mark.slow
def test_morphology(reader: Any) -> None:
    words = WN._tables.words[::40]
    forms = {word + ending for word in words for ending in ("", "s", "es", "ed", "ing", "er", "est")}
    forms |= {word[:-1] + ending for word in words for ending in ("ies", "ing", "ed", "ves")}
    forms |= {line.split(" ")[1] for line in WN._tables.exceptions}
    for form in sorted(forms):
        assert WN.morphy(form) == reader.morphy(form)
        for part in "nvars":
            assert WN._lexicon.forms(form, part) == reader._morphy(form, part)


@pytest.mark.slow
def test_golden_file_is_what_nltk_says(reader: Any) -> None:
    assert json.loads(FILE.read_text(encoding="utf-8")) == json.loads(json.dumps(golden(reader)))


@pytest.mark.slow
def test_shipped_file_is_what_the_script_makes() -> None:
    """Table by table: how well a library squeezes them is its own affair."""
    assert same_tables(compile_tables(FOLDER), WN._tables)


def test_shipped_notice_is_that_of_the_data() -> None:
    assert licence(FOLDER) == COMPILED.with_name("LICENSE-WordNet.txt").read_text(encoding="utf-8")
