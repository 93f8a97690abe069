"""Probes: edits contradict their captions; what a model does not read is found where planted, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.analyze import Probes, Subject, probe_captions
from crosslens.analyze.probes.edits import FACTS
from crosslens.analyze.probes.limits import with_typos
from crosslens.analyze.probes.orders import swaps
from crosslens.analyze.probes.pairs import LEAST_CAPTIONS
from crosslens.core import FINDING_KINDS, EvidenceList, Folded, Observation, PairedBars
from crosslens.language import Words
from crosslens.storage import Array
from crosslens.synth import generate
from crosslens.values import Dataset, Embeddings

from ..tables import each_row

WIDTH = 192
TASKS = ("colour", "count", "location", "figure", "action", "ocr")
Encode = Callable[[Sequence[str]], Array]


@lru_cache(maxsize=1 << 16)
def direction(feature: str) -> Array:
    seed = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(WIDTH).astype(np.float32) / np.float32(WIDTH**0.5)


def words_and_pairs(texts: Sequence[str], *, pairs: float = 1.0, most: int | None = None, fading: float = 1.0) -> Array:
    """A model that reads words, and with ``pairs`` their order; the first ``most``; later words less and less."""
    vectors = [vector(" ".join(text.lower().split()[:most]), pairs, fading) for text in texts]
    return np.array(vectors, np.float32).reshape(len(texts), WIDTH)


@lru_cache(maxsize=1 << 16)
def vector(text: str, pairs: float, fading: float) -> Array:
    words = re.findall(r"\w+|[^\w\s]", text)
    features = words if fading < 1 else sorted(words)
    parts = [np.float32(fading**place) * direction(word) for place, word in enumerate(features)]
    if pairs:
        parts += [np.float32(pairs) * direction(f"{before} {after}") for before, after in pairwise(["^", *words, "$"])]
    return np.sum([np.zeros(WIDTH, np.float32), *parts], axis=0, dtype=np.float32)


def bag_of_words(texts: Sequence[str]) -> Array:
    return words_and_pairs(texts, pairs=0.0)


def rounded(encode: Encode, size: float) -> Encode:
    """The same model, rounding otherwise in every batch."""
    calls = np.random.default_rng(5)

    def encoded(texts: Sequence[str]) -> Array:
        vectors = encode(texts)
        return np.asarray(vectors + size * calls.standard_normal(vectors.shape), np.float32)

    return encoded


@lru_cache(maxsize=4)
def drawn(version: str = "v0", images: int = 240, tasks: tuple[str, ...] = TASKS) -> Dataset:
    scenes = list(generate(images, tasks, seed=5, version=version))
    rows = [(f"{scene.number}", caption.text) for scene in scenes for caption in scene.captions]
    return dataset(rows)


def dataset(rows: Sequence[tuple[str, str]]) -> Dataset:
    images = pl.DataFrame({"image": list(dict.fromkeys(image for image, _ in rows))})
    captions = {"caption": [f"c{row}" for row in range(len(rows))], "image": [image for image, _ in rows]}
    return Dataset("captions", images, pl.DataFrame({**captions, "text": [text for _, text in rows]}))


def mirror(dataset: Dataset, encode: Encode, *, noise: float = 0.2, score: str = "cosine") -> Subject:
    """Images whose vectors are those of their captions, and noise: what the model reads is in them."""
    captions = encode(dataset.texts)
    images = np.zeros((len(dataset.image_ids), captions.shape[1]), np.float32)
    np.add.at(images, dataset.caption_image, captions)
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    stray = np.random.default_rng(1).standard_normal(images.shape)
    images += (noise * stray / np.linalg.norm(stray, axis=1, keepdims=True)).astype(np.float32)
    return Subject.of(dataset, images, captions, score=score, encode=encode)


def probed(subject: Subject, most: int = 100) -> Probes:
    """A hundred captions of each kind tell as much as four hundred where nothing, or everything, is read."""
    return probe_captions(subject, most=most)


def observations(probes: Probes) -> dict[str, Observation]:
    """What would be concluded, typing errors aside: they cost every model something that has no spelling checker."""
    return {
        observation.kind: observation
        for observation in probes.findings()
        if observation.bounded or (observation.p is not None and observation.p < 0.001 and observation.kind != "typos")
    }


@lru_cache(maxsize=1)
def reader() -> Subject:
    return mirror(drawn(), words_and_pairs)


def test_what_goes_unnoticed_is_listed_with_its_texts() -> None:
    probes = probed(mirror(drawn(), bag_of_words))
    (section,) = probes.sections()
    (folded,) = (part for part in section.parts if isinstance(part, Folded))
    (chart,) = folded.parts
    assert isinstance(chart, PairedBars)
    results = [result for result in probes.probes if result.n]
    assert [row.counts for row in chart.rows] == [
        (result.n - len(result.evidence), len(result.evidence)) for result in results
    ]
    order, result = next(
        (row, result) for row, result in zip(chart.rows, results, strict=True) if result.name == "order"
    )
    assert order.counts[0] < order.counts[1], "words in another order are the same to it"
    texts = dict(zip(drawn().caption_ids, drawn().texts, strict=True))
    assert result.unnoticed
    for false in result.unnoticed:
        assert texts[false.query] == false.text != false.edited
        assert sorted(re.findall(r"\w+", false.text.lower())) == sorted(re.findall(r"\w+", false.edited.lower()))
    (listed,) = (part for part in order.details if isinstance(part, EvidenceList))
    assert [query for query, _ in listed.entries] == [false.query for false in result.unnoticed]
    targets = [part.target for row in chart.rows for part in row.details if isinstance(part, EvidenceList)]
    assert len(set(targets)) == len(targets)


def test_a_model_that_reads_is_accused_of_nothing() -> None:
    probes = probed(reader())
    assert observations(probes) == {}
    looked_at = {observation.kind for observation in probes.findings()}
    assert looked_at >= {"colour", "count", "position", "order", "action", "text", "truncation", "typos"}
    assert all(result.noticed.mean > 0.75 for result in probes.probes if result.n >= LEAST_CAPTIONS)
    assert probes.as_dict()["control"]["mean"] > 0.95
    assert "another image's caption" in str(probes)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "kind", ["colour", "order", *(pytest.param(kind, marks=SLOW) for kind in ("count", "position", "action", "text"))]
)
def test_what_is_not_read_is_found_and_nothing_else(kind: str) -> None:
    subject = reader() if kind != "action" else mirror(drawn("v0", 150, ("action", "colour")), words_and_pairs)
    planted = FINDING_KINDS[kind].value(subject, 1.0, np.random.default_rng(0))
    assert planted.ids
    observed = observations(probed(planted.subject))
    assert set(observed) == {kind}
    assert "does not read" in observed[kind].text
    half = FINDING_KINDS[kind].value(subject, 0.5, np.random.default_rng(0))
    assert observations(probed(half.subject)) == {}, "half of the facts are read: nothing may be said"


@pytest.mark.parametrize("kind", ["colour", pytest.param("position", marks=SLOW)])
def test_the_order_of_words_that_are_not_read_is_not_judged(kind: str) -> None:
    """Who sees no colours cannot notice that two are exchanged: that says nothing about order."""
    scenes = drawn("v0", 120, ("colour", "figure") if kind == "colour" else ("location",))
    planted = FINDING_KINDS[kind].value(mirror(scenes, words_and_pairs), 1.0, np.random.default_rng(0))
    assert set(observations(probed(planted.subject))) == {kind}
    assert set(observations(probed(mirror(scenes, bag_of_words)))) == {"order"}, "of words that are read it is"


@pytest.mark.parametrize("strength", [0.1, 0.9, pytest.param(0.3, marks=SLOW)])
def test_a_tail_that_is_cut_off_is_found_with_its_length(strength: float) -> None:
    planted = FINDING_KINDS["truncation"].value(reader(), strength, np.random.default_rng(0))
    probes = probed(planted.subject)
    counts = np.array([len(text.split()) for text in drawn().texts])
    most = min(
        len(text.split()) for text, name in zip(drawn().texts, drawn().caption_ids, strict=True) if name in planted.ids
    )
    assert probes.truncation is not None
    assert probes.truncation.most is not None
    assert counts[counts <= probes.truncation.most].max() < most
    assert set(probes.truncation.cut) == planted.ids
    assert observations(probes)["truncation"].effect.value == pytest.approx(len(planted.ids) / len(counts))
    assert set(observations(probes)) == {"truncation"}, "what is cut off is not unread"


@SLOW
def test_a_weak_tail_is_not_one_that_is_cut_off() -> None:
    for fading in (0.95, 0.8):
        subject = mirror(drawn(), lambda texts, fading=fading: words_and_pairs(texts, pairs=0.0, fading=fading))  # type: ignore[misc]
        probes = probed(subject)
        assert probes.truncation is not None
        assert probes.truncation.most is None


@SLOW
def test_a_model_that_knows_few_words_is_not_one_that_reads_few() -> None:
    """One that knows colours, sides and things only: other last words often change nothing, at no fixed place."""
    vocabulary = {word for fact in FACTS for text in drawn().texts for word in re.findall(fact.pattern, text.lower())}

    def encode(texts: Sequence[str]) -> Array:
        return bag_of_words(
            [" ".join(w for w in re.findall(r"\w+", text.lower()) if w in vocabulary) or "a" for text in texts]
        )

    probes = probed(mirror(drawn(), encode))
    assert probes.truncation is not None
    assert probes.truncation.most is None


@SLOW
@each_row("size", [0.0, 1e-6, 2e-4])
def test_rounding_that_differs_from_batch_to_batch_changes_no_sentence(size: float) -> None:
    assert observations(probed(mirror(drawn(), rounded(words_and_pairs, size)))) == {}
    assert set(observations(probed(mirror(drawn(), rounded(bag_of_words, size))))) == {"order"}
    short = rounded(lambda texts: words_and_pairs(texts, most=16), size)
    assert "truncation" in observations(probed(mirror(drawn(), short)))


def test_an_encoder_that_gives_other_vectors_each_time_is_not_judged() -> None:
    probes = probed(mirror(drawn(), rounded(bag_of_words, 0.3)))
    assert not probes.steady
    assert observations(probes) == {}


@pytest.mark.parametrize("version", ["v0", pytest.param("v1", marks=SLOW)])
def test_a_bag_of_words_does_not_read_order(version: str) -> None:
    observed = observations(probed(mirror(drawn(version, 100), bag_of_words)))
    assert set(observed) == {"order"}
    assert observed["order"].weight > 0 or version == "v0", "in v1 every image has a twin"
    assert observed["order"].effect.value == 0.5


def test_nothing_is_said_of_a_model_that_knows_nothing() -> None:
    """Vectors in a wrong order, random ones, blank ones: that a fact goes unnoticed says nothing about the fact."""
    subject = reader()
    assert subject.images is not None
    vectors = np.asarray(subject.images.vectors)
    stray = np.random.default_rng(3).standard_normal(vectors.shape).astype(np.float32)
    part = vectors.copy()
    part[-len(part) // 3 :] = np.roll(part[-len(part) // 3 :], 1, axis=0)
    for images in (np.roll(vectors, 1, axis=0), stray, np.ones_like(vectors), part):
        wrong = replace(subject, images=Embeddings(subject.images.ids, images)).ranked()
        assert observations(probed(wrong)) == {}


def test_typing_errors_are_counted_where_they_cost() -> None:
    planted = FINDING_KINDS["typos"].value(reader(), 2.0, np.random.default_rng(0))
    (typos,) = (observation for observation in probed(planted.subject).findings() if observation.kind == "typos")
    assert typos.p is not None
    assert typos.p < 0.001
    assert typos.effect.value > 0.2, "a fraction, as in every other finding in points"
    assert f"{100 * typos.effect.value:.1f} [" in typos.text
    assert typos.evidence


def test_typing_errors_make_no_other_word_and_change_no_number_or_name() -> None:
    texts = ["It prints 54.", "A cat.", 'A sign that says "STOP".', "The number 5 bus, in Rome.", "A green lighthouse."]
    subject = replace(reader(), dataset=dataset([(f"{row}", text) for row, text in enumerate(texts)]))
    for seed in range(12):
        for _, before, after in with_typos(subject, range(len(texts)), seed):
            changed = [pair for pair in zip(before.split(), after.split(), strict=True) if pair[0] != pair[1]]
            assert len(changed) == 1
            old, new = (word.strip(".,") for word in changed[0])
            assert old.islower()
            assert old.isalpha()
            assert new not in ("cut", "car", "bat", "at", "print", "signs", "sing", "bug", "us")


def test_typing_errors_cost_a_model_nothing_that_corrects_them() -> None:
    vocabulary = {word for text in drawn().texts for word in Words(text).lower}
    corrected: dict[str, str] = {}

    def correct(word: str) -> str:
        if word not in vocabulary and word not in corrected:
            corrected[word] = next(iter(get_close_matches(word, vocabulary, 1, 0.5)), word)
        return corrected.get(word, word)

    def spelled(texts: Sequence[str]) -> Array:
        return words_and_pairs([" ".join(map(correct, Words(text).lower)) for text in texts])

    (typos,) = (
        observation for observation in probed(mirror(drawn(), spelled)).findings() if observation.kind == "typos"
    )
    assert typos.p == 1
    assert typos.effect.value < 0.02


@SLOW
def test_lengths_decide_under_the_dot_product_and_change_no_sentence() -> None:
    assert observations(probed(mirror(drawn(), words_and_pairs, score="dot"))) == {}
    assert set(observations(probed(mirror(drawn(), bag_of_words, score="dot")))) == {"order"}


def test_without_an_encoder_of_texts_nothing_is_probed() -> None:
    probes = probed(replace(reader(), encode=None))
    assert not list(probes.findings())
    assert "takes the vectors of the images, and the model" in str(probes)
    for kind in ("colour", "order", "truncation", "typos"):
        planted = FINDING_KINDS[kind].value(replace(reader(), encode=None), 1.0, np.random.default_rng(0))
        assert not planted.ids


def test_the_same_seed_gives_the_same_result() -> None:
    first, second = (probed(reader(), most=60).as_dict() for _ in range(2))
    assert first == second
    assert all(row["n"] <= 60 for row in first["probes"])


EDITS = [
    ("colour", "A red car.", True), ("colour", "A man peels an orange.", False),
    ("colour", "A black man smiles.", False),
    ("colour", "A black and white photo of a cat.", False), ("colour", "A sign with the word \"red\".", False),
    ("colour", "A glass of orange juice.", False), ("colour", "Mr Brown waits.", False),
    ("count", "Two dogs run.", True), ("count", "A two year old child.", False),
    ("count", "One of the two dogs.", False),
    ("count", "Two of the dogs.", False), ("count", "A two-story house.", False), ("count", "Number 5 runs.", False),
    ("position", "A cat on the left side of the picture.", True), ("position", "He holds it in his left hand.", False),
    ("position", "Someone left the room.", False), ("position", "A fish under water.", False),
    ("position", "A dog behind a fence.", True), ("position", "A cat is on top of a car.", True),
    ("position", "He looks over his shoulder.", False), ("position", "A house under a blue sky.", False),
    ("action", "A dog is running.", True), ("action", "A running shoe.", False),
    ("action", "People in the stands.", False),
    ("size", "A large dog.", True), ("size", "A little boy.", False), ("size", "A large group of men.", False),
    ("text", "A sign that says \"STOP\".", True), ("text", "A sign.", False),
]  # fmt: skip


@each_row("kind, caption, changes", EDITS)
def test_a_word_is_replaced_only_where_it_states_the_fact(kind: str, caption: str, changes: bool) -> None:
    from collections import Counter

    (fact,) = (fact for fact in FACTS if fact.name == kind)
    words = Words(caption)
    edited = fact.edited(words, frozenset(words.lower), Counter({"EXIT": 2}), np.random.default_rng(0))
    assert (edited is not None) is changes
    if edited is not None:
        assert edited[0] != caption
        assert fact.without(edited[0]) == fact.without(caption), "a model that does not read it sees no difference"


SWAPS = [
    ("A red car and a blue bus.", "A blue car and a red bus."), ("A dog chasing a cat.", "A cat chasing a dog."),
    ("A cup on top of a table.", "A table on top of a cup."),
    ("A cat to the left of a dog.", "A dog to the left of a cat."),
    ("Two dogs and three cats.", "three dogs and Two cats."),
    ("A man and a woman.", None), ("A cat next to a dog.", None), ("A dog near a lake.", None),
    ("A black dog and a white dog.", None), ("A black and white dog.", None), ("A dog beside a man with a hat.", None),
]  # fmt: skip


@each_row("caption, expected", SWAPS)
def test_words_are_exchanged_only_where_order_decides(caption: str, expected: str | None) -> None:
    swapped_texts = [swap.text.lower() for swap in swaps(Words(caption))]
    assert swapped_texts == ([] if expected is None else [expected.lower()])


def test_exchanged_words_are_the_same_words() -> None:
    for text in drawn().texts:
        for changed, *_ in swaps(Words(text)):
            assert changed != text
            assert sorted(Words(changed).lower) == sorted(Words(text).lower)


@SLOW
@pytest.mark.parametrize(("encode", "expected"), [(words_and_pairs, set()), (bag_of_words, {"order"})])
def test_real_captions(encode: Encode, expected: set[str], shared_data: Path) -> None:
    image_files = (shared_data / "flickr8k/Flickr_8k.testImages.txt").read_text().split()[:250]
    lines = (shared_data / "flickr8k/Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
    rows = [(name.partition("#")[0], text) for name, text in (line.split("\t") for line in lines)]
    subject = mirror(dataset([row for row in rows if row[0] in set(image_files)]), encode)
    assert set(observations(probed(subject))) == expected
