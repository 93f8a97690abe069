"""The tables of a study against plain loops, against comparisons of runs, and where nothing changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import crosslens as cl
from crosslens.core import Figure
from crosslens.encode import text_only
from crosslens.perturbations import perturb
from tests.pipeline.robustness_study import reference
from tests.pipeline.robustness_study.letters import QUICK, Letters, captions, text_study


@st.composite
def studies(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray], list[list[bool]]]:
    images, each = draw(st.integers(2, 14)), draw(st.integers(1, 3))
    seed = draw(st.integers(0, 10_000))
    random = np.random.default_rng(seed)
    shape = images, images * each
    # Few distinct scores, so that there are ties.
    original = random.integers(0, 12, shape).astype(np.float32)
    original[np.repeat(np.arange(images), each), np.arange(shape[1])] += 4
    changed = [list(random.random(shape[1]) < 0.7) for _ in range(3)]
    for flags in changed:
        flags[0] = True
    variants = []
    for flags in changed:
        noise = random.integers(-5, 6, shape) * np.array(flags)
        variants.append((original + noise).astype(np.float32))
    return original, variants, changed


@settings(max_examples=2)
@given(studies())
def test_tables_equal_plain_loops(study: tuple[np.ndarray, list[np.ndarray], list[list[bool]]]) -> None:
    original, variants, changed = study
    images, count = original.shape
    image_of = [c // (count // images) for c in range(count)]
    dataset = cl.Dataset.of({f"i{n}": [f"t {n} {k}" for k in range(count // images)] for n in range(images)})
    perturbed = {
        f"v{n}": replace(
            dataset,
            captions=dataset.captions.with_columns(
                pl.Series("text", [t + "!" if c else t for t, c in zip(dataset.texts, flags, strict=True)])
            ),
        )
        for n, flags in enumerate(changed)
    }
    # With unit vectors as images, the dot product of a caption's vector is its column of the score matrix.
    result = cl.robustness(
        dataset, images=np.eye(images, dtype=np.float32), captions=original.T, score="dot", perturbed=perturbed,
        variants={f"v{n}": matrix.T for n, matrix in enumerate(variants)}, **QUICK,
    )  # fmt: skip
    before = reference.ranks(original, image_of)
    after = [reference.ranks(matrix, image_of) for matrix in variants]
    for n, matrix in enumerate(variants):
        row = result.changes.row(n, named=True)
        moves = reference.moves(before, after[n], changed[n])
        assert {name: pytest.approx(row[name]) for name in moves} == moves
        groups = reference.groups(before, after[n])
        assert {name: row[name] for name in groups} == {name: len(members) for name, members in groups.items()}
        assert row["up_while_similarity_down"] == reference.odd(original, matrix, image_of, changed[n])
        assert row["changed"] == sum(changed[n])
        over = [r for r, c in zip(after[n], changed[n], strict=True) if c]
        assert row["changed_MRR@10 after"] == pytest.approx(reference.mean([1 / r if r <= 10 else 0 for r in over]))
        assert row["Fails before"] == pytest.approx(reference.mean([r > 1 for r in before]))
        drops = {d["metric"]: d for d in result.drops.filter(pl.col("perturbation") == f"v{n}").to_dicts()}
        first, second = reference.rsum(original, image_of), reference.rsum(matrix, image_of)
        assert (drops["Rsum"]["before"], drops["Rsum"]["after"]) == (pytest.approx(first), pytest.approx(second))
        assert drops["Rsum"]["drop"] == pytest.approx(first - second)
        if first:
            assert drops["Rsum"]["percent"] == pytest.approx(100 * (first - second) / first)
        for row in drops.values():
            if row["metric"] != "t2i/MedR" and row["metric"] != "i2t/MedR" and row["before"] and row["low"] is not None:
                assert row["percent_low"] <= row["percent"] <= row["percent_high"]
        rank = drops["t2i/MedR"]
        assert rank["percent"] == pytest.approx(100 * rank["drop"] / np.median(before)), "of MedR, more is worse"
        assert np.isnan(rank["percent_low"]), "a median has no interval of its ratio"
        assert drops["t2i/MedR"]["drop"] == pytest.approx(np.median(after[n]) - np.median(before))
        hits = [100 * (a - b) for a, b in zip(reference.hits(before), reference.hits(after[n]), strict=True)]
        hits_of_changed = [hit for hit, c in zip(hits, changed[n], strict=True) if c]
        assert drops["t2i/Rsum"]["applied_drop"] == pytest.approx(reference.mean(hits_of_changed))
        assert drops["t2i/Rsum"]["applied_share"] == pytest.approx(reference.mean(changed[n]))
    for row in result.overlap.to_dicts():
        expected = reference.mean_jaccard(before, after, row["group"])
        assert row["jaccard"] == (None if expected is None else pytest.approx(expected))
    means = {
        dataset.caption_ids[c]: reference.mean(
            [reference.hits(before)[c] - reference.hits(ranks)[c] for ranks in after]
        )
        for c in range(count)
    }  # fmt: skip
    worst = max(means.values())
    listed = result.brittle.unique("query", maintain_order=True)
    assert len(listed) == min(20, sum(drop > 0 for drop in means.values()))
    if worst > 0:
        assert listed["mean_drop"][0] == pytest.approx(worst)
    assert all(means[row["query"]] == pytest.approx(row["mean_drop"]) for row in listed.to_dicts())


def test_drop_and_its_test_are_those_of_compare() -> None:
    dataset, encoder = captions(12), Letters()
    result = text_study(dataset, encoder, "char_swap,shuffle_all_words")
    row = result.drops.filter((pl.col("metric") == "t2t/Hit@1") & (pl.col("perturbation") == "char_swap")).to_dicts()[0]
    results = perturb("char_swap", text_only(dataset, encoder).dataset)
    texts = text_only(dataset, encoder)
    new = encoder.encode_texts([caption.text for caption in results])
    runs = [
        cl.evaluate(
            texts.dataset, images=texts.images, captions=vectors, directions=["t2t"], metrics="Hit@1", resamples=50
        )
        for vectors in (texts.captions.vectors, new)
    ]
    expected = cl.compare(*runs, permutations=50)["t2t/Hit@1"]
    assert row["drop"] == pytest.approx(-expected.difference)
    assert (row["low"], row["high"]) == (pytest.approx(-expected.high), pytest.approx(-expected.low))
    assert row["p"] == expected.p_value


def test_what_is_lost_is_positive_in_every_table() -> None:
    """A plus for a loss in one table and a minus for it in the next would be read as the reverse of each other."""
    dataset = cl.Dataset.of({f"i{n}": [f"the dog has {n} bones", f"a cat sees dog {n}"] for n in range(16)})
    texts = pl.Series("text", [text.replace("dog", "dgo") for text in dataset.texts])
    perturbed = {"char_swap": replace(dataset, captions=dataset.captions.with_columns(texts))}
    images = np.eye(16, dtype=np.float32)
    right = images[dataset.caption_image]
    result = cl.robustness(
        dataset, images=images, captions=right, score="dot", perturbed=perturbed,
        variants={"char_swap": np.roll(right, 4, axis=0)}, **QUICK,
    )  # fmt: skip
    sections = {section.title: section for section in result.sections()}
    (table,) = next(section for title, section in sections.items() if title.startswith("Drop of ")).tables
    lost = table.rows[0][table.header.index("points lost")]
    assert isinstance(lost, Figure)
    assert lost.value is not None
    assert lost.value > 0
    assert not str(lost).startswith("+")
    if words := sections.get("Which words matter most?"):
        costs = [row[words.tables[0].header.index("lost")] for row in words.tables[0].rows]
        values = [cost.value for cost in costs if isinstance(cost, Figure) and cost.value is not None]
        assert values == sorted(values, reverse=True)
        assert values[0] > 0


def test_a_perturbation_that_applies_to_nothing_changes_nothing() -> None:
    dataset = cl.Dataset.of({f"i{n}": [f"one thing {n}", f"another thing {n}"] for n in range(8)})
    result = text_study(dataset, Letters(), "size,color_all")
    assert result.drops["applied_share"].to_list() == [0.0] * len(result.drops)
    assert set(result.drops["drop"].to_list()) == {0.0}
    assert (result.drops["low"] == -result.drops["high"]).all(), "other images might have what it applies to"
    assert set(result.drops["adjusted_p"].to_list()) == {1.0}
    assert result.changes["unchanged"].to_list() == [8, 8]
    assert not len(result.brittle)
    assert result.captions["reason"].str.len_chars().min() > 0


def test_several_seeds_show_their_spread() -> None:
    result = text_study(captions(12), Letters(), "char_swap,distraction_true", seeds=3)
    rows = result.spread.filter(pl.col("metric") == result.headline)
    assert rows["seeds"].to_list() == [3, 3]
    drops = result.drops.filter((pl.col("metric") == result.headline) & (pl.col("perturbation") == "char_swap"))["drop"]
    assert rows["mean"][0] == pytest.approx(np.mean(drops.to_list()))
    assert rows["deviation"][0] == pytest.approx(np.std(drops.to_list(), ddof=1))
    assert rows["deviation"][1] == 0, "an appended sentence does not depend on chance"
    assert len(result.changes) == 2


def test_the_sum_of_a_direction_is_the_same_whether_or_not_it_is_named() -> None:
    dataset = captions(5)
    vectors = Letters().encode_texts(dataset.texts)
    ready: dict[str, Any] = {"images": vectors[::3], "captions": vectors, "variants": {"mine": vectors[::-1].copy()}}
    added, with_sum = (
        cl.robustness(dataset, **ready, metrics=metrics, directions=["t2i"], **QUICK).drops.filter(
            pl.col("metric") == "t2i/Rsum"
        )
        for metrics in ("Hit@1", "Hit@1 t2i/Rsum")
    )
    assert added.height == 1
    assert added.equals(with_sum)


def test_any_choice_of_metrics_works() -> None:
    dataset = captions(5)
    vectors = Letters().encode_texts(dataset.texts)
    ready: dict[str, Any] = {"images": vectors[::3], "captions": vectors, "variants": {"mine": vectors[::-1].copy()}}
    result = cl.robustness(dataset, **ready, metrics="Rsum[capped]", **QUICK)
    assert result.headline == "Rsum[capped]"
    assert result.drops["metric"].to_list() == ["Rsum[capped]", "t2i/Rsum"]
    images = cl.robustness(dataset, **ready, metrics="i2t/MedR[all] Hit@1", directions=["i2t"], **QUICK)
    assert images.headline == "i2t/Rsum"
    assert images.changes["queries"].to_list() == [5]


def test_one_direction_has_the_figures_of_both() -> None:
    """BRIT perturbs text queries only: its headline is that of t2i."""
    random = np.random.default_rng(2)
    dataset = cl.Dataset.of({f"i{n}": [f"a {n}", f"b {n}"] for n in range(12)})
    images = random.standard_normal((12, 6))
    ready = {
        "images": images,
        "captions": np.repeat(images, 2, axis=0) + random.standard_normal((24, 6)),
        "variants": {"mine": np.repeat(images, 2, axis=0) + 2 * random.standard_normal((24, 6))},
    }
    both = cl.robustness(dataset, **ready, directions="both", **QUICK)
    assert both.headline == "Rsum"
    assert both.drops.equals(cl.robustness(dataset, **ready, **QUICK).drops)
    for direction in ("t2i", "i2t"):
        alone = cl.robustness(dataset, **ready, directions=direction, **QUICK)
        assert alone.headline == f"{direction}/Rsum"
        assert {name.partition("/")[0] for name in alone.drops["metric"]} == {direction}
        rows = {row["metric"]: row for row in both.drops.to_dicts()}
        for row in alone.drops.to_dicts():
            hits = [rows[f"{direction}/Hit@{k}"]["drop"] for k in (1, 5, 10)]
            expected = rows[row["metric"]]["drop"] if row["metric"] != alone.headline else 100 * sum(hits)
            assert row["drop"] == pytest.approx(expected)
