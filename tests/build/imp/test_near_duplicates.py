"""Near-duplicates against all pairs compared in plain Python."""

from __future__ import annotations

import random
import re
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.build import near_duplicates
from crosslens.build.imp.cleaning.duplicates import band_shape
from crosslens.core import UsageError
from crosslens.language import word_set

WORDS = sorted(word_set("a the red blue old dog cat boy runs sleeps jumps on under near park bench river tree 犬 кот"))


@cache
def trigrams(text: str) -> frozenset[str]:
    plain = re.sub(r"[\W_]+", " ", text.lower()).strip() or text
    padded = f" {plain} "
    return frozenset(padded[start : start + 3] for start in range(max(len(padded) - 2, 1)))


def jaccard(first: str, second: str) -> float:
    a, b = trigrams(first), trigrams(second)
    return len(a & b) / len(a | b)


def reference(texts: list[str], threshold: float) -> list[int]:
    groups = list(range(len(texts)))
    for first, second in combinations(range(len(texts)), 2):
        if jaccard(texts[first], texts[second]) >= threshold:
            low, high = sorted((groups[first], groups[second]))
            groups = [low if group == high else group for group in groups]
    return groups


def captions(count: int, seed: int) -> list[str]:
    """Random captions, a third of them a changed copy of an earlier one."""
    draw = random.Random(seed)
    texts: list[str] = []
    for _ in range(count):
        if texts and draw.random() < 1 / 3:
            words = draw.choice(texts).split()
            words[draw.randrange(len(words))] = draw.choice(WORDS)
        else:
            words = draw.choices(WORDS, k=draw.randint(4, 14))
        texts.append(" ".join(words))
    return texts


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.8, 1.0])
def test_groups_are_those_of_all_pairs(threshold: float) -> None:
    texts = captions(150, seed=round(100 * threshold))
    expected = reference(texts, threshold)
    assert len(set(expected)) < len(texts)
    assert near_duplicates(texts, threshold=threshold).tolist() == expected


@given(st.lists(st.text(st.sampled_from("abc .,A犬"), max_size=12), max_size=12), st.floats(0.1, 1), st.integers(0, 5))
def test_no_false_pair_and_no_lost_copy(texts: list[str], threshold: float, seed: int) -> None:
    groups = near_duplicates(texts, threshold=threshold, seed=seed).tolist()
    expected = reference(texts, threshold)
    for row, (group, target) in enumerate(zip(groups, expected, strict=True)):
        assert group <= row
        assert groups[group] == group
        assert expected[group] == target  # joined only if the exact pairs connect them
        assert group <= texts.index(texts[row])


def test_the_first_text_of_a_group_gives_its_number() -> None:
    texts = ["x y z", "a red dog runs", "A red dog runs!", "", "a red  dog, runs", "!!!", "?!", ""]
    assert near_duplicates(texts, threshold=0.9).tolist() == [0, 1, 1, 3, 1, 5, 6, 3]
    assert near_duplicates([], threshold=0.9).tolist() == []


def test_chains_are_one_group() -> None:
    steps = ["abcdefghij", "abcdefghijk", "abcdefghijkl", "abcdefghijklm", "abcdefghijklmn"]
    assert jaccard(steps[0], steps[-1]) < 0.7 < jaccard(steps[0], steps[1])
    assert near_duplicates(steps, threshold=0.7).tolist() == [0] * 5


def test_recall_at_the_threshold() -> None:
    """Pairs of exactly the threshold are the hardest to find: their share is the stated one."""
    draw = random.Random(0)
    letters = [chr(code) for code in range(0x4E00, 0x9000)]
    texts: list[str] = []
    for _ in range(400):  # 40 letters: 40 trigrams; a change at the end leaves 36 of 44
        start, end = draw.sample(letters, 36), draw.sample(letters, 8)
        texts += ["".join(start + end[:4]), "".join(start + end[4:])]
    similarity = jaccard(texts[0], texts[1])
    groups = near_duplicates(texts, threshold=similarity, seed=3)
    assert np.mean(groups[1::2] == groups[::2]) >= 0.98


@pytest.mark.parametrize("threshold", [0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0])
def test_bands_reach_the_recall(threshold: float) -> None:
    height, bands = band_shape(threshold)
    assert height * bands <= 128
    assert 1 - (1 - threshold**height) ** bands >= 0.99


def test_the_same_seed_gives_the_same_groups() -> None:
    texts = captions(300, seed=9)
    assert np.array_equal(near_duplicates(texts, threshold=0.5, seed=4), near_duplicates(texts, threshold=0.5, seed=4))


@pytest.mark.parametrize("threshold", [0.0, 1.5, float("nan")])
def test_a_threshold_out_of_range(threshold: float) -> None:
    with pytest.raises(UsageError, match=r"from 0\.1 to 1"):
        near_duplicates(["a", "b"], threshold=threshold)
