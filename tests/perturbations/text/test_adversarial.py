"""Antonyms, colours and sizes in captions: what is changed, into what, and what never is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.core import UsageError
from crosslens.language import (
    COLOUR_THRESHOLDS,
    ColourSpace,
    colour_distance,
    load_wordnet,
    named_colours,
    parse_texts,
    takes_an,
)
from crosslens.perturbations import PERTURBATIONS, CannotApply, Caption, Perturbed, apply_edits
from crosslens.perturbations.caption import Draws
from crosslens.perturbations.text.colours import colour_uses
from crosslens.perturbations.text.opposites import LARGE, SMALL
from tests.language.pipelines import needs_a_pipeline, needs_the_small_pipeline
from tests.tables import each_row

pytestmark = needs_a_pipeline

CAPTIONS = (
    "A man in a red jacket walks a black dog.",
    "A small boy stands next to a large yellow bus.",
    "Two brown horses graze in a green field.",
    "A woman in white holds a light blue umbrella.",
    "An orange cat sleeps on an old gray sofa.",
    "A tiny bird sits on a huge wooden fence.",
    "Black and white cows stand behind a narrow gate.",
    "The traffic light is green.",
    "A girl with a dark green backpack rides a bigger bike.",
    "A silver car is parked near an empty purple bench.",
    "An enormous wave rolls towards the little surfer.",
    "A red-haired woman wears a navy blue dress and pink shoes.",
    "Three young women eat from white bowls at a round table.",
)


@lru_cache
def parsed(text: str) -> Caption:
    return Caption(text, None, parse_texts([text], cache=False)[0])


def uses(text: str) -> list[str]:
    return [use.colour.name for use in colour_uses(parsed(text))]


def perturbed(name: str, text: str, seed: int = 0, **options: object) -> Perturbed:
    """One caption, parsed once for all tests."""
    caption = parsed(text)
    try:
        edits = PERTURBATIONS[name].value(caption, Draws(seed, name, text), **options)
    except CannotApply as reason:
        return Perturbed(text, text, applied=False, reason=str(reason))
    return Perturbed(text, apply_edits(text, edits), applied=True, edits=edits)


def outcomes(name: str, text: str, **options: object) -> set[str]:
    """What thirty seeds make of a caption; itself where nothing can be changed."""
    return {perturbed(name, text, seed, **options).text for seed in range(30)}


def all_perturbed(name: str, texts: Sequence[str], seed: int) -> list[Perturbed]:
    """What ``cl.perturb`` gives, without its reading of the cache."""
    corpus = PERTURBATIONS[name].details["corpus"]
    options = corpus([parsed(text) for text in texts]) if corpus else {}
    return [perturbed(name, text, seed, **options) for text in texts]


def colour_edit(result: Perturbed) -> tuple[str, str]:
    """The colour that went, and the one that came."""
    edit = result.edits[-1]
    return edit.before.lower().replace("-", " "), edit.after.lower()


# Which words are colours


@needs_the_small_pipeline
@each_row(
    ("text", "expected"),
    [
        ("A light blue car and a dark-green van.", ["light blue", "dark green"]),
        ("A navy blue coat", ["navy blue"]),
        ("The door is painted red.", ["red"]),
        ("The wall is white.", ["white"]),
        ("A woman in black talks to a man wearing all white.", ["black", "white"]),
        ("A player in red and blue runs.", ["red", "blue"]),
        ("A red, white and blue flag", ["red", "white", "blue"]),
        ("A white stop sign with a black border", ["white", "black"]),
        ("A green striped shirt", ["green"]),
        ("A red Frisbee", ["red"]),
        ("A tan dog runs", ["tan"]),
        ("Grey horse behind a gate", ["grey"]),
        ("A red-haired girl", ["red"]),
        ("A cream sweater and a rose dress", ["cream", "rose"]),
        ("An orange shirt beside an orange", ["orange"]),
    ],
)
def test_colours_are_found(text: str, expected: list[str]) -> None:
    assert uses(text) == expected


NOT_COLOURS = (
    "A glass of orange juice and some orange slices.",
    "An orange and two apples on a plate.",
    "A white man talks to a black woman.",
    "Green beans and brown rice with white wine.",
    "A brown bear looks at a red panda.",
    "A blue jay and a golden retriever.",
    "A man with a gold medal shakes hands with a silver medalist.",
    "He earned a black belt in karate.",
    "A plate of greens beside a rose.",
    "Mr. Brown plays golf on the green.",
    "White-water rafting in a canyon.",
    "A violet in a pot.",
    "Ice cream cones and sour cream.",
    "Olive oil and lime juice with salmon.",
    "A black and white photo of a street.",
    "A black-and-white picture of a train.",
    "The White House in winter.",
    "A navy officer salutes.",
    "A brick wall and a leather couch under a clear sky.",
    "A hot dog with mustard.",
)


@each_row("text", NOT_COLOURS)
@each_row("name", ["color_all", "color_in"])
def test_other_uses_of_colour_words_are_left_alone(name: str, text: str) -> None:
    options = {"colors": ["blue", "green", "black"]} if name == "color_in" else {}
    result = perturbed(name, text, **options)
    assert (result.text, result.reason) == (text, "no colour")


# Which colours replace them


@pytest.mark.parametrize("space", ["rgb", "lab"])
@given(seed=st.integers(0, 2**32), text=st.sampled_from(CAPTIONS))
def test_a_new_colour_is_far_from_the_old_one(space: ColourSpace, seed: int, text: str) -> None:
    for name, options in (("color_all", {}), ("color_in", {"colors": list(named_colours())[::7]})):
        result = perturbed(name, text, seed, space=space, **options)
        if result.applied:
            old, new = (named_colours()[colour].rgb for colour in colour_edit(result))
            assert colour_distance(old, new, space) >= COLOUR_THRESHOLDS[space]


def test_the_threshold_is_an_option() -> None:
    near = outcomes("color_in", "A red car.", colors=["crimson", "maroon"], threshold=0.1)
    assert near == {"A crimson car.", "A maroon car."}
    assert outcomes("color_in", "A red car.", colors=["crimson", "maroon"]) == {"A red car."}
    assert outcomes("color_in", "A red car.", colors="crimson, Blue") == {"A blue car."}
    assert perturbed("color_in", "A red car.", colors=["crimson"]).reason == "no colour that is far from red"
    for wrong in (-1, float("nan"), "far"):
        with pytest.raises(UsageError, match="threshold"):
            cl.perturb("color_all", ["A red car."], threshold=wrong)
    with pytest.raises(UsageError, match="'hsv'"):
        cl.perturb("color_all", ["A red car."], space="hsv")
    with pytest.raises(UsageError, match="'blurple-ish' is not a named colour"):
        cl.perturb("color_in", ["A red car."], colors=["blurple-ish"])


def occurring(texts: Sequence[str]) -> set[str]:
    return {name for text in texts for name in uses(text)}


@given(seed=st.integers(0, 2**32), texts=st.lists(st.sampled_from(CAPTIONS), min_size=2, unique=True))
def test_color_in_stays_within_the_captions(seed: int, texts: list[str]) -> None:
    for result in all_perturbed("color_in", texts, seed):
        if result.applied:
            assert colour_edit(result)[1] in occurring(texts)


@pytest.mark.parametrize("name", ["antonym", "antonym[any]", "color_all", "color_in", "size"])
def test_captions_together_are_captions_one_by_one(name: str) -> None:
    assert list(cl.perturb(name, CAPTIONS, seed=5)) == all_perturbed(name, CAPTIONS, 5)


def test_a_caption_with_a_new_colour_changes_another_only_by_that_colour() -> None:
    newcomers = ["A turquoise wall.", "A magenta hat.", "A beige van.", "A teal lamp.", "A maroon cup.", "A lime hat."]
    before = cl.perturb("color_in", CAPTIONS)
    moved = 0
    for newcomer in newcomers:
        after = cl.perturb("color_in", [*CAPTIONS, newcomer])
        for old, new in zip(before, after, strict=False):
            if old != new:
                moved += 1
                assert colour_edit(new)[1] == newcomer.split()[1]
    assert 0 < moved < len(newcomers) * len(CAPTIONS) / 3


def test_a_favourite_is_the_least_in_an_order_of_its_own() -> None:
    draws = Draws(3, "here", "caption")
    options = [f"option {number}" for number in range(30)]
    order = []
    while rest := [option for option in options if option not in order]:
        order.append(draws.favourite(rest))
        assert draws.favourite(rest[::-1]) == order[-1]
    assert sorted(order) == sorted(options) != order
    winners = {Draws(seed, "here").favourite(options) for seed in range(300)}
    assert len(winners) == 30


def test_colours_of_one_thing_do_not_become_the_same() -> None:
    for text in outcomes("color_in", "A black and white cow.", colors=["black", "white", "red", "green"]):
        assert len(set(uses(text))) == 2


def test_a_kind_of_the_old_colour_is_no_other_colour() -> None:
    kinds = ["sky blue", "light blue", "grey blue", "blue"]
    assert outcomes("color_in", "A blue ball.", colors=kinds) == {"A blue ball."}
    assert outcomes("color_in", "A light blue ball.", colors=["blue", "dark blue"]) == {"A dark blue ball."}


@needs_the_small_pipeline
def test_shades_and_hyphens_take_plain_colours_only() -> None:
    plain = {"red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "gray"}
    assert {
        text.removeprefix("A ").removeprefix("An ").split("-")[0] for text in outcomes("color_all", "A red-haired man")
    } <= plain
    for text in outcomes("color_all", "A very red car"):
        assert text.split()[2] in plain


def test_offered_colours_read_as_captions() -> None:
    for text in outcomes("color_all", "A red sandwich on the table."):
        words = text.removeprefix("A ").removeprefix("An ").removesuffix(" sandwich on the table.")
        assert named_colours()[words].use == "adjective" or words in ("orange", "gold", "silver")


# Sizes


@given(seed=st.integers(0, 2**32), text=st.sampled_from(CAPTIONS))
def test_sizes_cross_to_the_other_side(seed: int, text: str) -> None:
    result = perturbed("size", text, seed)
    if not result.applied:
        return
    stems = {"bigger": "big", "larger": "large", "smaller": "small", "tinier": "tiny"}
    old, new = (stems.get(word.lower(), word.lower()) for word in (result.edits[-1].before, result.edits[-1].after))
    assert (old in LARGE and new in SMALL) or (old in SMALL and new in LARGE)


@needs_the_small_pipeline
@each_row(
    ("text", "expected"),
    [
        ("A large dog", {"A small dog", "A little dog", "A tiny dog"}),
        ("A small dog", {"A large dog", "A big dog", "A huge dog", "An enormous dog"}),
        ("An enormous dog", {"A small dog", "A little dog", "A tiny dog"}),
        ("A bigger dog", {"A smaller dog", "A tinier dog"}),
        ("the smallest dog", {"the largest dog", "the biggest dog"}),
        ("The dog is small.", {"The dog is large.", "The dog is big.", "The dog is huge.", "The dog is enormous."}),
        ("A very small dog", {"A very large dog", "A very big dog"}),
        ("A little girl", {"A large girl", "A big girl"}),
        ("a large number of dogs", {"a small number of dogs", "a tiny number of dogs"}),
        ("A large crack", {"A small crack", "A little crack", "A tiny crack", "A minor crack"}),
        ("A minor injury", {"A large injury", "A big injury", "A huge injury", "An enormous injury"}),
    ],
)
def test_sizes_in_the_form_that_fits(text: str, expected: set[str]) -> None:
    assert outcomes("size", text) == expected


def test_minor_everywhere_where_asked_for() -> None:
    assert outcomes("size", "A large dog", minor=True) == {"A small dog", "A little dog", "A minor dog", "A tiny dog"}


@each_row(
    "text",
    [
        "There is a little snow on the ground.",
        "She eats a little bit of cake.",
        "He runs a little faster.",
        "People in Little Italy.",
        "My big brother",
        "Big Ben at night",
        "A large-scale model",
        "A big huge dog",
        "A great big dog",
        "A man with little hair",
        "A man at a desk",
        "A minor league game",
    ],
)
def test_what_is_no_size_is_left_alone(text: str) -> None:
    assert outcomes("size", text) == {text}


# Antonyms


@needs_the_small_pipeline
@each_row(
    ("text", "expected"),
    [
        ("A young man", {"An old man"}),
        ("An old house", {"A new house"}),
        ("OLD houses", {"OLD houses", "NEW houses"}),
        ("The door is open.", {"The door is closed."}),
        ("A taller woman", {"A shorter woman"}),
        ("the dirtiest car", {"the cleanest car"}),
        ("The uglier dog", {"The more beautiful dog"}),
        ("A black dog", {"A white dog"}),
        ("A wet dog and an indoor pool", {"A dry dog and an indoor pool", "A wet dog and an outdoor pool"}),
        ("Dirty dishes", {"Clean dishes"}),
    ],
)
def test_antonyms_in_captions(text: str, expected: set[str]) -> None:
    assert outcomes("antonym", text) <= expected
    assert text not in outcomes("antonym", text) or text == "OLD houses"


@each_row(
    "text",
    [
        "A green apple",
        "A hot dog in a bun",
        "A high school class",
        "A white man and a black woman",
        "A black and white cat",
        "A long-sleeved shirt",
        "An old-fashioned car",
        "Several people and many dogs",
        "The other man",
        "Two men in an open field",
        "A man who has fallen asleep",
        "A half full glass",
        "A Middle Eastern meal",
        "People in the New York subway",
        "A young child with young puppies",
    ],
)
def test_what_has_no_opposite_here_is_left_alone(text: str) -> None:
    assert outcomes("antonym", text) == {text}


# Antonyms as the paper takes them


@needs_the_small_pipeline
def test_any_adjective_with_an_antonym_in_wordnet_changes() -> None:
    assert outcomes("antonym", "a dark horse") == {"a dark horse"}, "a horse may be dark without light ones"
    assert outcomes("antonym[any]", "a dark horse") == {"a light horse"}
    assert outcomes("antonym[any]", "A green apple") == {"A ripe apple"}, "an antonym of another sense"
    assert outcomes("antonym[any]", "A hot dog in a bun") == {"A cold dog in a bun"}, "part of a compound"
    assert outcomes("antonym[any]", "an old man") == {"a young man", "a new man"}, "one of several, drawn"
    assert outcomes("antonym[any]", "a taller man") == {"a shorter man"}, "in its degree"
    assert outcomes("antonym[any]", "a tall old man") == {"a short old man", "a tall young man", "a tall new man"}
    assert perturbed("antonym[any]", "a tall old man", every=True).text in {"a short young man", "a short new man"}
    for text in ("A wooden chair", "A dog runs", "A tiny dog"):  # tiny has none of its own
        assert perturbed("antonym[any]", text).reason == "no adjective that has an antonym in WordNet"


@given(seed=st.integers(0, 2**40), every=st.booleans())
def test_any_antonym_is_one_of_wordnet_and_the_same_for_a_seed(seed: int, every: bool) -> None:
    net = load_wordnet()
    for text in CAPTIONS:
        changed = perturbed("antonym[any]", text, seed, every=every)
        assert changed == perturbed("antonym[any]", text, seed, every=every)
        adjectives = [token for token in parsed(text).tokens if token.pos == "ADJ" and token.tag == "JJ"]
        antonyms_of = {
            token.text.lower(): {word for _, word, _ in net.opposites(token.text.lower(), "a")} for token in adjectives
        }
        words = [edit for edit in changed.edits if edit.before.lower() not in ("a", "an")]
        assert changed.applied == bool(words)
        if not every:
            assert len(words) <= 1
        for edit in words:
            if edit.before.lower() in antonyms_of:
                assert edit.after.lower() in antonyms_of[edit.before.lower()]
        if any(antonyms_of.values()):
            assert changed.applied


# All of them


@given(seed=st.integers(0, 2**32), name=st.sampled_from(["antonym", "antonym[any]", "color_all", "color_in", "size"]))
def test_articles_fit_and_capitals_stay(seed: int, name: str) -> None:
    for text, perturbed in zip(CAPTIONS, all_perturbed(name, CAPTIONS, seed), strict=True):
        words = perturbed.text.split()
        for article, word in pairwise(words):
            if article.lower() in ("a", "an"):
                assert (article.lower() == "an") == takes_an(word), perturbed.text
        assert perturbed.text[0].isupper() == text[0].isupper()
        assert perturbed.text[-1] == text[-1]
        assert len(perturbed.edits) <= 2
