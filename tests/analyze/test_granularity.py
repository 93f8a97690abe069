"""Granularity: against plain loops over single captions, against the paper on real captions, and against nonsense."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.analyze import FEATURES, Granularity, compare_granularity, measure_granularity as granularity
from crosslens.core import InputError, Lines, UnknownNameError, UsageError
from crosslens.data import captions_by, captions_where
from crosslens.language import load_wordnet, parse_texts
from tests.language.pipelines import needs_a_pipeline

pytestmark = [needs_a_pipeline, pytest.mark.usefixtures("own_cache")]

CAPTIONS = (
    "A man with a red helmet on a small moped on a dirt road.",
    "Two dogs run after both of the balls, and each dog is happy!",
    "Several people, some of them old, wait for a bus near three tall houses.",
    "Many more slowly moving cars were cut in half by no one.",
    "riding",
    "A GIRAFFE eats leaves from the very tallest trees in the Serengeti",
    "An apple, an orange; the pear…",
    "1234 5678",
    "?!…",
    "Ein Café über  dem Fluß 🐶 naïve",
    "the the the the",
    "A little boy is covered by the blanket and looks at himself in the mirror.",
)
PAPER = {
    "words": 10.59, "characters": 52.39, "articles": 2.14, "adjectives": 0.76, "complement_phrases": 1.56,
    "concept_depth": 7.89, "diversity": 9.14,
}  # fmt: skip
"""The paper's MS-COCO column, without quantifiers: docs/results/granularity.md says why those differ."""
QUANTIFIERS = (
    "all another any both each either enough every few fewer half less many more most much neither no none plenty "
    "several some"
)


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of its own: the person's may be large, and every look into it takes its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSLENS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@lru_cache
def by_hand(text: str) -> dict[str, float]:
    """Every feature of one caption, one token after the other."""
    wordnet = load_wordnet()
    parse = parse_texts([text], cache=False)[0]
    count = dict.fromkeys(("adjectives", "articles", "determiners", "quantifiers", "cardinals", "words", "tokens"), 0)
    phrases, names, depths, noun_depths = set(), set(), [], []
    for token in range(len(parse.words)):
        word, tag = parse.words[token], parse.tags[token]
        if word.isspace():
            continue
        count["tokens"] += 1
        count["words"] += any(letter.isalnum() for letter in word)
        count["adjectives"] += tag in ("JJ", "JJR", "JJS")
        count["articles"] += word.lower() in ("a", "an", "the")
        count["cardinals"] += tag == "CD"
        count["determiners"] += tag == "DT"
        if word.lower() in QUANTIFIERS.split():
            noun = tag.startswith("NN") and word.lower() in ("none", "plenty")
            count["quantifiers"] += noun or tag in ("DT", "PDT", "JJ", "JJR", "JJS")
        if parse.arcs[token] == "pobj":
            phrases.add(parse.heads[token])
        senses = wordnet.synsets(word)
        if len(senses):
            depths.append(max(int(wordnet.min_depth([sense])[0]) for sense in senses.tolist()))
        for sense in senses.tolist():
            names.update(wordnet.lemmas(sense))
        nouns = wordnet.synsets(word, "n")
        if tag.startswith("NN") and len(nouns):
            noun_depths.append(max(int(wordnet.min_depth([sense])[0]) for sense in nouns.tolist()))
    tokens, words = count.pop("tokens"), count["words"]
    return {
        **count,
        "complement_phrases": len(phrases),
        "concept_depth": sum(depths) / len(depths) if depths else math.nan,
        "concept_depth_nouns": sum(noun_depths) / len(noun_depths) if noun_depths else math.nan,
        "characters": len(text),
        "diversity": len(names) / tokens if tokens else math.nan,
        "diversity_ratio": len(names) / words if words else math.nan,
    }


def same(measured: Granularity, texts: tuple[str, ...] | list[str]) -> None:
    for row, text in enumerate(texts):
        expected = by_hand(text)
        assert {name: measured.of(name)[row] for name in FEATURES} == pytest.approx(expected, nan_ok=True), text


@pytest.fixture(scope="module")
def measured(own_cache: None) -> Granularity:
    return granularity(CAPTIONS)


def test_agrees_with_plain_loops(measured: Granularity) -> None:
    same(measured, CAPTIONS)


def test_is_a_mapping_of_means(measured: Granularity) -> None:
    assert list(measured) == list(FEATURES)
    assert len(measured) == len(FEATURES)
    assert {"adjectives", "complement_phrases", "articles", "quantifiers", "concept_depth", "characters", "words",
            "diversity", "diversity_ratio"} <= set(measured)  # fmt: skip
    for name, mean in dict(measured).items():
        values = [value for value in (by_hand(text)[name] for text in CAPTIONS) if not math.isnan(value)]
        assert mean == pytest.approx(sum(values) / len(values))
    assert list(measured.values()) == [measured[name] for name in measured]
    assert dict(cl.granularity(CAPTIONS)) == dict(measured)


def test_a_caption_read_by_eye() -> None:
    result = granularity(["A man with a red helmet on a small moped on a dirt road."])
    names = ("adjectives", "complement_phrases", "articles", "quantifiers", "words")
    assert {name: result[name] for name in names} == {
        "adjectives": 2, "complement_phrases": 3, "articles": 4, "quantifiers": 0, "words": 14,
    }  # fmt: skip
    assert result["characters"] == 56
    assert granularity(["Two dogs and some cats"])["quantifiers"] == 1
    assert granularity(["Two dogs and some cats"])["cardinals"] == 1


def test_words_that_only_look_like_quantifiers() -> None:
    result = granularity(["a pizza that is cut in half", "some birds", "the man runs more slowly", "a little boy"])
    assert result.of("quantifiers").tolist() == [0, 1, 0, 0]


def test_nothing_to_take_a_mean_of_does_not_count() -> None:
    result = granularity(["?!…", "a dog"])
    assert math.isnan(result.of("concept_depth")[0])
    assert result["concept_depth"] == result.of("concept_depth")[1]
    assert result.of("words").tolist() == [0, 2]


@cache
def measured_without_a_cache() -> Granularity:
    return granularity(CAPTIONS, cache=False)


@given(st.lists(st.sampled_from(CAPTIONS), min_size=1, max_size=9))
def test_a_caption_does_not_depend_on_its_company(texts: list[str]) -> None:
    whole = measured_without_a_cache()
    result = granularity(texts, cache=False)
    for name in FEATURES:
        expected = [whole.of(name)[CAPTIONS.index(text)] for text in texts]
        assert result.of(name).tolist() == pytest.approx(expected, nan_ok=True)


def test_blocks_change_nothing(measured: Granularity, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr("crosslens.analyze.granularity._BLOCK", 5)
    again = granularity(CAPTIONS)
    for name in FEATURES:
        assert again.of(name).tolist() == pytest.approx(measured.of(name).tolist(), nan_ok=True)


def test_captions_of_a_dataset_are_clustered_by_image() -> None:
    dataset = cl.Dataset.of({"one": CAPTIONS[:3], "none": [], "two": CAPTIONS[3:6]}, name="mine")
    result = granularity(dataset)
    assert (result.name, result.clusters.tolist()) == ("mine", [0, 0, 0, 2, 2, 2])
    assert result.table.columns == ["caption", "image", *FEATURES]
    assert result.table["image"].to_list() == ["one"] * 3 + ["two"] * 3
    assert math.isnan(result.estimates(resamples=200)["words"].low), "two images are too few for an interval"
    several = granularity(cl.Dataset.of({f"i{n}": [text, text] for n, text in enumerate(CAPTIONS)}))
    once = granularity(cl.Dataset.of({f"i{n}": [text] for n, text in enumerate(CAPTIONS)}))
    assert several.estimates()["words"] == once.estimates()["words"], "saying it twice adds nothing"


@pytest.mark.parametrize(
    ("captions", "problem"),
    [
        ("a dog", "a single text"),
        ([], "no captions"),
        (["a dog", " "], "caption '1' is ' '"),
        (["a dog", None], "caption '1' is None"),
        ({"x": 3}, "caption 'x' is 3"),
        (None, "None is not a list of captions"),
        (7, "7 is not a list of captions"),
    ],
)
def test_bad_input(captions: object, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        granularity(captions)  # type: ignore[arg-type]


def test_an_unknown_feature_is_named(measured: Granularity) -> None:
    with pytest.raises(UnknownNameError, match="adjective"):
        measured["adjective"]
    assert "adjective" not in measured


# Several sets


def two_sets() -> tuple[cl.Dataset, cl.Dataset]:
    """The same images; the second set is in another order, and has other numbers of captions."""
    coarse = {f"i{n}": [f"a {noun}", f"the {noun} there"] for n, noun in enumerate(("dog", "cat", "car", "cup", "man"))}
    fine = {
        image: [f"{texts[0]} of a deep red colour on a small wooden table"] * (1 + int(image[1]) % 3)
        for image, texts in reversed(coarse.items())
    }
    return cl.Dataset.of(coarse, name="coarse"), cl.Dataset.of(fine, name="fine")


def test_the_same_images_are_paired() -> None:
    coarse, fine = two_sets()
    result = compare_granularity([granularity(coarse), granularity(fine)], resamples=100, permutations=200)
    change = result.changes["fine"]["words"]
    assert change.paired
    assert change.difference == pytest.approx(12 - 2.5)
    assert change.relative == pytest.approx(12 / 2.5 - 1)
    assert math.isnan(change.low), "five images are too few for an interval"
    assert change.p_value == pytest.approx(2 / 2**5, abs=0.05)
    assert math.isnan(result.changes["fine"]["quantifiers"].relative)
    text = result.text(80)
    assert "paired by image: fine" in text
    assert "+380.0 %" in text
    assert max(map(len, text.splitlines())) <= 80
    assert result.as_dict()["datasets"][0]["features"]["words"]["change"] is None


def test_pairing_sees_what_drawing_apart_does_not() -> None:
    """Images that differ a lot, captions that differ a little, always in one direction."""
    words = "red " * 30
    sizes = range(1, 13)
    short = cl.Dataset.of({f"i{n}": [f"{words[: 4 * n]}dog"] for n in sizes}, name="short")
    added = {n: "now" if n % 2 else "right now" for n in sizes}
    longer = cl.Dataset.of({f"i{n}": [f"{words[: 4 * n]}dog {added[n]}"] for n in sizes}, name="longer")
    elsewhere = cl.Dataset.of({f"j{n}": [f"{words[: 4 * n]}dog {added[n]}"] for n in sizes}, name="elsewhere")
    sets = [granularity(captions) for captions in (short, longer, elsewhere)]
    result = compare_granularity(sets, resamples=200, permutations=200)
    paired, apart = result.changes["longer"]["words"], result.changes["elsewhere"]["words"]
    assert 1 < paired.low < 1.5 < paired.high < 2
    assert 0 < paired.relative_low < paired.relative < paired.relative_high
    assert apart.low < 0 < 1.5 < apart.high
    assert -1 < apart.relative_low < 0 < apart.relative < apart.relative_high
    assert not apart.paired
    assert math.isnan(apart.p_value)
    assert "drawn apart: elsewhere" in str(result).replace("\n", " ")


def test_sets_of_one_name_are_told_apart() -> None:
    coarse, _ = two_sets()
    result = compare_granularity([granularity(coarse)] * 2, resamples=0, permutations=1)
    assert list(result.means) == ["coarse", "coarse (2)"]
    assert result.changes["coarse (2)"]["words"].relative == 0
    assert "[" not in result.text()
    with pytest.raises(UsageError, match="no captions"):
        compare_granularity([])


def test_every_feature_has_a_chart_of_all_sets() -> None:
    coarse, fine = two_sets()
    result = compare_granularity([granularity(coarse), granularity(fine)], resamples=0, permutations=1)
    (section,) = result.only(["words", "concept_depth"]).sections()
    words, depth = section.charts
    assert isinstance(words, Lines)
    assert (words.title, depth.title) == ("words", "concept depth")
    assert [line.name for line in words.series] == ["coarse", "fine"]
    at = dict(zip(words.across, words.series[0].figures, strict=True))
    assert {across: figure.value for across, figure in at.items() if figure.value} == {2.0: 0.5, 3.0: 0.5}
    assert words.across == tuple(float(n) for n in range(2, 13)), "whole numbers stand alone"


def test_captions_by_a_column() -> None:
    coarse, _ = two_sets()
    styles = pl.Series(["plain", "odd", None, "odd", "plain"] * 2)
    styled = cl.Dataset("styled", coarse.images, coarse.captions.with_columns(style=styles))
    result = captions_by(styled, "style")
    assert {name: dataset.captions.height for name, dataset in result.items()} == {"plain": 4, "odd": 4}
    assert all(dataset.image_ids == styled.image_ids for dataset in result.values())
    assert captions_where(styled, "style", "odd").texts == result["odd"].texts
    with pytest.raises(UnknownNameError, match="odder"):
        captions_where(styled, "style", "odder")
    with pytest.raises(UnknownNameError, match="stile"):
        captions_by(styled, "stile")
    many = cl.Dataset.of({"i": [f"dog {n}" for n in range(40)]})
    with pytest.raises(InputError, match="40 different values"):
        captions_by(many, "text")


# Real captions


def coco(shared_data: Path, images: int | None = None) -> cl.Dataset:
    dataset = cl.load_dataset(
        "plain", captions=shared_data / "coco_karpathy_test" / "captions.tsv.gz", image_column="coco_image_id",
        caption_column="coco_caption_id", text_column="raw_caption",
    )  # fmt: skip
    return dataset if images is None else dataset.select(dataset.image_ids[:images])


@pytest.mark.slow
def test_some_of_coco_is_near_the_paper(shared_data: Path) -> None:
    dataset = coco(shared_data, 60)
    result = granularity(dataset)
    for name, printed in PAPER.items():
        assert result[name] == pytest.approx(printed, rel=0.15), name
    rows = list(range(0, len(dataset.texts), 20))
    for row in rows:
        expected = by_hand(dataset.texts[row])
        assert {name: result.of(name)[row] for name in FEATURES} == pytest.approx(expected, nan_ok=True)


@pytest.mark.slow
def test_all_of_coco_is_near_the_paper(shared_data: Path) -> None:
    result = granularity(coco(shared_data))
    assert len(result.caption_ids) == 25_000
    for name, printed in PAPER.items():
        assert result[name] == pytest.approx(printed, rel=0.1), name
    assert result["quantifiers"] == pytest.approx(0.1, abs=0.005)
    assert result["cardinals"] == pytest.approx(0.12, rel=0.1)
    assert result["concept_depth_nouns"] == pytest.approx(9.0, abs=0.05)
    assert np.isnan(result.of("diversity")).sum() == 0


def test_one_caption_of_one_image_is_said_in_the_singular() -> None:
    alone = compare_granularity([granularity(["a dog"])])
    assert "Means per caption: 1 caption of 1 image." in alone.text()
