"""Counterfactuals against a search over every edit, with encoders small enough to see through."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import crosslens
from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.encode import Cache
from crosslens.explanations import Counterfactual, find_counterfactual, find_counterfactuals
from crosslens.explanations.counterfactuals import search
from crosslens.explanations.query_set import ImageGallery, QueryResult
from crosslens.perturbations import Candidate, CandidateEdits, Edit, candidate_edits
from crosslens.values import Dataset, Embeddings

TYPOS = ("char_swap", "missing_char", "shuffle_all_words")
DATASET = Dataset.of(
    {
        "dog": ["a brown dog runs on grass", "the dog is running", "brown dog outside"],
        "cat": ["a brown cat runs on grass", "the cat is running", "brown cat outside"],
        "car": ["a red car on a street", "the car is parked", "red car outside"],
        "bus": ["a red bus on a street", "the bus is parked", "red bus outside"],
        "boat": ["a small boat at sea", "the boat is sailing", "boat on water"],
    }
)


class Letters:
    """A text as counts of its letters and pairs of letters, hashed; counts what it is asked to encode."""

    revision = "letters"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self.encoded += texts
        return np.stack([self.vector(text) for text in texts])

    @staticmethod
    def vector(text: str) -> np.ndarray[Any, Any]:
        vector = np.full(48, 0.01)
        for size in (1, 2):
            for start in range(len(text) - size + 1):
                vector[zlib.crc32(text[start : start + size].encode()) % 48] += size
        return vector.astype(np.float32)


def slow_standing(text: str, own_row: int, query: int = 0) -> tuple[int, float]:
    """The place of its own image and the margin, by float64 cosines and a sort; ties by the lower row."""
    rows: list[list[str]] = [[] for _ in DATASET.image_ids]
    for caption, image in zip(DATASET.texts, DATASET.caption_image, strict=True):
        rows[image].append(caption)
    gallery = np.stack(
        [np.mean([Letters.vector(text) for n, text in enumerate(texts) if n != query], axis=0) for texts in rows]
    ).astype(np.float64)
    vector = Letters.vector(text).astype(np.float64)
    scores = gallery @ vector / np.linalg.norm(gallery, axis=1) / np.linalg.norm(vector)
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    return order.index(own_row) + 1, scores[own_row] - max(np.delete(scores, own_row))


def asking(row: int) -> str:
    return f"{DATASET.image_ids[row]}#0"


@pytest.mark.parametrize("row", range(5))
def test_the_smallest_flip_is_that_of_a_search_over_everything(row: int) -> None:
    result = find_counterfactual(DATASET, Letters(), asking(row), image_text="mean", perturbations=TYPOS, budget=10_000)
    text = DATASET.texts[3 * row]
    (candidates,) = candidate_edits(TYPOS, [text])
    right = slow_standing(text, row)[0] == 1
    flips = [
        (edit.characters, edit.words, -abs(slow_standing(edit.text, row)[1]), edit.text)
        for edit in candidates.candidates
        if (slow_standing(edit.text, row)[0] == 1) != right
    ]
    assert result.exhaustive
    assert result.before.right == right
    assert result.before.margin == pytest.approx(slow_standing(text, row)[1], abs=1e-5)
    assert result.flipped == bool(flips)
    assert result.after is not None
    rank, margin = slow_standing(result.after.text, row)
    assert (result.after.rank, result.after.margin) == (rank, pytest.approx(margin, abs=1e-5))
    if flips:
        best = min(flips)
        assert (result.characters, result.words) == best[:2]
        assert abs(margin) == pytest.approx(-best[2], abs=1e-5)
    else:
        closest = [slow_standing(edit.text, row)[1] * (1 if right else -1) for edit in candidates.candidates]
        assert margin * (1 if right else -1) == pytest.approx(min(closest), abs=1e-5)


def test_both_kinds_of_flips_occur_here() -> None:
    """The test above means something: some queries flip, and some of the dataset's are wrong at first."""
    kinds = set()
    for query in range(3):
        result = find_counterfactuals(
            DATASET, Letters(), image_text="mean", query_caption=query, perturbations=TYPOS, budget=10_000
        )
        kinds |= {item.kind for item in result if item.flipped}
        assert result.direction == "t2t"
    assert kinds == {"right → wrong", "wrong → right"}


@pytest.mark.parametrize("budget", [1, 3, 7, 30, 80, 1000])
def test_the_budget_is_never_exceeded(budget: int) -> None:
    encoder = Letters()
    result = find_counterfactual(
        DATASET, encoder, "dog#0", image_text="mean", perturbations="char_swap,extra_char", budget=budget
    )
    spent = len(encoder.encoded) - len(set(DATASET.texts))
    assert spent <= result.encodings <= budget
    assert result.tried <= result.candidates


def test_more_budget_never_finds_a_larger_flip() -> None:
    sizes = []
    for budget in (20, 100, 500, 5000):
        result = find_counterfactual(DATASET, Letters(), "dog#0", image_text="mean", perturbations=TYPOS, budget=budget)
        sizes.append(result.characters if result.flipped else 10_000)
    assert sizes == sorted(sizes, reverse=True)


def test_a_query_has_the_same_answer_alone_and_among_others(tmp_path: Path) -> None:
    options: dict[str, Any] = {"image_text": "mean", "perturbations": TYPOS, "budget": 60}
    together = find_counterfactuals(DATASET, Letters(), cache=Cache(tmp_path), **options)
    again = find_counterfactuals(DATASET, Letters(), ["boat#0", "car#0"], cache=Cache(tmp_path), **options)
    alone = {query: find_counterfactual(DATASET, Letters(), query, **options) for query in ("car#0", "boat#0")}
    assert {item.query: item for item in together if item.query in alone} == alone
    assert [item.query for item in again] == ["boat#0", "car#0"]
    assert {item.query: item for item in again} == alone


def test_the_cache_spares_the_second_search(tmp_path: Path) -> None:
    options: dict[str, Any] = {"image_text": "mean", "perturbations": TYPOS, "budget": 60, "cache": Cache(tmp_path)}
    first, second = Letters(), Letters()
    result = find_counterfactuals(DATASET, first, **options)
    assert find_counterfactuals(DATASET, second, **options).as_dict() == result.as_dict()
    assert first.encoded
    assert not second.encoded


class Digits(Letters):
    """Sees nothing but digits."""

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        return np.stack([[0.1, *(text.count(str(digit)) for digit in range(4))] for text in texts])


def test_what_cannot_be_flipped_is_said_to_stay() -> None:
    dataset = Dataset.of({name: [f"picture number {name}", f"number {name}"] for name in "123"})
    result = find_counterfactual(dataset, Digits(), "2#0", image_text="mean", perturbations="char_swap")
    assert not result.flipped
    assert result.exhaustive
    assert result.before.right
    assert result.tried == result.candidates == result.encodings > 0
    assert result.after is not None
    assert result.after.margin == result.before.margin
    short = find_counterfactual(dataset, Digits(), "2#0", image_text="mean", perturbations="char_swap", budget=2)
    assert (short.flipped, short.exhaustive, short.encodings) == (False, False, 2)


def test_a_query_in_which_nothing_can_be_changed() -> None:
    dataset = Dataset.of({name: [name, f"number {name}"] for name in "123"})
    result = find_counterfactual(dataset, Digits(), "2#0", image_text="mean", perturbations="char_swap")
    assert (result.flipped, result.after, result.candidates, result.encodings) == (False, None, 0, 0)
    assert result.exhaustive
    assert "change nothing" in _text(dataset, "2#0")


def _text(dataset: Dataset, query: str) -> str:
    return str(find_counterfactuals(dataset, Digits(), [query], image_text="mean", perturbations="char_swap"))


class Pictures(Letters):
    """Sees in a picture the letters of the caption whose number is its colour."""

    def encode_images(self, images: Sequence[Any]) -> np.ndarray[Any, Any]:
        numbers = [image.convert("RGB").getpixel((0, 0))[0] for image in images]
        return np.stack([self.vector(DATASET.texts[3 * number + 1]) for number in numbers])


def test_images_are_searched_as_well(tmp_path: Path) -> None:
    pil = pytest.importorskip("PIL.Image")
    for number, image in enumerate(DATASET.image_ids):
        pil.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / f"{image}.png")
    files = DATASET.images.with_columns(file=DATASET.images["image"] + ".png")
    dataset = Dataset("pictures", files, DATASET.captions)
    encoder = Pictures()
    result = crosslens.explanations.find_counterfactuals(
        dataset, encoder, ["dog#0", "bus#2"], perturbations=TYPOS, image_folder=tmp_path, budget=500
    )
    assert result.direction == "t2i"
    assert result.gallery == 5
    assert [item.image for item in result] == ["dog", "bus"]
    gallery = np.stack([Letters.vector(text) for text in DATASET.texts[1::3]]).astype(np.float64)
    for item in result:
        assert item.after is not None
        for standing in (item.before, item.after):
            vector = Letters.vector(standing.text).astype(np.float64)
            scores = gallery @ vector / np.linalg.norm(gallery, axis=1)
            assert standing.top == DATASET.image_ids[int(np.argmax(scores))]
    # Only the queries' own captions were encoded, not the whole dataset.
    assert DATASET.texts[3] not in encoder.encoded


def test_only_failures_or_successes() -> None:
    options: dict[str, Any] = {"image_text": "mean", "perturbations": "char_swap", "query_caption": 1, "budget": 5}
    everything = find_counterfactuals(DATASET, Letters(), **options)
    wrong = [item.query for item in everything if not item.before.right]
    right = [item.query for item in everything if item.before.right]
    assert wrong
    assert right
    assert [item.query for item in find_counterfactuals(DATASET, Letters(), only="wrong", **options)] == wrong
    assert [item.query for item in find_counterfactuals(DATASET, Letters(), only="right", **options)] == right
    sample = find_counterfactuals(DATASET, Letters(), only="right", sample=1, seed=3, **options)
    assert len(sample) == 1
    assert sample.results[0].query in right


def test_a_sample_is_drawn_by_the_seed() -> None:
    options: dict[str, Any] = {"image_text": "mean", "perturbations": "char_swap", "budget": 2}
    drawn = [
        [item.query for item in find_counterfactuals(DATASET, Letters(), sample=2, seed=seed, **options)]
        for seed in range(8)
    ]
    assert all(len(queries) == 2 for queries in drawn)
    assert len({tuple(queries) for queries in drawn}) > 1
    assert [item.query for item in find_counterfactuals(DATASET, Letters(), sample=2, seed=0, **options)] == drawn[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": ["dog#O"]}, "did you mean 'dog#0'"),
        ({"queries": ["dog#1"]}, "caption number 0 of each image is its query"),
        ({"queries": "dog#0"}, "put it into a list"),
        ({"budget": 0}, "at least 1"),
        ({"sample": 0}, "at least 1"),
        ({"only": "wrnog"}, "did you mean wrong"),
        ({"perturbations": "blur@3"}, "changes images"),
        ({"perturbations": "char_swop"}, "char_swap"),
        ({"image_text": None}, "not images"),
    ],
)
def test_mistakes_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CrosslensError) as error:
        find_counterfactuals(DATASET, Letters(), **{"image_text": "mean", "perturbations": "char_swap", **options})
    assert message in str(error.value)


def test_stored_vectors_cannot_be_asked_about_other_texts(tmp_path: Path) -> None:
    Embeddings(DATASET.caption_ids, np.ones((15, 3))).save(tmp_path / "captions")
    with pytest.raises(UsageError, match="holds vectors, not a model"):
        find_counterfactual(DATASET, f"file:{tmp_path}", "dog#0", image_text="mean", perturbations="char_swap")


# How texts stand


@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=2, max_size=8), st.data())
def test_standings_are_those_of_a_sort_even_with_ties(rows: list[list[int]], data: st.DataObject) -> None:
    own_row = data.draw(st.integers(0, len(rows) - 1))
    vector = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=3, max_size=3)))
    gallery = ImageGallery(Embeddings.of(np.array(rows, np.float32)), "dot")
    (standing,) = gallery.results(["text"], vector[None].astype(np.float32), [own_row])
    scores = np.array(rows) @ vector
    order = sorted(range(len(rows)), key=lambda row: (-scores[row], row))
    rival = next(row for row in order if row != own_row)
    assert standing == QueryResult(
        "text", str(order[0]), order.index(own_row) + 1, scores[own_row], str(rival), scores[rival]
    )
    assert standing.right == (order[0] == own_row)


def test_a_gallery_of_one_is_refused() -> None:
    with pytest.raises(InputError, match="one image"):
        ImageGallery(Embeddings.of(np.ones((1, 2))), "dot")


# The search itself, on made-up answers


def run(
    before: QueryResult, candidates: CandidateEdits, budget: int, margins: dict[str, float]
) -> tuple[Counterfactual, list[str]]:
    looking = search("query", "own", before, candidates, budget)
    asked: list[str] = []
    answer: list[QueryResult] | None = None
    while True:
        try:
            texts = looking.send(answer)
        except StopIteration as end:
            return end.value, asked
        asked += texts
        answer = [standing(text, margins.get(text, 0.25)) for text in texts]


def standing(text: str, margin: float) -> QueryResult:
    return QueryResult(text, "own" if margin > 0 else "other", 1 if margin > 0 else 2, margin, "other", 0.0)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 2), st.integers(-8, 8)), max_size=80),
    st.integers(1, 120),
    st.sampled_from([-0.5, 0.5]),
)
def test_the_search_is_a_minimum_within_its_budget(
    drawn: list[tuple[int, int, int]], budget: int, start: float
) -> None:
    original = "one two three four"
    costs = sorted((characters, words) for characters, words, _ in drawn)
    candidates = CandidateEdits(
        original,
        tuple(
            Candidate(f"text {number}", (Edit(number % 18, number % 18, "", "x"),), ("char_swap",), *cost)
            for number, cost in enumerate(costs)
        ),
        complete=True,
    )
    margins = {f"text {number}": margin / 10 + 0.05 for number, (_, _, margin) in enumerate(drawn)}
    result, asked = run(standing(original, start), candidates, budget, margins)
    assert len(asked) == result.encodings <= budget
    assert len(set(asked)) == len(asked)
    after = None if result.after is None else result.after.text
    flip = next((edit for edit in candidates.candidates if edit.text == after), None)
    flips = [edit for edit in candidates.candidates if (margins[edit.text] > 0) != (start > 0)]
    if result.flipped:
        assert flip in flips
        assert flip is not None
        smaller = [edit for edit in flips if edit.characters < flip.characters]
        assert not smaller  # whole costs are searched in order, whatever the budget
    if result.exhaustive:
        assert result.flipped == bool(flips)
    if result.exhaustive and flips:
        best = min(flips, key=lambda edit: (edit.characters, edit.words, -abs(margins[edit.text])))
        assert flip is not None
        assert (flip.characters, flip.words) == (best.characters, best.words)
        assert abs(margins[flip.text]) == abs(margins[best.text])
    if budget >= len(drawn):
        assert result.exhaustive
    if not result.flipped and flip is not None:
        tried = [margins[text] for text in asked if text in margins]
        assert margins[flip.text] == (min(tried) if start > 0 else max(tried))


def test_telling_words_are_tried_first() -> None:
    """With too many edits for the budget, those of the word whose absence matters most come first."""
    original = "aaaa bbbb cccc dddd"
    edits = [(index, f"{original[:index]}x{original[index + 1 :]}") for index in range(19) if original[index] != " "]
    candidates = CandidateEdits(
        original,
        tuple(
            Candidate(text, (Edit(at, at + 1, original[at], "x"),), ("nearby_char",), 1, 1) for at, text in edits * 2
        ),
        complete=True,
    )
    # Without "cccc" the margin shrinks; only an edit inside it flips.
    margins = {"aaaa bbbb dddd": 0.05, **{text: -0.1 for at, text in edits if at == 12}}
    result, asked = run(standing(original, 0.3), candidates, 16, margins)
    assert asked[:4] == ["bbbb cccc dddd", "aaaa cccc dddd", "aaaa bbbb dddd", "aaaa bbbb cccc"]
    assert all("x" in text[10:14] for text in asked[4:12])
    assert result.flipped
    assert not result.exhaustive
    assert result.encodings == 16
