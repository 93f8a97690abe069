"""Pictures that differ in one fact: pairs are found by columns or by words, and what the model does with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crosslens.analyze import Subject, changed_words, look_at_twins
from crosslens.analyze.near_twins import find_twins, named_images, plant_equal_twins, quoted_change
from crosslens.core import EvidenceList, PairedBars, QueryCards, restored_part, stored_part
from crosslens.values import Dataset
from tests.tables import each_row

COLOURS = ("red", "blue", "green", "white", "black")
ANIMALS = ("dog", "cat", "horse", "cow", "sheep", "goat", "bird", "fox", "wolf", "bear", "duck", "hen")


def dataset(pairs: int = 40, *, columns: bool = True) -> Dataset:
    """Half of the pairs differ in a side, half in a colour; after the originals come their twins."""
    captions, twins = {}, {}
    for number in range(pairs):
        animal, second_animal = ANIMALS[number % 12], ANIMALS[(number + 1 + number // 12) % 12]
        if number % 2:
            first, second = (
                f"a {animal} left of a {second_animal} here",
                f"a {animal} right of a {second_animal} here",
            )
        else:
            colour, next_colour = COLOURS[number % 5], COLOURS[(number + 1) % 5]
            first, second = (
                f"a {colour} {animal} and a {second_animal} there",
                f"a {next_colour} {animal} and a {second_animal} there",
            )
        captions[f"o{number}"], twins[f"t{number}"] = [first, f"{first} now"], [second, f"{second} now"]
    columns_of_twins = {
        "original": [None] * pairs + [f"o{number}" for number in range(pairs)],
        "changed": [None] * pairs + ["relation" if number % 2 else "colour" for number in range(pairs)],
    }
    return Dataset.of(captions | twins, images=columns_of_twins if columns else None)


def subject(data: Dataset, *, reads_sides: bool = True, noise: float = 0.1, seed: int = 0) -> Subject:
    """A twin is near its original; a model that does not read sides has the same vector for both captions."""
    stream = np.random.default_rng(seed)
    pairs = len(data.image_ids) // 2
    originals = stream.standard_normal((pairs, 32))
    pictures = np.concatenate([originals, originals + 0.5 * stream.standard_normal((pairs, 32))])
    texts = pictures[data.caption_image].copy()
    for caption, text in enumerate(data.texts):
        if not reads_sides and (" left " in text or " right " in text):
            texts[caption] = pictures[data.caption_image[caption] % pairs]
    texts += noise * stream.standard_normal(texts.shape)
    return Subject.of(data, pictures.astype(np.float32), texts.astype(np.float32))


@pytest.mark.parametrize("columns", [True, False])
def test_pairs_by_column_and_by_words(columns: bool) -> None:
    twins = find_twins(dataset(columns=columns))
    expected = {(number, number + 40) for number in range(40)}
    assert {pair.images for pair in twins} >= expected if columns else {pair.images for pair in twins} & expected
    facts = {pair.images: pair.fact for pair in twins}
    assert facts[1, 41] == "position"
    assert facts[0, 40] == "colour"


def test_captions_of_other_pictures_are_no_twins() -> None:
    texts = {
        "a": ["a man riding a wave on a board", "a surfer in the sea", "someone enjoys the water today"],
        "b": ["a woman riding a wave on a board", "the blue ocean at noon", "a person with a surfboard"],
        "c": ["a dog in the park", "an animal runs", "a brown dog plays there"],
    }
    assert not find_twins(Dataset.of(texts)), "one of three captions alike says little"
    assert not find_twins(Dataset.of({"a": ["the dog runs in the park"], "b": ["a dog runs in the park"]}))


def test_a_model_that_does_not_read_sides() -> None:
    result = look_at_twins(subject(dataset(), reads_sides=False))
    position, colour = (next(fact for fact in result.facts if fact.fact == name) for name in ("position", "colour"))
    assert position.pairs == colour.pairs == 20
    assert position.own.mean < 0.1
    assert position.same.mean > 0.9
    assert colour.own.mean > 0.95
    bounded_observations = [observation for observation in result.findings() if observation.bounded]
    assert [observation.subject for observation in bounded_observations] == ["position"]
    assert bounded_observations[0].words["n"] == "20"
    assert all(" left " in text or " right " in text for text in _texts(bounded_observations[0].evidence))
    assert "coin flips" in result.text()


def _texts(evidence: object) -> list[str]:
    data = dataset()
    return [data.texts[data.caption_rows[entry["query"]]] for entry in evidence]  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(5))
def test_silent_where_each_caption_gets_its_own(seed: int) -> None:
    clean = subject(dataset(), seed=seed)
    assert not any(observation.bounded for observation in look_at_twins(clean).findings())
    noisy = subject(dataset(), noise=1.0, seed=seed)
    assert not any(observation.bounded for observation in look_at_twins(noisy).findings())


@pytest.mark.parametrize("strength", [0.9, 1.0])
def test_planted_twins_are_found(strength: float) -> None:
    planted = plant_equal_twins(subject(dataset(80)), strength, np.random.default_rng(0))
    bounded_observations = [
        observation for observation in look_at_twins(planted.subject).findings() if observation.bounded
    ]
    assert len(bounded_observations) == 1
    assert {entry["query"] for entry in bounded_observations[0].evidence} <= planted.ids


def test_without_pairs_or_vectors_there_is_nothing() -> None:
    data = Dataset.of({f"i{row}": [f"caption number {row} of many things"] for row in range(20)})
    plain = subject(data)
    assert not look_at_twins(plain).facts
    assert not plant_equal_twins(plain, 1.0, np.random.default_rng(0)).ids
    lists = replace(subject(dataset()), images=None, captions=None)
    assert not look_at_twins(lists).facts


@each_row(
    ("first", "second", "changed"),
    [
        ("A lamp above a dog.", "A lamp below a dog.", ("above", "below")),
        ('It says "milk".', 'It says "egg".', ("milk", "egg")),
        ("the T-E-A sign", "the S-E-A sign", ("T-E-A", "S-E-A")),
        ("69.30 in red, now", "68.31 in red, then", ("69.30 … now", "68.31 … then")),
        ("a red dog", "a Red dog!", ("", "")),
        ("a dog", "a big dog", ("", "big")),
        ("9 - 5 = 4, in red", "9 - 4 = 5, in red", ("5 … 4", "4 … 5")),
        (
            "a man with a racquet on a tennis court",
            "a man with a racquet standing on a court",
            ("tennis", "standing"),
        ),
    ],
)
def test_what_differs_is_quoted(first: str, second: str, changed: tuple[str, str]) -> None:
    assert quoted_change(first, second) == changed
    assert quoted_change(second, first) == changed[::-1]
    spans = changed_words(first, second)
    assert "".join(span[0] for span in spans) == first


def test_bars_count_every_pair_and_open_it() -> None:
    """Both captions of a pair that differs in a side get one picture, those that differ in a colour their own."""
    result = look_at_twins(subject(dataset(), reads_sides=False))
    (section,) = result.sections()
    (bars,) = section.parts
    assert isinstance(bars, PairedBars)
    assert restored_part(stored_part(section)) == section
    rows = {row.name: row for row in bars.rows}
    assert (rows["position"].counts, rows["colour"].counts) == ((0, 40, 0), (40, 0, 0))
    assert sorted(rows["position"].changed) == ["left", "right"]
    assert section.title == "The model cannot tell apart pictures that differ in position"
    for row in bars.rows:
        listed = [len(part.entries) for part in row.details if isinstance(part, EvidenceList)]
        assert listed == [count for count in row.counts if count]
    (cards,) = (part for part in rows["position"].details if isinstance(part, QueryCards))
    assert len({picture.image for card in cards.cards for picture in card.pictures}) == 2 * len(cards.cards)
    first, right = cards.cards[0].pictures
    caption = dataset().captions.row(dataset().caption_rows[cards.cards[0].query], named=True)
    assert (caption["text"], caption["image"]) == (cards.cards[0].asked, right.image)
    assert first.image != right.image
    assert first.lines[0].endswith("gets the same picture.")


def test_a_model_that_reads_is_said_to_tell_twins_apart() -> None:
    (section,) = look_at_twins(subject(dataset())).sections()
    assert section.title.startswith("The model tells near-twins apart: even of those that differ in ")


def test_a_column_names_the_image_that_another_was_made_from() -> None:
    assert named_images(dataset(4)) == {4: 0, 5: 1, 6: 2, 7: 3}
    assert not named_images(dataset(4, columns=False))
    bare = Dataset.of({"a": ["a dog"], "b": []}, images={"original": [None, "a"]})
    assert named_images(bare) == {1: 0}
    assert not find_twins(bare), "a picture without captions is no near-twin"
