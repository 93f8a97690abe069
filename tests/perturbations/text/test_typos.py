"""Slips of the finger, against a list of everything they may do."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from string import ascii_letters, ascii_lowercase

import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.core import UsageError
from crosslens.perturbations import Perturbed, candidate_edits
from crosslens.perturbations.text.surface import KEY_NEIGHBOURS
from tests.tables import each_row

TOUCHING = """
q:aw w:aeqs e:drsw r:deft t:fgry y:ghtu u:hijy i:jkou o:iklp p:lo
a:qswz s:adewxz d:cefrsx f:cdgrtv g:bfhtvy h:bgjnuy j:hikmnu k:ijlmo l:kop
z:asx x:cdsz c:dfvx v:bcfg b:ghnv n:bhjm m:jkn
"""
WORDS = "A man and The OLD dog's T-shirt x oo Oo I'm 2nd cafe\u0301"
TEXTS = st.one_of(
    st.text(max_size=30),
    st.text(alphabet="abcXYZéß \u0301'-.7", max_size=30),
    st.lists(st.sampled_from(WORDS.split()), max_size=8).map(" ".join),
)


def perturbed(name: str, text: str, seed: int = 0, **options: int) -> Perturbed:
    return cl.perturb(name, [text], seed=seed, **options)[0]


def all_outcomes(name: str, text: str, draws: int = 1500) -> set[str]:
    return {outcome.text for outcome in cl.perturb(name, {str(draw): text for draw in range(draws)})}


# The keyboard


def test_neighbours_are_those_of_a_keyboard_looked_at() -> None:
    assert {key: "".join(sorted(near)) for key, near in KEY_NEIGHBOURS.items()} == dict(
        pair.split(":") for pair in TOUCHING.split()
    )


def test_neighbours_are_mutual() -> None:
    assert len(KEY_NEIGHBOURS) == 26
    for key, near in KEY_NEIGHBOURS.items():
        assert key not in near
        assert all(key in KEY_NEIGHBOURS[neighbour] for neighbour in near)


# Everything that may happen to a short caption, written down the slow way


def words_with_places(text: str) -> list[tuple[int, str]]:
    return [(word.start(), word.group()) for word in re.finditer(r"[A-Za-z0-9](?:\S*[A-Za-z0-9])?", text)]


def swaps(text: str) -> set[str]:
    pairs = [
        at
        for at in range(len(text) - 1)
        if text[at].isalpha() and text[at + 1].isalpha() and text[at].lower() != text[at + 1].lower()
    ]
    even = [at for at in pairs if text[at].isupper() == text[at + 1].isupper()]
    return {text[:at] + text[at + 1] + text[at] + text[at + 2 :] for at in even or pairs}


def losses(text: str) -> set[str]:
    texts = set()
    for start, word in words_with_places(text):
        letters = [at for at, letter in enumerate(word) if letter.isalpha()]
        if len(letters) < 2:
            continue
        for at in letters:
            if at == 0 and word[0].isupper() and word != word.upper():
                continue  # the capital stays
            texts.add(text[: start + at] + text[start + at + 1 :])
    return texts


def additions(text: str, letters: dict[str, str] = KEY_NEIGHBOURS) -> set[str]:
    texts = set()
    for start, word in words_with_places(text):
        loud = len(word) > 1 and word == word.upper() and word != word.lower()
        for at, letter in enumerate(word):
            for near in letters.get(letter.lower(), ""):
                new = near.upper() if loud else near
                texts.add(text[: start + at + 1] + new + text[start + at + 1 :])
                if at or loud or letter.islower():
                    texts.add(text[: start + at] + new + text[start + at :])
    return texts


def misses(text: str) -> set[str]:
    return {
        text[:at] + (near.upper() if letter.isupper() else near) + text[at + 1 :]
        for at, letter in enumerate(text)
        for near in KEY_NEIGHBOURS.get(letter.lower(), "")
    }


ORACLES: dict[str, Callable[[str], set[str]]] = {
    "char_swap": swaps,
    "missing_char": losses,
    "extra_char": additions,
    "nearby_char": misses,
}
SHORT = ["It is", "A dog.", "oo Oo", "Ox", "I'm", "OK 2nd", "7 x", "T-shirt", "a b c", "12 34", ""]


@each_row("text", SHORT)
@each_row("name", sorted(ORACLES))
def test_every_allowed_slip_happens_and_no_other(name: str, text: str) -> None:
    allowed = ORACLES[name](text)
    assert all_outcomes(name, text) == (allowed or {text})


@pytest.mark.parametrize("name", sorted(ORACLES))
@given(text=st.text(alphabet="abZY '-.3\n", max_size=20), seed=st.integers(0, 99))
def test_longer_captions_too(name: str, text: str, seed: int) -> None:
    allowed = ORACLES[name](text)
    result = perturbed(name, text, seed)
    assert result.applied == bool(allowed)
    assert result.text in (allowed or {text})


# Properties of any text


@given(TEXTS, st.integers(0, 99))
def test_swap_is_one_swap_of_two_different_letters(text: str, seed: int) -> None:
    result = perturbed("char_swap", text, seed)
    if result.applied:
        (edit,) = result.edits
        assert edit.end - edit.start == 2
        assert edit.after == edit.before[::-1]
        assert edit.before.isalpha()
        assert edit.before[0].lower() != edit.before[1].lower()
        assert sorted(result.text) == sorted(text)


@given(TEXTS, st.integers(0, 99))
def test_a_missing_letter_is_one_letter_less(text: str, seed: int) -> None:
    result = perturbed("missing_char", text, seed)
    if result.applied:
        (edit,) = result.edits
        assert edit.before.isalpha()
        assert len(edit.before) == 1
        assert edit.after == ""


@given(TEXTS, st.integers(0, 99))
def test_an_extra_letter_is_a_neighbour_of_a_letter_beside_it(text: str, seed: int) -> None:
    result = perturbed("extra_char", text, seed)
    if result.applied:
        (edit,) = result.edits
        assert edit.before == ""
        around = (text[max(edit.start - 1, 0) : edit.start + 1]).lower()
        assert any(edit.after.lower() in KEY_NEIGHBOURS.get(letter, "") for letter in around)


ANY_LETTER = dict.fromkeys(ascii_lowercase, ascii_lowercase)


@each_row("text", SHORT)
def test_an_extra_letter_may_be_any_and_stand_beside_any(text: str) -> None:
    (edits,) = candidate_edits(["extra_char[any]"], [text])
    assert {candidate.text for candidate in edits.candidates} == additions(text, ANY_LETTER)
    assert edits.complete


@given(text=TEXTS, seed=st.integers(0, 2**40))
def test_any_extra_letter_is_exactly_one_letter_more(text: str, seed: int) -> None:
    changed = perturbed("extra_char[any]", text, seed)
    assert changed == perturbed("extra_char[any]", text, seed), "same seed, same answer"
    assert changed.applied == any(letter in ascii_letters for letter in unmarked(text))
    if changed.applied:
        (edit,) = changed.edits
        assert (edit.before, len(edit.after)) == ("", 1)
        assert edit.after in ascii_letters
        assert changed.text == text[: edit.start] + edit.after + text[edit.start :]


def unmarked(text: str) -> str:
    """The characters that carry no mark."""
    marks = ("Mn", "Mc", "Me", "Cf")
    return "".join(here for here, after in pairwise(text + " ") if unicodedata.category(after) not in marks)


def test_any_extra_letter_is_drawn_from_the_whole_alphabet_alike() -> None:
    drawn = Counter(perturbed("extra_char[any]", "a dog", seed).edits[0].after for seed in range(2600))
    assert set(drawn) == set(ascii_lowercase)
    assert max(drawn.values()) < 150, "100 of each are expected, with a deviation of 10"


@given(TEXTS, st.integers(0, 99))
def test_a_nearby_letter_keeps_its_case(text: str, seed: int) -> None:
    result = perturbed("nearby_char", text, seed)
    if result.applied:
        (edit,) = result.edits
        assert edit.after.lower() in KEY_NEIGHBOURS[edit.before.lower()]
        assert edit.after.isupper() == edit.before.isupper()


@pytest.mark.parametrize("name", sorted(ORACLES))
@given(text=TEXTS, seed=st.integers(0, 20))
def test_marks_stay_with_their_letters(name: str, text: str, seed: int) -> None:
    def marked(value: str) -> list[str]:
        return sorted(
            value[at - 1 : at + 1] for at in range(1, len(value)) if unicodedata.category(value[at]).startswith("M")
        )

    assert marked(perturbed(name, text, seed).text) == marked(text)


def test_several_words() -> None:
    text = "a dog runs over the green grass"
    for name in ORACLES:
        result = perturbed(name, text, k=3)
        assert len(result.edits) == 3
        before, after = text.split(), result.text.split()
        assert sum(old != new for old, new in zip(before, after, strict=True)) == 3
    assert len(perturbed("char_swap", "a dog", k=9).edits) == 1
    with pytest.raises(UsageError, match="k = 0"):
        perturbed("char_swap", text, k=0)


def test_words_are_drawn_before_places() -> None:
    """A long word is hit no more often than a short one."""
    hits = sum(perturbed("missing_char", "it extraordinarily", seed).edits[0].start < 3 for seed in range(600))
    assert 240 < hits < 360
