"""Words and tokens with their places."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from crosslens.perturbations import Caption, Edit, apply_edits, words_of
from tests.tables import each_row


@each_row(
    ("text", "words"),
    [
        ("Two men (one of them smiling).", ["Two", "men", "one", "of", "them", "smiling"]),
        ('A dog\'s T-shirt says "go!"', ["A", "dog's", "T-shirt", "says", "go"]),
        ("— … !", []),
        ("", []),
        ("42", ["42"]),
        ("Ein Café, «très» schön", ["Ein", "Café", "très", "schön"]),
        ("कुत्ता दौड़ता है।", ["कुत्ता", "दौड़ता", "है"]),
        ("cafe\u0301 noir", ["cafe\u0301", "noir"]),
        ("a\nb\tc", ["a", "b", "c"]),
        ("The man 's hat is n't red .", ["The", "man 's", "hat", "is n't", "red"]),
        ("An ant 's-eye-view", ["An", "ant", "s-eye-view"]),
        ("les chiens ’s café", ["les", "chiens ’s", "café"]),
        ("'s a dog", ["s", "a", "dog"]),
    ],
)
def test_words_are_what_stands_between_blanks_without_its_punctuation(text: str, words: list[str]) -> None:
    assert [word.text for word in words_of(text)] == words


@given(st.text())
def test_words_stand_where_they_say_and_cover_every_letter_and_digit(text: str) -> None:
    covered = set()
    for word in Caption(text).words:
        assert text[word.start : word.end] == word.text
        assert len(word.text.split()) <= 2  # an ending may stand by itself: the man 's
        covered |= set(range(word.start, word.end))
    rest = (text[place] for place in range(len(text)) if place not in covered)
    assert not any(unicodedata.category(character)[0] in "LN" for character in rest)


def test_tokens_need_a_parse() -> None:
    with pytest.raises(LookupError, match="tags=True"):
        _ = Caption("A dog").tokens


@pytest.mark.parametrize(
    "edits", [(Edit(0, 1, "B", "x"),), (Edit(2, 5, "dog", "cat"), Edit(4, 5, "g", "x")), (Edit(9, 10, "?", ""),)]
)
def test_edits_that_do_not_fit_are_refused(edits: tuple[Edit, ...]) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        apply_edits("A dog", edits)
