"""The rule-based generator: what must hold for every picture."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from crosslens.build import CONFUSABLE, DESCRIBE, SHARPER, VAGUER, ObjectAnnotation, Request, load_generator
from crosslens.build.generators.contents import ImageContents, noun, plural
from crosslens.build.generators.transfer import fits

RULES = load_generator("rules")
NAMES = (
    "dog", "cat", "person", "bus", "orange", "sheep", "knife", "scissors", "wine glass", "umbrella", "elephant",
    "mouse",
)  # fmt: skip
COLOURS = (None, "red", "orange", "blue")
boxes = st.none() | st.tuples(*[st.floats(0, 0.7)] * 2, *[st.floats(0.05, 0.3)] * 2)
annotations = st.builds(
    ObjectAnnotation, st.sampled_from(NAMES), st.sampled_from((1, 1, 1, 2, None)), st.sampled_from(COLOURS), box=boxes
)
pictures = st.lists(annotations, max_size=6).map(tuple)
templates = st.sampled_from(
    (
        "A {} and a {} on a street.",
        "Two {}s next to a small {}, with a tree behind them.",
        "There is a {} near some {}s.",
        "some {}s and one red {}",
    )
)
texts = st.lists(
    st.builds(
        lambda text, name, second_name: text.format(name, second_name),
        templates,
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    max_size=3,
).map(tuple)
requests = st.builds(
    Request, st.just("7"), st.none(), st.just(""), texts, st.sampled_from((SHARPER, VAGUER, DESCRIBE, CONFUSABLE)),
    st.integers(1, 4), pictures, texts, pictures, st.integers(0, 2), st.integers(0, 3),
)  # fmt: skip


def words_of(name: str) -> set[str]:
    return {form for word, _ in noun(name).forms() for form in (word, plural(word))}


@given(requests)
def test_answers_are_new_bounded_and_repeatable(request: Request) -> None:
    answer = RULES.generate([request])[0]
    assert len(answer) <= request.wanted
    assert len(set(answer)) == len(answer)
    assert not set(answer) & {*request.texts, *request.rivals}
    assert all(text == text.strip() and "  " not in text and text[0].isupper() for text in answer)
    assert load_generator("rules").generate([request, request]) == [answer, answer]


@given(requests)
def test_only_annotated_things_are_added(request: Request) -> None:
    """No answer names anything that is neither annotated nor, but for confusables, in the texts before."""
    before = "" if request.purpose in (DESCRIBE, CONFUSABLE) else " ".join(request.texts).lower()
    present = {annotation.name for annotation in request.objects}
    # Words shared with something present ("wine glass" and "glass") say nothing about what is absent.
    shared = {word for name in present for word in words_of(name)}
    for text in RULES.generate([request])[0]:
        for absent in set(NAMES) - present:
            for word in words_of(absent) - shared:
                if re.search(rf"\b{re.escape(word)}\b", text.lower()) and not colour_only(word, text):
                    assert word in before, (word, text)


def colour_only(word: str, text: str) -> bool:
    """Whether "orange" stands there as a colour: before another word, not as the last one of its phrase."""
    return word == "orange" and all(
        re.match(r" (?!and\b|on\b|next\b|near\b|in\b|to\b|that\b)\w", text[match.end() :])
        or text[: match.start()].endswith("in ")
        for match in re.finditer("orange", text)
    )


@given(pictures, pictures, st.integers(0, 2))
def test_articles_and_numbers_agree(
    objects: tuple[ObjectAnnotation, ...], original_objects: tuple[ObjectAnnotation, ...], attempt: int
) -> None:
    described = RULES.generate([Request("1", None, "", (), DESCRIBE, 8, objects, (), attempt=attempt)])[0]
    vaguer = RULES.generate([Request("1", None, "", described, VAGUER, 8, objects, ())])[0] if described else ()
    changed = (
        RULES.generate([Request("1", None, "", described, CONFUSABLE, 8, original_objects, (), objects)])[0]
        if described
        else ()
    )
    for text in (*described, *vaguer, *changed):
        for article, word in re.findall(r"\b([Aa]n?) ([\w-]+)", text):
            assert article.lower() == ("an" if word[0] in "aeiou" else "a"), text
        assert not re.search(r"\b(?:one|an?) (?:dogs|cats|people|buses|knives|mice)\b", text), text
        assert not re.search(r"\b(?:two|three|four|five) (?:dog|cat|person|bus|knife|mouse)\b", text), text


@given(pictures, pictures)
def test_a_retold_text_fits_its_new_picture_only(
    objects: tuple[ObjectAnnotation, ...], new_objects: tuple[ObjectAnnotation, ...]
) -> None:
    described = RULES.generate([Request("1", None, "", (), DESCRIBE, 8, objects, ())])[0]
    before, after = ImageContents.of(objects), ImageContents.of(new_objects)
    for text in RULES.generate([Request("1", None, "", described, CONFUSABLE, 8, new_objects, (), objects)])[0]:
        assert fits(text, after)
        assert not fits(text, before)
