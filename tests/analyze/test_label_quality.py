"""Labels: what may be said of them is found where it was planted, and of nothing else; reviews are read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from crosslens.analyze import (
    LabelSettings,
    Subject,
    apply_review,
    assess_label_quality as label_quality,
    look_at_labels,
)
from crosslens.analyze.label_quality.concepts import CaptionNouns, compare_concepts, extract_concepts
from crosslens.analyze.label_quality.contradictions import words_in_order
from crosslens.analyze.label_quality.look import (
    plant_missing_positives,
    plant_same_caption,
    plant_same_image,
    plant_swapped_captions,
    same_captions,
)
from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.pipeline import evaluate
from crosslens.values import Dataset, Ranking

Array = np.ndarray[Any, Any]

THINGS = {
    "dog": ["A dog sleeps on a sofa.", "The puppy lies on the couch.", "A brown dog on a red sofa."],
    "boat": ["A boat sails on the sea.", "The sailboat crosses the ocean.", "A white boat on blue water."],
    "pizza": ["A pizza lies on a plate.", "The pizza has cheese on it.", "A plate with a hot pizza."],
    "horse": ["A horse eats hay in a barn.", "The horse stands in the stable.", "A brown horse with hay."],
    "train": ["A train stops at the station.", "The train has a red engine.", "A long train at a station."],
    "cat": ["A cat looks out of a window.", "The kitten sits at the window.", "A grey cat near a window."],
}
MEANINGS = (("dog", "puppy"), ("man", "boy", "girl", "skier"), ("car",), ("pear",), ("window",))
OF_MEANING = {word: group for group, words in enumerate(MEANINGS) for word in words}


def rankings(scores: Array, dataset: Dataset, depth: int = 10) -> dict[str, Ranking]:
    return dict(evaluate(dataset, scores=scores, metrics=["Hit@1"], resamples=0, depth=depth).rankings)


def good_scores(dataset: Dataset, seed: int) -> Array:
    """A model that knows every caption's own image."""
    scores = np.random.default_rng(seed).random((len(dataset.image_ids), len(dataset.caption_ids))) * 0.5
    scores[dataset.caption_image, np.arange(len(dataset.caption_ids))] += 1
    return scores


def with_texts(dataset: Dataset, changed: dict[int, str]) -> Dataset:
    texts = [changed.get(row, text) for row, text in enumerate(dataset.texts)]
    return replace(dataset, captions=dataset.captions.with_columns(pl.Series("text", texts)))


words = st.lists(st.sampled_from(sorted(OF_MEANING)), unique=True, max_size=4)


@given(words, st.lists(words, max_size=4), words)
def test_agreement_is_that_of_every_pair_of_words(
    query_words: list[str], others: list[list[str]], objects: list[str]
) -> None:
    result = compare_concepts(
        CaptionNouns(tuple(query_words), tuple(query_words)),
        [CaptionNouns(tuple(words), tuple(words)) for words in others],
        objects,
    )
    elsewhere = {OF_MEANING[word] for words in (*others, objects) for word in words}
    missing = [word for word in query_words if OF_MEANING[word] not in elsewhere]
    assert list(result.missing) == missing
    assert result.compared == bool(elsewhere)
    share = (len(query_words) - len(missing)) / len(query_words) if query_words and elsewhere else None
    assert result.share == share
    agreed = {
        group
        for group in range(len(MEANINGS))
        if (times := sum(group in {OF_MEANING[word] for word in words} for words in others)) >= 2
        and times > len(others) / 2
    }
    assert {OF_MEANING[word] for word in result.agreed} == agreed
    assert {OF_MEANING[word] for word in result.silent} == agreed - {OF_MEANING[word] for word in query_words}


def test_a_verb_is_no_object_of_a_caption() -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    caption = "A woman plays tennis while a crowd watches ."
    assert "watch" not in extract_concepts(Dataset.of({"a": [caption]})).nouns[caption].visible


def test_other_nouns_confirm_but_do_not_accuse() -> None:
    mine = CaptionNouns(("pear",), ("pear", "game"))
    assert compare_concepts(mine, [CaptionNouns((), ("game",))]).share == 0.5
    assert compare_concepts(mine, [CaptionNouns((), ("match",))]).share == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.sampled_from(["a", "red", "dog", "runs"]), min_size=1)), max_size=8
    )
)
def test_copies_are_all_captions_with_the_same_words_in_order(rows: list[tuple[int, list[str]]]) -> None:
    captions = {
        str(image): [" ".join(text).title() + " ." for owner, text in rows if owner == image] for image in range(4)
    }
    dataset = Dataset.of(captions)
    texts, owner = [text.lower() for text in dataset.texts], dataset.caption_image.tolist()
    result = same_captions(dataset)
    for row, text in enumerate(texts):
        others = {owner[copy] for copy in range(len(texts)) if owner[copy] != owner[row] and texts[copy] == text}
        assert set(result.get(row, {})) == others


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("A dog runs.", "a  dog runs", True),
        ("“A dog”, runs!", "A dog runs", True),
        ("A dog runs.", "The dog runs.", False),
        ("A dog and a cat.", "A cat and a dog.", False),
        ("It is 5 - 3.", "It is 5 3.", False),
        ("It is -5.", "It is 5.", False),
        ("It is 1.5.", "It is 15.", False),
        ("5 + 3", "5 - 3", False),
        ("a < b", "a > b", False),
    ],
)
def test_articles_order_and_symbols_count_and_punctuation_does_not(first: str, second: str, same: bool) -> None:
    assert (words_in_order(first) == words_in_order(second)) == same


SYLLABLES = ["ba", "ko", "mi", "ru", "te", "lo", "sa", "vi", "na", "du", "pe", "go"]
TEMPLATES = (
    "there is the {0} with {1} where {2} and {3} have been at {4}",
    "what about this : {3} , {1} before {0} , then {2} over at one {4}",
    "in {4} we {0} and {1} could not be without {2} or {3} so far",
    "they have had {2} for {0} on which some {1} is now , {4} {3} too",
)
WORDS_SEEN = [first + second + third for first in SYLLABLES for second in SYLLABLES for third in SYLLABLES[:3]]


def world(images: int = 200, per_image: int = 4, seed: int = 0, noise: float = 0.3) -> Subject:
    """Images of five things at a place, captions that name most of them, and a model that knows them well."""
    random = np.random.default_rng(seed)
    captions, vectors, texts = {}, np.zeros((images, 64)), []
    words = {word: random.normal(size=64) for word in WORDS_SEEN}
    for image in range(images):
        visible_words = [str(word) for word in random.choice(WORDS_SEEN, 5, replace=False)]
        place = str(random.choice(WORDS_SEEN))
        captions_of_image = []
        for number in range(per_image):
            words_of_caption = [str(word) for word in random.permutation(visible_words)[:4]]
            captions_of_image.append(TEMPLATES[number].format(*words_of_caption, place))
            texts.append([*words_of_caption, place])
        captions[f"im{image}"] = captions_of_image
        vectors[image] = sum(words[word] for word in (*visible_words, place))
    encoded = np.array([sum(words[word] for word in words_of_caption) for words_of_caption in texts])
    vectors = vectors + random.normal(size=vectors.shape) * noise
    return Subject.of(Dataset.of(captions), vectors, encoded, seed=seed)


def observations(subject: Subject) -> dict[str, Any]:
    """What is said, with evidence: observations whose p is below 1 %."""
    observed = {item.kind: item for item in look_at_labels(subject).findings()}
    return {kind: item for kind, item in observed.items() if item.p is not None and item.p < 0.01}


def queries(observation: Any) -> set[str]:
    return {entry["query"] for entry in observation.evidence}


@pytest.mark.parametrize("noise", [0.3, pytest.param(3.0, marks=pytest.mark.slow), 6.0])
def test_clean_labels_are_not_accused(noise: float) -> None:
    assert observations(world(noise=noise)) == {}
    assert observations(world(noise=noise, per_image=1)) == {}


@pytest.mark.parametrize(
    ("seed", "strength"),
    [
        (0, 0.03),
        (0, 0.05),
        (1, 0.1),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1, 0.05), (2, 0.05), (0, 0.1), (2, 0.1))),
    ],
)
def test_exchanged_captions_are_found_and_hardly_any_other(seed: int, strength: float) -> None:
    planted = plant_swapped_captions(world(seed=seed), strength, np.random.default_rng(seed))
    observed = observations(planted.subject)
    assert set(observed) == {"swapped-captions"}
    evidence = queries(observed["swapped-captions"])
    assert len(evidence & planted.ids) >= 0.9 * len(evidence)
    assert len(evidence) >= 0.2 * len(planted.ids)
    result = look_at_labels(planted.subject)
    why = f"{len(evidence)} of them can hardly be odd captions of their own"
    assert (why in " ".join(str(result).split())) == result.swaps.many
    moved = result.table.filter(pl.col("proposal") == "move")
    assert moved.height
    assert set(moved["caption"]) <= evidence
    assert set(result.table["proposal"]) <= {"move", "keep"}


def test_odd_captions_are_no_exchanged_ones() -> None:
    """Captions in the words of another image, whose own image is neither near the top nor in the lower half."""
    subject, random = world(), np.random.default_rng(5)
    assert subject.images is not None
    assert subject.captions is not None
    images, captions = (np.array(side.vectors) for side in (subject.images, subject.captions))
    directions = images / np.linalg.norm(images, axis=1, keepdims=True)
    texts, count = list(subject.dataset.texts), len(subject.dataset.image_ids)
    for row in random.permutation(len(texts))[:48].tolist():
        image = int(subject.owner[row])
        ranks = [(float((directions @ images[candidate] > directions[image] @ images[candidate]).mean()), candidate)
                 for candidate in random.permutation(count).tolist()]  # fmt: skip
        stranger = next(candidate for rank, candidate in ranks if 0.15 < rank < 0.35)
        captions[row] = images[stranger]
        words_of_caption = [word for word in texts[4 * stranger].split() if word in WORDS_SEEN]
        texts[row] = TEMPLATES[row % 4].format(*words_of_caption)
    odd = Subject.of(with_texts(subject.dataset, dict(enumerate(texts))), images, captions)
    result = look_at_labels(odd)
    assert len(result.swaps.captions) >= 20
    assert "swapped-captions" not in observations(odd)


@pytest.mark.parametrize("strength", [0.01, 0.1])
def test_copied_captions_are_found(strength: float) -> None:
    planted = plant_same_caption(world(), strength, np.random.default_rng(1))
    observed = observations(planted.subject)
    assert set(observed) == {"same-caption"}
    assert queries(observed["same-caption"]) == planted.ids


@pytest.mark.parametrize("strength", [0.02, 0.1])
def test_what_else_is_planted_exchanges_no_caption(strength: float) -> None:
    for plant in (plant_same_image, plant_missing_positives):
        assert observations(plant(world(), strength, np.random.default_rng(2)).subject) == {}, (
            "no pictures: nothing is equal"
        )


def test_shifted_and_random_vectors_are_no_exchanged_captions() -> None:
    subject = world()
    assert subject.images is not None
    assert subject.captions is not None
    images, captions = np.asarray(subject.images.vectors), np.asarray(subject.captions.vectors)
    shifted = [np.roll(images, 1, axis=0), np.concatenate([images[:140], np.roll(images[140:], 1, axis=0)])]
    for changed in (*shifted, np.random.default_rng(0).normal(size=images.shape)):
        assert observations(Subject.of(subject.dataset, changed, captions)) == {}


def test_only_equal_captions_and_pictures_excuse_a_miss() -> None:
    dataset = Dataset.of(THINGS)
    scores = good_scores(dataset, 3)
    scores[0, 0], scores[5, 0] = 0, 9
    result = label_quality(dataset, {"one": rankings(scores, dataset)}, words=False)
    assert result.runs.select("failures", "excused", "model").row(0) == (1, 0, 1)
    assert result.table.select("caption", "reason", "proposal", "certain").rows() == [("dog#0", "far", "keep", False)]
    copied = with_texts(dataset, {0: dataset.texts[15]})
    result = label_quality(copied, {"one": rankings(scores, copied)}, words=False)
    assert result.runs.select("failures", "same_caption", "excused", "model").row(0) == (1, 1, 1, 0)
    reordered = with_texts(dataset, {0: "Of a window a cat looks out."})
    result = label_quality(reordered, {"one": rankings(scores, reordered)}, words=False)
    assert result.runs["excused"].to_list() == [0]
    assert result.suspects == 0


def test_a_copied_caption_fits_the_image_whose_captions_say_the_same() -> None:
    dataset = with_texts(Dataset.of(THINGS), {0: THINGS["cat"][0]})
    result = label_quality(dataset, words=False)
    assert result.table.select("caption", "reason", "proposal", "suggested_image", "certain").rows() == [
        ("dog#0", "same caption", "also-fits", "cat", True),
        ("cat#0", "same caption", "keep", "dog", False),
    ]
    assert result.left_out() == []
    assert len(result.relevance().items) == len(dataset.texts) + 1
    general = with_texts(Dataset.of(THINGS), dict.fromkeys((0, 3), "It is a fine picture."))
    assert label_quality(general, words=False).table["proposal"].to_list() == ["also-fits"] * 2


def test_captions_copied_from_elsewhere_fit_there_and_the_originals_not_here() -> None:
    clean = world()
    planted = plant_same_caption(clean, 0.03, np.random.default_rng(1)).subject.dataset
    copied = {row for row, (old, new) in enumerate(zip(clean.dataset.texts, planted.texts, strict=True)) if old != new}
    table = label_quality(planted, words=False).table
    proposals = {planted.caption_rows[caption]: proposal for caption, proposal in table["caption", "proposal"].rows()}
    right = [(proposal == "also-fits") == (row in copied) for row, proposal in proposals.items()]
    assert len(right) > 1.9 * len(copied)
    assert np.mean(right) > 0.95


def test_the_keyword_filter_lists_and_proposes_nothing() -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    dataset = with_texts(Dataset.of(THINGS), {0: "A spaceship lands on the moon."})
    result = label_quality(dataset, {"good": rankings(good_scores(dataset, 0), dataset)})
    row = result.table.filter(pl.col("caption") == "dog#0").row(0, named=True)
    assert (row["reason"], row["proposal"], row["certain"]) == ("words", "keep", False)
    assert result.suspects == 0


def test_a_clean_dataset_has_nothing_to_review() -> None:
    dataset = Dataset.of(THINGS)
    result = label_quality(dataset, {"good": rankings(good_scores(dataset, 0), dataset)}, words=False)
    assert len(result) == 0
    assert result.reasons == {}
    assert result.left_out() == []
    assert result.runs["failures"].to_list() == [0]


@pytest.mark.parametrize("name", ["review.csv", "review.jsonl", "review.parquet", "review.csv.gz"])
def test_a_review_is_read_back(tmp_path: Path, name: str) -> None:
    dataset = with_texts(Dataset.of(THINGS), dict.fromkeys((0, 3, 8, 9), "one two"))
    result = label_quality(dataset, words=False)
    verdicts = {"dog#0": "move", "boat#0": "Also fits", "pizza#2": "remove", "horse#0": "keep"}
    suggested = {"dog#0": "boat", "boat#0": "dog"}
    by_caption = pl.col("caption")
    table = result.table.with_columns(
        by_caption.replace_strict(verdicts, default=None, return_dtype=pl.String).alias("verdict"),
        by_caption.replace_strict(suggested, default=None, return_dtype=pl.String).alias("suggested_image"),
    )
    replace(result, table=table).write(tmp_path / name)
    done = apply_review(dataset, tmp_path / name)
    owners = dict(done.dataset.captions.select("caption", "image").iter_rows())
    before = dict(dataset.captions.select("caption", "image").iter_rows())
    assert owners == {caption: image for caption, image in {**before, "dog#0": "boat"}.items() if caption != "pizza#2"}
    pairs = {
        (done.relevance.query_ids[row], done.relevance.item_ids[item])
        for row, item in zip(done.relevance.rows, done.relevance.items, strict=True)
    }
    assert pairs == {(image, caption) for caption, image in owners.items()} | {("dog", "boat#0")}
    assert done.counts["move"] == done.counts["remove"] == done.counts["also-fits"] == 1


def _review(path: Path, *rows: tuple[str, str, str | None, str | None]) -> Path:
    columns = ("verdict", "image", "caption", "suggested_image")
    pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row").write_csv(path)
    return path


def test_images_are_removed_or_made_one(tmp_path: Path) -> None:
    dataset = Dataset.of({"a": ["one", "two"], "b": ["three"], "c": ["four"]})
    done = apply_review(dataset, _review(tmp_path / "r.csv", ("remove", "a", None, "b")))
    assert done.dataset.image_ids == ("b", "c")
    assert done.dataset.caption_ids == ("b#0", "c#0")
    done = apply_review(dataset, _review(tmp_path / "r.csv", ("also-fits", "a", None, "b")))
    assert [
        len(done.relevance.items[a:b]) for a, b in zip(done.relevance.offsets, done.relevance.offsets[1:], strict=False)
    ] == [3, 3, 1]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([("maybe", "a", "a#0", None)], "line 2: the verdict 'maybe'"),
        ([("keep", "x", "a#0", None)], "unknown image 'x'"),
        ([("keep", "a", "a#7", None)], "unknown caption 'a#7'"),
        ([("keep", "b", "a#0", None)], "image 'b' of caption 'a#0'"),
        ([("also-fits", "a", "a#0", None)], "also-fits without a suggested_image"),
        ([("move", "a", None, "b")], "move without a caption"),
        ([("remove", "a", "a#0", None), ("keep", "a", "a#0", None)], "line 3: keep for caption 'a#0', but remove"),
        ([("move", "a", "a#0", "b"), ("remove", "b", None, "a")], "which is removed"),
    ],
)
def test_bad_reviews_name_the_line(
    tmp_path: Path, rows: list[tuple[str, str, str | None, str | None]], problem: str
) -> None:
    dataset = Dataset.of({"a": ["one", "two"], "b": ["three"]})
    with pytest.raises(InputError) as raised:
        apply_review(dataset, _review(tmp_path / "r.csv", *rows))
    assert problem in str(raised.value)
    assert "r.csv" in str(raised.value)


def test_a_list_without_verdicts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("image,caption\na,a#0\n")
    with pytest.raises(InputError, match="no column 'verdict'"):
        apply_review(Dataset.of({"a": ["one"]}), tmp_path / "r.csv")
    (tmp_path / "r.jsonl").write_text("{broken\n")
    with pytest.raises(InputError, match=r"r\.jsonl"):
        apply_review(Dataset.of({"a": ["one"]}), tmp_path / "r.jsonl")


@pytest.mark.parametrize(
    "bad", [{"threshold": 2}, {"far": float("nan")}, {"bits": 500}, {"cosine": -2}, {"shortest": -1}]
)
def test_bad_settings(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(bad))):
        LabelSettings(**bad)


def test_runs_in_which_no_caption_asks() -> None:
    dataset = Dataset.of({"a": ["one two three"], "b": ["four five six"]})
    both = rankings(np.eye(2), dataset)
    with pytest.raises(UsageError, match="no captions as queries"):
        label_quality(dataset, {"i2t": {"i2t": both["i2t"]}}, words=False)
    with pytest.raises(UsageError, match="direction 'i2t'"):
        label_quality(dataset, {"i2t": both}, direction="i2t", words=False)
    with pytest.raises(CrosslensError, match="not in the dataset"):
        label_quality(Dataset.of({"c": ["one two three"]}), {"other": both}, words=False)
