"""Every outcome of a perturbation, against enumerations written out by hand, and what an edit costs."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest
from hypothesis import given, settings, strategies as st

from crosslens.core import CrosslensError
from crosslens.perturbations import CannotApply, Caption, Edit, apply_edits, candidate_edits, perturb
from crosslens.perturbations.caption import Draws, Edits
from crosslens.perturbations.outcomes import edit_distance, outcomes
from crosslens.perturbations.text.surface import KEY_NEIGHBOURS

WORDS = st.lists(st.text("abcde", min_size=1, max_size=5), min_size=1, max_size=6)


def texts_of(name: str, text: str) -> set[str]:
    (edits,) = candidate_edits([name], [text])
    assert edits.complete
    assert len({candidate.text for candidate in edits.candidates}) == len(edits)
    return {candidate.text for candidate in edits.candidates}


def each_word(words: list[str], changed: dict[int, set[str]]) -> set[str]:
    return {" ".join([*words[:at], new, *words[at + 1 :]]) for at, news in changed.items() for new in news}


@settings(max_examples=5)
@given(WORDS)
def test_every_swap_of_two_neighbours(words: list[str]) -> None:
    changed = {
        at: {w[:i] + w[i + 1] + w[i] + w[i + 2 :] for i in range(len(w) - 1) if w[i] != w[i + 1]}
        for at, w in enumerate(words)
    }
    assert texts_of("char_swap", " ".join(words)) == each_word(words, changed)


@given(WORDS)
def test_every_lost_letter(words: list[str]) -> None:
    changed = {at: {w[:i] + w[i + 1 :] for i in range(len(w))} for at, w in enumerate(words) if len(w) > 1}
    assert texts_of("missing_char", " ".join(words)) == each_word(words, changed)


@given(WORDS)
def test_every_neighbour_on_the_keyboard(words: list[str]) -> None:
    changed = {
        at: {w[:i] + near + w[i + 1 :] for i in range(len(w)) for near in KEY_NEIGHBOURS[w[i]]}
        for at, w in enumerate(words)
    }
    assert texts_of("nearby_char", " ".join(words)) == each_word(words, changed)


@given(WORDS)
def test_of_an_order_every_swap_of_two(words: list[str]) -> None:
    swapped = set()
    for first, second in combinations(range(len(words)), 2):
        order = list(words)
        order[first], order[second] = order[second], order[first]
        swapped.add(" ".join(order))
    assert texts_of("shuffle_all_words", " ".join(words)) == swapped - {" ".join(words)}


@given(WORDS, st.integers(0, 50))
def test_what_is_drawn_is_among_the_candidates(words: list[str], seed: int) -> None:
    text = " ".join(words)
    for name in ("char_swap", "missing_char", "extra_char", "nearby_char", "distraction_true"):
        (drawn,) = perturb(name, [text], seed=seed)
        assert (drawn.text in texts_of(name, text)) == drawn.applied


@given(st.text(max_size=30))
def test_any_text_is_safe_and_edits_reproduce_it(text: str) -> None:
    (edits,) = candidate_edits(["char_swap", "extra_char", "shuffle_all_words", "distraction_false"], [text])
    for candidate in edits.candidates:
        assert apply_edits(text, candidate.edits) == candidate.text != text
        assert candidate.characters == edit_distance(text, candidate.text) >= 1
    costs = [(candidate.characters, candidate.words) for candidate in edits.candidates]
    assert costs == sorted(costs)


def test_a_text_of_several_perturbations_names_them_all() -> None:
    (edits,) = candidate_edits(["char_swap", "missing_char", "shuffle_all_words", "shuffle_trigrams"], ["ab cd"])
    assert {candidate.text: candidate.perturbations for candidate in edits.candidates} == {
        "ba cd": ("char_swap",),
        "ab dc": ("char_swap",),
        "b cd": ("missing_char",),
        "a cd": ("missing_char",),
        "ab d": ("missing_char",),
        "ab c": ("missing_char",),
        "cd ab": ("shuffle_all_words",),
    }
    (same,) = candidate_edits(["shuffle_all_words", "shuffle_within_trigrams"], ["ab cd"])
    assert [candidate.perturbations for candidate in same.candidates] == [
        ("shuffle_all_words", "shuffle_within_trigrams")
    ]


def test_an_edit_touches_words() -> None:
    (edits,) = candidate_edits(["shuffle_all_words", "missing_char"], ["one two three"])
    words = {candidate.text: candidate.words for candidate in edits.candidates}
    assert words["two one three"] == 2
    assert words["one to three"] == 1


def test_colours_come_from_the_corpus() -> None:
    pytest.importorskip("spacy")
    corpus = ["A red car .", "A blue car .", "A green dress ."]
    (alone,) = candidate_edits(["color_in"], ["A red car ."])
    (among,) = candidate_edits(["color_in"], ["A red car ."], corpus=corpus)
    assert not alone.candidates
    assert {candidate.text for candidate in among.candidates} == {"A blue car .", "A green car ."}


# Perturbations of other shapes


def outcomes_of(change: object, text: str, limit: int = 8_000) -> tuple[set[str], bool]:
    possible = outcomes("test", change, Caption(text), {}, limit=limit)  # type: ignore[arg-type]
    return {apply_edits(text, edits) for edits in possible.edits}, possible.complete


def test_a_coin_shows_both_sides() -> None:
    def shout(caption: Caption, draws: Draws) -> Edits:
        return (Edit(0, 0, "", "!" if draws.fraction() < 0.3 else "?"),)

    assert outcomes_of(shout, "a") == ({"!a", "?a"}, True)


def test_favourites_are_all_tried() -> None:
    def prefix(caption: Caption, draws: Draws) -> Edits:
        return (Edit(0, 0, "", draws.favourite("xyz")),)

    assert outcomes_of(prefix, "a") == ({"xa", "ya", "za"}, True)


def test_too_many_outcomes_are_sampled_and_said() -> None:
    def number(caption: Caption, draws: Draws) -> Edits:
        return (Edit(0, 0, "", f"{draws.below(1_000_000)} "),)

    texts, complete = outcomes_of(number, "a", limit=100)
    assert not complete
    assert 90 <= len(texts) <= 100
    assert any(int(text.split()[0]) > 1000 for text in texts)
    assert outcomes_of(number, "a", limit=100)[0] == texts


def test_a_run_without_end_is_cut() -> None:
    def picky(caption: Caption, draws: Draws) -> Edits:
        while draws.below(2) == 0:
            pass
        return (Edit(0, 0, "", "x"),)

    texts, _ = outcomes_of(picky, "a", limit=2_000)
    assert texts == {"xa"}


def test_a_perturbation_that_never_applies() -> None:
    def never(caption: Caption, draws: Draws) -> Edits:
        raise CannotApply("no")

    assert outcomes_of(never, "a") == (set(), True)


def test_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(CrosslensError, match="char_swap"):
        candidate_edits(["chr_swap"], ["a"])
    with pytest.raises(CrosslensError, match="has no option 'size'"):
        candidate_edits(["char_swap"], ["a"], size=2)


# The distance


def slow_distance(text: str, changed: str) -> int:
    """The recurrence as it is defined."""

    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        best = min(of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (text[i - 1] != changed[j - 1]))
        if i > 1 and j > 1 and text[i - 1] == changed[j - 2] and text[i - 2] == changed[j - 1]:
            best = min(best, of(i - 2, j - 2) + 1)
        return best

    return of(len(text), len(changed))


@given(st.text("abc", max_size=9), st.text("abc", max_size=9))
def test_distance_is_the_recurrence(text: str, changed: str) -> None:
    assert edit_distance(text, changed) == slow_distance(text, changed) == edit_distance(changed, text)


@pytest.mark.parametrize(
    ("text", "changed", "distance"),
    [
        ("", "", 0),
        ("dog", "dgo", 1),
        ("dog", "dogs", 1),
        ("a red car", "a car red", 6),
        ("ca", "abc", 3),
        ("ü", "u", 1),
    ],
)
def test_distances(text: str, changed: str, distance: int) -> None:
    assert edit_distance(text, changed) == distance
