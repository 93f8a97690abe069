"""Colours by name: values that standards publish, and the table as it was reviewed."""

from __future__ import annotations

import colorsys
import re

import pytest
from hypothesis import given, strategies as st

from crosslens.core import UsageError
from crosslens.language import COLOUR_THRESHOLDS, check_colour_space, colour_distance, named_colours
from crosslens.language.words import lab, parse_rgb
from tests.tables import each_row

CHANNEL = st.integers(0, 255).map(lambda value: value / 255)
RGB = st.tuples(CHANNEL, CHANNEL, CHANNEL)

# D65, 2° observer, as printed in tables of sRGB's corners.
KNOWN_LAB = {
    "#000000": (0.0, 0.0, 0.0),
    "#ffffff": (100.0, 0.0, 0.0),
    "#ff0000": (53.24, 80.09, 67.20),
    "#00ff00": (87.74, -86.18, 83.18),
    "#0000ff": (32.30, 79.19, -107.86),
    "#ffff00": (97.14, -21.55, 94.48),
    "#00ffff": (91.11, -48.09, -14.13),
    "#ff00ff": (60.32, 98.23, -60.83),
    "#808080": (53.59, 0.0, 0.0),
}


@pytest.mark.parametrize("rgb", KNOWN_LAB)
def test_lab_of_known_colours(rgb: str) -> None:
    assert lab(parse_rgb(rgb)) == pytest.approx(KNOWN_LAB[rgb], abs=0.011)


@given(RGB, RGB)
def test_distance_is_one(first: tuple[float, float, float], second: tuple[float, float, float]) -> None:
    for space in ("rgb", "lab"):
        assert colour_distance(first, second, space) == colour_distance(second, first, space) >= 0
        assert colour_distance(first, first, space) == 0
        assert (colour_distance(first, second, space) > 0) == (first != second)
    assert colour_distance(first, second) == pytest.approx(
        sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) ** 0.5
    )


@given(CHANNEL)
def test_grays_have_no_hue_in_lab(value: float) -> None:
    assert lab((value, value, value))[1:] == pytest.approx((0, 0), abs=1e-4)


def test_names_and_values() -> None:
    table = named_colours()
    expected = {"red": "#ff0000", "navy": "#000080", "dark goldenrod": "#b8860b", "light slate gray": "#778899"}
    xkcd = {"off white": "#ffffe4", "navy blue": "#001146", "burgundy": "#610023"}
    for name, value in (expected | xkcd).items():
        assert table[name].rgb == parse_rgb(value)
    assert table["pink"].rgb == parse_rgb("#ffc0cb"), "CSS4's, not XKCD's"
    assert table["light gray"].rgb == table["light grey"].rgb
    assert len(table) > 1000
    assert all(re.fullmatch(r"[a-z']+( [a-z']+)*", name) for name in table)
    assert not any(part in name.split() for name in table for part in ("darkgreen", "lightblue") if table[name].use)


def test_hues_are_those_of_their_names() -> None:
    for name, low, high in (("yellow", 50, 70), ("green", 90, 150), ("blue", 190, 250)):
        for kind in (name, f"dark {name}", f"light {name}"):
            red, green, blue = named_colours()[kind].rgb
            assert low <= 360 * colorsys.rgb_to_hsv(red, green, blue)[0] <= high, kind


@each_row("part", "poop poo puke shit vomit snot booger piss ugly nasty barf diarrhea bile".split())  # noqa: SIM905
def test_rude_names_are_never_used(part: str) -> None:
    rude = [colour for name, colour in named_colours().items() if part in name.split()]
    assert rude
    assert all(colour.use == "" for colour in rude)


def test_names_of_other_things_are_not_taken_for_colours() -> None:
    for name in ("leather", "stone", "brick", "wheat", "sand", "grass", "sky", "banana", "tea", "ice", "dark", "pale",
                 "snow", "linen", "denim", "chocolate", "coffee", "water blue", "macaroni and cheese"):  # fmt: skip
        assert named_colours()[name].use == "", name
    assert named_colours()["orange"].use == "thing"
    assert named_colours()["beige"].use == "adjective"
    assert named_colours()["blue green"].use == "mix"


def test_thresholds_set_apart_as_many_pairs() -> None:
    offered = [colour.rgb for colour in named_colours().values() if colour.use in ("adjective", "thing")]
    pairs = [(colour, earlier) for place, colour in enumerate(offered) for earlier in offered[:place]]
    shares = [
        sum(colour_distance(*pair, space) >= least for pair in pairs) / len(pairs)
        for space, least in COLOUR_THRESHOLDS.items()
    ]
    assert shares[0] == pytest.approx(shares[1], abs=0.03)


def test_an_unknown_space_is_named() -> None:
    assert check_colour_space("lab") == "lab"
    with pytest.raises(UsageError, match="'hsv'"):
        check_colour_space("hsv")
