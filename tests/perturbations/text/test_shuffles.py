"""Words in another order, against all orders there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, permutations, product

import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.language import Parse
from crosslens.perturbations import PERTURBATIONS, CannotApply, Caption, apply_edits
from crosslens.perturbations.caption import Draws
from crosslens.perturbations.text.surface import slot_kinds
from tests.language.pipelines import needs_the_small_pipeline
from tests.tables import each_row

UNTAGGED = ("shuffle_all_words", "shuffle_within_trigrams", "shuffle_trigrams")
TAGGED = ("shuffle_nouns_and_adj", "shuffle_allbut_nouns_and_adj")


def tagged(words: Sequence[str], tags: Sequence[str]) -> Caption:
    """A caption whose every word is a token with this tag."""
    count = len(words)
    parse = Parse(words, words, ["X"] * count, tags, ["dep"] * count, [0] * count)
    return Caption(" ".join(words), parse=parse)


def shuffled(name: str, caption: Caption, seed: int = 0) -> str | None:
    try:
        edits = PERTURBATIONS[name].value(caption, Draws(seed, name, caption.id))
    except CannotApply:
        return None
    return apply_edits(caption.text, edits)


def folded(text: str) -> list[str]:
    return [word.text.casefold() for word in Caption(text).words]


# All orders, the slow way


def all_words(words: list[str]) -> set[tuple[str, ...]]:
    return set(permutations(words)) - {tuple(words)}


def within_trigrams(words: list[str]) -> set[tuple[str, ...]]:
    """Each three in another order where it has one."""
    choices = []
    for first in range(0, len(words), 3):
        three = words[first : first + 3]
        choices.append(all_words(three) or {tuple(three)})
    orders_within = {tuple(word for part in parts for word in part) for parts in product(*choices)}
    return orders_within - {tuple(words)}


def trigrams(words: list[str]) -> set[tuple[str, ...]]:
    threes = [tuple(words[first : first + 3]) for first in range(0, len(words), 3)]
    return {tuple(word for three in order for word in three) for order in permutations(threes)} - {tuple(words)}


ORACLES = {"shuffle_all_words": all_words, "shuffle_within_trigrams": within_trigrams, "shuffle_trigrams": trigrams}
SHORT = [
    "",
    "dog",
    "a dog",
    "a a",
    "a dog a",
    "a dog and a",
    "a b c d",
    "a a a b",
    "a b c a b c",
    "a b a b a",
    "x y z x y z x",
]


@each_row("text", SHORT)
@each_row("name", UNTAGGED)
def test_every_other_order_comes_up_and_no_more(name: str, text: str) -> None:
    expected = {" ".join(words) for words in ORACLES[name](text.split())}
    draws = 40 * len(expected) + 20
    counts = Counter(shuffled(name, Caption(text), seed) for seed in range(draws))
    assert set(counts) == (expected or {None})


@pytest.mark.parametrize("text", ["a b c", "a dog and a"])
def test_orders_are_equally_likely(text: str) -> None:
    expected = ORACLES["shuffle_all_words"](text.split())
    counts = Counter(shuffled("shuffle_all_words", Caption(text), seed) for seed in range(200 * len(expected)))
    assert len(counts) == len(expected)
    assert all(140 < count < 260 for count in counts.values())


TAGS = st.sampled_from(["NN", "NNS", "NNP", "JJ", "JJR", "DT", "VBZ", "IN"])
WORDS = st.sampled_from(["a", "b", "c", "the", "The", "dog", "DOG", "John", "red", "I", "SUV"])
PAIRS = st.lists(st.tuples(WORDS, TAGS), max_size=7)


@given(PAIRS, st.integers(0, 50))
def test_nouns_stay_among_nouns_and_adjectives_among_adjectives(pairs: list[tuple[str, str]], seed: int) -> None:
    words, tags = [word for word, _ in pairs], [tag for _, tag in pairs]
    shuffled_text = shuffled("shuffle_nouns_and_adj", tagged(words, tags), seed)
    kinds = [tag[:2] if tag[:2] in ("NN", "JJ") else "" for tag in tags]
    before = [word.casefold() for word in words]
    movable = False
    after = before if shuffled_text is None else folded(shuffled_text)
    for kind in ("NN", "JJ"):
        old, new = (
            [word for word, kind_of_word in zip(side, kinds, strict=True) if kind_of_word == kind]
            for side in (before, after)
        )
        assert sorted(old) == sorted(new)
        assert (old != new) == (len(set(old)) > 1)
        movable = movable or len(set(old)) > 1
    assert [word for word, kind in zip(after, kinds, strict=True) if not kind] == [
        word for word, kind in zip(before, kinds, strict=True) if not kind
    ]
    assert (shuffled_text is not None) == movable


@given(PAIRS, st.integers(0, 50))
def test_all_but_nouns_and_adjectives(pairs: list[tuple[str, str]], seed: int) -> None:
    words, tags = [word for word, _ in pairs], [tag for _, tag in pairs]
    shuffled_text = shuffled("shuffle_allbut_nouns_and_adj", tagged(words, tags), seed)
    before = [word.casefold() for word in words]
    after = before if shuffled_text is None else folded(shuffled_text)
    fixed = [tag[:2] in ("NN", "JJ") for tag in tags]
    assert all(old == new for old, new, stays in zip(before, after, fixed, strict=True) if stays)
    assert sorted(before) == sorted(after)
    assert (after != before) == (len({word for word, stays in zip(before, fixed, strict=True) if not stays}) > 1)


TOYS = "a/DT red/JJ dog/NN and/CC a/DT big/JJ cat/NN"


def test_every_order_of_nouns_and_adjectives_comes_up() -> None:
    caption = tagged(*zip(*(pair.split("/") for pair in TOYS.split()), strict=True))
    assert {shuffled(TAGGED[0], caption, seed) for seed in range(30)} == {"a big cat and a red dog"}
    caption = tagged(["a", "dog", "and", "cat", "and", "cow"], ["DT", "NN", "CC", "NN", "CC", "NN"])
    orders = set(permutations(["dog", "cat", "cow"])) - {("dog", "cat", "cow")}
    assert {shuffled(TAGGED[0], caption, seed) for seed in range(200)} == {
        f"a {x} and {y} and {z}" for x, y, z in orders
    }


@pytest.mark.parametrize("name", UNTAGGED)
@given(text=st.text(max_size=40), seed=st.integers(0, 20))
def test_words_are_kept_and_everything_between_them(name: str, text: str, seed: int) -> None:
    shuffled_text = shuffled(name, Caption(text), seed)
    if shuffled_text is not None:
        assert sorted(folded(shuffled_text)) == sorted(folded(text))
        assert folded(shuffled_text) != folded(text)
        assert between(shuffled_text) == between(text)


def between(text: str) -> list[str]:
    """What stands before, between and behind the words."""
    parts, place = [], 0
    for word in Caption(text).words:
        parts.append(text[place : word.start])
        place = word.end
    return [*parts, text[place:]]


# Capitals


def orders(name: str, text: str) -> set[str]:
    return {order for seed in range(400) if (order := shuffled(name, Caption(text), seed)) is not None}


def test_the_capital_stays_at_the_start() -> None:
    assert orders("shuffle_all_words", "The dog runs") == {
        "The runs dog",
        "Dog the runs",
        "Dog runs the",
        "Runs the dog",
        "Runs dog the",
    }
    assert orders("shuffle_all_words", "the SUV") == {"SUV the"}
    assert orders("shuffle_all_words", "SUV parks") == {"Parks SUV"}
    assert orders("shuffle_all_words", "I run") == {"Run I"}
    assert orders("shuffle_all_words", "I'm here") == {"Here I'm"}
    assert orders("shuffle_all_words", "One iPhone") == {"iPhone one"}
    assert orders("shuffle_all_words", "A DOG") == {"DOG A"}
    assert orders("shuffle_all_words", "“Stop”, he") == {"“He”, stop"}


def test_every_sentence_has_its_start() -> None:
    for text in orders("shuffle_all_words", "The dog runs. A man sits!"):
        first, second = text.split(". ")
        assert first[0].isupper()
        assert second[0].isupper()
        assert sum(letter.isupper() for letter in text) == 2
    assert orders("shuffle_trigrams", "The dog runs. A man sits!") == {"A man sits. The dog runs!"}
    # An abbreviation is no end of a sentence: the name after it did not get its capital from the place.
    assert all("Smith" in text for text in orders("shuffle_all_words", "we met Mr. Smith"))


def test_a_tagged_name_keeps_its_capital() -> None:
    caption = tagged(["John", "and", "dogs"], ["NNP", "CC", "NNS"])
    assert shuffled("shuffle_nouns_and_adj", caption) == "Dogs and John"
    caption = tagged(["Men", "and", "dogs"], ["NNS", "CC", "NNS"])
    assert shuffled("shuffle_nouns_and_adj", caption) == "Dogs and men"


def test_letters_without_the_other_case_stay() -> None:
    for text in ("The ıx", "Die ßx", "Le ŉx", "İx da"):
        for order in orders("shuffle_all_words", text):
            assert sorted(folded(order)) == sorted(folded(text))


# What the parser cuts and a reader does not


@needs_the_small_pipeline
def test_words_of_several_tokens_are_what_their_head_is() -> None:
    text = "The man's T-shirt isn't red, it's a well-worn black-and-white one."
    from crosslens.language import parse_texts

    caption = Caption(text, parse=parse_texts([text], cache=False)[0])
    kinds = dict(zip([word.text for word in caption.words], slot_kinds(caption), strict=True))
    assert kinds["man's"] == kinds["T-shirt"] == "noun"
    assert kinds["red"] == kinds["black-and-white"] == "adjective"
    assert kinds["isn't"] == kinds["it's"] == "other"


@needs_the_small_pipeline
def test_pronouns_that_are_tagged_as_nouns_stay() -> None:
    texts = ["Nobody has an umbrella.", "Someone left a bag on the bench."]
    for result in cl.perturb("shuffle_nouns_and_adj", texts) + cl.perturb("shuffle_allbut_nouns_and_adj", texts):
        assert result.text.split()[0] == result.original.split()[0]


@needs_the_small_pipeline
def test_on_real_tags() -> None:
    (result,) = cl.perturb("shuffle_nouns_and_adj", ["A red ball lies beside a small dog."])
    assert result.text == "A small dog lies beside a red ball."


@given(st.lists(st.integers(0, 12), min_size=0, max_size=10), st.text(alphabet="ab -'.", max_size=12))
def test_every_word_has_one_tag_however_tokens_are_cut(cuts: list[int], text: str) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut <= len(text))})
    tokens = [part for first, last in pairwise(places) for part in text[first:last].split()]
    count = len(tokens)
    parse = Parse(tokens, tokens, ["X"] * count, ["NN"] * count, ["dep"] * count, [0] * count)
    assert slot_kinds(Caption(text, parse=parse)) == ["noun"] * len(Caption(text).words)


@each_row("name", [*UNTAGGED, *TAGGED])
@each_row("seed", range(5))
def test_an_ending_that_a_tokeniser_cut_off_stays_with_its_word(name: str, seed: int) -> None:
    words = ["the", "man", "'s", "hat", "is", "n't", "on", "a", "big", "dog", "'s", "head"]
    tags = ["DT", "NN", "POS", "NN", "VBZ", "RB", "IN", "DT", "JJ", "NN", "POS", "NN"]
    text = shuffled(name, tagged(words, tags), seed)
    assert text is not None
    for whole in ("man 's", "is n't", "dog 's"):
        assert whole in text
    assert sorted(text.split()) == sorted(words)
