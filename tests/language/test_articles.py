"""``a`` or ``an``, against lists written down by ear."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from crosslens.language import takes_an
from tests.tables import each_row

AN_WORDS = """
apple orange hour hourglass honest honor honour honorable honorary heir heirloom umbrella uncle underwater unusual
uninteresting unimportant unidentified uninhabited unopened unironed urban urgent urn usher utter ugly elephant eight
egg eye eel ear aerial airplane aisle island ice iPhone oar oven open owl old onion ostrich oxygen aardvark étude
SUV ATM ATV X-ray x-ray x 8 8-year-old 80-foot 800 11 11th 18-wheeler 11,000 18 MP3 NBA FBI LED RV HDTV NFL F-16
L-shaped s-curve e-bike O-ring EMT XL ELEPHANT OLD ORANGE RVs "old" (orange 'empty' adult
"""

A_WORDS = """
dog unicycle uniform unicorn union unique unit united universal university unison unity unidirectional unanimous used
user useful usual utensil utility utopian European euro eucalyptus ewe one one-way one-eyed once onesie ukulele urinal
uranium ubiquitous UFO UK USA U-turn u-shaped T-shirt t house horse hero historic hot hat yellow young year
1 10 100 12 110 180 1,100 1800 7-foot B-52 TV DVD BMX CD PC HUGE RED BIG MAN SEA BUS CAT HOT DOG DVDs
"young" ouija wooden white
"""

AN, A = AN_WORDS.split(), A_WORDS.split()


@each_row("word", AN)
def test_an_before_a_vowel_sound(word: str) -> None:
    assert takes_an(word)


@each_row("word", A)
def test_a_before_a_consonant_sound(word: str) -> None:
    assert not takes_an(word)


@pytest.mark.parametrize(("phrase", "expected"), [("hors d'oeuvre", True), ("old man", True), ("hot dog", False)])
def test_of_a_phrase_the_first_word_decides(phrase: str, expected: bool) -> None:
    assert takes_an(phrase) is expected


@given(st.text(max_size=8))
def test_any_text_has_an_answer(word: str) -> None:
    assert takes_an(word) in (True, False)


@given(st.sampled_from([word for word in (*AN, *A) if word.isalpha() and word.islower() and len(word) > 3]))
def test_capitals_do_not_change_the_sound(word: str) -> None:
    assert takes_an(word.capitalize()) == takes_an(word) == takes_an(word.upper())
