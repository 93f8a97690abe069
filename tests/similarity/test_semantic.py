"""``semantic``: exact in any shape of call, monotone in evidence, and near to what people say."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, MissingExtraError, UnknownNameError, UsageError
from crosslens.encode import loading as hub, similarity as by_name
from crosslens.encode.adapters import torch_encoders
from crosslens.encode.similarity import BOTH, MINILM, PARAPHRASE, load_semantic
from crosslens.similarity import Semantic, TextEncoder, load_semantic_fit, packaged_semantic_fits, semantic_fits
from crosslens.similarity.roles import EMPTY_WORDS, ROLES, SharedWords, content_words, fold
from crosslens.similarity.semantic import GRID, LONGEST_VECTOR, PreparedSemantic, SemanticFit, _on_grid

Array = np.ndarray[Any, Any]
FIT = SemanticFit(5.0, 1.0, -1.5, unigrams=0.7, bigrams=1.0, skipgrams=0.4, inverted=0.6, negation=0.5)
PLAIN = SemanticFit(5.0, 1.0, -1.5)
REPOSITORY = Path(__file__).resolve().parents[2]

WORDS = ("a", "red", "dogs", "dog", "runs", "running", "near", "the", "big", "tree", "é", "3", "no", "by", "!")
sentence = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
collection = st.tuples(
    st.lists(st.lists(sentence, max_size=4), min_size=1, max_size=5), st.lists(sentence, min_size=1, max_size=7)
)


def bag_of_words(texts: Sequence[str], _: object = None, width: int = 24) -> Array:
    """A sentence encoder without a model: one random direction per word, and one for all texts."""
    rows = np.full((len(texts), width), 0.05, np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.split():
            row += direction_of(word, width)
    return rows


@cache
def direction_of(word: str, width: int) -> Array:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=width).astype(np.float32)


def other_bag(texts: Sequence[str], _: object = None) -> Array:
    """A second encoder of another width."""
    return bag_of_words(texts, width=40) ** 3


def small(*, fit: SemanticFit = FIT) -> Semantic:
    return Semantic([TextEncoder("bag", "1", bag_of_words), TextEncoder("other", "2", other_bag)], fit)


@cache
def alike(word: str, second_word: str) -> float:
    cosines = []
    for encode in (bag_of_words, other_bag):
        first, second = encode([word, second_word]).astype(np.float64)
        cosines.append(float(first @ second / np.sqrt((first @ first) * (second @ second))))
    return min(max(sum(cosines) / 2, 0.0), 1.0)


def slow_roles(references: Sequence[str], text: str, weight: Any) -> list[float]:
    """Unigrams, bigrams, skipgrams, inverted, negation: as defined, in plain Python."""

    text_words, others = (
        [[word for word in each.split() if word != "!"] for each in texts] for texts in ([text], references)
    )
    (words,) = text_words
    has_negation = ["no" in each for each in [words, *others]]
    negation = abs(has_negation[0] - sum(has_negation[1:]) / len(others))
    if not words:
        return [0.0, 0.0, 0.0, 0.0, negation]
    unsupported: list[float] = []
    for gap in (0, 1, 2):
        supported, total = 0.0, 0.0
        for at in range(len(words) - gap):
            first, second = words[at], words[at + gap]
            later = (1, 2) if gap else (0,)
            support = [
                min(alike(first, reference[j]), alike(second, reference[j + step]))
                for reference in others for j in range(len(reference)) for step in later if j + step < len(reference)
            ]  # fmt: skip
            share = weight(fold(first)) + (weight(fold(second)) if gap else 0.0)
            supported, total = supported + share * max(support, default=0.0), total + share
        unsupported.append(1 - supported / total if total else unsupported[-1])
    return [*unsupported, slow_inverted(words, others, weight), negation]


def slow_inverted(words_of_text: list[str], others: list[list[str]], weight: Any) -> float:
    def near(words: Sequence[str]) -> list[tuple[str, str]]:
        content = [fold(word) for word in words if word not in EMPTY_WORDS and "by" not in words]
        return [(content[i], second) for i in range(len(content)) for second in content[i + 1 : i + 4]]

    reference_pairs = {pair for words in others for pair in near(words)}
    inverted, total = 0.0, 0.0
    for first, second in near(words_of_text):
        if first != second:
            share = min(weight(first), weight(second))
            total += share
            inverted += share if (second, first) in reference_pairs and (first, second) not in reference_pairs else 0.0
    return inverted / total if total else 0.0


def slow(references: Sequence[Sequence[str]], captions: Sequence[str]) -> Array:
    """The definition, cell by cell, in plain Python."""
    images = [set().union(*(content_words(text) for text in image)) for image in references]
    count = sum(1 for image in references if image)

    def weight(word: str) -> float:
        return math.log(1 + (count + 1) / (sum(word in image for image in images) + 1))

    def any_weight(word: str) -> float:
        holds = [any(word in map(fold, text.split()) for text in image) for image in references]
        return math.log(1 + (count + 1) / (sum(holds) + 1))

    def cosine(vector: Array, reference: Array) -> float:
        return float(vector @ reference / np.sqrt((vector @ vector) * (reference @ reference)))

    def sigma(value: float) -> float:
        return 1 / (1 + math.exp(-value))

    def cell(image: int, text: str) -> tuple[float, float]:
        """Closeness, and the value without roles."""
        if not references[image]:
            return 0.0, 0.0
        close = []
        for encode in (bag_of_words, other_bag):
            embedding, *others = encode([text, *references[image]]).astype(np.float64)
            cosines = [cosine(embedding, reference) for reference in others]
            close.append((max(cosines) + sum(cosines) / len(cosines)) / 2)
        closeness = sum(close) / 2
        words = content_words(text)
        total = sum(map(weight, words))
        shared = sum(weight(word) for word in words if word in images[image]) / total if total else 0.0
        low, high = sigma(FIT.constant), sigma(FIT.closeness + FIT.words + FIT.constant)
        value = sigma(FIT.closeness * closeness + FIT.words * shared + FIT.constant)
        return closeness, min(max((value - low) / (high - low), 0.0), 1.0)

    out = np.zeros((len(references), len(captions)))
    for image in range(len(references)):
        cells = {text: cell(image, text) for text in captions}
        values = {text: value for text, (_, value) in cells.items()}
        for words in {content_words(text) for text in captions}:
            rivals = [text for text in cells if content_words(text) == words]
            if references[image] and len(rivals) > 1 and max(cells[text][0] for text in rivals) > 0.3:
                standing = {
                    text: cells[text][0] - np.dot(FIT.roles, slow_roles(references[image], text, any_weight))
                    for text in rivals
                }
                best = sorted(rivals, key=lambda text: -standing[text])
                values |= dict(zip(best, sorted((cells[text][1] for text in rivals), reverse=True), strict=True))
        out[image] = [values[text] for text in captions]
    return out


@given(collection)
def test_is_what_it_is_defined_to_be(texts: tuple[list[list[str]], list[str]]) -> None:
    references, captions = texts
    result = small().prepare(references, captions).block(slice(None))
    assert result.dtype == np.float32
    assert result.shape == (len(references), len(captions))
    expected = slow(references, captions)  # the grid moves a cosine a little, and may decide between equals
    assert np.mean(np.abs(result - expected) > 3e-3) <= 0.1
    for image in range(len(references)):
        np.testing.assert_allclose(np.sort(result[image]), np.sort(expected[image]), atol=3e-3)
    assert 0 <= result.min() <= result.max() <= 1


@given(collection, st.integers(1, 3), st.integers(0, 4))
def test_a_cell_has_one_value(texts: tuple[list[list[str]], list[str]], threads: int, cut: int) -> None:
    references, captions = texts
    whole = small().prepare(references, captions, threads=1).block(slice(None))
    again = small().prepare(references, captions, threads=threads)
    np.testing.assert_array_equal(whole, np.concatenate([again.block(slice(0, cut)), again.block(slice(cut, None))]))
    image, caption = np.indices(whole.shape).reshape(2, -1)
    np.testing.assert_array_equal(again.pairs(image, caption), whole.ravel())


@given(collection, st.randoms(use_true_random=False))
def test_no_order_matters(texts: tuple[list[list[str]], list[str]], random: Any) -> None:
    references, captions = texts
    shuffled = [random.sample(image, len(image)) for image in references]
    order = random.sample(range(len(captions)), len(captions))
    whole = small().prepare(references, captions).block(slice(None))
    reordered = small().prepare(shuffled, [captions[row] for row in order]).block(slice(None))
    np.testing.assert_array_equal(whole[:, order], reordered)


@given(collection)
def test_a_reference_that_says_the_same_never_lowers(texts: tuple[list[list[str]], list[str]]) -> None:
    references, captions = texts
    image, text = 0, captions[0]
    before = small().prepare(references, captions)
    after = small().prepare([[*references[0], text], *references[1:]], captions)
    at = np.array([image]), np.array([0])
    closeness, words = before.evidence(*at)
    more_closeness, more_words = after.evidence(*at)
    if references[0]:
        assert more_closeness[0] >= closeness[0] - 1e-4
    assert more_words[0] >= words[0] - 1e-12
    if content_words(text):
        assert more_words[0] == 1


values = st.floats(0, 1)


@given(values, values, values, values, st.floats(0.01, 20), st.floats(0, 20), st.floats(-5, 5))
def test_more_evidence_is_never_less(
    close: float, more: float, words: float, wider: float, a: float, b: float, c: float
) -> None:
    fit = SemanticFit(a, b, c)
    low, high = np.array([min(close, more)]), np.array([max(close, more)])
    few, many = np.array([min(words, wider)]), np.array([max(words, wider)])
    assert fit(low, few) <= fit(high, many)
    assert fit(np.array([-0.5, 0, 1]), np.array([0, 0, 1])).tolist() == [0, 0, 1]


@given(collection)
def test_roles_only_reorder_captions_with_the_same_content_words(texts: tuple[list[list[str]], list[str]]) -> None:
    references, captions = texts
    heard = small().prepare(references, captions).block(slice(None))
    plain = small(fit=PLAIN).prepare(references, captions).block(slice(None))
    content = [content_words(text) for text in captions]
    for words in set(content):
        first = {text: at for at, text in enumerate(captions) if content[at] == words}
        columns = list(first.values())
        np.testing.assert_array_equal(np.sort(heard[:, columns]), np.sort(plain[:, columns]), "they exchange values")
        if len(columns) == 1:
            np.testing.assert_array_equal(heard[:, columns], plain[:, columns], "exactly the value without roles")
        for others_words in set(content) - {words}:
            rest = [at for at, words_of_caption in enumerate(content) if words_of_caption == others_words]
            for image in range(len(references)):
                gap = plain[image, columns].min() - plain[image, rest].max()
                assert gap <= 0 or heard[image, columns].min() >= heard[image, rest].max(), "never another order"


def test_roles_hear_order_negation_and_neighbours() -> None:
    references = [["red dog near big tree"], ["big tree"]]
    captions = ["tree near red dog big", "red dog near big tree", "red dog near no big tree", "3 3 3", "3"]
    prepared = small().prepare(references, captions)
    assert isinstance(prepared, PreparedSemantic)
    row = prepared.block(slice(None))[0]
    assert row[1] == row[:3].max()
    image, caption = np.zeros(5, int), np.arange(5)
    against = prepared.roles(image, caption)
    np.testing.assert_allclose(against[1], 0, atol=1e-3)  # the grid moves a cosine a little
    assert against[0, 1] > 0
    assert against[0, 3] > 0
    assert against[2, 4] == 1
    alone = small().prepare(references, captions[:1])
    assert isinstance(alone, PreparedSemantic)
    assert not alone.roles(image[:1], caption[:1]).any(), "no other caption has these content words"


def test_words_are_encoded_only_where_captions_have_the_same_content_words() -> None:
    asked: list[list[str]] = []

    def vectors(texts: Sequence[str], _: object) -> Array:
        asked.append(list(texts))
        return bag_of_words(texts)

    encoder = TextEncoder("bag", "1", vectors)
    references = [["red dog runs"], ["big tree"]]
    Semantic([encoder], FIT).prepare(references, ["red dog", "big tree"]).block(slice(None))
    assert len(asked) == 1, "the texts, and no words"
    prepared = Semantic([encoder], FIT).prepare(references, ["red dog", "dog red", "3 3"])
    for _ in range(2):
        prepared.block(slice(None))
    assert asked[2:] == [["big", "dog", "red", "runs", "tree"]], "each word once; none of captions that are alone"
    import pickle

    again = Semantic([TextEncoder("bag", "1", bag_of_words)], FIT).prepare(references, ["red dog", "dog red", "3 3"])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).block(slice(None)), prepared.block(slice(None)))


@pytest.mark.parametrize("most_kept", [0, 8, 1 << 15])
def test_several_questions_about_one_collection_encode_each_text_once(
    most_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosslens.similarity.semantic._MOST_KEPT", most_kept)
    asked: list[str] = []

    def vectors(texts: Sequence[str], _: object) -> Array:
        asked.extend(texts)
        return bag_of_words(texts)

    phi = Semantic([TextEncoder("bag", "1", vectors), TextEncoder("other", "2", other_bag)], FIT)
    references = [["red dog runs", "a dog"], ["big tree"], ["no tree", "dog red"]]
    for captions in (["red dog", "dog red"], ["big tree", "red dog", "tree big"], ["red dog", "dog red"], ["3 3"]):
        values = phi.prepare(references, captions).block(slice(None))
        np.testing.assert_array_equal(values, small().prepare(references, captions).block(slice(None)))
    assert most_kept < 20 or len(asked) == len(set(asked))


def test_copies_of_a_caption_have_its_value() -> None:
    captions = ["dog red", "red dog", "dog red", "red dog"]
    prepared = small().prepare([["red dog runs"]], captions)
    row = prepared.block(slice(None))[0]
    assert row[0] == row[2] <= row[1] == row[3]
    np.testing.assert_array_equal(prepared.pairs(np.zeros(4, int), np.arange(4)), row)


@pytest.mark.parametrize("width", [3, 384, 4_096, LONGEST_VECTOR])
def test_products_on_the_grid_are_exact(width: int) -> None:
    random = np.random.default_rng(width)
    vectors = np.concatenate([random.normal(size=(3, width)), np.ones((1, width)), np.eye(1, width)]).astype(np.float32)
    grid = _on_grid(vectors, "any")
    exact = grid.astype(np.int64) @ grid.astype(np.int64).T
    np.testing.assert_array_equal((grid @ grid.T).astype(np.int64), exact)
    assert np.abs(exact).max() < 2**24
    if width == 384:
        units = vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        np.testing.assert_allclose((exact / GRID**2)[:3, :3], (units @ units.T)[:3, :3], atol=3e-4)


def test_words_that_mean_the_same_fold_together() -> None:
    same = (
        "dogs dog|running runs run|boxes box|ladies lady|riding rides ride|stopped stops stop|women woman|glasses glass"
    )
    for group in same.split("|"):
        assert len({fold(word) for word in group.split()}) == 1, group
    different = ("bus", "bed", "bee", "sing", "ring", "red", "need", "shed")
    assert len({fold(word) for word in different}) == len(different)
    assert content_words("A dog is on the bed.") == content_words("dogs, beds")
    assert content_words("It is the") == {fold(word) for word in ("it", "is", "the")}, "better than nothing"
    assert content_words("... !") == frozenset()
    assert all(word == word.lower() for word in EMPTY_WORDS)


def test_shares_weigh_rare_words_more_and_hardly_know_the_size() -> None:
    references = [["a dog barks"], ["a dog sleeps"], ["a cat sleeps"]]
    captions = ["dog xylophone", "dog sleeps", "cat dog"]
    shares = SharedWords(references, captions).block(0, 3)
    assert shares[0, 0] < 0.5, "the missing word is the rarer one"
    assert shares[2, 1] < shares[1, 1] == 1
    assert shares[2, 2] > 0.5 > shares[0, 2], "the cat is the rarer one"
    hundreds, thousands = (SharedWords(references * times, captions).block(0, 3) for times in (100, 1_000))
    np.testing.assert_allclose(hundreds, thousands, atol=0.05)


def test_nothing_to_compare_with() -> None:
    prepared = small().prepare([[], ["a dog"]], ["a dog", "", "!!"])
    block = prepared.block(slice(None))
    assert not block[0].any()
    assert block[1, 0] > 0.999
    np.testing.assert_array_equal(prepared.pairs(np.array([0, 1]), np.array([0, 0])), block[:, 0])
    assert small().prepare([], ["a dog"]).block(slice(None)).shape == (0, 1)
    assert small().prepare([["a dog"]], []).block(slice(None)).shape == (1, 0)
    assert len(prepared.pairs(np.array([], int), np.array([], int))) == 0


def test_vectors_without_direction_or_of_the_wrong_shape_are_told() -> None:
    with pytest.raises(InputError, match="zeros"):
        Semantic([TextEncoder("zero", "1", lambda texts, _: np.zeros((len(texts), 4), np.float32))], PLAIN).prepare(
            [["a"]], ["b"]
        )
    with pytest.raises(UsageError, match="deep gives vectors of shape"):
        Semantic([TextEncoder("deep", "1", lambda texts, _: np.ones((len(texts), 2, 4), np.float32))], PLAIN).prepare(
            [["a"]], ["b"]
        )
    with pytest.raises(UsageError, match="needs a text encoder"):
        Semantic([], FIT)


def test_the_revision_tells_fits_and_encoders_apart() -> None:
    first, second = small(), small(fit=SemanticFit(3.0, 1.0, -1.4))
    assert first.revision == small().revision != second.revision
    with_bag = Semantic([TextEncoder("bag", "9", bag_of_words), first.encoders[1]], FIT)
    assert with_bag.revision != first.revision
    assert Semantic([TextEncoder("own", "", bag_of_words)], PLAIN).revision == ""
    assert SemanticFit(3.0, 1.0, -1.4, bigrams=0.2).revision != second.fit.revision


def test_fits_of_the_package() -> None:
    assert set(semantic_fits()) == {MINILM, PARAPHRASE, BOTH, "without-roles"}
    assert [name for name, fit in semantic_fits().items() if not any(fit.roles)] == ["without-roles"]
    assert set(packaged_semantic_fits()["encoders"]) == {MINILM, PARAPHRASE}
    for fit in semantic_fits().values():
        assert min(fit.closeness, fit.words) > 0
    both, plain = semantic_fits()[BOTH], semantic_fits()["without-roles"]
    assert replace(plain, **dict(zip(ROLES, both.roles, strict=True))) == both, "roles have no part in the curve"
    with pytest.raises(UnknownNameError, match="all-MiniLM-L6-v2"):
        load_semantic_fit("all-MiniLM-L6-v3")


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"fits": {}}', '{"fits": {"a": {"closeness": 1}}}', '{"fits": {"a": 3}}',
     '{"fits": {"a": {"closeness": -1, "words": 1, "constant": 0}}}',
     '{"fits": {"a": {"closeness": NaN, "words": 1, "constant": 0}}}',
     '{"fits": {"a": {"closeness": 1, "words": 1, "constant": 0, "bigrams": -1}}}',
     '{"fits": {"a": {"closeness": 1, "words": 1, "constant": 0, "pairs": 1}}}'],
)  # fmt: skip
def test_a_file_that_is_no_fit(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"mine\.json"):
        load_semantic_fit(path)


def test_a_fit_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"fits": {"mine": {"closeness": 2, "words": 1, "constant": -1}}}))
    assert load_semantic_fit(str(path)) == SemanticFit(2, 1, -1)
    with pytest.raises(InputError, match="cannot be read"):
        load_semantic_fit(tmp_path / "missing.json")


def test_without_encoders_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in (by_name, hub):
        monkeypatch.setattr(module, "package_folder", lambda name: None)
    monkeypatch.setattr(torch_encoders, "packaged_sentence_encoder", lambda name, options: None)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for source in ("", f"sentence:{PARAPHRASE}"):
        with pytest.raises((UsageError, MissingExtraError), match=r"pip install 'crosslens\[semantic\]'"):
            load_semantic(source, offline=True)


def test_an_encoder_that_nobody_fitted_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "standin.py"
    model.write_text(
        "import numpy as np\n\nclass Model:\n    def encode_texts(self, texts):\n"
        "        return np.ones((len(texts), 3), np.float32)\n"
    )
    with pytest.raises(UsageError, match="has no fit for"):
        load_semantic(f"callable:{model}:Model", cache=False)
    result = load_semantic(f"callable:{model}:Model", fit="without-roles", cache=False)
    assert result.prepare([["a dog"]], ["a dog"]).pairs(np.array([0]), np.array([0]))[0] > 0.99
