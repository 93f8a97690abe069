"""Labels to review: every signal against a slow reference, planted problems at the top, reviews read back."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from crosslens.analyze import LabelSettings, assess_label_quality as label_quality
from crosslens.analyze.label_quality.assess import REVIEW_COLUMNS, own_image_ranks, preferred_image
from crosslens.analyze.label_quality.concepts import CaptionNouns, compare_concepts, extract_concepts
from crosslens.analyze.label_quality.review import LabelQuality, apply_review
from crosslens.analyze.near_duplicates import DuplicateImages, duplicate_captions, duplicate_images
from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import CrosslensError, InputError, UsageError
from crosslens.core.ranking import Ranking
from crosslens.pipeline.evaluation import evaluate

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
def test_agreement_is_that_of_every_pair_of_words(own: list[str], others: list[list[str]], objects: list[str]) -> None:
    result = compare_concepts(
        CaptionNouns(tuple(own), tuple(own)), [CaptionNouns(tuple(words), tuple(words)) for words in others], objects
    )
    elsewhere = {OF_MEANING[word] for words in (*others, objects) for word in words}
    missing = [word for word in own if OF_MEANING[word] not in elsewhere]
    assert list(result.missing) == missing
    assert result.compared == bool(elsewhere)
    share = (len(own) - len(missing)) / len(own) if own and elsewhere else None
    assert result.share == share
    agreed = {
        group
        for group in range(len(MEANINGS))
        if (times := sum(group in {OF_MEANING[word] for word in words} for words in others)) >= 2
        and times > len(others) / 2
    }
    assert {OF_MEANING[word] for word in result.agreed} == agreed
    assert {OF_MEANING[word] for word in result.silent} == agreed - {OF_MEANING[word] for word in own}


def test_a_verb_is_no_object_of_a_caption() -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    caption = "A woman plays tennis while a crowd watches ."
    assert "watch" not in extract_concepts(Dataset.of({"a": [caption]})).named[caption].visible


def test_other_nouns_confirm_but_do_not_accuse() -> None:
    mine = CaptionNouns(("pear",), ("pear", "game"))
    assert compare_concepts(mine, [CaptionNouns((), ("game",))]).share == 0.5
    assert compare_concepts(mine, [CaptionNouns((), ("match",))]).share == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 6))
def test_rivals_stand_before_the_own_image_in_every_run(seed: int, runs: int, depth: int) -> None:
    dataset = Dataset.of({str(image): [f"text {image}"] for image in range(6)})
    random = np.random.default_rng(seed)
    matrices = [random.integers(0, 4, (6, 6)).astype(np.float64) for _ in range(runs)]
    result = [own_image_ranks(rankings(scores, dataset, depth), dataset) for scores in matrices]
    for caption in range(6):
        orders = [
            sorted(range(6), key=lambda image, scores=scores: (-scores[image, caption], image)) for scores in matrices
        ]
        assert [ranks[caption].rank for ranks in result] == [order.index(caption) + 1 for order in orders]
        before = [set(order[: order.index(caption)][:depth]) for order in orders]
        shared = set.intersection(*before)
        rival = preferred_image([ranks[caption] for ranks in result])
        if not shared:
            assert rival is None
            continue
        assert rival is not None
        sums = {image: sum(order.index(image) + 1 for order in orders) for image in shared}
        assert (sums[rival.image], rival.image) == min((total, image) for image, total in sums.items())
        leads = [
            scores[rival.image, caption]
            - (scores[caption, caption] if order.index(caption) < depth else scores[order[depth - 1], caption])
            for scores, order in zip(matrices, orders, strict=True)
        ]
        assert rival.lead == pytest.approx(min(leads))
        assert preferred_image([ranks[caption] for ranks in result], excluded=range(6)) is None


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.sampled_from(["A", "red", "dog", "runs"]), min_size=1)), max_size=8
    )
)
def test_copies_are_all_pairs_with_the_same_words(rows: list[tuple[int, list[str]]]) -> None:
    captions = {str(image): [" ".join(text) + " ." for owner, text in rows if owner == image] for image in range(4)}
    dataset = Dataset.of(captions)
    texts = [[word.lower() for word in text.split() if word not in ("A", ".")] for text in dataset.texts]
    owner = dataset.caption_image.tolist()
    result = duplicate_captions(dataset)
    for row, text in enumerate(texts):
        others = [other for other in range(len(texts)) if owner[other] != owner[row] and text]
        exact = [other for other in others if texts[other] == text]
        loose = [other for other in others if sorted(texts[other]) == sorted(text)]
        copies = result.get(row)
        assert (copies is None) == (not loose)
        if copies is not None:
            assert copies.in_order == bool(exact)
            assert copies.captions == tuple((owner[other], dataset.caption_ids[other]) for other in exact or loose)


def test_twins_by_file_hash_and_vector(tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(5)
    pictures = [image_module.fromarray(random.integers(0, 255, (40, 40, 3), np.uint8)) for _ in range(3)]
    for name, picture in (("a.png", 0), ("b.png", 0), ("c.png", 1), ("d.png", 2), ("e.bmp", 1)):
        pictures[picture].save(tmp_path / name)
    dataset = Dataset.of({name: ["A dog."] for name in "abcde"})
    files = {path.stem: str(path) for path in tmp_path.iterdir()}
    result = duplicate_images(dataset, files, bits=6, cosine=0.99)
    assert result == [DuplicateImages(0, 1, same_file=True, bits=0), DuplicateImages(2, 4, bits=0)]
    assert duplicate_images(dataset, files, bits=-1, cosine=2) == [DuplicateImages(0, 1, same_file=True)]
    vectors = Embeddings(
        ("e", "d", "c", "b", "a"), np.array([[1, 0], [0, 1], [2, 0.001], [1, 1], [-1, 0.5]], np.float32)
    )
    (near,) = duplicate_images(dataset, None, vectors, bits=6, cosine=0.99)
    assert (near.first, near.second, near.same_file, near.bits) == (2, 4, False, None)
    (tmp_path / "d.png").unlink()
    with pytest.raises(InputError, match=r"d\.png"):
        duplicate_images(dataset, files, bits=-1, cosine=2)


@pytest.fixture(scope="module")
def spoilt() -> tuple[Dataset, LabelQuality]:
    """Two captions swapped, one copied from another image, one that says nothing; two models that know better."""
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    dataset = Dataset.of(THINGS)
    first = list(dataset.texts)
    planted = with_texts(dataset, {0: first[3], 3: first[0], 8: first[12], 16: "I am unable to see it."})
    true_image = dataset.caption_image.copy()
    true_image[[0, 3, 8]] = [1, 0, 4]
    matrices = []
    for seed in (1, 2):
        scores = np.random.default_rng(seed).random((6, 18)) * 0.5
        scores[true_image, np.arange(18)] += 1
        scores[:, 16] = np.linspace(1, 0, 6)
        matrices.append(scores)
    runs = {f"model {n}": rankings(scores, planted) for n, scores in enumerate(matrices)}
    vectors = Embeddings(dataset.image_ids, np.eye(6, dtype=np.float32)[[0, 1, 2, 3, 4, 1]])
    return planted, label_quality(planted, runs, images=vectors)


def test_planted_problems_come_first(spoilt: tuple[Dataset, LabelQuality]) -> None:
    dataset, result = spoilt
    ids = [dataset.caption_ids[row] for row in (0, 3, 8, 16)]
    first = {row["caption"]: row for row in result.table.head(5).iter_rows(named=True)}
    assert set(ids) <= set(result.table.head(4)["caption"]), result.table
    assert first[ids[0]]["proposal"] == "move"
    assert first[ids[0]]["suggested_image"] == "boat"
    assert first[ids[1]]["proposal"] == "move"
    assert first[ids[1]]["suggested_image"] == "dog"
    assert first[ids[2]]["reason"] == "words + another image + far + same caption"
    assert first[ids[2]]["proposal"] == "remove"
    assert first[ids[2]]["suggested_image"] == "train"
    assert first[ids[3]]["proposal"] == "remove"
    assert "says nothing" in first[ids[3]]["reason"]
    twins = result.table.filter(pl.col("caption").is_null()).row(0, named=True)
    assert (twins["image"], twins["suggested_image"], twins["reason"]) == ("boat", "cat", "same picture")
    assert result.table["place"].to_list() == list(range(1, len(result) + 1))
    assert result.table.select("signals", "severity").rows() == sorted(
        result.table.select("signals", "severity").rows(), reverse=True
    )


def test_failures_are_told_apart(spoilt: tuple[Dataset, LabelQuality]) -> None:
    _, result = spoilt
    for row in result.runs.iter_rows(named=True):
        assert row["queries"] == 18
        assert row["annotation"] + row["model"] == row["failures"]
        assert (row["words"], row["same_caption"]) == (3, 1)  # the swapped two and the copied one; it is both
        assert row["annotation"] == 3
        assert row["model"] == 1  # a caption that says nothing is a reason to look, not an excuse


def test_no_model_excuses_itself() -> None:
    """All models wrong about a good caption: worth a look, and still their failure."""
    dataset = Dataset.of(THINGS)
    scores = good_scores(dataset, 3)
    scores[0, 0], scores[5, 0] = 0, 9
    result = label_quality(dataset, {"one": rankings(scores, dataset)}, words=False)
    assert result.runs.select("failures", "annotation", "model").row(0) == (1, 0, 1)
    assert result.table.select("caption", "reason", "proposal", "rank").rows() == [
        ("dog#0", "another image + far", "keep", 6)
    ]
    assert len(result.relevance().items) == len(dataset.texts)


def test_a_weak_models_misses_make_no_label_suspect() -> None:
    """What one model misses, without words or copies against it, is the model's: counted nowhere as a suspect label."""
    random = np.random.default_rng(0)
    dataset = Dataset.of({f"im{n}": [f"dog x{n} on a sofa y{m}" for m in range(5)] for n in range(40)})
    dataset = with_texts(dataset, {7: dataset.texts[100], 11: "dog"})
    runs = {"weak": rankings(random.random((40, 200)), dataset)}
    result = label_quality(dataset, runs, words=False)
    assert result.runs["failures"][0] > 150
    suspects = {dataset.caption_ids[row] for row in (7, 100, 11)}
    assert set(result.table.head(result.suspects)["caption"]) == suspects
    payload = result.as_dict()
    assert payload["suspects"] == result.suspects == len(suspects)
    assert payload["reasons"]["same caption"] == 2
    assert payload["reasons"]["says nothing"] == 1
    assert max(payload["reasons"].values()) <= len(suspects)
    rest = result.table.slice(result.suspects)
    assert payload["missed"] == rest.height
    assert set(rest["signals"]) == {0}
    assert rest["reason"].str.contains("far").all(), "a rank among the first is a mere miss"
    text = result.text(80)
    assert text.startswith("captions: 3 suspect labels to review")


def test_a_clean_dataset_has_nothing_to_review() -> None:
    dataset = Dataset.of(THINGS)
    result = label_quality(dataset, {"good": rankings(good_scores(dataset, 0), dataset)}, words=False)
    assert len(result) == 0
    assert result.reasons == {}
    assert result.left_out() == []
    assert result.runs["failures"].to_list() == [0]


def test_a_list_of_nearly_everything_asks_about_the_inputs() -> None:
    dataset = Dataset.of({f"im{n}": ["a dog on a sofa"] * 2 for n in range(40)})
    wrong = np.roll(good_scores(dataset, 0), 2, axis=1)
    result = label_quality(dataset, {"a": rankings(wrong, dataset)}, words=False)
    assert result.notes[0] == (
        "80 of 80 captions are listed, so the inputs may be wrong, not the labels: are the rows of the runs in the "
        "dataset's order?"
    )
    distinct = Dataset.of({f"im{n}": [f"dog {n} {m} on a sofa" for m in range(2)] for n in range(40)})
    result = label_quality(distinct, {"a": rankings(good_scores(distinct, 0), distinct)}, words=False)
    assert not any("the inputs may be wrong" in note for note in result.notes)


def test_a_caption_that_a_run_did_not_ask_is_judged_by_the_others() -> None:
    dataset = Dataset.of({"a": ["one two three", "four five six"], "b": ["seven eight nine", "ten eleven twelve"]})
    asked = replace(dataset, captions=dataset.captions[:1])
    wrong = rankings(np.array([[0.0], [1.0]]), asked)
    right = rankings(np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]]), dataset)
    assert label_quality(dataset, {"part": wrong}, words=False).table["caption"].to_list() == ["a#0"]
    assert len(label_quality(dataset, {"part": wrong, "all": right}, words=False)) == 0


def test_proposals(spoilt: tuple[Dataset, LabelQuality]) -> None:
    dataset, result = spoilt
    relevance = result.relevance()
    assert sorted(set(relevance.grades.tolist())) == [1, 2]
    stored = {
        (relevance.query_ids[row], relevance.item_ids[item]): grade
        for row, item, grade in zip(relevance.rows, relevance.items, relevance.grades, strict=True)
    }
    assert stored["boat", "dog#0"] == 1
    assert stored["dog", "dog#0"] == 2
    assert all(stored["cat", f"boat#{n}"] == 1 and stored["boat", f"cat#{n}"] == 1 for n in range(3))
    assert sum(grade == 2 for grade in stored.values()) == len(dataset.texts)
    out = result.left_out()
    assert {"boat#0", "cat#1", "dog#0", "pizza#2"} <= set(out)
    assert out == [row["caption"] for row in result.table.to_dicts() if row["proposal"] in ("remove", "move")]
    assert result.left_out(0) == []


@pytest.mark.parametrize("name", ["review.csv", "review.jsonl", "review.parquet", "review.csv.gz"])
def test_a_review_is_read_back(spoilt: tuple[Dataset, LabelQuality], tmp_path: Path, name: str) -> None:
    dataset, result = spoilt
    verdicts = {"dog#0": "move", "boat#0": "Also fits", "pizza#2": "remove", "horse#0": "keep"}
    table = result.table.with_columns(
        pl.col("caption").replace_strict(verdicts, default=None, return_dtype=pl.String).alias("verdict")
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


@given(st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_the_list_does_not_depend_on_the_order_of_runs(seed: int) -> None:
    dataset = Dataset.of(THINGS)
    runs = {str(n): rankings(np.random.default_rng(seed + n).random((6, 18)), dataset) for n in range(3)}
    table = label_quality(dataset, runs, words=False).table
    other = label_quality(dataset, dict(reversed(runs.items())), words=False).table
    assert table.drop("evidence", "severity").equals(other.drop("evidence", "severity"))
    assert dict(table.schema) == dict(REVIEW_COLUMNS)


def test_equal_pairs_are_each_told_once() -> None:
    vectors = Embeddings(("a", "b", "c"), np.ones((3, 2), np.float32))
    dataset = Dataset.of({name: [f"some words {name}"] for name in "abc"})
    result = duplicate_images(dataset, None, vectors, bits=6, cosine=1.0)
    assert [(pair.first, pair.second) for pair in result] == list(combinations(range(3), 2))
