"""A sample of queries: the same rankings as in the whole run, a seeded draw, intervals that hold, polite refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import UsageError
from crosslens.pipeline.evaluations.rankers import draw_queries
from crosslens.statistics import estimate
from crosslens.values import Dataset
from tests.commands import Call, call as call

IMAGES, EACH, WIDTH = 60, 3, 8


def world(images: int = IMAGES, noise: float = 0.8, seed: int = 0) -> tuple[Dataset, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    dataset = Dataset.of({f"i{n}": [f"text {n} {m}" for m in range(EACH)] for n in range(images)})
    pictures = rng.standard_normal((images, WIDTH))
    texts = pictures.repeat(EACH, 0) + noise * rng.standard_normal((images * EACH, WIDTH))
    return dataset, {"images": pictures.astype(np.float16), "captions": texts.astype(np.float16)}


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_sampled_queries_have_the_rankings_of_the_whole_run(backend):
    if backend == "torch":
        pytest.importorskip("torch")
    dataset, vectors = world()
    whole = cl.evaluate(dataset, **vectors, resamples=0)
    sampled = cl.evaluate(dataset, **vectors, resamples=0, queries=17, seed=3, backend=backend)
    for direction, ids in (("i2t", dataset.image_ids), ("t2i", dataset.caption_ids)):
        ranking = sampled.rankings[direction]
        rows = [ids.index(query) for query in ranking.query_ids]
        assert len(rows) == 17
        assert rows == sorted(rows)
        assert ranking.fingerprint == whole.rankings[direction].of_queries(rows).fingerprint
        for name, values in sampled.values.items():
            if name.startswith(direction):
                np.testing.assert_array_equal(values.values, whole.values[name].values[rows])
    facts = sampled.provenance["sample"]
    assert facts == {"i2t": {"queries": 17, "of": 60, "seed": 3}, "t2i": {"queries": 17, "of": 180, "seed": 3}}


def test_the_draw_is_seeded_fair_and_grows():
    askable = np.arange(100) % 4 != 0
    first = draw_queries(askable, 10, 0, "i2t")
    np.testing.assert_array_equal(first, draw_queries(askable, 10, 0, "i2t"))
    assert set(first) < set(draw_queries(askable, 30, 0, "i2t"))
    assert list(first) != list(draw_queries(askable, 10, 1, "i2t"))
    assert list(first) != list(draw_queries(askable, 10, 0, "t2i"))
    counts = np.sum(
        [np.bincount(draw_queries(askable, 10, seed, "i2t"), minlength=100) for seed in range(3000)], axis=0
    )
    assert counts[~askable].sum() == 0
    expected = 3000 * 10 / 75
    assert np.abs(counts[askable] - expected).max() < 5 * np.sqrt(expected)


def test_the_intervals_are_those_of_the_sampled_queries_by_image():
    dataset, vectors = world()
    run = cl.evaluate(dataset, **vectors, queries=40, metrics="t2i/Hit@1 t2i/MedR")
    ranking = run.rankings["t2i"]
    clusters = dataset.caption_image[[dataset.caption_ids.index(query) for query in ranking.query_ids]]
    values = run.values["t2i/Hit@1"]
    alone = estimate(values.values, clusters, bounds=(0, 1))
    assert (values.mean, *values.interval) == (alone.mean, *alone.interval)
    assert any("a random sample of 40 of 180 queries (seed 0)" in note for note in run.provenance["notes"])
    assert any("at most 0.88 times as wide" in note for note in run.provenance["notes"])


def test_as_many_as_there_are_is_the_whole_run():
    dataset, vectors = world()
    whole, all_of_them = cl.evaluate(dataset, **vectors), cl.evaluate(dataset, **vectors, queries=10_000)
    assert {name: all_of_them.values[name].mean for name in all_of_them}.items() <= {
        name: values.mean for name, values in whole.values.items()
    }.items()
    assert any("all 180 queries are ranked, as there are no more" in note for note in all_of_them.provenance["notes"])


def test_queries_without_a_relevant_item_are_not_drawn():
    dataset, vectors = world()
    dataset = dataset.with_extra_images(["z1", "z2", "z3"])
    vectors["images"] = np.concatenate([vectors["images"], np.ones((3, WIDTH), np.float16)])
    run = cl.evaluate(dataset, **vectors, queries=60, resamples=0)
    assert run.provenance["sample"]["i2t"]["of"] == 60
    assert not {"z1", "z2", "z3"} & set(run.rankings["i2t"].query_ids)
    assert len(run.rankings["t2i"].item_ids) == 63


def test_columns_to_group_by_are_those_of_the_sampled_queries(tmp_path):
    dataset, vectors = world()
    run = cl.evaluate(dataset, **vectors, queries=9, resamples=0)
    table = run.columns["t2i"]
    assert table.height == 9
    image_of = dict(zip(dataset.caption_ids, dataset.captions["image"], strict=True))
    assert table["image"].to_list() == [image_of[query] for query in run.rankings["t2i"].query_ids]
    run.save(tmp_path / "run")
    assert cl.Run.load(tmp_path / "run").fingerprint == run.fingerprint


@pytest.mark.parametrize(("options", "message"), [
    ({"folds": 2}, "queries=5 and folds=2"),
    ({"queries": 0}, "queries"),
    ({"metrics": "DCGcm@5"}, r"queries=5 and DCGcm\[scores_from=own\]@5, which needs the gains of all pairs"),
    ({"metrics": "Rsum"}, "the image of t2i query"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(options, message):
    dataset, vectors = world()
    with pytest.raises(cl.CrosslensError, match=message):
        cl.evaluate(dataset, **vectors, **({"queries": 5} | options))


def test_ranked_lists_are_not_sampled():
    with pytest.raises(UsageError, match="queries=5 and ranked lists"):
        cl.evaluate(run={"q": ["a"]}, relevance={"q": ["a"]}, queries=5)


def test_on_the_command_line(tmp_path, call: Call):
    dataset, vectors = world()
    dataset.save(tmp_path / "data")
    for name, array in vectors.items():
        np.save(tmp_path / f"{name}.npy", array)
    files = ("--image-embeddings", tmp_path / "images.npy", "--caption-embeddings", tmp_path / "captions.npy")
    words = ("evaluate", "--dataset", tmp_path / "data", *files)
    done = call(*words, "--queries", "20", "--seed", "4", "-o", tmp_path / "run", "--json")
    assert done.code == 0, done.err
    expected = cl.evaluate(dataset, **vectors, queries=20, seed=4)
    assert done.json["metrics"]["t2i/Hit@1"]["mean"] == expected.values["t2i/Hit@1"].mean
    assert "queries = 20" in (tmp_path / "run" / "recipe.toml").read_text()
    again = call("run", tmp_path / "run" / "recipe.toml", "-o", tmp_path / "again", "--json")
    assert again.json["metrics"] == done.json["metrics"]
    assert "a random sample of 20 of 180 queries" in call(*words, "--queries", "20").err
    refused = call(*words, "--queries", "20", "--folds", "2")
    assert refused.code == 2
    assert "--queries 20 and --folds 2" in refused.err


@pytest.mark.slow
def test_the_value_of_all_queries_is_in_the_narrower_interval_as_often_as_promised():
    """Samples of captions, several of an image alike: √(1 − n/N) times the width still covers the whole run's value."""
    dataset, vectors = world(images=200, noise=2.5, seed=8)
    whole = cl.evaluate(dataset, **vectors, resamples=0, metrics="t2i/Hit@1").values["t2i/Hit@1"]
    inside = []
    for seed in range(300):
        run = cl.evaluate(dataset, **vectors, queries=300, seed=seed, metrics="t2i/Hit@1", directions="t2i")
        values, share = run.values["t2i/Hit@1"], np.sqrt(1 - 300 / 600)
        low, high = values.interval
        inside.append(
            values.mean - share * (values.mean - low) <= whole.mean <= values.mean + share * (high - values.mean)
        )
    assert np.mean(inside) > 0.92
