"""Agreement with people: figures that scipy gives, the pairs they are over, the words around them."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import crosslens as cl
from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.data import Judgements
from crosslens.similarity import references_of
from crosslens.statistics import judge_agreement
from tests.similarity.test_cider import obvious

from .overlap import Overlap, made_dataset, overlap

DATASET = cl.Dataset.of(made_dataset(20, 3))


def judged(n: int = 150, seed: int = 0, judges: int = 3) -> Judgements:
    """People who see what ``overlap`` sees, and err."""
    random = np.random.default_rng(seed)
    rows = random.choice(20 * 60, n, replace=False)
    images, captions = rows // 60, rows % 60
    references = references_of(DATASET)
    truth = [overlap(references[i], DATASET.texts[c]) for i, c in zip(images, captions, strict=True)]
    scores = np.round(4 * np.array(truth)[:, None] + random.normal(size=(n, judges)) * 0.7)
    ids = [DATASET.image_ids[i] for i in images], [DATASET.caption_ids[c] for c in captions]
    return Judgements.of(DATASET, *ids, list(scores))


def test_figures_are_those_of_scipy() -> None:
    people = judged()
    result = cl.agreement(DATASET, people, Overlap(), resamples=0)
    is_own = DATASET.caption_image[people.captions] == people.images
    assert 0 < is_own.sum() < len(is_own)
    for part, rows in (("all", np.ones(len(is_own), bool)), ("non-gt", ~is_own)):
        values, scores = result.values["overlap"][rows], people.scores[rows]
        assert result.figure("overlap", "pearson", part).mean == pytest.approx(scipy.stats.pearsonr(values, scores)[0])
        assert result.figure("overlap", "spearman", part).mean == pytest.approx(
            scipy.stats.spearmanr(values, scores)[0]
        )
        for variant in "bc":
            expected = scipy.stats.kendalltau(values, scores, variant=variant)[0]
            assert result.figure("overlap", f"kendall-{variant}", part).mean == pytest.approx(expected)
    assert result.figure("binary").mean == pytest.approx(scipy.stats.pearsonr(is_own, people.scores)[0])
    assert isnan(result.figure("binary", "pearson", "non-gt").mean)
    assert isnan(result.figure("overlap").low)


def test_values_are_phi_of_the_pairs() -> None:
    people = judged(20)
    result = cl.agreement(DATASET, people, {"mine": overlap}, resamples=0)
    texts = DATASET.captions.group_by("image", maintain_order=True).agg("text")["text"].to_list()
    expected = [overlap(texts[i], DATASET.texts[c]) for i, c in zip(people.images, people.captions, strict=True)]
    assert result.values["mine"] == pytest.approx(np.array(expected), abs=1e-6)


def test_intervals_and_differences_resample_images() -> None:
    people = judged()
    noise = np.random.default_rng(1).normal(size=len(people))
    result = cl.agreement(DATASET, people, {"overlap": Overlap(), "noise": noise}, resamples=300)
    estimate = result.figure("overlap")
    assert estimate.low < estimate.mean < estimate.high < 1
    difference = result.subsets["all"].differences["noise", "overlap"]["pearson"]
    assert difference.mean == pytest.approx(result.figure("noise").mean - estimate.mean)
    assert difference.low < difference.mean < difference.high < 0
    again = cl.agreement(DATASET, people, {"overlap": Overlap(), "noise": noise}, resamples=300, threads=1)
    assert again.as_dict() == result.as_dict()
    other_seed = cl.agreement(DATASET, people, {"overlap": Overlap(), "noise": noise}, resamples=300, seed=1)
    assert other_seed.figure("overlap").low != estimate.low


def test_pooled_judges_are_observations_of_their_own() -> None:
    people = judged()
    result = cl.agreement(DATASET, people, Overlap(), pooled=True, resamples=0)
    values = np.repeat(result.values["overlap"], 3)
    expected = scipy.stats.kendalltau(values, people.judges.ravel(), variant="c")[0]
    assert result.figure("overlap", "kendall-c").mean == pytest.approx(expected)
    assert result.subsets["all"].observations == 3 * len(people)


def test_pairs_whose_caption_is_a_reference_can_be_left_out() -> None:
    dataset = cl.Dataset.of({"a": ["x y", "z"], "b": ["x y", "u"], "c": ["v"]})
    people = Judgements.of(dataset, ["a", "a", "b", "c"], ["a#0", "b#0", "b#1", "a#1"], [4, 4, 3, 1])
    result = cl.agreement(dataset, people, Overlap(), without_references=True, resamples=0)
    assert {name: subset.pairs for name, subset in result.subsets.items()} == {
        "all": 4,
        "non-gt": 2,
        "non-reference": 1,
    }


def test_a_larger_ground_truth() -> None:
    people = judged(30)
    pairs = [(people.images[row], people.captions[row]) for row in range(10)]
    truth = cl.Relevance.from_pairs(
        [DATASET.image_ids[i] for i, _ in pairs], [DATASET.caption_ids[c] for _, c in pairs],
    )  # fmt: skip
    for relevance in (truth, truth.flip()):
        result = cl.agreement(DATASET, people, Overlap(), ground_truth=relevance, resamples=0)
        assert result.truth.tolist() == [True] * 10 + [False] * 20
    with pytest.raises(UsageError, match="unknown caption id 'c'"):
        cl.agreement(DATASET, people, Overlap(), ground_truth=cl.Relevance.of({"i0": ["c"]}))


def test_captions_that_the_dataset_lacks() -> None:
    people = Judgements.of(DATASET, ["i0", "i1", "i2"], ["t0w1 t0w2", "a word", "t0w1 t0w2"], [3, 1, 2])
    result = cl.agreement(DATASET, people, Overlap(), resamples=0)
    assert result.values["overlap"][1] == 0
    with pytest.raises(UsageError, match="2 judged captions are not in the dataset"):
        cl.agreement(DATASET, people, np.zeros((20, 60), np.float32))


def test_a_matrix_is_a_phi() -> None:
    people = judged(40)
    matrix = np.random.default_rng(0).random((20, 60)).astype(np.float32)
    result = cl.agreement(DATASET, people, matrix, resamples=0)
    assert result.values["phi 1"] == pytest.approx(matrix[people.images, people.captions])


def test_bad_input() -> None:
    people = judged(10)
    with pytest.raises(InputError, match="9 numbers for 10 judged pairs"):
        cl.agreement(DATASET, people, {"mine": np.zeros(9)})
    with pytest.raises(InputError, match=r"mine of judged pair 0 .* is nan"):
        cl.agreement(DATASET, people, {"mine": np.full(10, np.nan)})
    with pytest.raises(UsageError, match="two φ are named 'overlap'"):
        cl.agreement(DATASET, people, [Overlap(), Overlap()])
    with pytest.raises(UnknownNameError, match="cider"):
        cl.agreement(DATASET, people, ["cidre"])
    result = cl.agreement(DATASET, people, Overlap(), resamples=0)
    for wrong in (("overlop",), ("overlap", "pearsen"), ("overlap", "pearson", "alle")):
        with pytest.raises(UnknownNameError):
            result.figure(*wrong)


def test_text_fits_a_terminal() -> None:
    people = judged()
    noise = np.random.default_rng(1).normal(size=len(people))
    result = cl.agreement(
        DATASET, people, {"overlap": Overlap(), "noise": noise}, without_references=True, resamples=50
    )
    text = result.text(80)
    assert max(map(len, text.splitlines())) <= 80
    assert "Kendall τ-b" in text
    assert "Kendall τ-c" in replace(result, kendall="c").text(80)
    assert "one judge against the mean of the pair's others" in " ".join(text.split())
    assert "Cohen's κ of two judges" in " ".join(text.split())
    assert f"{result.figure('overlap').mean:.3f}  [" in text
    assert "  − overlap" in text
    table = result.table
    assert table.height == 3 * 3 * 4
    row = table.filter(phi="overlap", coefficient="pearson", pairs="all")
    assert row["value"].item() == result.figure("overlap").mean


def test_the_ceiling_has_an_interval_over_images() -> None:
    people = judged()
    result = cl.agreement(DATASET, people, Overlap(), resamples=50, seed=3)
    expected = judge_agreement(people.judges, clusters=people.images, resamples=50, seed=3)
    assert expected is not None
    low, high = expected.ceiling_interval()
    assert low < expected.ceiling() < high
    assert result.as_dict()["judges"]["ceiling_interval"] == [low, high]
    short = [f"{end:.3f}".removeprefix("0") for end in (low, high)]
    assert f"ceiling {expected.ceiling():.3f} [{', '.join(short)}]" in " ".join(result.text(120).split())


def test_people_are_a_row_of_each_table() -> None:
    people = judged()
    truth = np.array([cl.agreement(DATASET, people, Overlap(), resamples=0).truth]).ravel()
    for pooled in (False, True):
        result = cl.agreement(DATASET, people, Overlap(), pooled=pooled, resamples=0)
        for part, rows in (("all", slice(None)), ("non-gt", ~truth)):
            expected = judge_agreement(people.judges[rows], resamples=0)
            assert expected is not None
            assert result.subsets[part].judges == expected
            content = result.as_dict()["subsets"][part]["judges"]
            assert content["ceiling"] == expected.reliability**0.5
            assert content["single_ceiling"] == expected.single_reliability**0.5
            lines = [line.split() for line in result.text().splitlines()]
            assert ["ceiling", f"{expected.ceiling(pooled):.3f}", "–", "–"] in lines
            share = result.figure([*result.values][1], subset=part).mean
            share /= expected.ceiling(pooled)
            stored = result.as_dict()["subsets"][part]["of_ceiling"]
            assert share in stored.values()
            assert any(line[2:4] == [f"{100 * share:.0f}", "%"] for line in lines)
            figures = [f"{expected.one_against_others[name]:.3f}" for name in ("pearson", "spearman", "kendall-b")]
            assert ["one", "judge", *figures] in lines
    alone = cl.agreement(DATASET, judged(judges=1), Overlap(), resamples=0)
    assert alone.judges is None
    assert alone.as_dict()["judges"] is None
    assert "one judge" not in alone.text()


@pytest.mark.parametrize("pooled", [False, True])
def test_a_phi_that_knows_the_truth_reaches_the_ceiling(pooled: bool) -> None:
    random = np.random.default_rng(3)
    images = random.choice(DATASET.image_ids, 4_000)
    captions = [f"text {number}" for number in range(len(images))]
    truth = random.normal(size=len(images))
    counts = random.integers(2, 6, len(images))
    scores = [value + random.normal(size=count) for value, count in zip(truth, counts, strict=True)]
    people = Judgements.of(DATASET, images.tolist(), captions, scores)
    result = cl.agreement(DATASET, people, {"truth": truth}, pooled=pooled, resamples=0)
    assert result.judges is not None
    assert result.figure("truth").mean == pytest.approx(result.judges.ceiling(pooled), abs=0.02)


def test_crisscrossed_captions_correlate_as_rows_read_and_scored_by_hand_do(tmp_path: Path) -> None:
    """A file of CxC's form: binary and CIDEr against its scores, all pairs and those outside the ground truth."""
    random = np.random.default_rng(7)
    words = ["a", "the", "dog", "cat", "man", "red", "big", "runs", "sits", "on", "mat", "tree", "near", "with", "two"]
    texts = {str(1000 + n): [" ".join(random.choice(words, random.integers(4, 9))) for _ in range(3)] for n in range(6)}
    dataset = cl.Dataset.of(texts)
    dataset = cl.Dataset("coco", dataset.images, dataset.captions.with_columns(caption=np.arange(100, 118).astype(str)))
    lines, pairs = [], []
    for caption in range(18):
        for image in {caption // 3, *random.choice(6, 3).tolist()}:
            is_own = image == caption // 3
            score = round(float(np.clip(random.normal(4 if is_own else 1.5, 0.8), 0, 5)), 2)
            lines.append(f"COCO_val2014:sentid:{100 + caption},COCO_val2014_{1000 + image:012d}.jpg,{score},c2i")
            pairs.append((image, caption, is_own, score))
    file = tmp_path / "sits_test.csv"
    file.write_text("caption,image,agg_score,sampling_method\n" + "\n".join(lines) + "\n")
    result = cl.agreement(dataset, file, "cider:split", resamples=0)
    images, captions, is_own, scores = (np.array(column) for column in zip(*pairs, strict=True))
    references = list(texts.values())
    cider = np.array([
        obvious(references, dataset.texts[caption], image, references, plain=False)
        for image, caption in zip(images, captions, strict=True)
    ])  # fmt: skip
    for phi, part, values, rows in (
        ("binary", "all", is_own, slice(None)), ("cider:split", "all", cider, slice(None)),
        ("cider:split", "non-gt", cider, ~is_own),
    ):  # fmt: skip
        expected = scipy.stats.pearsonr(values[rows], scores[rows])[0]
        assert result.figure(phi, "pearson", part).mean == pytest.approx(expected, abs=1e-6), (phi, part)
    assert isnan(result.figure("binary", "pearson", "non-gt").mean), "constant outside the ground truth"


@pytest.mark.slow
def test_published_kendall_of_cider_on_flickr8k(shared_data: Path) -> None:
    """Hessel et al. (2021), table 1: τ-c of CIDEr on Flickr8k-Expert is 43.9, own captions left out, judges pooled."""
    folder = shared_data / "flickr8k"
    photos = folder / "Flickr_8k.testImages.txt"
    dataset = cl.load_dataset("flickr", captions=folder / "Flickr8k.token.txt", images=photos)
    result = cl.agreement(dataset, folder / "ExpertAnnotations.txt", "cider", pooled=True, resamples=0)
    assert result.subsets["non-gt"].observations == 16_992
    assert 100 * result.figure("cider", "kendall-c", "non-gt").mean == pytest.approx(43.9, abs=0.3)
